"""Standard normal draws from 64 uniform bits, in doubles with a proven error bound.

A draw is ±Q(q), Q(q) = −Φ⁻¹(q): one bit is the sign, and the other 63, k, are the first bits of a uniform q in (0, ½):

    k ≤ 2⁶⁴ q < k + 1

More bits would narrow q further; the error bound holds for all of them. Q is a table of Taylor polynomials, one for
each 64th of an octave of q. Ball arithmetic bounds their remainders, the rounding of coefficients and evaluation, and
the effect of the missing bits, when the table is made. Draws beyond the last octave (q < 2⁻³¹) have an infinite bound:
noise.py decides them in balls.  [docs/math/noise.md]
"""

import functools
from dataclasses import dataclass

import numpy as np
from flint import arb

from gsh.accounting.gaussian import quantile
from gsh.accounting.numerics import balls
from gsh.accounting.numerics.balls import upper_double
from gsh.histogram.arrays import Doubles, Integers

__all__ = ["MAGNITUDE", "Polynomials", "normals", "polynomials"]

MAGNITUDE = 2**63 - 1
"""The bits of a draw that are not its sign."""

_DEGREE = 4
_SEGMENT_BITS = 6
_OCTAVES = range(33, 63)
_SHIFT = 52 - _SEGMENT_BITS
_BITS = 96
# The segment of a double: the bits of its exponent and the first bits of its mantissa. All below the table share one.
_FIRST = ((1023 + _OCTAVES.start) << _SEGMENT_BITS) - 1


@dataclass(frozen=True, slots=True)
class Polynomials:
    """Coefficients by degree and segment, and by segment a bound on the error and one on the value."""

    coefficients: Doubles
    error: Doubles
    largest: Doubles


def normals(words: Integers, q: Polynomials) -> tuple[Doubles, Integers]:
    """The draws that begin with these words, up to the error of their segments, and the segments."""
    position = (words & MAGNITUDE).astype(np.float64)
    position += 0.5
    bits = position.view(np.int64)
    segment = bits >> _SHIFT
    segment -= _FIRST
    np.maximum(segment, 0, out=segment)
    local = (bits & ((1 << _SHIFT) - 1)).astype(np.float64)
    local *= 2.0 ** (1 - _SHIFT)
    local -= 1.0
    value = q.coefficients[_DEGREE].take(segment)
    for degree in reversed(range(_DEGREE)):
        value *= local
        value += q.coefficients[degree].take(segment)
    signs = value.view(np.int64)
    signs ^= words & ~MAGNITUDE
    return value, segment


@functools.cache
def polynomials() -> Polynomials:
    """The polynomials. They are made and proven once per process, in about half a second."""
    return balls.at_precision(_BITS, _make)


def _make() -> Polynomials:
    coefficients = [[0.0] * (_DEGREE + 1)]
    error, largest = [np.inf], [np.inf]
    for octave in _OCTAVES:
        width = arb(2) ** (octave - _SEGMENT_BITS)
        for number in range(1 << _SEGMENT_BITS):
            middle = arb(2) ** octave + (number + arb(1) / 2) * width
            row, bound, size = _segment(middle, width / 2)
            coefficients.append(row)
            error.append(bound)
            largest.append(size)
    # k + ½ rounds up to 2⁶³ for the last 512 k.
    coefficients.append([0.0] * (_DEGREE + 1))
    error.append(np.inf)
    largest.append(np.inf)
    return Polynomials(np.array(coefficients).T.copy(), np.array(error), np.array(largest))


def _segment(middle: arb, half: arb) -> tuple[list[float], float, float]:
    """The polynomial in t of Q(2⁻⁶⁴(middle + half·t)), its error for |t| ≤ 1, and the largest value."""
    unit = arb(2) ** -64
    exact = _taylor(quantile(middle * unit), _DEGREE, half * unit)
    row = [float(coefficient.mid()) for coefficient in exact]
    # The missing bits move q by half a unit at most, and the rounding of k + ½ to a double by two half ulps.
    drift = arb(1) / 2 + (middle + half) * arb(2) ** -52
    whole = quantile((middle - half - drift) * unit).union(quantile((middle + half + drift) * unit))
    remainder = abs(_taylor(whole, _DEGREE + 1, half * unit)[-1])
    slope = (whole * whole / 2).exp() * (2 * arb.pi()).sqrt()
    # Each coefficient errs by half an ulp, and each of the 2·degree operations by one more, of less than the sum.
    total = sum((abs(arb(coefficient)) for coefficient in row), arb(0))
    rounding = total * (2 * _DEGREE + 2) * arb(2) ** -53
    radii = sum((arb(coefficient.rad()) for coefficient in exact), arb(0))
    bound = remainder + slope * drift * unit + rounding + radii
    return row, upper_double(bound), upper_double(whole)


def _taylor(value: arb, degree: int, step: arb) -> list[arb]:
    """Taylor coefficients of Q(q + step·t) in t, from Q′ = −g and g′ = −Q g², g = 1/φ(Q)."""
    q_series = [value]
    g_series = [(value * value / 2).exp() * (2 * arb.pi()).sqrt()]
    g_squared: list[arb] = []
    for k in range(degree):
        g_squared.append(sum((g_series[i] * g_series[k - i] for i in range(k + 1)), arb(0)))
        product = sum((q_series[i] * g_squared[k - i] for i in range(k + 1)), arb(0))
        q_series.append(-g_series[k] * step / (k + 1))
        g_series.append(-product * step / (k + 1))
    return q_series
