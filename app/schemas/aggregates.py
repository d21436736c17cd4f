"""Columns that are released with the count: their noise, and the most that one user can change in them."""

from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from app.schemas.scalars import MOST_COLUMNS, ColumnName, GroupsPerUser, Row
from app.schemas.strict import Strict

__all__ = [
    "AGGREGATES",
    "CAPPED",
    "BalancedColumnsIn",
    "BoxIn",
    "CappedIn",
    "ColumnsIn",
    "L2In",
    "MuZeroIn",
    "NamedColumns",
    "Ratios",
    "RelativeColumnsIn",
    "VectorsIn",
]

Square = Annotated[list[Row], Field(min_length=1, max_length=MOST_COLUMNS)]
Names = Annotated[list[ColumnName], Field(min_length=1, max_length=MOST_COLUMNS)]


Caps = TypeAliasType(
    "Caps",
    Annotated[
        list[GroupsPerUser | None],
        Field(
            min_length=1, max_length=MOST_COLUMNS, description="The most groups in which a user changes each column."
        ),
    ],
)
RatioColumns = TypeAliasType(
    "RatioColumns",
    Annotated[
        list[str],
        Field(min_length=2, max_length=2, description="The two columns of a ratio. The second one may be count."),
    ],
)
Ratios = TypeAliasType(
    "Ratios",
    Annotated[dict[str, RatioColumns], Field(max_length=MOST_COLUMNS, description="Two columns of each ratio.")],
)


class BoxIn(Strict):
    """A range for each column: lower ≤ Δ ≤ upper. For Boolean columns, and for sums that are clipped per user."""

    kind: Literal["box"] = Field(title="Kind", description="A range for each column.", examples=["box"])
    lower: Row = Field(
        title="Lower", description="The least that one user can add to one group, per column.", examples=[[0, 0]]
    )
    upper: Row = Field(
        title="Upper", description="The most that one user can add to one group, per column.", examples=[[1, 1]]
    )
    groups: Caps | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        title="n",
        description="In how many groups one user can change each column, at most C_u; null: the column can change "
        "in all C_u groups. Needs a diagonal covariance. Fewer groups need less noise on that column.",
        examples=[[100, None]],
    )


class L2In(Strict):
    """A bound on the Euclidean norm of the change."""

    kind: Literal["l2"] = Field(title="Kind", description="A bound on the Euclidean norm.", examples=["l2"])
    bound: float = Field(ge=0, title="‖Δ‖₂", description="The largest Euclidean norm of the change.", examples=[1.5])


class L1In(Strict):
    """A bound on the sum of the absolute changes."""

    kind: Literal["l1"] = Field(title="Kind", description="A bound on the sum of absolute values.", examples=["l1"])
    bound: float = Field(ge=0, title="‖Δ‖₁", description="The largest sum of the absolute changes.", examples=[2])


class VectorsIn(Strict):
    """The full list of possible changes."""

    kind: Literal["vectors"] = Field(title="Kind", description="The full list of changes.", examples=["vectors"])
    vectors: Annotated[list[Row], Field(min_length=1, fail_fast=True)] = Field(
        title="Δ", description="Every change that one user can make to one group.", examples=[[[1, 0], [1, 1]]]
    )


SensitivityIn = Annotated[BoxIn | L2In | L1In | VectorsIn, Field(discriminator="kind")]


_NAMES: dict[str, Any] = {
    "title": "Names",
    "description": "The names of the columns, in the order of the covariance; unique, and not key or count.",
    "examples": [["likes", "shares"]],
}


class NamedColumns(Strict):
    """The names of the columns, and their sensitivity."""

    names: Names = Field(**_NAMES)
    sensitivity: SensitivityIn = Field(
        title="Δ",
        description="The most that one user can change in the columns of one group.",
        examples=[{"kind": "box", "lower": [0, 0], "upper": [1, 1]}],
    )


class ColumnsIn(NamedColumns):
    """Further columns, with the covariance of their noise."""

    covariance: Square = Field(
        title="Σ",
        description="Covariance of the noise on the columns: symmetric positive definite, with one row per name.",
        examples=[[[400, 0], [0, 100]]],
    )


class RelativeColumnsIn(NamedColumns):
    """Further columns whose noise scales with σ."""

    relative_covariance: Square = Field(
        title="Σ/σ²",
        description="Covariance of the noise on the columns in units of σ². The answer has it as covariance.",
        examples=[[[1, 0], [0, 0.25]]],
    )


class BalancedColumnsIn(NamedColumns):
    """Further columns with balanced noise: nobody has to write a covariance."""

    sensitivity: BoxIn = Field(
        title="Δ",
        description="The most that one user can change in the columns of one group, and in how many groups.",
        examples=[{"kind": "box", "lower": [0, 0], "upper": [20, 1], "groups": [None, 100]}],
    )
    noise: Literal["balanced"] = Field(
        title="Noise",
        description="Each column takes the same share of μ² as the count. The answer has the covariance.",
        examples=["balanced"],
    )
    weights: Row | None = Field(
        default=None,
        title="Weights",
        description="The share of μ² of each column, as a multiple of the share of the count; 1 for each if omitted.",
        examples=[[1, 2]],
    )


class CappedIn(Strict):
    """The privacy cost of columns that one user changes in fewer groups."""

    groups: GroupsPerUser = Field(
        title="n", description="The most groups in which one user can change these columns.", examples=[100]
    )
    mu_0: float = Field(ge=0, title="μ₀", description="What these columns add to μ, per group.", examples=[0.05])


CAPPED: dict[str, Any] = {
    "title": "Capped",
    "description": "The columns with caps of their own: what they add to μ per group, and in how many groups.",
    "examples": [[{"groups": 100, "mu_0": 0.05}]],
}


class MuZeroIn(Strict):
    """The privacy cost of further columns as numbers: enough for accounting, not for a release."""

    mu_0: float = Field(
        ge=0,
        title="μ₀",
        description="What the further columns add to μ, per group: max √(Δᵀ Σ⁻¹ Δ).",
        examples=[0.07],
    )
    capped: Annotated[list[CappedIn], Field(max_length=MOST_COLUMNS)] | None = Field(
        default=None, exclude_if=lambda value: value is None, **CAPPED
    )


AGGREGATES: dict[str, Any] = {
    "title": "Aggregates",
    "description": "Columns that are released with the count; omit it for counts only.",
    "examples": [{"mu_0": 0.0001}],
}
