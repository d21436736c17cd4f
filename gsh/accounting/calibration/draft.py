"""The input of a calibration: a mechanism with missing parameters, and the (ε, δ) to meet."""

from dataclasses import dataclass, replace
from typing import Literal, get_args

from gsh.accounting.accountings import check_target
from gsh.accounting.aggregates import Aggregates, RelativeAggregates, check_caps
from gsh.accounting.calibration.balanced import balanced
from gsh.accounting.column_costs import Capped, ColumnCosts
from gsh.accounting.mechanism import Mechanism, effective_tau
from gsh.accounting.numerics.doubles import LARGEST_DOUBLE, double_below, next_above
from gsh.accounting.sensitivity import MOST_C_U, Box
from gsh.errors import InfeasibleTarget, InvalidParameter

__all__ = ["ANY_TAU_STAR", "Draft", "Parameter", "RelativeAggregates", "Target"]

Parameter = Literal["c_u", "sigma", "tau_star"]
_PARAMETERS: tuple[Parameter, ...] = get_args(Parameter)

ANY_TAU_STAR = LARGEST_DOUBLE
"""A τ* so large that the threshold costs nothing: for questions about the noise alone."""


@dataclass(frozen=True, slots=True)
class RelativeCosts:
    """Columns whose noise scales with σ, with an unrounded Σ: each μ₀ is the relative one divided by σ."""

    relative_costs: ColumnCosts


@dataclass(frozen=True, slots=True)
class Target:
    """The (ε, δ) to meet."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        check_target(self.epsilon, self.delta)


@dataclass(frozen=True, slots=True)
class Draft:
    """A mechanism with None for the parameters to solve for. ``columns`` is a number if μ₀ is given directly.

    Then ``capped`` are the columns with caps of their own.
    """

    c_u: int | None
    tau: int
    tau_star: float | None
    sigma: float | None
    columns: Aggregates | RelativeAggregates | RelativeCosts | float = 0.0
    capped: tuple[Capped, ...] = ()

    @property
    def missing(self) -> tuple[Parameter, ...]:
        return tuple(name for name in _PARAMETERS if getattr(self, name) is None)

    @property
    def effective_tau(self) -> int:
        return effective_tau(self.tau)

    @property
    def least_tau_star(self) -> float:
        """The smallest double greater than the effective τ."""
        return next_above(double_below(self.effective_tau))

    def check(self) -> None:
        """Refuse a draft that no value of the missing parameters can make valid."""
        if self.tau >= ANY_TAU_STAR:
            raise InvalidParameter("tau", "must be less than the largest double")
        Mechanism(
            c_u=MOST_C_U if self.c_u is None else self.c_u,
            tau=self.tau,
            tau_star=ANY_TAU_STAR if self.tau_star is None else self.tau_star,
            sigma=1.0 if self.sigma is None else self.sigma,
            mu_0=self.columns if isinstance(self.columns, float | int) else 0.0,
            capped=self.capped,
        )
        if self.c_u is not None and isinstance(self.columns, Aggregates | RelativeAggregates):
            check_caps(self.columns.sensitivity, self.c_u)

    @property
    def fixed_costs(self) -> ColumnCosts:
        """What the columns add to μ, whatever σ is."""
        match self.columns:
            case Aggregates() as columns:
                return columns.costs
            case float() | int() as mu_0:
                return ColumnCosts(mu_0, self.capped)
            case _:
                return ColumnCosts()

    @property
    def relative_costs(self) -> ColumnCosts:
        """What the columns add to μ, times σ."""
        match self.columns:
            case RelativeAggregates() | RelativeCosts() as columns:
                return columns.relative_costs
            case _:
                return ColumnCosts()

    def with_sigma(self, sigma: float) -> "Draft":
        """The draft at this σ, with an absolute Σ."""
        match self.columns:
            case RelativeAggregates() as relative:
                return replace(self, sigma=sigma, columns=relative.at(sigma))
            case RelativeCosts(relative_costs):
                costs = relative_costs.divided(sigma)
                return replace(self, sigma=sigma, columns=costs.mu_0, capped=costs.capped)
            case _:
                return replace(self, sigma=sigma)

    def unrounded(self) -> "Draft":
        """The draft with an unrounded Σ, which is cheap to evaluate: for searches."""
        if isinstance(self.columns, RelativeAggregates):
            return replace(self, columns=RelativeCosts(self.columns.relative_costs))
        return self

    def without_caps(self) -> "Draft":
        """The draft if one user could change every column in all groups."""
        match self.columns:
            case RelativeAggregates(names=names, sensitivity=Box() as box, weights=tuple() as weights):
                return replace(self, columns=balanced(names, box.without_caps(), self.c_u, weights))
            case Aggregates(sensitivity=Box() as box) | RelativeAggregates(sensitivity=Box() as box) as columns:
                return replace(self, columns=replace(columns, sensitivity=box.without_caps()))
            case float() | int() as mu_0:
                return replace(self, columns=ColumnCosts(mu_0, self.capped).uncapped.mu_0, capped=())
            case _:
                return self

    def complete(self, c_u: int | None = None, tau_star: float | None = None) -> Mechanism:
        """The mechanism with the missing values. The draft must have σ and an absolute Σ already."""
        c_u = self.c_u if c_u is None else c_u
        tau_star = self.tau_star if tau_star is None else tau_star
        if c_u is None or tau_star is None or self.sigma is None:
            raise TypeError("c_u, tau_star or sigma is missing")
        match self.columns:
            case Aggregates() as aggregates:
                return Mechanism(c_u=c_u, tau=self.tau, tau_star=tau_star, sigma=self.sigma, aggregates=aggregates)
            case float() | int() as mu_0:
                return Mechanism(
                    c_u=c_u, tau=self.tau, tau_star=tau_star, sigma=self.sigma, mu_0=mu_0, capped=self.capped
                )
            case _:
                raise TypeError("Σ is still relative")

    def with_c_u(self, c_u: int) -> "Draft":
        """The draft at a C_u. If columns have caps, only their costs remain, with caps of at most C_u."""
        fixed, relative = self.fixed_costs.cut(c_u), self.relative_costs.cut(c_u)
        if relative.capped:
            return replace(self, c_u=c_u, columns=RelativeCosts(relative))
        if fixed.capped:
            return replace(self, c_u=c_u, columns=fixed.mu_0, capped=fixed.capped)
        return replace(self, c_u=c_u)

    def complete_largest(self, c_u: int) -> Mechanism:
        """The mechanism with the largest C_u that works, unless a cap exceeds it."""
        if any(part.groups > c_u for part in self.fixed_costs.capped):
            pointer = "capped" if isinstance(self.columns, float | int) else "aggregates/sensitivity/groups"
            raise InfeasibleTarget(pointer, f"must be at most {c_u}: no larger c_u meets the target")
        return self.complete(c_u=c_u)
