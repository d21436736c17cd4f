"""Φ(−x) as a ball: it encloses the true value, and is narrow enough to round."""

import math
from itertools import pairwise

import pytest
from flint import arb
from hypothesis import example, given
from hypothesis import strategies as st
from mpmath import mpf

from gsh.accounting.numerics.balls import PRECISIONS, at_precision
from gsh.accounting.numerics.normal_tail import _NARROW_BITS, _WIDTH, _piece, tail
from tests.gsh.accounting.draws import examples
from tests.reference.precision import DIGITS, mp

LOWEST = PRECISIONS[0]
MANY_BITS = 300
PIECES, REACH = 16, 32


def true_tail(x: mpf | float) -> mpf:
    return mp.erfc(mp.mpf(x) / mp.sqrt(2)) / 2


def encloses(ball: arb, value: mpf) -> bool:
    """Whether a ball contains a number that is known to many more bits than the ball has."""
    return at_precision(MANY_BITS, lambda: ball.contains(arb(mp.nstr(value, DIGITS)).mid()))


@examples(400)
@given(st.floats(-40, 40))
@example(0.0)
@example(-0.0)
@example(5e-324)
@example(float(REACH))
@example(math.nextafter(REACH, 0))
@example(math.nextafter(-REACH, 0))
def test_the_ball_encloses_the_tail_and_is_narrow(x: float) -> None:
    ball = at_precision(LOWEST, lambda: tail(arb(x)))

    assert encloses(ball, true_tail(x))
    assert ball.rel_accuracy_bits() >= LOWEST - 16


@pytest.mark.parametrize("side", [-1, 1])
def test_a_polynomial_encloses_the_ratio_at_both_ends_of_its_piece(side: int) -> None:
    """There the rest of Taylor's series is largest: 2⁻⁸² of the whole, which the balls of other tests would hide."""
    for number in range(PIECES * REACH + 1):
        _, ratio = at_precision(LOWEST, lambda number=number: _piece(number))  # type: ignore[misc]
        found = at_precision(MANY_BITS, lambda ratio=ratio: ratio(arb(side * _WIDTH)))  # type: ignore[misc]
        x = mp.mpf(number) / PIECES + side * _WIDTH

        assert encloses(found, true_tail(x) * mp.exp(x * x / 2)), number


def test_a_narrow_ball_is_within_its_piece() -> None:
    """Half a piece from the centre to a double, the rounding of that double, and the radius of the ball."""
    assert 0.5 / PIECES + math.ulp(REACH) + REACH * 2.0 ** (1 - _NARROW_BITS) < _WIDTH


@examples(100)
@given(st.floats(-34, 34), st.floats(1e-30, 30))
def test_the_ball_of_a_wide_ball_encloses_the_tails_at_its_ends(x: float, radius: float) -> None:
    """It may reach over many pieces, and beyond the last."""
    ball = at_precision(LOWEST, lambda: tail(arb(x, radius)))

    assert all(encloses(ball, true_tail(mp.mpf(x) + shift)) for shift in (-radius, 0, radius))


@pytest.mark.parametrize("bits", PRECISIONS[:4])
@pytest.mark.parametrize("x", [-7.3, 0.1, 1.0, 6.26, 31.9])
def test_more_precision_gives_a_narrower_ball_around_the_same_tail(bits: int, x: float) -> None:
    coarse, fine = (at_precision(each, lambda: tail(arb(x) / 3)) for each in (bits, 2 * bits))

    assert coarse.overlaps(fine)
    assert fine.rel_accuracy_bits() > coarse.rel_accuracy_bits()


def test_the_tail_falls_across_the_borders_of_pieces() -> None:
    """Also from the last polynomial to erfc."""
    borders = [(number + 0.5) / PIECES for number in range(-6 * PIECES, (REACH + 1) * PIECES)]
    places = [border + side for border in borders for side in (-1e-9, 1e-9)]
    tails = [at_precision(LOWEST, lambda x=x: tail(arb(x))) for x in places]  # type: ignore[misc]

    assert all(higher > lower for higher, lower in pairwise(tails))


@pytest.mark.parametrize("x", [arb.pos_inf(), arb.neg_inf(), arb.nan()], ids=["inf", "-inf", "nan"])
def test_the_tail_of_no_number_is_none(x: arb) -> None:
    assert not at_precision(LOWEST, lambda: tail(x)).is_finite()
