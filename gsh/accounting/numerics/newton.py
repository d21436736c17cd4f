"""Newton's method in balls. It gives a guess; a certified comparison then decides the last bit."""

from collections.abc import Callable

from flint import arb

__all__ = ["newton"]

_STEPS = 200
_BITS = 56


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
