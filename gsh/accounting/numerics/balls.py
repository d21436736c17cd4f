"""Certified arithmetic: from a ball that encloses a real number to a double on its safe side.

A *ball* is python-flint's ``arb``, a midpoint and a radius that together enclose the true value. Ball code is
passed in as a function and run at rising precision until the answer is settled:

    round_up           the smallest double at or above each of some positive reals
    round_down         a double at or below a real that is not negative
    at_most            is one real provably at most another
    approximate        a real close to a root, for the searches to start from
    smallest_double    where a monotone predicate on doubles turns true
    largest_double     where it turns false again
    largest_integer    the same on integers

``flint.ctx.prec`` is one global for all threads, so ball code runs only inside this module, one thread at a time.
"""

import math
import struct
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from flint import arb, ctx

__all__ = [
    "ANYTHING",
    "approximate",
    "at_most",
    "at_precision",
    "largest_double",
    "largest_integer",
    "round_down",
    "round_up",
    "smallest_double",
]

# 80 bits settle all but about one ordinary value in ten thousand; the last ones are for arguments near 1e300.
PRECISIONS = tuple(80 << k for k in range(8))

ANYTHING = arb(0, math.inf)
"""The ball of what the present precision says nothing about."""

T = TypeVar("T")

_AMPLE_BITS = 60
# A ball as narrow as this that still holds a double is a tie: more precision would take 0.1 s and settle nothing.
_TIE_BITS = 256
_LARGEST = math.nextafter(math.inf, 0)

_lock = threading.Lock()


def at_precision(bits: int, compute: Callable[[], T]) -> T:
    """The one way to compute with balls: nobody else's precision can change meanwhile. Not to be nested."""
    with _lock:
        before = ctx.prec
        ctx.prec = bits
        try:
            return compute()
        finally:
            ctx.prec = before


def round_up(balls: Callable[[], Sequence[arb]], ceilings: Sequence[float] = (math.inf,)) -> tuple[float, ...]:
    """The smallest double at or above each of the reals that ``balls`` encloses, known to be in (0, its ceiling].

    Within one ulp of it in the one case that no precision settles: a real that is itself a double, or that 256 bits
    cannot tell from one.
    """

    def attempt() -> tuple[tuple[float, ...], bool]:
        rounded = [_rounded_up(ball, ceiling) for ball, ceiling in zip(balls(), ceilings, strict=True)]
        return tuple([double for double, _ in rounded]), all(settled for _, settled in rounded)

    for bits in PRECISIONS:
        highest, settled = at_precision(bits, attempt)
        if settled:
            break
    return highest


def round_down(ball: Callable[[], arb]) -> float:
    """A double at or below a real ≥ 0, an ulp or two below it at most; 0 where no precision tells it from 0."""

    def attempt() -> float | None:
        here = ball()
        if here.rel_accuracy_bits() < _AMPLE_BITS:
            return None
        near = float(here.lower())
        return near if here >= near else math.nextafter(near, 0.0)

    for bits in PRECISIONS:
        lowest = at_precision(bits, attempt)
        if lowest is not None:
            return max(lowest, 0.0)
    return 0.0


def at_most(comparison: Callable[[], tuple[arb, arb]]) -> bool:
    """Whether the first real is provably at most the second; a tie that no precision settles counts as no."""

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
    """The first finite answer of ``root`` at rising precision: a good guess, with no promise."""
    for bits in PRECISIONS:
        ball = at_precision(bits, root)
        if ball.is_finite():
            return ball.mid()
    return arb(1)


def smallest_double(holds: Callable[[float], bool], guess: arb, lowest: float) -> float | None:
    """The smallest double ≥ ``lowest`` ≥ 0 at which a predicate that turns true and stays true holds, or None."""
    found = _first(lambda index: holds(_double(index)), _index_of(guess), _index(lowest), _index(_LARGEST))
    return None if found is None else _double(found)


def largest_double(holds: Callable[[float], bool], at_least: float, guess: arb) -> float:
    """The largest double ≥ ``at_least`` > 0 up to which a predicate holds; ``inf`` if it never turns false."""
    failing = _first(lambda index: not holds(_double(index)), _index_of(guess), _index(at_least), _index(_LARGEST))
    return math.inf if failing is None else _double(failing - 1)


def largest_integer(holds: Callable[[int], bool], guess: arb, highest: int) -> int:
    """The largest integer in 0 … ``highest`` up to which a predicate holds, 0 if it fails at 1."""
    start = int(at_precision(PRECISIONS[0], guess.floor).fmpz()) if guess < highest else highest
    failing = _first(lambda integer: not holds(integer), start, 1, highest)
    return highest if failing is None else failing - 1


def _first(holds: Callable[[int], bool], guess: int, lowest: int, highest: int) -> int | None:
    """The smallest integer of a range at which ``holds`` turns true: gallop away from the guess, then bisect.

    Even where rounding makes ``holds`` flicker, it is true at the answer and false just below.
    """
    guess = min(max(guess, lowest), highest)
    step = 1
    if holds(guess):
        false, true = guess - step, guess
        while false >= lowest and holds(false):
            step *= 4
            false, true = false - step, false
        false = max(false, lowest - 1)
    else:
        false, true = guess, guess + step
        while true <= highest and not holds(true):
            step *= 4
            false, true = true, true + step
        if true > highest:
            if not holds(highest):
                return None
            true = highest
    while true - false > 1:
        middle = (false + true) // 2
        false, true = (false, middle) if holds(middle) else (middle, true)
    return true


def _rounded_up(ball: arb, ceiling: float) -> tuple[float, bool]:
    """A double at or above the ball, and whether it is the smallest for every point of the ball that can be meant."""
    if ball.rel_accuracy_bits() >= _AMPLE_BITS:
        # The double that the midpoint rounds to is less than an ulp away, on one side or the other.
        near = float(ball)
        if ball <= near:
            return min(near, ceiling), True
        if ball > near:
            return min(math.nextafter(near, math.inf), ceiling), True
    double = min(_double_above(ball), ceiling) if ball.is_finite() else ceiling
    below = math.nextafter(double, 0.0)
    return double, below == 0.0 or bool(ball > below) or ball.rel_accuracy_bits() >= _TIE_BITS


def _double_above(ball: arb) -> float:
    """The smallest double at or above every point of a ball, or the next."""
    double = float(ball.upper())
    return double if ball <= double else math.nextafter(double, math.inf)


def _index(double: float) -> int:
    """The position of a non-negative double among its kind: 0.0 → 0, the next one → 1, …"""
    position: int = struct.unpack("<q", struct.pack("<d", double))[0]
    return position


def _double(index: int) -> float:
    double: float = struct.unpack("<d", struct.pack("<q", index))[0]
    return double


def _index_of(guess: arb) -> int:
    return _index(min(max(_double_above(guess), 0.0), _LARGEST))
