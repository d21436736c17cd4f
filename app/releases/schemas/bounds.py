"""The bounds in a certificate: the most that one unit can change, and what enforced it."""

from typing import Annotated, Literal, Self

from pydantic import Field
from typing_extensions import TypeAliasType

from app.releases.schemas.certified import ENFORCED_BY, PLAN_DIGEST, EnforcedBy, ProvenanceIn
from app.schemas.aggregates import BoxIn, ColumnsIn, L1In, L2In, MuZeroIn
from app.schemas.mechanism import C_U, GaussianIn, MechanismIn
from app.schemas.scalars import Digest
from app.schemas.strict import Strict
from gsh.library.certificate_words import BOX, CAPPED_BOX, COUNTS_ONLY, MU_0, NORM, VECTORS

__all__ = ["BoundsOut"]

NormKind = TypeAliasType(
    "NormKind", Annotated[Literal["l1", "l2"], Field(description="The sum of absolute values, or the Euclidean norm.")]
)


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
    enforced_by: EnforcedBy = Field(**ENFORCED_BY)
    plan_digest: Digest | None = Field(**PLAN_DIGEST)

    @classmethod
    def of(cls, mechanism: MechanismIn | GaussianIn, provenance: ProvenanceIn) -> Self:
        per_group, columns, norm, vectors = _of_columns(mechanism.aggregates)
        return cls(
            c_u=mechanism.c_u,
            per_group=per_group,
            columns=columns,
            norm=norm,
            vectors=vectors,
            enforced_by=provenance.enforced_by,
            plan_digest=provenance.plan_digest,
        )


def _of_columns(
    aggregates: ColumnsIn | MuZeroIn | None,
) -> tuple[str, list[ColumnBounds] | None, NormBound | None, int | None]:
    match aggregates:
        case None:
            return COUNTS_ONLY, None, None, None
        case MuZeroIn():
            return MU_0, None, None, None
    match aggregates.sensitivity:
        case BoxIn(lower=lower, upper=upper, groups=groups):
            ranges = zip(aggregates.names, lower, upper, groups or [None] * len(lower), strict=True)
            columns = [ColumnBounds(name=name, lower=low, upper=high, groups=cap) for name, low, high, cap in ranges]
            return BOX if groups is None else CAPPED_BOX, columns, None, None
        case L1In(bound=bound) | L2In(bound=bound) as norm:
            return NORM, None, NormBound(kind=norm.kind, bound=bound), None
        case listed:
            return VECTORS, None, None, len(listed.vectors)
