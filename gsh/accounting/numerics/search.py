"""Searches in one variable: the place where a monotone predicate changes, and the minimum of a function.

bisect             the first integer at which a predicate is true, between two integers
first_on_grid      the same on an even grid of doubles
smallest_double    the first double at which a predicate is true, from a guess
largest_double     the last double at which a predicate is true, from a guess
largest_integer    the same on integers
golden_section     ever narrower intervals around a minimum
"""

import math
from collections.abc import Callable, Iterator

from flint import arb

from gsh.accounting.numerics.balls import PRECISIONS, at_precision, upper_double
from gsh.accounting.numerics.doubles import LARGEST_DOUBLE, double_at, position_of

__all__ = ["bisect", "first_on_grid", "golden_section", "largest_double", "largest_integer", "smallest_double"]

_GOLDEN = (math.sqrt(5) - 1) / 2


def bisect(holds: Callable[[int], bool], false: int, true: int) -> int:
    """The first integer at which ``holds`` is true, given that it is false at ``false`` and true at ``true``.

    If rounding makes ``holds`` flicker, it is still true at the result and false just below.
    """
    while true - false > 1:
        middle = (false + true) // 2
        false, true = (false, middle) if holds(middle) else (middle, true)
    return true


def first_on_grid(holds: Callable[[float], bool], low: float, high: float, steps: int) -> float:
    """The first of ``steps`` even steps from ``low`` to ``high`` at which ``holds`` is true, as it is at ``high``."""

    def at(step: int) -> float:
        return low + (high - low) * step / steps

    return at(bisect(lambda step: holds(at(step)), false=0, true=steps))


def smallest_double(holds: Callable[[float], bool], guess: arb, lowest: float) -> float | None:
    """The smallest double ≥ ``lowest`` ≥ 0 at which a predicate that turns true and stays true holds, or None."""
    found = _first(
        lambda position: holds(double_at(position)),
        _position_near(guess),
        position_of(lowest),
        position_of(LARGEST_DOUBLE),
    )
    return None if found is None else double_at(found)


def largest_double(holds: Callable[[float], bool], at_least: float, guess: arb) -> float:
    """The largest double ≥ ``at_least`` > 0 up to which a predicate holds; ``inf`` if it never turns false."""
    failing = _first(
        lambda position: not holds(double_at(position)),
        _position_near(guess),
        position_of(at_least),
        position_of(LARGEST_DOUBLE),
    )
    return math.inf if failing is None else double_at(failing - 1)


def largest_integer(holds: Callable[[int], bool], guess: arb, highest: int) -> int:
    """The largest integer in 0 … ``highest`` up to which a predicate holds; 0 if it fails at 1."""
    start = int(at_precision(PRECISIONS[0], guess.floor).fmpz()) if guess < highest else highest
    failing = _first(lambda integer: not holds(integer), start, 1, highest)
    return highest if failing is None else failing - 1


def golden_section(function: Callable[[float], float], low: float, high: float) -> Iterator[tuple[float, float]]:
    """Intervals around the minimum of a function that falls and then rises, each 0.618 times as wide as the one before.

    If the minimum is flat, they narrow towards its left end, and their right ends stay on it.
    """
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    while True:
        yield low, high
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(right)


def _first(holds: Callable[[int], bool], guess: int, lowest: int, highest: int) -> int | None:
    """The smallest integer of a range at which ``holds`` is true, or None: gallop away from the guess, then bisect."""
    guess = min(max(guess, lowest), highest)
    step = 1
    if holds(guess):
        false, true = guess - step, guess
        while false >= lowest and holds(false):
            step *= 4
            false, true = false - step, false
        return bisect(holds, max(false, lowest - 1), true)
    false, true = guess, guess + step
    while true <= highest and not holds(true):
        step *= 4
        false, true = true, true + step
    if true > highest:
        if not holds(highest):
            return None
        true = highest
    return bisect(holds, false, true)


def _position_near(guess: arb) -> int:
    return position_of(min(max(upper_double(guess), 0.0), LARGEST_DOUBLE))
