"""The Gaussian sparse histogram mechanism as a value: everything its privacy depends on, checked once."""

import math
import sys
from dataclasses import dataclass, field

from flint import arb

from gsh.accounting.covariance import Matrix
from gsh.accounting.errors import InvalidParameter
from gsh.accounting.gaussian import tail
from gsh.accounting.sensitivity import Sensitivity, mu_0

__all__ = ["MOST_C_U", "Aggregates", "Mechanism", "PlainGaussian"]

MOST_C_U = 10**18
_REAL = (float, int)


@dataclass(frozen=True, slots=True)
class Aggregates:
    """The columns released beside the count, the covariance Σ of their noise, and what one user can change.

    ``mu_0`` is certified upward; making the object proves Σ positive definite.
    """

    names: tuple[str, ...]
    covariance: Matrix
    sensitivity: Sensitivity
    mu_0: float = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if len(set(self.names)) != len(self.names):
            raise InvalidParameter("aggregates/names", "must be unique")
        if {"key", "count"} & set(self.names):
            raise InvalidParameter("aggregates/names", "must not contain key or count")
        if len(self.covariance) != len(self.names):
            raise InvalidParameter("aggregates/covariance", "must have one row and one column per name")
        object.__setattr__(self, "mu_0", mu_0(self.covariance, self.sensitivity))
        if not math.isfinite(self.mu_0):
            raise InvalidParameter("aggregates/covariance", "must be large enough that μ₀ is a finite double")


@dataclass(frozen=True, slots=True)
class Mechanism:
    """C_u, τ, τ*, σ and what the other columns add: Σ with a sensitivity, or μ₀ alone, or nothing."""

    c_u: int
    tau: int
    tau_star: float
    sigma: float
    mu_0: float = 0.0
    aggregates: Aggregates | None = None

    def __post_init__(self) -> None:
        if not (_is_integer(self.c_u) and 1 <= self.c_u <= MOST_C_U):
            raise InvalidParameter("c_u", "must be an integer from 1 to 10^18")
        if not (_is_integer(self.tau) and self.tau >= 0):
            raise InvalidParameter("tau", "must be an integer, at least 0")
        if not (_is_finite(self.sigma) and self.sigma > 0):
            raise InvalidParameter("sigma", "must be greater than 0 and finite")
        if not (_is_finite(self.tau_star) and self.tau_star > max(self.tau, 1)):
            raise InvalidParameter("tau_star", "must be greater than tau, greater than 1 and finite")
        if self.aggregates is not None:
            if self.mu_0 != 0:
                raise InvalidParameter("aggregates/mu_0", "must not be given beside a covariance")
            object.__setattr__(self, "mu_0", self.aggregates.mu_0)
        if not (_is_finite(self.mu_0) and self.mu_0 >= 0):
            raise InvalidParameter("aggregates/mu_0", "must be at least 0 and finite")

    @property
    def bare(self) -> "Mechanism":
        """The same privacy without what its μ₀ came from: a small key that compares fast."""
        if self.aggregates is None:
            return self
        return Mechanism(self.c_u, self.tau, self.tau_star, self.sigma, self.mu_0)

    @property
    def mu_squared_per_group(self) -> arb:
        """1/σ² + μ₀², as a ball: μ² for one group above τ."""
        return _mu_squared_per_group(self.sigma, self.mu_0)

    @property
    def mu(self) -> arb:
        """μ = √(C_u (1/σ² + μ₀²)), as a ball."""
        return (self.c_u * self.mu_squared_per_group).sqrt()

    @property
    def log_p(self) -> arb:
        """ln p, p = Φ((τ* − τ)/σ), as a ball: from the upper tail, because 1 − p would cancel. τ = 0 acts as 1.

        The gap is a ball too: in doubles the difference of large thresholds would be rounded.
        """
        gap = arb(self.tau_star) - max(self.tau, 1)
        return (-tail(gap / self.sigma)).log1p()

    @property
    def tau_gap(self) -> float:
        """τ* − τ, rounded down: a smaller gap is the less private one."""
        tau = max(self.tau, 1)
        if self.tau_star < 2**53:
            return self.tau_star - tau  # exact: a multiple of ulp(τ*) ≤ 1 that is no larger than τ*
        gap = int(self.tau_star) - tau
        return float(gap) if float(gap) <= gap else math.nextafter(float(gap), 0)


@dataclass(frozen=True, slots=True)
class PlainGaussian:
    """Gaussian noise without thresholds, on groups that are public: the mechanism that drops nothing."""

    c_u: int
    sigma: float
    mu_0: float = 0.0
    aggregates: Aggregates | None = None

    def __post_init__(self) -> None:
        checked = Mechanism(self.c_u, 1, sys.float_info.max, self.sigma, self.mu_0, self.aggregates)
        object.__setattr__(self, "mu_0", checked.mu_0)

    @property
    def bare(self) -> "PlainGaussian":
        """The same privacy without what its μ₀ came from."""
        return PlainGaussian(self.c_u, self.sigma, self.mu_0)

    @property
    def mu_squared_per_group(self) -> arb:
        """1/σ² + μ₀², as a ball."""
        return _mu_squared_per_group(self.sigma, self.mu_0)

    @property
    def mu(self) -> arb:
        """μ = √(C_u (1/σ² + μ₀²)), as a ball."""
        return (self.c_u * self.mu_squared_per_group).sqrt()


def _mu_squared_per_group(sigma: float, mu_0: float) -> arb:
    return 1 / (arb(sigma) * arb(sigma)) + arb(mu_0) * arb(mu_0)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_finite(value: object) -> bool:
    return isinstance(value, _REAL) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
