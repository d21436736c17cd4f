"""The Gaussian sparse histogram mechanism as a value: all that its privacy depends on, checked once."""

import math
from dataclasses import dataclass, field

from flint import arb

from gsh.accounting.column_costs import Capped, ColumnCosts, column_costs
from gsh.accounting.covariance import Matrix
from gsh.accounting.errors import InvalidParameter
from gsh.accounting.numerics.doubles import LARGEST_DOUBLE, double_below
from gsh.accounting.numerics.normal_tail import tail
from gsh.accounting.sensitivity import MOST_C_U, Box, Sensitivity

__all__ = ["MOST_C_U", "Aggregates", "Mechanism", "PlainGaussian", "check_caps", "check_names", "effective_tau"]

_REAL = (float, int)


def effective_tau(tau: int) -> int:
    """max(τ, 1): τ = 0 acts as τ = 1, because empty groups are never listed.  [KKWZ Algorithm 1]"""
    return max(tau, 1)


def check_names(names: tuple[str, ...], covariance: Matrix, pointer: str) -> None:
    """Refuse names of columns that are ambiguous, or not as many as the rows of Σ. ``pointer`` names Σ in errors."""
    if len(set(names)) != len(names):
        raise InvalidParameter("aggregates/names", "must be unique")
    if {"key", "count"} & set(names):
        raise InvalidParameter("aggregates/names", "must not contain key or count")
    if len(covariance) != len(names):
        raise InvalidParameter(pointer, "must have one row and one column per name")


def check_caps(sensitivity: Sensitivity, c_u: int) -> None:
    """Refuse a cap above C_u, by the place of its column."""
    caps = sensitivity.groups if isinstance(sensitivity, Box) else None
    for j, cap in enumerate(caps or ()):
        if cap is not None and cap > c_u:
            raise InvalidParameter(f"aggregates/sensitivity/groups/{j}", "must be at most c_u")


@dataclass(frozen=True, slots=True)
class Aggregates:
    """The columns released with the count, the covariance Σ of their noise, and the most that one user can change.

    ``costs`` are rounded up. Making the object proves that Σ is positive definite.
    """

    names: tuple[str, ...]
    covariance: Matrix
    sensitivity: Sensitivity
    costs: ColumnCosts = field(init=False, compare=False)

    def __post_init__(self) -> None:
        check_names(self.names, self.covariance, "aggregates/covariance")
        object.__setattr__(self, "costs", column_costs(self.covariance, self.sensitivity))
        if not all(map(math.isfinite, (self.mu_0, *(part.mu_0 for part in self.capped)))):
            raise InvalidParameter("aggregates/covariance", "must be large enough that μ₀ is a finite double")

    @property
    def mu_0(self) -> float:
        """μ₀ of the columns without a cap of their own."""
        return self.costs.mu_0

    @property
    def capped(self) -> tuple[Capped, ...]:
        """The columns with caps of their own."""
        return self.costs.capped


class _GaussianNoise:
    """Gaussian noise on the counts and the other columns of at most C_u groups per user."""

    __slots__ = ()
    c_u: int
    sigma: float
    mu_0: float
    aggregates: Aggregates | None
    capped: tuple[Capped, ...]

    @property
    def costs(self) -> ColumnCosts:
        """What the other columns add to μ."""
        return ColumnCosts(self.mu_0, self.capped)

    def mu_squared_in(self, groups: int) -> arb:
        """The most that one user changes in so many groups above τ, as a ball.  [docs/math/column-caps.md]

        S(a) = a (1/σ² + μ₀²) + Σ min(a, n) μ_n²,   n the caps of columns that have one
        """
        sigma = arb(self.sigma)
        count = groups / (sigma * sigma)
        return count + self.costs.squared(groups) if self.mu_0 or self.capped else count

    @property
    def mu_squared(self) -> arb:
        """μ² = S(C_u), as a ball. Without caps it is C_u (1/σ² + μ₀²)."""
        return self.mu_squared_in(self.c_u)

    @property
    def mu(self) -> arb:
        """μ of the equivalent Gaussian mechanism, as a ball."""
        return self.mu_squared.sqrt()

    @property
    def caps(self) -> tuple[int, ...]:
        """The caps below C_u, where S(a) changes its slope."""
        if not self.capped:
            return ()
        return tuple(sorted({part.groups for part in self.capped if part.groups < self.c_u}))

    def _take_columns(self) -> None:
        """Check the columns, and take over the costs of the aggregates."""
        if self.aggregates is not None:
            if self.mu_0 != 0:
                raise InvalidParameter("aggregates/mu_0", "must not be given together with a covariance")
            if self.capped:
                raise InvalidParameter("aggregates/capped", "must not be given together with a covariance")
            check_caps(self.aggregates.sensitivity, self.c_u)
            object.__setattr__(self, "mu_0", self.aggregates.mu_0)
            object.__setattr__(self, "capped", self.aggregates.capped)
        if not _is_size(self.mu_0):
            raise InvalidParameter("aggregates/mu_0", "must be at least 0 and finite")
        for i, part in enumerate(self.capped):
            if not (_is_integer(part.groups) and 1 <= part.groups <= self.c_u):
                raise InvalidParameter(f"aggregates/capped/{i}/groups", "must be an integer from 1 to c_u")
            if not _is_size(part.mu_0):
                raise InvalidParameter(f"aggregates/capped/{i}/mu_0", "must be at least 0 and finite")


@dataclass(frozen=True, slots=True)
class Mechanism(_GaussianNoise):
    """C_u, τ, τ*, σ, and the other columns: Σ with a sensitivity, or their costs alone, or none."""

    c_u: int
    tau: int
    tau_star: float
    sigma: float
    mu_0: float = 0.0
    aggregates: Aggregates | None = None
    capped: tuple[Capped, ...] = ()

    def __post_init__(self) -> None:
        if not (_is_integer(self.c_u) and 1 <= self.c_u <= MOST_C_U):
            raise InvalidParameter("c_u", "must be an integer from 1 to 10^18")
        if not (_is_integer(self.tau) and self.tau >= 0):
            raise InvalidParameter("tau", "must be an integer, at least 0")
        if not (_is_finite(self.sigma) and self.sigma > 0):
            raise InvalidParameter("sigma", "must be greater than 0 and finite")
        if not (_is_finite(self.tau_star) and self.tau_star > self.effective_tau):
            raise InvalidParameter("tau_star", "must be greater than tau, greater than 1 and finite")
        self._take_columns()

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns that are released with the count."""
        return () if self.aggregates is None else self.aggregates.names

    @property
    def bare(self) -> "Mechanism":
        """The same privacy with the costs instead of the columns: a small value that compares fast."""
        if self.aggregates is None:
            return self
        return Mechanism(self.c_u, self.tau, self.tau_star, self.sigma, self.mu_0, capped=self.capped)

    @property
    def effective_tau(self) -> int:
        return effective_tau(self.tau)

    @property
    def log_p(self) -> arb:
        """ln p, p = Φ((τ* − τ)/σ), as a ball. It comes from the upper tail, because 1 − p would cancel.

        The gap is a ball too: in doubles the difference of large thresholds would be rounded.
        """
        gap = arb(self.tau_star) - self.effective_tau
        return (-tail(gap / self.sigma)).log1p()

    @property
    def hazard(self) -> arb:
        """−C_u ln p, as a ball: the threshold cost.  [docs/math/composition.md]"""
        return -self.c_u * self.log_p

    @property
    def tau_gap(self) -> float:
        """τ* − τ, rounded down, because a smaller gap is less private."""
        tau = self.effective_tau
        if self.tau_star < 2**53:
            return self.tau_star - tau  # exact: a multiple of ulp(τ*) ≤ 1 that is no larger than τ*
        return double_below(int(self.tau_star) - tau)


@dataclass(frozen=True, slots=True)
class PlainGaussian(_GaussianNoise):
    """Gaussian noise on groups that are public: the mechanism without thresholds, which drops nothing."""

    c_u: int
    sigma: float
    mu_0: float = 0.0
    aggregates: Aggregates | None = None
    capped: tuple[Capped, ...] = ()

    def __post_init__(self) -> None:
        Mechanism(self.c_u, 1, LARGEST_DOUBLE, self.sigma)
        self._take_columns()

    @property
    def bare(self) -> "PlainGaussian":
        """The same privacy with the costs instead of the columns."""
        return PlainGaussian(self.c_u, self.sigma, self.mu_0, capped=self.capped)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_finite(value: object) -> bool:
    return isinstance(value, _REAL) and not isinstance(value, bool) and abs(value) <= LARGEST_DOUBLE


def _is_size(value: float) -> bool:
    return _is_finite(value) and value >= 0
