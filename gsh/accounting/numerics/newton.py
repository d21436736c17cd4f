"""Newton's method in balls, and the secant method. They give a guess; a certified comparison decides the last bit."""

from collections.abc import Callable

from flint import arb

__all__ = ["newton", "secant"]

_STEPS = 200
_BITS = 56
_SECANTS = 60


def newton(step: Callable[[arb], arb], start: arb) -> arb:
    """Iterate on midpoints until the next step would not matter; not a number if precision runs out first."""
    x = start.mid()
    for _ in range(_STEPS):
        following = step(x)
        if following.rel_accuracy_bits() < _BITS:
            break
        following = following.mid()
        # Each step doubles the number of correct bits.
        if abs(following - x) <= abs(following) * arb(2) ** -(_BITS // 2):
            return following
        x = following
    return arb.nan()


def secant(function: Callable[[float], float], low: float, high: float, tolerance: float = 2.0**-48) -> float:
    """About the root of a rising function between two places, for one that is expensive to evaluate.

    Each step is that of a straight line through the last two points, or to the middle of the bracket if it leaves it.
    It returns a place that it has not evaluated, within the tolerance of the last one.
    """
    (before, at_before), (here, at_here) = (low, function(low)), (high, function(high))
    if not at_before < 0 < at_here:
        return low if at_before >= 0 else high
    for _ in range(_SECANTS):
        following = here - at_here * (here - before) / (at_here - at_before) if at_here != at_before else here
        if abs(following - here) <= tolerance * abs(here):
            return following
        if not low < following < high:
            following = (low + high) / 2
        before, at_before = here, at_here
        here, at_here = following, function(following)
        low, high = (here, high) if at_here < 0 else (low, here)
    return here
