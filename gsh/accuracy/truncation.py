"""A normal variable that is seen only above a threshold: the mean at which what was seen has a given probability.

    Φ̄(x) / Φ̄(x − t) = q,   t = (y − τ*)/σ,   x = (y − C)/σ                          [docs/accuracy.md, section 4]

For each q, x is a function of t alone. It falls from ∞ at t = 0 to Φ̄⁻¹(q) at t = ∞. It is solved once at some thousand
points, and from there on it is a table of polynomials: a million counts need no logarithm.

The last digit does not depend on the machine: numpy's logarithms, its cosines and its linear algebra do, so they are
not used here.
"""

import functools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log1p, log_ndtr, ndtri

__all__ = ["Doubles", "distances", "hazard"]

Doubles = NDArray[np.float64]

_DEGREE = 9
# Each octave of t has 2³ pieces. The first bits of a double name the piece, and the others the place in it.
_PIECE_BITS = 3
_PLACE_BITS = 52 - _PIECE_BITS
_PLACE = np.int64((1 << _PLACE_BITS) - 1)
_ONE = np.float64(1).view(np.int64)
# From here on Φ̄(x − t) is 1 to the last bit, for all q of interest.
_LAST_OCTAVE = 4
# Below L/2²⁰ two terms of a series are exact to 10⁻¹⁸.
_FIRST_OCTAVES = 20
_STEPS = 12
_AT_ONCE = 1 << 14
_LEGENDRE_DEGREE = 12


def hazard(x: Doubles) -> Doubles:
    """φ(x)/Φ̄(x), which does not underflow."""
    return math.sqrt(2 / math.pi) / erfcx(x / math.sqrt(2))  # type: ignore[no-any-return]


def distances(t: Doubles, log_q: float) -> Doubles:
    """x for each t; ∞ where t ≤ 0. ``log_q`` is ln q, between about −21 and −10⁻⁹."""
    found = np.empty_like(t)
    pieces = _pieces(-log_q)
    with np.errstate(divide="ignore", over="ignore"):
        for start in range(0, len(t), _AT_ONCE):
            found[start : start + _AT_ONCE] = pieces.at(np.maximum(t[start : start + _AT_ONCE], 0.0))
    return found


@dataclass(frozen=True, slots=True)
class _Pieces:
    """t (x − t) as polynomials of t. The product is finite at 0 and smooth on a scale of ratios."""

    cost: float
    """L = −ln q."""
    quantile: float
    """Φ̄⁻¹(q)"""
    first: int
    """The number of the first piece."""
    coefficients: Doubles
    """By power, and by piece."""

    def at(self, t: Doubles) -> Doubles:
        bits = t.view(np.int64)
        piece = (bits >> _PLACE_BITS) - self.first
        place = (((bits & _PLACE) | _ONE).view(np.float64) - 1) * 2.0 ** (1 + _PIECE_BITS) - 1
        below, above = piece < 0, piece >= self.coefficients.shape[1]
        np.clip(piece, 0, self.coefficients.shape[1] - 1, out=piece)
        product = self.coefficients[_DEGREE].take(piece)
        for power in range(_DEGREE - 1, -1, -1):
            product *= place
            product += self.coefficients[power].take(piece)
        found: Doubles = product / t + t
        if below.any():
            ratio = self.cost / t[below]
            found[below] = ratio - 1 / ratio + t[below] / 2
        found[above] = self.quantile
        return found


@functools.lru_cache(maxsize=128)
def _pieces(cost: float) -> _Pieces:
    """The table for one L = −ln q."""
    quantile = -float(ndtri(math.exp(-cost))) if cost > 0.5 else float(ndtri(-math.expm1(-cost)))
    octaves = 2.0 ** np.arange(math.frexp(cost)[1] - 1 - _FIRST_OCTAVES, _LAST_OCTAVE)
    starts = np.outer(octaves, 1 + np.arange(1 << _PIECE_BITS) / (1 << _PIECE_BITS)).ravel()
    widths = np.repeat(octaves / (1 << _PIECE_BITS), 1 << _PIECE_BITS)
    places = [starts + (node + 1) / 2 * widths for node, _ in _basis()]
    products = [t * _solved(t, cost, quantile) for t in places]
    coefficients = np.zeros((_DEGREE + 1, len(starts)))
    for product, (_, powers) in zip(products, _basis(), strict=True):
        for power, weight in enumerate(powers):
            # Differences: the large weights of high powers must not multiply the rounding of the products.
            coefficients[power] += weight * (product - products[_DEGREE // 2])
    coefficients[0] += products[_DEGREE // 2]
    first = int(starts[0].view(np.int64) >> _PLACE_BITS)
    return _Pieces(cost, quantile, first, coefficients)


@functools.cache
def _basis() -> list[tuple[float, list[float]]]:
    """Each node in [−1, 1], and the coefficients of the polynomial that is 1 there and 0 at all other nodes."""
    nodes = [math.cos(math.pi * (2 * i + 1) / (2 * _DEGREE + 2)) for i in range(_DEGREE + 1)]
    found = []
    for node in nodes:
        powers = [Fraction(1)]
        for other in nodes:
            if other != node:
                scale = 1 / (Fraction(node) - Fraction(other))
                shifted, scaled = [Fraction(0), *powers], [*(Fraction(other) * power for power in powers), Fraction(0)]
                powers = [(up - down) * scale for up, down in zip(shifted, scaled, strict=True)]
        found.append((node, list(map(float, powers))))
    return found


@functools.cache
def _legendre() -> list[tuple[float, float]]:
    """The nodes and weights of Gauss and Legendre on [−1, 1], by Newton's method for the polynomial."""
    found = []
    for i in range(_LEGENDRE_DEGREE):
        x = math.cos(math.pi * (i + 0.75) / (_LEGENDRE_DEGREE + 0.5))
        for _ in range(10):
            before, value = 1.0, x
            for degree in range(2, _LEGENDRE_DEGREE + 1):
                before, value = value, ((2 * degree - 1) * x * value - (degree - 1) * before) / degree
            slope = _LEGENDRE_DEGREE * (x * value - before) / (x * x - 1)
            x -= value / slope
        found.append((x, 2 / ((1 - x * x) * slope * slope)))
    return found


def _solved(t: Doubles, cost: float, quantile: float) -> Doubles:
    """s = x − t: the root of ln Φ̄(s) − ln Φ̄(s + t) = L.

    The left side is log-concave in s, because the hazard is. So Newton's method for its logarithm goes up to the root
    from a lower bound. There are two: Φ̄(x) ≤ q; and L/t ≤ hazard at x ≤ (x + √(x² + 4))/2.
    """
    ratio = cost / t
    s = np.maximum(quantile, ratio - 1 / ratio) - t
    for _ in range(_STEPS):
        lost = _log_loss(s, t)
        s += log1p((cost - lost) / lost) * lost / _slope(s, t)
    return s


def _log_loss(s: Doubles, t: Doubles) -> Doubles:
    """ln Φ̄(s) − ln Φ̄(s + t): for small t the integral of the hazard, in which nothing cancels."""
    half = np.minimum(t, 1) / 2
    integral = np.zeros_like(s)
    for x, weight in _legendre():
        integral += weight * hazard(s + half + half * x)
    return np.where(t <= 1, integral * half, log_ndtr(-s) - log_ndtr(-s - t))


def _slope(s: Doubles, t: Doubles) -> Doubles:
    """The derivative of the loss by s, to a few digits: the hazard's slope h (h − x) is nearly 1 − 1/x² for large x."""
    middle = s + t / 2
    at_middle = hazard(middle)
    slope = np.where(middle > 100, 1 - 1 / np.maximum(middle, 100) ** 2, at_middle * (at_middle - middle))
    return np.where(t < 1e-2, t * slope, hazard(s + t) - hazard(s))
