"""The order of the doubles: neighbours, roundings of exact numbers, and positions."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsh.accounting.numerics.doubles import (
    LARGEST_DOUBLE,
    LEAST_DOUBLE,
    double_above,
    double_at,
    double_below,
    next_above,
    next_below,
    position_of,
)
from tests.gsh.accounting.draws import examples

finite = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=True)
exact_numbers = st.fractions(-(10**308), 10**308) | st.integers(-(2**70), 2**70) | finite.map(Fraction)


def test_the_least_and_the_largest_double_have_no_neighbour_beyond() -> None:
    assert next_below(LEAST_DOUBLE) == 0.0 < LEAST_DOUBLE == next_above(0.0)
    assert next_above(LARGEST_DOUBLE) == math.inf
    assert next_below(math.inf) == LARGEST_DOUBLE


@examples(300)
@given(finite)
def test_a_neighbour_has_no_double_between(double: float) -> None:
    """The midpoint of a double and its neighbour rounds to one of the two."""
    above, below = next_above(double), next_below(double)

    assert below < double < above
    assert math.isinf(above) or float((Fraction(double) + Fraction(above)) / 2) in (double, above)
    assert next_below(above) == double == next_above(below)


@examples(300)
@given(exact_numbers)
def test_an_exact_number_lies_between_its_two_doubles(number: Fraction | int) -> None:
    """They are the number itself if it is a double, and otherwise neighbours."""
    below, above = double_below(number), double_above(number)

    assert below <= number <= above
    assert below == above == number or next_above(below) == above


@pytest.mark.parametrize("number", [Fraction(10) ** 400, 10**400, int(LARGEST_DOUBLE) + 1])
def test_a_number_beyond_all_doubles_is_between_the_largest_and_infinity(number: Fraction | int) -> None:
    assert double_below(number) == LARGEST_DOUBLE
    assert double_above(number) == math.inf


@examples(300)
@given(st.floats(0, LARGEST_DOUBLE), st.floats(0, LARGEST_DOUBLE))
def test_positions_count_doubles_in_order(one: float, other: float) -> None:
    one, other = abs(one), abs(other)  # −0.0 is not a double of its own here

    assert position_of(0.0) == 0
    assert position_of(next_above(one)) == position_of(one) + 1
    assert double_at(position_of(one)) == one
    assert (position_of(one) < position_of(other)) == (one < other)
