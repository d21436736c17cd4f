"""Columns that are released with the count: their noise, and the most that one user can change in them."""

from abc import abstractmethod
from typing import Annotated, Any, Literal

from pydantic import Field

from app.api.schemas.scalars import MOST_COLUMNS, ColumnName, Row
from app.api.schemas.strict import Strict
from app.service.work_bounds import columns_work
from gsh.accounting import sensitivity as core
from gsh.accounting.calibration.draft import RelativeAggregates
from gsh.accounting.covariance import is_diagonal
from gsh.accounting.mechanism import Aggregates

__all__ = ["AGGREGATES", "ColumnsIn", "MuZeroIn", "NamedColumns", "RelativeColumnsIn"]

Square = Annotated[list[Row], Field(min_length=1, max_length=MOST_COLUMNS)]
Names = Annotated[list[ColumnName], Field(min_length=1, max_length=MOST_COLUMNS)]


class BoxIn(Strict):
    """A range for each column: lower ≤ Δ ≤ upper. For Boolean columns, and for sums that are clipped per user."""

    kind: Literal["box"] = Field(title="Kind", description="A range for each column.", examples=["box"])
    lower: Row = Field(
        title="Lower", description="The least that one user can add to one group, per column.", examples=[[0, 0]]
    )
    upper: Row = Field(
        title="Upper", description="The most that one user can add to one group, per column.", examples=[[1, 1]]
    )

    def to_domain(self) -> core.Box:
        return core.Box(tuple(self.lower), tuple(self.upper))


class L2In(Strict):
    """A bound on the Euclidean norm of the change."""

    kind: Literal["l2"] = Field(title="Kind", description="A bound on the Euclidean norm.", examples=["l2"])
    bound: float = Field(ge=0, title="‖Δ‖₂", description="The largest Euclidean norm of the change.", examples=[1.5])

    def to_domain(self) -> core.L2Norm:
        return core.L2Norm(self.bound)


class L1In(Strict):
    """A bound on the sum of the absolute changes."""

    kind: Literal["l1"] = Field(title="Kind", description="A bound on the sum of absolute values.", examples=["l1"])
    bound: float = Field(ge=0, title="‖Δ‖₁", description="The largest sum of the absolute changes.", examples=[2])

    def to_domain(self) -> core.L1Norm:
        return core.L1Norm(self.bound)


class VectorsIn(Strict):
    """The full list of possible changes."""

    kind: Literal["vectors"] = Field(title="Kind", description="The full list of changes.", examples=["vectors"])
    vectors: Annotated[list[Row], Field(min_length=1, fail_fast=True)] = Field(
        title="Δ", description="Every change that one user can make to one group.", examples=[[[1, 0], [1, 1]]]
    )

    def to_domain(self) -> core.Vectors:
        return core.Vectors(tuple(map(tuple, self.vectors)))


SensitivityIn = Annotated[BoxIn | L2In | L1In | VectorsIn, Field(discriminator="kind")]


class NamedColumns(Strict):
    """The names of the columns, and their sensitivity."""

    names: Names = Field(
        title="Names",
        description="The names of the columns, in the order of the covariance; unique, and not key or count.",
        examples=[["likes", "shares"]],
    )
    sensitivity: SensitivityIn = Field(
        title="Δ",
        description="The most that one user can change in the columns of one group.",
        examples=[{"kind": "box", "lower": [0, 0], "upper": [1, 1]}],
    )

    @property
    @abstractmethod
    def is_diagonal(self) -> bool: ...

    @property
    def work(self) -> float:
        """About how many milliseconds μ₀ takes."""
        columns = len(self.names)
        match self.sensitivity:
            case L2In():
                return columns_work(columns, None)
            case VectorsIn(vectors=vectors):
                return columns_work(columns, len(vectors))
            case BoxIn() if not self.is_diagonal:
                return columns_work(columns, 1 << min(columns, core.MOST_BOX_COLUMNS))
            case _:
                return columns_work(columns, columns)


class ColumnsIn(NamedColumns):
    """Further columns, with the covariance of their noise."""

    covariance: Square = Field(
        title="Σ",
        description="Covariance of the noise on the columns: symmetric positive definite, with one row per name.",
        examples=[[[400, 0], [0, 100]]],
    )

    @property
    def is_diagonal(self) -> bool:
        return is_diagonal(self.covariance)

    def to_domain(self) -> Aggregates:
        return Aggregates(tuple(self.names), _matrix(self.covariance), self.sensitivity.to_domain())


class RelativeColumnsIn(NamedColumns):
    """Further columns whose noise scales with σ."""

    relative_covariance: Square = Field(
        title="Σ/σ²",
        description="Covariance of the noise on the columns in units of σ². The answer has it as covariance.",
        examples=[[[1, 0], [0, 0.25]]],
    )

    @property
    def is_diagonal(self) -> bool:
        return is_diagonal(self.relative_covariance)

    def to_domain(self) -> RelativeAggregates:
        return RelativeAggregates(tuple(self.names), _matrix(self.relative_covariance), self.sensitivity.to_domain())


class MuZeroIn(Strict):
    """The privacy cost of further columns as one number: enough for accounting, not for a release."""

    mu_0: float = Field(
        ge=0,
        title="μ₀",
        description="What the further columns add to μ, per group: max √(Δᵀ Σ⁻¹ Δ).",
        examples=[0.07],
    )


def _matrix(rows: list[list[float]]) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, rows))


AGGREGATES: dict[str, Any] = {
    "title": "Aggregates",
    "description": "Columns that are released with the count; omit it for counts only.",
    "examples": [{"mu_0": 0.0001}],
}
