"""Searches in one variable, for curves that are only known by asking."""

import math
from collections.abc import Callable

__all__ = ["bisect", "minimise"]

_GOLDEN = (math.sqrt(5) - 1) / 2


def bisect(holds: Callable[[float], bool], low: float, high: float, tolerance: float) -> float:
    """The point where a predicate turns true, from above: ``holds`` at the answer, not at ``tolerance`` below."""
    if holds(low) or not holds(high):
        raise ValueError("the predicate does not turn true between the bounds")
    while high - low > tolerance:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def minimise(function: Callable[[float], float], low: float, high: float, tolerance: float) -> float:
    """Where a function that falls and then rises is smallest, by golden section."""
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > tolerance:
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(right)
    return (low + high) / 2
