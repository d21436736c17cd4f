"""From balls to doubles: upward rounding, certified comparison, and searches that end on the right double."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from flint import arb, ctx
from hypothesis import example, given
from hypothesis import strategies as st

from gsh.accounting.numerics import balls
from gsh.accounting.numerics.balls import (
    ANYTHING,
    approximate,
    at_most,
    at_precision,
    largest_double,
    largest_integer,
    round_down,
    round_up,
    smallest_double,
)
from tests.accounting.draws import examples, next_above, next_below

LARGEST = next_below(math.inf)
LEAST = next_above(0.0)

# Guesses a search must survive. ``approximate`` gives finite ones only, but a search on doubles takes any.
FINITE = {"-1": arb(-1), "0": arb(0), "1": arb(1), "largest": arb(LARGEST), "2^2000": arb(2) ** 2000}
ANY = FINITE | {"inf": arb.pos_inf(), "-inf": arb.neg_inf(), "nan": arb.nan()}


def long_guess(n: int) -> arb:
    """n and a third, with more bits than a double has, as ``approximate`` answers."""
    return at_precision(200, lambda: n + arb(1) / 3).mid()


positive_doubles = st.floats(min_value=0, exclude_min=True, allow_infinity=False, allow_subnormal=True)
finite_guesses = st.sampled_from(sorted(FINITE)).map(FINITE.__getitem__) | positive_doubles.map(arb)
guesses = st.sampled_from(sorted(ANY)).map(ANY.__getitem__) | positive_doubles.map(arb)


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
    """(√2)² is 2, and no precision of balls can prove it."""
    (two,) = round_up(lambda: [arb(2).sqrt() ** 2])

    assert two in {2.0, next_above(2.0)}


@pytest.mark.parametrize("real", ["1 - 2^-70", "√2²/2"])
def test_round_up_never_exceeds_its_ceiling(real: str) -> None:
    """A probability is at most 1, even where its ball is not."""
    ball = {"1 - 2^-70": lambda: 1 - arb(2) ** -70, "√2²/2": lambda: arb(2).sqrt() ** 2 / 2}[real]

    assert round_up(lambda: [ball()], ceilings=(1.0,)) == (1.0,)


@examples(200)
@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9, max_denominator=10**12))
def test_round_up_of_a_rational_is_at_or_above_it_and_the_next_below_is_not(real: Fraction) -> None:
    """Exact rational arithmetic is the judge."""
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
        (lambda: arb(2).sqrt() ** 2, lambda: arb(2), False),  # a tie that no precision settles
        (arb.nan, lambda: arb(1), False),
    ],
)
def test_at_most_says_yes_only_with_a_proof(left: Callable[[], arb], right: Callable[[], arb], expected: bool) -> None:
    """A tie, or no number at all, counts as no."""
    assert at_most(lambda: (left(), right())) is expected


@pytest.mark.parametrize("bits", [80, 1280])
def test_precision_is_restored_even_after_an_error(bits: int) -> None:
    """The next thread finds the precision it would have found, and the lock open."""

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


@examples(300)
@given(turn=positive_doubles, guess=guesses)
@example(turn=LEAST, guess=arb.nan())
@example(turn=LARGEST, guess=arb(0))
def test_smallest_double_finds_where_a_predicate_turns_true(turn: float, guess: arb) -> None:
    """Whatever the guess."""
    assert smallest_double(lambda x: x >= turn, guess, LEAST) == turn


@examples(300)
@given(turn=positive_doubles, lowest=st.floats(0, LARGEST), guess=guesses)
def test_smallest_double_stays_at_or_above_its_bound(turn: float, lowest: float, guess: arb) -> None:
    """Even where the predicate holds below it."""
    assert smallest_double(lambda x: x >= turn, guess, lowest) == max(turn, lowest)


@pytest.mark.parametrize("guess", ANY.values(), ids=ANY)
def test_smallest_double_is_none_where_nothing_holds(guess: arb) -> None:
    """Not the largest double, which would be a false promise."""
    assert smallest_double(lambda _x: False, guess, 0.0) is None


@examples(300)
@given(turn=positive_doubles, at_least=positive_doubles, guess=guesses)
def test_largest_double_finds_where_a_predicate_turns_false(turn: float, at_least: float, guess: arb) -> None:
    """The last double at which it holds, given that it holds at ``at_least``."""
    at_least = min(turn, at_least)
    expected = turn if turn < LARGEST else math.inf

    assert largest_double(lambda x: x <= turn, at_least, guess) == expected


@examples(300)
@given(
    turn=st.integers(0, 10**18),
    highest=st.integers(1, 10**18),
    guess=finite_guesses | st.integers(0, 10**18).map(long_guess),
)
@example(turn=10**17, highest=10**18, guess=long_guess(2**53 + 1))
@example(turn=0, highest=10**18, guess=arb(-1))
def test_largest_integer_finds_where_a_predicate_turns_false(turn: int, highest: int, guess: arb) -> None:
    """0 if it fails at 1, and no more than ``highest``."""
    assert largest_integer(lambda n: n <= turn, guess, highest) == min(turn, highest)


@examples(200)
@given(st.sets(st.integers(1, 60)), st.integers(-10, 80))
def test_a_flickering_predicate_still_ends_true_at_the_answer_and_false_below(holding: set[int], guess: int) -> None:
    """Rounded covariances flicker; the promise about the neighbours stands all the same."""
    found = balls._first(lambda n: n in holding or n > 60, guess, 1, 70)

    assert found in holding or found > 60
    assert found == 1 or found - 1 not in holding


def test_what_cannot_be_evaluated_is_at_its_ceiling() -> None:
    """Not a number must never leave as one: the safe side is the top."""
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
    """μ = √(c_u)/σ is often a double itself. No precision proves that, and the highest takes very long."""
    tried: list[int] = []
    at_precision = balls.at_precision

    def recorded(bits: int, compute: Callable[[], Any]) -> Any:
        tried.append(bits)
        return at_precision(bits, compute)

    monkeypatch.setattr(balls, "at_precision", recorded)

    assert balls.round_up(lambda: [arb(3).sqrt() ** 2 / 6]) == (math.nextafter(0.5, 1),)
    assert not balls.at_most(lambda: (arb(3).sqrt() ** 2 / 6, arb(0.5)))
    assert max(tried) <= 640
