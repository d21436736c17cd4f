"""The mechanism object: the same in every request, and in the answer of /calibrate."""

from typing import Annotated, Any, TypeVar

from pydantic import Discriminator, Field, Tag
from typing_extensions import TypeAliasType

from app.schemas.aggregates import (
    AGGREGATES,
    CAPPED,
    BalancedColumnsIn,
    BoxIn,
    CappedIn,
    ColumnsIn,
    MuZeroIn,
    NamedColumns,
    RelativeColumnsIn,
)
from app.schemas.case_study import CASE_STUDY
from app.schemas.scalars import GroupsPerUser, Sigma, Sigmas, TauStar, a_list
from app.schemas.strict import OneOrMany, Strict
from gsh.accounting import case_study
from gsh.accounting.calibration.draft import Draft, RelativeAggregates
from gsh.accounting.column_costs import Capped
from gsh.accounting.mechanism import Aggregates, Mechanism, PlainGaussian

__all__ = [
    "AnyMechanismIn",
    "DraftIn",
    "GaussianIn",
    "MechanismIn",
    "MechanismOut",
    "Mechanisms",
    "OutlineIn",
]

B = TypeVar("B", "MechanismIn", "GaussianIn")

C_U: dict[str, Any] = {
    "title": "C_u",
    "description": "The most groups that one user can touch.",
    "examples": [CASE_STUDY["c_u"]],
}
TAU: dict[str, Any] = {
    "title": "τ",
    "description": "Groups with fewer users than this are dropped before noise is drawn; 0 acts as 1.",
    "examples": [CASE_STUDY["tau"]],
}
TAU_STAR: dict[str, Any] = {
    "title": "τ*",
    "description": "Groups whose noisy count is below this are dropped; greater than τ. A count equal to it is kept.",
    "examples": [CASE_STUDY["tau_star"]],
}
SIGMA: dict[str, Any] = {
    "title": "σ",
    "description": "Standard deviation of the Gaussian noise on counts.",
    "examples": [CASE_STUDY["sigma"]],
}


def _has(value: Any, name: str) -> bool:
    return name in value if isinstance(value, dict) else hasattr(value, name)


def _shape(value: Any) -> str:
    return "<mu_0>" if _has(value, "mu_0") else "<columns>"


def _draft_shape(value: Any) -> str:
    if _has(value, "noise"):
        return "<balanced>"
    return "<relative>" if _has(value, "relative_covariance") else _shape(value)


_Columns = Annotated[ColumnsIn, Tag("<columns>")]
_RelativeColumns = Annotated[RelativeColumnsIn, Tag("<relative>")]
_BalancedColumns = Annotated[BalancedColumnsIn, Tag("<balanced>")]
_MuZero = Annotated[MuZeroIn, Tag("<mu_0>")]
_DraftColumns = Annotated[_Columns | _RelativeColumns | _BalancedColumns | _MuZero, Discriminator(_draft_shape)]


def _caps(aggregates: object) -> int:
    match aggregates:
        case NamedColumns(sensitivity=BoxIn(groups=list() as groups)):
            return len(set(groups) - {None})
        case BalancedColumnsIn(sensitivity=BoxIn(groups=list() as groups)):
            return len(set(groups) - {None})
        case MuZeroIn(capped=list() as capped):
            return len(capped)
        case _:
            return 0


def _work(aggregates: object) -> float:
    return aggregates.work if isinstance(aggregates, NamedColumns | BalancedColumnsIn) else 0.0


def _further(aggregates: ColumnsIn | MuZeroIn | None) -> dict[str, Any]:
    """The further columns as arguments of a mechanism of the core."""
    match aggregates:
        case None:
            return {}
        case MuZeroIn(mu_0=mu_0) as costs:
            return {"mu_0": mu_0, "capped": costs.parts}
        case columns:
            return {"aggregates": columns.to_domain()}


def _bare(mechanism: B) -> B:
    """The same privacy with μ₀ in place of the columns: little to send to another process."""
    if not isinstance(mechanism.aggregates, ColumnsIn):
        return mechanism
    costs = mechanism.to_domain().costs
    bare = MuZeroIn(mu_0=costs.mu_0, capped=CappedIn.listed(costs.capped))
    return mechanism.model_copy(update={"aggregates": bare})


class MechanismIn(Strict):
    """A complete Gaussian sparse histogram mechanism."""

    c_u: GroupsPerUser = Field(**C_U)
    tau: int = Field(ge=0, **TAU)
    tau_star: TauStar = Field(**TAU_STAR)
    sigma: Sigma = Field(**SIGMA)
    aggregates: Annotated[_Columns | _MuZero, Discriminator(_shape)] | None = Field(
        default=None, exclude_if=lambda value: value is None, **AGGREGATES
    )

    @property
    def work(self) -> float:
        """About how many milliseconds its columns take."""
        return _work(self.aggregates)

    @property
    def caps(self) -> int:
        """How many caps its columns have."""
        return _caps(self.aggregates)

    def bare(self) -> "MechanismIn":
        return _bare(self)

    def to_domain(self) -> Mechanism:
        return Mechanism(self.c_u, self.tau, self.tau_star, self.sigma, **_further(self.aggregates))


class GaussianIn(Strict):
    """Gaussian noise without thresholds, on public groups."""

    c_u: GroupsPerUser = Field(**C_U)
    sigma: Sigma = Field(**SIGMA)
    aggregates: Annotated[_Columns | _MuZero, Discriminator(_shape)] | None = Field(
        default=None, exclude_if=lambda value: value is None, **AGGREGATES
    )

    @property
    def work(self) -> float:
        """About how many milliseconds its columns take."""
        return _work(self.aggregates)

    @property
    def caps(self) -> int:
        """How many caps its columns have."""
        return _caps(self.aggregates)

    def bare(self) -> "GaussianIn":
        return _bare(self)

    def to_domain(self) -> PlainGaussian:
        return PlainGaussian(self.c_u, self.sigma, **_further(self.aggregates))


def _thresholded(value: Any) -> str:
    return "<threshold>" if _has(value, "tau") or _has(value, "tau_star") else "<plain>"


AnyMechanismIn = Annotated[
    Annotated[MechanismIn, Tag("<threshold>")] | Annotated[GaussianIn, Tag("<plain>")], Discriminator(_thresholded)
]
"""A mechanism. Without tau and tau_star it is plain Gaussian noise on public groups."""
Mechanisms = TypeAliasType("Mechanisms", Annotated[list[AnyMechanismIn], a_list("Several mechanisms, in order.")])


class DraftIn(Strict):
    """A mechanism without the fields to solve for."""

    c_u: GroupsPerUser | None = Field(default=None, **C_U)
    tau: int = Field(ge=0, **TAU)
    tau_star: TauStar | None = Field(default=None, **TAU_STAR)
    sigma: OneOrMany[Sigma, Sigmas] | None = Field(default=None, **SIGMA)
    aggregates: _DraftColumns | None = Field(default=None, **AGGREGATES)

    @property
    def work(self) -> float:
        """About how many milliseconds its columns take."""
        return _work(self.aggregates)

    @property
    def caps(self) -> int:
        """How many caps its columns have."""
        return _caps(self.aggregates)

    def to_domain(self) -> Draft:
        columns: Aggregates | RelativeAggregates | float = 0.0
        capped: tuple[Capped, ...] = ()
        match self.aggregates:
            case None:
                pass
            case MuZeroIn(mu_0=mu_0) as costs:
                columns, capped = mu_0, costs.parts
            case BalancedColumnsIn() as described:
                columns = described.to_domain(self.c_u)
            case named:
                columns = named.to_domain()
        sigma = None if isinstance(self.sigma, list) else self.sigma
        return Draft(self.c_u, self.tau, self.tau_star, sigma, columns, capped)

    @property
    def is_relative(self) -> bool:
        return isinstance(self.aggregates, RelativeColumnsIn | BalancedColumnsIn)

    def without_caps(self) -> "DraftIn":
        """The same, if one user could change every column in all groups."""
        columns: object = self.aggregates
        match columns:
            case MuZeroIn():
                columns = columns.without_caps()
            case NamedColumns(sensitivity=BoxIn() as box) | BalancedColumnsIn(sensitivity=BoxIn() as box):
                columns = columns.model_copy(update={"sensitivity": box.without_caps()})
        return self.model_copy(update={"aggregates": columns})

    def completed(self, mechanism: Mechanism) -> MechanismIn:
        """The mechanism object of a solution, with Σ absolute."""
        aggregates: ColumnsIn | MuZeroIn | None = None
        if mechanism.aggregates is not None and isinstance(self.aggregates, NamedColumns | BalancedColumnsIn):
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
    """A mechanism before its noise and its threshold are chosen."""

    c_u: GroupsPerUser = Field(**C_U)
    tau: int = Field(ge=0, **TAU)
    aggregates: _DraftColumns | None = Field(default=None, **AGGREGATES)

    @property
    def draft(self) -> DraftIn:
        """The same, as a draft that solves for σ and τ*."""
        return DraftIn(c_u=self.c_u, tau=self.tau, aggregates=self.aggregates)


class MechanismOut(Strict):
    """The mechanism of the request, and the numbers that follow from it."""

    c_u: int = Field(**C_U)
    tau: int = Field(**TAU)
    tau_star: float = Field(**TAU_STAR)
    sigma: float = Field(**SIGMA)
    tau_gap: float = Field(
        title="τ* − τ",
        description="Privacy depends on the thresholds through this difference only; rounded down.",
        examples=[case_study.CASE_STUDY.tau_gap],
    )
    mu_0: float = Field(
        title="μ₀", description="What the further columns add to μ, per group; rounded up.", examples=[0.0]
    )
    capped: list[CappedIn] | None = Field(default=None, exclude_if=lambda value: value is None, **CAPPED)
    mu: float = Field(title="μ", description="μ of the equivalent Gaussian mechanism; rounded up.", examples=[0.1022])
