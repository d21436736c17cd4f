"""From balls to doubles: upward rounding and certified comparison."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from gsh.accounting.numerics import balls
from gsh.accounting.numerics.balls import (
    ANYTHING,
    approximate,
    at_most,
    at_precision,
    round_down,
    round_up,
)
from gsh.accounting.numerics.doubles import next_above, next_below
from tests.gsh.accounting.draws import examples

LARGEST = next_below(math.inf)
LEAST = next_above(0.0)


@pytest.mark.parametrize(
    ("ball", "expected"),
    [
        (lambda: arb(2).sqrt(), next_above(math.sqrt(2)) if Fraction(math.sqrt(2)) ** 2 < 2 else math.sqrt(2)),
        (lambda: arb(1) / 3, next_above(1 / 3)),  # 1/3 in doubles is below a third
        (lambda: arb(2) / 3, 2 / 3 if Fraction(2 / 3) > Fraction(2, 3) else next_above(2 / 3)),
        (lambda: arb(1) / 10, 0.1),  # 0.1 in doubles is above a tenth
        (lambda: arb(0.5), 0.5),
        (lambda: arb(2) ** -2000, LEAST),
        (lambda: arb(2) ** -1074, LEAST),
        (lambda: arb(2) ** -1074 * 3 / 2, 2 * LEAST),
        (lambda: 1 - arb(2) ** -100, 1.0),
        (lambda: 1 + arb(2) ** -100, next_above(1.0)),
        (lambda: arb(LARGEST), LARGEST),
        (lambda: arb(LARGEST) + 1, math.inf),
        (lambda: arb(10) ** 400, math.inf),
    ],
    ids=["√2", "1/3", "2/3", "1/10", "1/2", "2^-2000", "2^-1074", "3·2^-1075", "<1", ">1", "max", ">max", "1e400"],
)
def test_round_up_gives_the_smallest_double_at_or_above(ball: Callable[[], arb], expected: float) -> None:
    """Algebraic numbers whose place among the doubles is known."""
    assert round_up(lambda: [ball()]) == (expected,)


def test_round_up_takes_more_precision_only_when_a_double_is_near() -> None:
    """1 + 2^−200 and 1 − 2^−200 are on different sides of 1, and 80 bits cannot tell."""
    tiny = Fraction(1, 2**200)
    above, below = round_up(lambda: [1 + arb(2) ** -200, 1 - arb(2) ** -200], (math.inf, math.inf))

    assert Fraction(above) >= 1 + tiny
    assert (above, below) == (next_above(1.0), 1.0)


def test_round_up_is_within_an_ulp_of_a_real_that_is_a_double() -> None:
    """(√2)² is 2, but no precision of balls proves it."""
    (two,) = round_up(lambda: [arb(2).sqrt() ** 2])

    assert two in {2.0, next_above(2.0)}


@pytest.mark.parametrize("real", ["1 - 2^-70", "√2²/2"])
def test_round_up_never_exceeds_its_ceiling(real: str) -> None:
    """A probability is at most 1, even if its ball is not."""
    ball = {"1 - 2^-70": lambda: 1 - arb(2) ** -70, "√2²/2": lambda: arb(2).sqrt() ** 2 / 2}[real]

    assert round_up(lambda: [ball()], ceilings=(1.0,)) == (1.0,)


@examples(200)
@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9, max_denominator=10**12))
def test_round_up_of_a_rational_is_at_or_above_it_and_the_next_below_is_not(real: Fraction) -> None:
    """Compared in exact rational arithmetic."""
    (double,) = round_up(lambda: [arb(real.numerator) / real.denominator])

    assert Fraction(double) >= real
    assert Fraction(next_below(next_below(double))) < real
    assert Fraction(next_below(double)) < real or Fraction(next_below(double)) == real


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (lambda: arb(1), lambda: arb(1), True),  # exact: equality is proven
        (lambda: arb(2).sqrt(), lambda: arb(1.5), True),
        (lambda: arb(1.5), lambda: arb(2).sqrt(), False),
        (lambda: 1 + arb(2) ** -2000, lambda: arb(1), False),
        (lambda: 1 - arb(2) ** -2000, lambda: arb(1), True),
        (lambda: arb(2).sqrt() ** 2, lambda: arb(2), False),  # a tie that no precision decides
        (arb.nan, lambda: arb(1), False),
    ],
)
def test_at_most_says_yes_only_with_a_proof(left: Callable[[], arb], right: Callable[[], arb], expected: bool) -> None:
    """A tie, or no number at all, counts as no."""
    assert at_most(lambda: (left(), right())) is expected


@pytest.mark.parametrize("bits", [80, 1280])
def test_precision_is_restored_even_after_an_error(bits: int) -> None:
    """The next thread finds the same precision as before, and the lock open."""

    def fail() -> None:
        raise ZeroDivisionError

    before = ctx.prec
    assert at_precision(bits, lambda: ctx.prec) == bits
    with pytest.raises(ZeroDivisionError):
        at_precision(bits, fail)

    assert ctx.prec == before
    assert at_most(lambda: (arb(1), arb(2)))


def test_approximate_takes_the_first_finite_answer_and_falls_back_to_one() -> None:
    """A guess never stops a search."""
    assert approximate(arb.nan) == 1
    assert approximate(lambda: arb(3) if ctx.prec > 1000 else arb.nan()) == 3


def test_what_cannot_be_evaluated_is_at_its_ceiling() -> None:
    """A ball that is not a number rounds up to the ceiling, the safe side."""
    assert round_up(lambda: [arb.nan()], ceilings=(1.0,)) == (1.0,)
    assert round_up(lambda: [ANYTHING]) == (math.inf,)


@examples(200)
@given(st.fractions(min_value=Fraction(1, 10**300), max_value=10**12))
def test_round_down_is_at_or_below_and_close(real: Fraction) -> None:
    double = round_down(lambda: arb(real.numerator) / real.denominator)

    assert double <= real <= next_above(next_above(double))


def test_round_down_of_what_cannot_be_told_from_zero_is_zero() -> None:
    assert round_down(lambda: arb(0)) == round_down(lambda: ANYTHING) == 0.0


def test_a_tie_is_settled_at_moderate_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """μ = √(c_u)/σ is often a double itself. No precision proves that, and the highest one is very slow."""
    tried: list[int] = []
    at_precision = balls.at_precision

    def recorded(bits: int, compute: Callable[[], Any]) -> Any:
        tried.append(bits)
        return at_precision(bits, compute)

    monkeypatch.setattr(balls, "at_precision", recorded)

    assert balls.round_up(lambda: [arb(3).sqrt() ** 2 / 6]) == (next_above(0.5),)
    assert not balls.at_most(lambda: (arb(3).sqrt() ** 2 / 6, arb(0.5)))
    assert max(tried) <= 640
