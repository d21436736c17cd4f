"""The bounds in a certificate: the most that one unit can change, and what enforced it."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from app.releases.schemas.stated import ENFORCED_BY, PLAN_DIGEST, EnforcedBy
from app.schemas.mechanism import C_U
from app.schemas.scalars import Digest
from app.schemas.strict import OrNull, Strict
from gsh.certificate_words import BOX, intervals_cover

__all__ = ["BoundsOut"]

NormKind = TypeAliasType(
    "NormKind", Annotated[Literal["l1", "l2"], Field(description="The sum of absolute values, or the Euclidean norm.")]
)


ColumnKind = TypeAliasType(
    "ColumnKind",
    Annotated[
        Literal["sum", "events", "mean"],
        Field(description="A sum, a number of events, or a sum around the middle of its range, for a mean per user."),
    ],
)

_BOUNDED = {"c_u": 16, "columns": [{"name": "likes", "lower": 0, "upper": 1}]}


class ColumnBounds(Strict):
    """The most that one unit can change in one column of one group."""

    name: str = Field(title="Name", description="The name of the column.", examples=["likes"])
    lower: float = Field(title="Lower", description="The least that one unit adds to one group.", examples=[0])
    upper: float = Field(title="Upper", description="The most that one unit adds to one group.", examples=[1])
    groups: int | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        title="n",
        description="The most groups in which one unit changes this column; absent: C_u.",
        examples=[100],
    )
    kind: OrNull[ColumnKind] = Field(title="Kind", description="What the column adds up.", examples=["mean"])
    unit: OrNull[float] = Field(title="Unit", description="What it is counted in.", examples=[1])
    of: OrNull[str] = Field(title="Of", description="Of a mean: what the mean is of.", examples=["seconds"])
    middle: OrNull[float] = Field(
        title="Middle", description="Of a mean: what is taken from what each user has.", examples=[300]
    )


class NormBound(Strict):
    """A bound on the change of all columns of one group together."""

    kind: NormKind = Field(
        title="Kind", description="The sum of absolute values (l1), or the Euclidean norm (l2).", examples=["l2"]
    )
    bound: float = Field(title="‖Δ‖", description="The largest norm of the change by one unit.", examples=[1.5])


class BoundsOut(Strict):
    """The most that one unit can change in the table, and what enforced it. The certificate holds within them."""

    c_u: int = Field(**C_U)
    per_group: str = Field(
        title="Per group", description="What one unit can change in one group, in words.", examples=[BOX]
    )
    columns: list[ColumnBounds] | None = Field(
        title="Columns",
        description="The range of each further column; null if there are none, or if they are bounded in another way.",
        examples=[[{"name": "likes", "lower": 0, "upper": 1}]],
    )
    norm: NormBound | None = Field(
        title="‖Δ‖",
        description="The bound on a norm of all further columns together, if they are bounded by it.",
        examples=[{"kind": "l2", "bound": 1.5}],
    )
    vectors: int | None = Field(
        title="Vectors",
        description="The number of possible changes, if the mechanism lists them all.",
        examples=[2],
    )
    intervals_cover: str | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        title="Intervals cover",
        description="What intervals of the released numbers cover; absent in certificates before version 0.3.",
        examples=[intervals_cover(_BOUNDED)],
    )
    enforced_by: EnforcedBy = Field(**ENFORCED_BY)
    plan_digest: Digest | None = Field(**PLAN_DIGEST)
