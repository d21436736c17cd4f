"""Certified arithmetic: from a ball that encloses a real number to a double on its safe side.

A *ball* is python-flint's ``arb``: a midpoint and a radius that together enclose the true value. Callers pass ball
code as a function. It runs at rising precision until the result is certain:

    round_up       the smallest double at or above each of some positive reals
    round_down     a double at or below a real that is not negative
    at_most        whether one real is provably at most another
    approximate    a real close to a root, to start a search from

``flint.ctx.prec`` is one global for all threads. So ball code runs only inside ``at_precision``, one thread at a time.
"""

import math
import threading
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeVar

from flint import arb, ctx, fmpq

from gsh.accounting.numerics.doubles import next_above, next_below

__all__ = [
    "ANYTHING",
    "PRECISIONS",
    "approximate",
    "at_most",
    "at_precision",
    "ball_of",
    "round_down",
    "round_up",
    "upper_double",
]

# 80 bits suffice for all but about one ordinary value in ten thousand. Only arguments near 1e300 need the last ones.
PRECISIONS = tuple(80 << k for k in range(8))

ANYTHING = arb(0, math.inf)
"""The ball that encloses every real: the present precision says nothing."""

T = TypeVar("T")

_AMPLE_BITS = 60
# A ball as narrow as this that still contains a double is a tie. More precision would take 0.1 s and decide nothing.
_TIE_BITS = 256

_lock = threading.Lock()


def at_precision(bits: int, compute: Callable[[], T]) -> T:
    """Compute with balls at a precision that no other thread can change meanwhile. Calls must not be nested."""
    with _lock:
        before = ctx.prec
        ctx.prec = bits
        try:
            return compute()
        finally:
            ctx.prec = before


def round_up(balls: Callable[[], Sequence[arb]], ceilings: Sequence[float] = (math.inf,)) -> tuple[float, ...]:
    """The smallest double at or above each of the reals that ``balls`` encloses. Each is in (0, its ceiling].

    The result is within one ulp of that in the one case that no precision decides: a real that is itself a double,
    or that 256 bits cannot tell from one.
    """

    def attempt() -> tuple[tuple[float, ...], bool]:
        rounded = [_rounded_up(ball, ceiling) for ball, ceiling in zip(balls(), ceilings, strict=True)]
        doubles, certain = zip(*rounded, strict=True)
        return doubles, all(certain)

    for bits in PRECISIONS:
        highest, certain = at_precision(bits, attempt)
        if certain:
            break
    return highest


def round_down(ball: Callable[[], arb]) -> float:
    """A double at or below a real ≥ 0, at most two ulps below it; 0 if no precision tells the real from 0."""

    def attempt() -> float | None:
        here = ball()
        if here.rel_accuracy_bits() < _AMPLE_BITS:
            return None
        near = float(here.lower())
        return near if here >= near else next_below(near)

    for bits in PRECISIONS:
        lowest = at_precision(bits, attempt)
        if lowest is not None:
            return max(lowest, 0.0)
    return 0.0


def at_most(comparison: Callable[[], tuple[arb, arb]]) -> bool:
    """Whether the first real is provably at most the second. A tie that no precision decides counts as no."""

    def attempt() -> bool | None:
        left, right = comparison()
        if left <= right:
            return True
        is_tie = min(left.rel_accuracy_bits(), right.rel_accuracy_bits()) >= _TIE_BITS
        return False if is_tie or left > right else None

    for bits in PRECISIONS:
        answer = at_precision(bits, attempt)
        if answer is not None:
            return answer
    return False


def approximate(root: Callable[[], arb]) -> arb:
    """The first finite result of ``root`` at rising precision: a good guess, without a guarantee."""
    for bits in PRECISIONS:
        ball = at_precision(bits, root)
        if ball.is_finite():
            return ball.mid()
    return arb(1)


def ball_of(exact: Fraction) -> arb:
    """A ball around a fraction, at the present precision."""
    return arb(fmpq(exact.numerator, exact.denominator))


def upper_double(ball: arb) -> float:
    """The smallest double at or above every point of a ball, or the next one."""
    double = float(ball.upper())
    return double if ball <= double else next_above(double)


def _rounded_up(ball: arb, ceiling: float) -> tuple[float, bool]:
    """A double at or above the ball, and whether it is the smallest such double for every possible true value."""
    if ball.rel_accuracy_bits() >= _AMPLE_BITS:
        # The midpoint rounds to a double that is less than an ulp away, on one side or the other.
        near = float(ball)
        if ball <= near:
            return min(near, ceiling), True
        if ball > near:
            return min(next_above(near), ceiling), True
    double = min(upper_double(ball), ceiling) if ball.is_finite() else ceiling
    below = next_below(double)
    return double, below <= 0.0 or bool(ball > below) or ball.rel_accuracy_bits() >= _TIE_BITS
