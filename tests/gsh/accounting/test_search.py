"""Searches: each ends on the right double or integer from any guess, and the golden section on the minimum."""

import math
from itertools import islice, takewhile

import pytest
from flint import arb
from hypothesis import assume, example, given
from hypothesis import strategies as st

from gsh.accounting.numerics import search
from gsh.accounting.numerics.balls import at_precision
from gsh.accounting.numerics.doubles import LARGEST_DOUBLE as LARGEST
from gsh.accounting.numerics.doubles import LEAST_DOUBLE as LEAST
from gsh.accounting.numerics.search import (
    bisect,
    first_on_grid,
    golden_section,
    largest_double,
    largest_integer,
    smallest_double,
)
from tests.gsh.accounting.draws import examples

# Guesses a search must survive. ``approximate`` gives finite ones only, but a search on doubles takes any.
FINITE = {"-1": arb(-1), "0": arb(0), "1": arb(1), "largest": arb(LARGEST), "2^2000": arb(2) ** 2000}
ANY = FINITE | {"inf": arb.pos_inf(), "-inf": arb.neg_inf(), "nan": arb.nan()}


def long_guess(n: int) -> arb:
    """n and a third, with more bits than a double has, as ``approximate`` answers."""
    return at_precision(200, lambda: n + arb(1) / 3).mid()


positive_doubles = st.floats(min_value=0, exclude_min=True, allow_infinity=False, allow_subnormal=True)
finite_guesses = st.sampled_from(sorted(FINITE)).map(FINITE.__getitem__) | positive_doubles.map(arb)
guesses = st.sampled_from(sorted(ANY)).map(ANY.__getitem__) | positive_doubles.map(arb)


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
    """Even if the predicate holds below it."""
    assert smallest_double(lambda x: x >= turn, guess, lowest) == max(turn, lowest)


@pytest.mark.parametrize("guess", ANY.values(), ids=ANY)
def test_smallest_double_is_none_if_nothing_holds(guess: arb) -> None:
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
    """Rounded covariances flicker. The promise about the two neighbours still holds."""
    found = search._first(lambda n: n in holding or n > 60, guess, 1, 70)

    assert found in holding or found > 60
    assert found == 1 or found - 1 not in holding


@examples(200)
@given(st.integers(-(10**30), 10**30), st.integers(1, 10**30), st.data())
def test_bisect_finds_the_first_integer_at_which_a_predicate_holds(false: int, width: int, data: st.DataObject) -> None:
    turn = data.draw(st.integers(false + 1, false + width))

    assert bisect(lambda n: n >= turn, false, false + width) == turn


@examples(200)
@given(low=st.floats(-1e6, 1e6), width=st.floats(1e-3, 1e6), share=st.floats(0, 1), steps=st.integers(1, 2**30))
def test_first_on_grid_is_within_one_step_above_the_turn(low: float, width: float, share: float, steps: int) -> None:
    """It holds at the answer, and one step below it does not."""
    high = low + width
    turn = low + share * width
    assume(low < turn <= high)

    found = first_on_grid(lambda x: x >= turn, low, high, steps)

    assert turn <= found <= high
    assert found - width / steps <= turn + 1e-9 * (abs(low) + width)


@examples(200)
@given(low=st.floats(-1e3, 1e3), width=st.floats(1e-2, 1e3), share=st.floats(0, 1))
def test_every_interval_of_the_golden_section_contains_the_minimum(low: float, width: float, share: float) -> None:
    """And each has 0.618 of the width of the one before."""
    high = low + width
    minimum = low + share * width
    intervals = list(islice(golden_section(lambda x: abs(x - minimum), low, high), 30))

    slack = 1e-9 * (abs(low) + width)
    assert intervals[0] == (low, high)
    assert all(left - slack <= minimum <= right + slack for left, right in intervals)
    widths = [right - left for left, right in intervals]
    assert widths == pytest.approx([width * ((math.sqrt(5) - 1) / 2) ** k for k in range(30)], rel=1e-3, abs=slack)


def test_the_golden_section_evaluates_the_function_once_per_interval() -> None:
    """Each evaluation can take milliseconds, so one of the two inner points is used again."""
    evaluated: list[float] = []

    def valley(x: float) -> float:
        evaluated.append(x)
        return (x - 0.3) ** 2

    list(islice(golden_section(valley, 0.0, 1.0), 20))

    assert len(evaluated) == 2 + 19


def test_on_a_flat_minimum_the_golden_section_goes_to_its_left_end_and_stays_on_it() -> None:
    """A threshold of nothing is reached by many σ; the smallest of them is the best."""
    intervals = takewhile(
        lambda interval: interval[1] - interval[0] > 1e-7, golden_section(lambda x: max(0.25 - x, 0.0), 0.0, 1.0)
    )
    *_, (left, right) = intervals

    assert 0.25 <= right <= 0.25 + 1e-6
    assert left <= 0.25
