"""The tail of the standard normal distribution as a ball: Φ(−x), exact to the precision in force.

    Φ(−x) = φ(x) R(x),   R(x) = ∫₀^∞ e^(−xt − t²/2) dt                                  (Mills' ratio)

arb's erfc takes half the time of a certified δ. At the lowest precision, which nearly always decides, polynomials for R
take its place: Taylor's, at the multiples c of 1/16. Each R⁽ⁿ⁾(x) = (−1)ⁿ ∫₀^∞ tⁿ e^(−xt − t²/2) dt falls in size as x
grows. So within w of c the remainder of order n is at most |R⁽ⁿ⁾(c − w)| wⁿ/n!, and is part of the ball.

For x < 0 the tail is 1 − Φ(x), which is at least ½. Do not subtract it from 1: the difference has few correct bits.
"""

import functools
from collections.abc import Iterator

from flint import arb, arb_poly, ctx

from gsh.accounting.numerics.balls import PRECISIONS

__all__ = ["tail"]

_FAR_OUT = 10_000

_PIECES = 16  # in one unit of x
_REACH = 32.0
_TERMS = 13
_NARROW_BITS = 40
# From c to the farthest point of a ball in its piece: half a piece, and more than a double and a narrow ball are wide.
_WIDTH = 1 / (2 * _PIECES) + 2**-20
_COEFFICIENT_BITS = PRECISIONS[0] + 16
_TABLE_BITS = 512  # the derivatives of R cancel: ten bits an order at x = 32


def tail(x: arb) -> arb:
    """Φ(−x)."""
    near = float(x)
    if not -_REACH < near < _REACH or ctx.prec > PRECISIONS[0] or x.rel_accuracy_bits() < _NARROW_BITS:
        return _by_erfc(x)
    return 1 - _by_ratio(-x, -near) if near < 0 else _by_ratio(x, near)


def _by_erfc(x: arb) -> arb:
    """At any precision.

    Past 4e5 arb's erfc is only a bound. So far out the tail comes from erfc(z) = e^(−z²) U(½, ½, z²)/√π, which keeps
    its relative accuracy and is slower near zero.  [DLMF 7.11.5]
    """
    if x < _FAR_OUT:
        return (x * _root_of_half(ctx.prec)).erfc() / 2
    half_square, half = x * x / 2, arb(1) / 2
    return (-half_square).exp() * half_square.hypgeom_u(half, half) / (4 * arb.pi()).sqrt()


def _by_ratio(x: arb, near: float) -> arb:
    """e^(−x²/2) times a polynomial, for a narrow ball around a double in the table."""
    centre, ratio = _piece(round(near * _PIECES))
    return (x * x / -2).exp() * ratio(x - centre)


@functools.cache
def _piece(number: int) -> tuple[arb, arb_poly]:
    """A multiple of 1/16, and R(x)/√(2π) around it."""
    with ctx.workprec(_TABLE_BITS):
        centre, width = arb(number) / _PIECES, arb(_WIDTH)
        scale = 1 / (2 * arb.pi()).sqrt()
        *_, last = _taylor(centre - width, _TERMS)
        coefficients = [scale * each for each in _taylor(centre, _TERMS - 1)]
        coefficients[0] += arb(0, scale * abs(last) * width**_TERMS)
    with ctx.workprec(_COEFFICIENT_BITS):
        return centre, arb_poly([+each for each in coefficients])


def _taylor(centre: arb, order: int) -> Iterator[arb]:
    """aₙ = R⁽ⁿ⁾(c)/n! for n up to the order. From R′ = x R − 1 follows (n + 1) aₙ₊₁ = c aₙ + aₙ₋₁, with a₋₁ = −1."""
    before, here = arb(-1), _by_erfc(centre) * (2 * arb.pi()).sqrt() * (centre * centre / 2).exp()
    yield here
    for n in range(1, order + 1):
        before, here = here, (centre * here + before) / n
        yield here


@functools.cache
def _root_of_half(_precision: int) -> arb:
    """√½, computed once per precision."""
    return (arb(1) / 2).sqrt()
