"""The mechanism object: the same in every request, and what /calibrate gives back."""

from abc import abstractmethod
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from app.api.validation_errors import NUMBER, NUMBERS
from app.service.work_bounds import columns_work
from gsh.accounting import sensitivity as core
from gsh.accounting.calibration.draft import Draft, RelativeAggregates
from gsh.accounting.covariance import is_diagonal
from gsh.accounting.mechanism import MOST_C_U, Aggregates, Mechanism, PlainGaussian

__all__ = [
    "MOST_COLUMNS",
    "AnyMechanismIn",
    "DraftIn",
    "GaussianIn",
    "MechanismIn",
    "MechanismOut",
    "MuZeroIn",
    "Name",
    "OneOrMany",
    "OutlineIn",
    "Strict",
]

MOST_COLUMNS = 100
MOST_POINTS = 10_000


class Strict(BaseModel):
    """No coercion, no unknown fields, no NaN: a number that was not meant is not accepted."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)

    def slimmed(self, _most_work: int) -> Self:
        """In a worker that has read a long body: what the service needs of it, within the bound on work."""
        return self


Row = Annotated[list[float], Field(min_length=1, max_length=MOST_COLUMNS)]
Square = Annotated[list[Row], Field(min_length=1, max_length=MOST_COLUMNS)]


def _one_or_many(value: Any) -> str:
    return NUMBERS if isinstance(value, list) else NUMBER


N = TypeVar("N")
B = TypeVar("B", "MechanismIn", "GaussianIn")
OneOrMany = Annotated[
    Annotated[N, Tag(NUMBER)]
    | Annotated[
        list[N], Field(min_length=1, fail_fast=True, json_schema_extra={"maxItems": MOST_POINTS}), Tag(NUMBERS)
    ],
    Discriminator(_one_or_many),
]
"""A number, or a list of them (a curve); errors point at the number."""


class BoxIn(Strict):
    """lower ≤ Δ ≤ upper in each column: Boolean columns, or sums clipped per user."""

    kind: Literal["box"] = Field(title="Kind", description="A range per column.", examples=["box"])
    lower: Row = Field(title="lower", description="The least one user can add, per column.", examples=[[0, 0]])
    upper: Row = Field(title="upper", description="The most one user can add, per column.", examples=[[1, 1]])

    def to_domain(self) -> core.Box:
        return core.Box(tuple(self.lower), tuple(self.upper))


class L2In(Strict):
    """The Euclidean norm of the change is bounded."""

    kind: Literal["l2"] = Field(title="Kind", description="A bound on the Euclidean norm.", examples=["l2"])
    bound: float = Field(ge=0, title="‖Δ‖₂", description="The largest Euclidean norm of Δ.", examples=[1.5])

    def to_domain(self) -> core.L2Norm:
        return core.L2Norm(self.bound)


class L1In(Strict):
    """The sum of the absolute changes is bounded."""

    kind: Literal["l1"] = Field(title="Kind", description="A bound on the sum of absolute values.", examples=["l1"])
    bound: float = Field(ge=0, title="‖Δ‖₁", description="The largest sum of absolute changes.", examples=[2])

    def to_domain(self) -> core.L1Norm:
        return core.L1Norm(self.bound)


class VectorsIn(Strict):
    """All possible changes, listed."""

    kind: Literal["vectors"] = Field(title="Kind", description="The full list of changes.", examples=["vectors"])
    vectors: Annotated[list[Row], Field(min_length=1, fail_fast=True)] = Field(
        title="Δ", description="Every change one user can make to one group.", examples=[[[1, 0], [1, 1]]]
    )

    def to_domain(self) -> core.Vectors:
        return core.Vectors(tuple(map(tuple, self.vectors)))


Name = Annotated[str, Field(min_length=1, max_length=200)]
Names = Annotated[list[Name], Field(min_length=1, max_length=MOST_COLUMNS)]
SensitivityIn = Annotated[BoxIn | L2In | L1In | VectorsIn, Field(discriminator="kind")]


class _NamedColumns(Strict):
    names: Names = Field(
        title="names",
        description="The aggregate columns, in the order of Σ; unique, and none called key or count.",
        examples=[["likes", "shares"]],
    )
    sensitivity: SensitivityIn = Field(
        title="Δ",
        description="What one user can change in one group's columns.",
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


class ColumnsIn(_NamedColumns):
    """Further columns, with the covariance of their noise."""

    covariance: Square = Field(
        title="Σ",
        description="Covariance of the noise on the columns: symmetric positive definite, a row per name.",
        examples=[[[400, 0], [0, 100]]],
    )

    @property
    def is_diagonal(self) -> bool:
        return is_diagonal(self.covariance)

    def to_domain(self) -> Aggregates:
        return Aggregates(tuple(self.names), _matrix(self.covariance), self.sensitivity.to_domain())


class RelativeColumnsIn(_NamedColumns):
    """Further columns whose noise scales with σ."""

    relative_covariance: Square = Field(
        title="Σ/σ²",
        description="Covariance of the noise on the columns in units of σ²; the answer has it as Σ.",
        examples=[[[1, 0], [0, 0.25]]],
    )

    @property
    def is_diagonal(self) -> bool:
        return is_diagonal(self.relative_covariance)

    def to_domain(self) -> RelativeAggregates:
        return RelativeAggregates(tuple(self.names), _matrix(self.relative_covariance), self.sensitivity.to_domain())


class MuZeroIn(Strict):
    """What further columns add, as a number: enough for accounting, not for a release."""

    mu_0: float = Field(
        ge=0, title="μ₀", description="What the other columns add to μ, per group: max √(Δᵀ Σ⁻¹ Δ).", examples=[0.07]
    )


def _has(value: Any, name: str) -> bool:
    return name in value if isinstance(value, dict) else hasattr(value, name)


def _shape(value: Any) -> str:
    return "<mu_0>" if _has(value, "mu_0") else "<columns>"


def _draft_shape(value: Any) -> str:
    return "<relative>" if _has(value, "relative_covariance") else _shape(value)


_Columns = Annotated[ColumnsIn, Tag("<columns>")]
_RelativeColumns = Annotated[RelativeColumnsIn, Tag("<relative>")]
_MuZero = Annotated[MuZeroIn, Tag("<mu_0>")]

C_U: dict[str, Any] = {
    "title": "C_u",
    "description": "The most groups that one user can touch.",
    "examples": [51914],
}
TAU: dict[str, Any] = {
    "title": "τ",
    "description": "Groups with fewer users than this are dropped before noise is drawn; 0 acts as 1.",
    "examples": [1],
}
TAU_STAR: dict[str, Any] = {
    "title": "τ*",
    "description": "Groups whose noisy count is below this are dropped; greater than τ. A count equal to it is kept.",
    "examples": [13952],
}
SIGMA: dict[str, Any] = {
    "title": "σ",
    "description": "Standard deviation of the Gaussian noise on counts.",
    "examples": [2229],
}
AGGREGATES: dict[str, Any] = {
    "title": "Σ, Δ",
    "description": "Columns released beside the count; left out for counts only.",
    "examples": [{"mu_0": 0.0001}],
}


def _work(aggregates: object) -> float:
    return aggregates.work if isinstance(aggregates, _NamedColumns) else 0.0


def _further(aggregates: ColumnsIn | MuZeroIn | None) -> dict[str, Any]:
    """What further columns add to a mechanism of the core, by name."""
    match aggregates:
        case None:
            return {}
        case MuZeroIn(mu_0=mu_0):
            return {"mu_0": mu_0}
        case columns:
            return {"aggregates": columns.to_domain()}


def _bare(mechanism: B) -> B:
    """The same privacy with μ₀ in place of the columns: little to send to another process."""
    if not isinstance(mechanism.aggregates, ColumnsIn):
        return mechanism
    return mechanism.model_copy(update={"aggregates": MuZeroIn(mu_0=mechanism.to_domain().mu_0)})


class MechanismIn(Strict):
    """A Gaussian sparse histogram mechanism, complete."""

    c_u: int = Field(ge=1, le=MOST_C_U, **C_U)
    tau: int = Field(ge=0, **TAU)
    tau_star: float = Field(gt=1, **TAU_STAR)
    sigma: float = Field(gt=0, **SIGMA)
    aggregates: Annotated[_Columns | _MuZero, Discriminator(_shape)] | None = Field(
        default=None, exclude_if=lambda value: value is None, **AGGREGATES
    )

    @property
    def work(self) -> float:
        """About how many milliseconds its columns take."""
        return _work(self.aggregates)

    def bare(self) -> "MechanismIn":
        return _bare(self)

    def to_domain(self) -> Mechanism:
        return Mechanism(self.c_u, self.tau, self.tau_star, self.sigma, **_further(self.aggregates))


class GaussianIn(Strict):
    """Gaussian noise without thresholds, on groups that are public."""

    c_u: int = Field(ge=1, le=MOST_C_U, **C_U)
    sigma: float = Field(gt=0, **SIGMA)
    aggregates: Annotated[_Columns | _MuZero, Discriminator(_shape)] | None = Field(
        default=None, exclude_if=lambda value: value is None, **AGGREGATES
    )

    @property
    def work(self) -> float:
        """About how many milliseconds its columns take."""
        return _work(self.aggregates)

    def bare(self) -> "GaussianIn":
        return _bare(self)

    def to_domain(self) -> PlainGaussian:
        return PlainGaussian(self.c_u, self.sigma, **_further(self.aggregates))


def _thresholded(value: Any) -> str:
    return "<threshold>" if _has(value, "tau") or _has(value, "tau_star") else "<plain>"


AnyMechanismIn = Annotated[
    Annotated[MechanismIn, Tag("<threshold>")] | Annotated[GaussianIn, Tag("<plain>")], Discriminator(_thresholded)
]
"""A mechanism; without tau and tau_star it is plain Gaussian noise on groups that are public."""


class DraftIn(Strict):
    """A mechanism with what is to be solved left out."""

    c_u: int | None = Field(default=None, ge=1, le=MOST_C_U, **C_U)
    tau: int = Field(ge=0, **TAU)
    tau_star: float | None = Field(default=None, gt=1, **TAU_STAR)
    sigma: OneOrMany[Annotated[float, Field(gt=0)]] | None = Field(default=None, **SIGMA)
    aggregates: Annotated[_Columns | _RelativeColumns | _MuZero, Discriminator(_draft_shape)] | None = Field(
        default=None, **AGGREGATES
    )

    @property
    def work(self) -> float:
        """About how many milliseconds its columns take."""
        return _work(self.aggregates)

    def to_domain(self) -> Draft:
        match self.aggregates:
            case None:
                columns: Aggregates | RelativeAggregates | float = 0.0
            case MuZeroIn(mu_0=mu_0):
                columns = mu_0
            case named:
                columns = named.to_domain()
        sigma = None if isinstance(self.sigma, list) else self.sigma
        return Draft(self.c_u, self.tau, self.tau_star, sigma, columns)

    @property
    def is_relative(self) -> bool:
        return isinstance(self.aggregates, RelativeColumnsIn)

    def completed(self, mechanism: Mechanism) -> MechanismIn:
        """The mechanism object of a solution, with Σ absolute."""
        aggregates: ColumnsIn | MuZeroIn | None = None
        if mechanism.aggregates is not None and isinstance(self.aggregates, _NamedColumns):
            aggregates = ColumnsIn(
                names=self.aggregates.names,
                covariance=[list(row) for row in mechanism.aggregates.covariance],
                sensitivity=self.aggregates.sensitivity,
            )
        elif isinstance(self.aggregates, MuZeroIn):
            aggregates = self.aggregates
        return MechanismIn(
            c_u=mechanism.c_u,
            tau=mechanism.tau,
            tau_star=mechanism.tau_star,
            sigma=mechanism.sigma,
            aggregates=aggregates,
        )


class OutlineIn(Strict):
    """What is known of a mechanism before its noise and threshold are chosen."""

    c_u: int = Field(ge=1, le=MOST_C_U, **C_U)
    tau: int = Field(ge=0, **TAU)
    aggregates: Annotated[_Columns | _RelativeColumns | _MuZero, Discriminator(_draft_shape)] | None = Field(
        default=None, **AGGREGATES
    )

    @property
    def draft(self) -> DraftIn:
        """The same, with σ and τ* to be solved."""
        return DraftIn(c_u=self.c_u, tau=self.tau, aggregates=self.aggregates)


class MechanismOut(Strict):
    """The mechanism that was accounted for, with what follows from it."""

    c_u: int = Field(**C_U)
    tau: int = Field(**TAU)
    tau_star: float = Field(**TAU_STAR)
    sigma: float = Field(**SIGMA)
    tau_gap: float = Field(
        title="τ* − τ", description="All that privacy depends on of the thresholds; rounded down.", examples=[13951]
    )
    mu_0: float = Field(
        title="μ₀", description="What the other columns add to μ, per group; rounded up.", examples=[0.0]
    )
    mu: float = Field(
        title="μ", description="The Gaussian mechanism this is as hard to see through; rounded up.", examples=[0.1022]
    )


def _matrix(rows: list[list[float]]) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, rows))
