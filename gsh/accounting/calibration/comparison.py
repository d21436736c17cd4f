"""The accountings in use, compared at one target (ε, δ), from the cheapest: the σ and τ* that each needs.

exact         δ_infinite ≤ δ and δ_gaussian ≤ δ: the smallest σ and the smallest τ* at once; with capped columns, as
              add-deltas: τ* is the smallest at any σ
add-deltas    δ_infinite + δ_gaussian ≤ δ, shared so that τ* is the smallest at any σ
half-split    δ_infinite ≤ δ/2 and δ_gaussian ≤ δ/2: add-deltas with fixed shares
zcdp          as add-deltas, with the δ of zCDP for the noise (zcdp.py)

If δ is shared, more noise leaves more δ to the threshold, and the smallest σ would need an infinite τ*. A search finds
nearly the σ of the best share. It is certified that the pair meets the target, and that τ* is the smallest double at
that σ.  [docs/math/other-accountings.md]
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from gsh.accounting.accountings import ADD_DELTAS, EXACT, LARGER_PART, ZCDP, Accounting, Point, at_epsilon
from gsh.accounting.calibration.draft import ANY_TAU_STAR, Draft, Target
from gsh.accounting.calibration.target import CalibratedMechanism, calibrate, smallest_gap, smallest_sigma_for_noise
from gsh.accounting.mechanism import Mechanism
from gsh.accounting.numerics.balls import approximate
from gsh.accounting.numerics.doubles import next_below
from gsh.accounting.numerics.search import golden_section
from gsh.errors import InfeasibleTarget, InvalidParameter

__all__ = ["ComparedName", "PricedMechanism", "column_ratios", "compare", "or_none", "price_without_caps"]

T = TypeVar("T")

ComparedName = Literal["exact", "add-deltas", "half-split", "zcdp"]

_TOLERANCE = 1e-7
_POSITIONS = (-25.0, 8.0)


@dataclass(frozen=True, slots=True)
class PricedMechanism:
    """The price of an accounting: a mechanism that meets the target by this accounting, and the certified point.

    ``least_sigma`` is the smallest σ whose noise fits the δ available to it. No τ* helps a smaller σ.
    """

    mechanism: Mechanism
    point: Point
    least_sigma: float
    exact: Mechanism
    """The mechanism of exact accounting at the same target, with the caps of its columns."""

    @property
    def sigma_ratio(self) -> float:
        """σ divided by the σ of exact accounting."""
        return self.mechanism.sigma / self.exact.sigma

    @property
    def tau_star_ratio(self) -> float:
        """τ* divided by the τ* of exact accounting."""
        return self.mechanism.tau_star / self.exact.tau_star

    @property
    def column_ratios(self) -> tuple[float, ...]:
        """The noise on each column divided by that of exact accounting."""
        return column_ratios(self.mechanism, self.exact)


def column_ratios(mechanism: Mechanism, exact: Mechanism) -> tuple[float, ...]:
    """The noise on each column of a mechanism divided by that of another one."""
    ours, theirs = mechanism.aggregates, exact.aggregates
    if ours is None or theirs is None:
        return ()
    pairs = enumerate(zip(ours.covariance, theirs.covariance, strict=True))
    return tuple(math.sqrt(mine[j]) / math.sqrt(their[j]) for j, (mine, their) in pairs)


def compare(draft: Draft, target: Target) -> dict[ComparedName, PricedMechanism | None]:
    """The price of each accounting; None if it cannot meet the target. If exact cannot, it raises InfeasibleTarget."""
    if draft.missing != ("sigma", "tau_star"):
        raise InvalidParameter("", "must omit sigma and tau_star, and nothing else")
    found = _exact(draft, target)
    exact = found.mechanism
    return {
        "exact": PricedMechanism(exact, found.point, smallest_sigma_for_noise(EXACT.noise, draft, target), exact),
        "add-deltas": or_none(lambda: _best_share(ADD_DELTAS, draft, target, exact)),
        "half-split": or_none(lambda: _half_split(draft, target, exact)),
        "zcdp": or_none(lambda: _best_share(ZCDP, draft, target, exact)),
    }


def price_without_caps(draft: Draft, target: Target, capped: Mechanism) -> PricedMechanism | None:
    """The price by exact accounting if columns had no caps of their own, relative to the mechanism with caps.

    None if it cannot meet the target.
    """
    found = or_none(lambda: _exact(draft.without_caps(), target))
    return None if found is None else PricedMechanism(found.mechanism, found.point, found.mechanism.sigma, capped)


def or_none(price: Callable[[], T]) -> T | None:
    """The price, or None if the target cannot be met."""
    try:
        return price()
    except InfeasibleTarget:
        return None


def _exact(draft: Draft, target: Target) -> CalibratedMechanism:
    """The smallest σ and τ*; with capped columns about the σ that has the smallest τ*."""
    found = calibrate(EXACT, draft, target)
    if EXACT.decouples(found.mechanism):
        return found
    best = calibrate(EXACT, draft.with_sigma(_best_sigma(EXACT, draft, target, found.mechanism.sigma)), target)
    return min(found, best, key=lambda each: each.mechanism.tau_star)


def _half_split(draft: Draft, target: Target, exact: Mechanism) -> PricedMechanism | None:
    half = target.delta / 2
    if half + half > target.delta:  # half of an odd subnormal double was rounded up
        half = next_below(half)
    if half == 0:
        return None
    mechanism = calibrate(LARGER_PART, draft, Target(target.epsilon, half)).mechanism
    return PricedMechanism(mechanism, at_epsilon(ADD_DELTAS, mechanism, target.epsilon), mechanism.sigma, exact)


def _best_share(accounting: Accounting, draft: Draft, target: Target, exact: Mechanism) -> PricedMechanism:
    least = smallest_sigma_for_noise(accounting.noise, draft, target)
    found = calibrate(accounting, draft.with_sigma(_best_sigma(accounting, draft, target, least)), target)
    return PricedMechanism(found.mechanism, found.point, least, exact)


def _best_sigma(accounting: Accounting, draft: Draft, target: Target, least: float) -> float:
    """Approximately the σ that needs the smallest τ*, by golden section in ln(σ/σ_least − 1).

    If δ is shared, τ* is infinite at σ_least. From there it falls, and later rises with σ.
    """
    # To prove Σ and compute μ₀ at every σ is expensive; an unrounded Σ is enough for the search.
    unrounded = draft.unrounded()

    def gap(position: float) -> float:
        sigma = _sigma(least, position)
        if math.isinf(sigma):
            return math.inf
        mechanism = unrounded.with_sigma(sigma).complete(tau_star=ANY_TAU_STAR)
        return max(float(approximate(lambda: smallest_gap(accounting, mechanism, target))), 0.0)

    intervals = golden_section(gap, *_POSITIONS)
    position = next(right for left, right in intervals if right - left <= _TOLERANCE)
    return _sigma(least, position)


def _sigma(least: float, position: float) -> float:
    return least * (1 + math.exp(position))
