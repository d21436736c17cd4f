"""The routes by which a target (ε, δ) is met in practice, from the cheapest up: what each asks of σ and τ*.

exact         δ_infinite ≤ δ and δ_gaussian ≤ δ: the smallest σ and the smallest τ* at once
add-deltas    δ_infinite + δ_gaussian ≤ δ, shared so that τ* is the smallest at any σ
half-split    δ_infinite ≤ δ/2 and δ_gaussian ≤ δ/2: no share to look for
zcdp          as add-deltas, with the noise known by its ρ alone (zcdp.py)

Where δ is shared, more noise leaves more δ for the threshold, and the smallest σ would need an infinite τ*. The σ of
the best share is found by search and is as good as the search; that the pair meets the target is certified, and τ* is
the smallest double there.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from gsh.accounting.accountings import ADD_DELTAS, EXACT, ZCDP, Accounting, Point, at_epsilon
from gsh.accounting.calibration.draft import ANY_TAU_STAR, Draft, Target
from gsh.accounting.calibration.target import calibrate, smallest_gap, smallest_sigma_for_noise
from gsh.accounting.errors import InfeasibleTarget, InvalidParameter
from gsh.accounting.mechanism import Mechanism
from gsh.accounting.numerics.balls import approximate

__all__ = ["Price", "RouteName", "compare"]

RouteName = Literal["exact", "add-deltas", "half-split", "zcdp"]

_GOLDEN = (math.sqrt(5) - 1) / 2
_TOLERANCE = 1e-7
_POSITIONS = (-25.0, 8.0)


@dataclass(frozen=True, slots=True)
class Price:
    """What a route asks: a mechanism that meets the target by the route's own account, and the point it reaches.

    ``least_sigma`` is the smallest σ whose noise fits the δ that the route can give to it; with less, no τ* helps.
    """

    mechanism: Mechanism
    point: Point
    least_sigma: float


def compare(draft: Draft, target: Target) -> dict[RouteName, Price | None]:
    """The price of each route; None where it cannot meet the target. Exact can, or InfeasibleTarget says why not."""
    if draft.missing != ("sigma", "tau_star"):
        raise InvalidParameter("", "must leave out sigma and tau_star, and nothing else")
    exact = calibrate(EXACT, draft, target)
    return {
        "exact": Price(exact.mechanism, exact.point, exact.mechanism.sigma),
        "add-deltas": _or_none(ADD_DELTAS, draft, target),
        "half-split": _half_split(draft, target),
        "zcdp": _or_none(ZCDP, draft, target),
    }


def _or_none(accounting: Accounting, draft: Draft, target: Target) -> Price | None:
    try:
        return _best_share(accounting, draft, target)
    except InfeasibleTarget:
        return None


def _half_split(draft: Draft, target: Target) -> Price | None:
    half = target.delta / 2
    if half + half > target.delta:  # halves of doubles are doubles, but for the smallest of all
        half = math.nextafter(half, 0.0)
    if half == 0:
        return None
    try:
        mechanism = calibrate(EXACT, draft, Target(target.epsilon, half)).mechanism
    except InfeasibleTarget:
        return None
    return Price(mechanism, at_epsilon(ADD_DELTAS, mechanism, target.epsilon), mechanism.sigma)


def _best_share(accounting: Accounting, draft: Draft, target: Target) -> Price:
    """The σ at which the τ* that it needs is smallest: golden section in ln(σ/σ_least − 1).

    τ* falls from infinity at σ_least, where the noise leaves nothing to the threshold, and later rises with σ.
    """
    least = smallest_sigma_for_noise(accounting.noise, draft, target)
    # To prove Σ and find μ₀ anew at every σ is dear; a Σ that is not rounded does to find where to look.
    unrounded = draft.unrounded()

    def gap(position: float) -> float:
        sigma = _sigma(least, position)
        if math.isinf(sigma):
            return math.inf
        mechanism = unrounded.with_sigma(sigma).complete(tau_star=ANY_TAU_STAR)
        return max(float(approximate(lambda: smallest_gap(accounting, mechanism, target))), 0.0)

    found = calibrate(accounting, draft.with_sigma(_sigma(least, _lowest(gap, *_POSITIONS))), target)
    return Price(found.mechanism, found.point, least)


def _sigma(least: float, position: float) -> float:
    return least * (1 + math.exp(position))


def _lowest(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that falls and then rises is smallest; where it is flat there, the left end."""
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > _TOLERANCE:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(right)
    return high
