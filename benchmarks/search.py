"""Searches with a tolerance, for functions that other libraries only evaluate."""

import math
from collections.abc import Callable

from gsh.accounting.numerics.search import first_on_grid, golden_section

__all__ = ["bisect", "minimise"]


def bisect(holds: Callable[[float], bool], low: float, high: float, tolerance: float) -> float:
    """The point where a predicate turns true, from above: ``holds`` at the answer, not at ``tolerance`` below."""
    if holds(low) or not holds(high):
        raise ValueError("the predicate does not turn true between the bounds")
    return first_on_grid(holds, low, high, math.ceil((high - low) / tolerance))


def minimise(function: Callable[[float], float], low: float, high: float, tolerance: float) -> float:
    """The point where a function that falls and then rises is smallest."""
    intervals = golden_section(function, low, high)
    return next((left + right) / 2 for left, right in intervals if right - left <= tolerance)
