"""What each way of accounting asks for the case study's target: noise, threshold, and δ charged."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from app.accounting.drafts import Target
from app.accounting.methods import ADD_DELTAS, EXACT, at_epsilon
from benchmarks.search import bisect, minimise
from benchmarks.setting import C_U, DELTA, EPSILON, best, smallest_tau_star, threshold_for

__all__ = ["Price", "best_share", "prices"]

LARGEST_SIGMA = 3000.0


@dataclass(frozen=True, slots=True)
class Price:
    """What one accounting needs for the target, and what it charges for the mechanism that exact accounting finds.

    ``least_sigma`` satisfies the noise alone; where the two parts share δ, it would take an infinite threshold.
    ``tau_star`` is the smallest at any σ, reached at ``sigma``.
    """

    name: str
    least_sigma: float
    sigma: float
    tau_star: float
    delta_charged: float


def prices() -> list[Price]:
    """Exact accounting, then the others in order of cost."""
    exact, half = best(), best(Target(EPSILON, DELTA / 2))
    charged = at_epsilon(EXACT, exact, EPSILON)
    added = at_epsilon(ADD_DELTAS, exact, EPSILON).delta

    def left_by_zcdp(sigma: float) -> float:
        return DELTA - delta_by_zcdp(sigma, EPSILON)

    least_by_zcdp = bisect(lambda sigma: left_by_zcdp(sigma) >= 0, exact.sigma, LARGEST_SIGMA, 1e-6)
    return [
        Price("exact", exact.sigma, exact.sigma, exact.tau_star, charged.delta),
        Price(
            "add the deltas, best share",
            exact.sigma,
            *best_share(exact.sigma, lambda sigma: smallest_tau_star(ADD_DELTAS, sigma)),
            added,
        ),
        Price("add the deltas, half and half", half.sigma, half.sigma, half.tau_star, added),
        Price(
            "zCDP, best share",
            least_by_zcdp,
            *best_share(least_by_zcdp, lambda sigma: threshold_for(sigma, left_by_zcdp(sigma))),
            delta_by_zcdp(exact.sigma, EPSILON) + charged.delta_infinite,
        ),
    ]


def best_share(least_sigma: float, tau_star: Callable[[float], float]) -> tuple[float, float]:
    """The σ at which the τ* that it needs is smallest, and that τ*."""
    sigma = minimise(tau_star, least_sigma + 1e-3, LARGEST_SIGMA, 1e-3)
    return sigma, tau_star(sigma)


def delta_by_zcdp(sigma: float, epsilon: float) -> float:
    """δ of the noise at ε when all that is kept of it is ρ = C_u/(2σ²), in doubles.  [Canonne, Kamath & Steinke 2020]

    δ = min over α > 1 of  e^((α − 1)(αρ − ε)) (1 − 1/α)^α / (α − 1)
    """
    rho = C_U / (2 * sigma * sigma)

    def log_delta(log_excess: float) -> float:
        excess = math.exp(log_excess)
        alpha = 1 + excess
        return excess * (alpha * rho - epsilon) + alpha * math.log1p(-1 / alpha) - log_excess

    return math.exp(log_delta(minimise(log_delta, math.log(1e-2), math.log(1e5), 1e-9)))
