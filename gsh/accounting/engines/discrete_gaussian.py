"""Discrete Gaussian noise: P(z) = e^(−z²/2σ²)/W(σ²) on the integers, W(v) = Σ e^(−n²/2v).

The sum of k draws has nearly the same shape [docs/math/engines.md], with v = kσ²:

    P(S = s) = R^(±1) e^(−s²/2v)/W(v),   ln R = Σ over j = 1 … k − 1 of  ln((1 + r_j)/(1 − r_j)),
    r_j = 2 t_j/(1 − t_j),   t_j = e^(−2π²σ² j/(j + 1))
    H_k(ε) = Σ over s > σ²ε − k/2 of  P(S = s) − e^ε P(S = s + k)

ln R is about 4 e^(−π²σ²): 9e-10 at σ = 1.5, and 3e-17 at σ = 2. Below σ = 1 the draws are convolved. The continuous
formula is no upper bound.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from flint import arb, arb_poly, ctx

from gsh.accounting.engines.noise import AnyKind, Keeps, Reach, floor_of, steps_to_publish
from gsh.accounting.numerics.normal_tail import tail

__all__ = ["LEAST_SIGMA", "MOST_CONVOLVED", "DiscreteGaussianNoise"]

LEAST_SIGMA = 1.0
"""Below it the draws of several rows are convolved."""
MOST_CONVOLVED = 200
"""The most of these rows."""
_MOST_TERMS = 4000
_WIDE = 1e5
"""From this deviation on the midpoint rule is as good as a sum of terms: its error is below 10⁻¹⁷."""
_HALF_WIDTH_OF_EXACT = 2.0**-40
_MIDPOINT = 0.00803
"""√3/216, rounded up: the most of |B₃(x)|/6 on [0, 1], B₃ the Bernoulli polynomial."""


@dataclass(frozen=True, slots=True)
class DiscreteGaussianNoise:
    """Discrete Gaussian noise with the parameter σ."""

    scale: float
    kind: ClassVar[AnyKind] = "discrete-gaussian"
    is_ordered: ClassVar[bool] = False
    are_ends_enough: ClassVar[bool] = False

    def published(self, gap: Fraction, keeps: Keeps) -> arb:
        """P(Z ≥ n), and 1 − P(Z ≥ 1 − n) for n ≤ 0."""
        steps = steps_to_publish(gap, keeps)
        return self._at_least(steps) if steps >= 1 else 1 - self._at_least(1 - steps)

    def excess(self, rows: int, epsilon: arb) -> arb:
        variance = arb(self.scale) ** 2
        first = floor_of(variance * epsilon - arb(rows) / 2)  # a term with the loss ε is 0
        if rows > 1 and self.scale < LEAST_SIGMA:
            return _convolved_excess(rows, self.scale, first, epsilon)
        return _summed(first, rows * variance, rows, epsilon.exp()) * _spread(rows, variance)

    def excess_within(self, reach: Reach, epsilon: arb) -> arb | None:  # noqa: ARG002
        """No bound is known that is not far too large."""
        return None

    def is_exact(self, rows: int) -> bool:
        if rows == 1 or self.scale < LEAST_SIGMA:
            return True
        return rows * 4 * math.exp(-((math.pi * self.scale) ** 2)) < _HALF_WIDTH_OF_EXACT  # about ln R, or more

    def _at_least(self, steps: int) -> arb:
        """P(Z ≥ n), n ≥ 1."""
        return _summed(steps, arb(self.scale) ** 2, 0, arb(0))


def _summed(first: int, variance: arb, rows: int, factor: arb) -> arb:
    """Σ over s ≥ a of P(s) − e^ε P(s + k), P(s) = e^(−s²/2v)/W(v). Beyond some thousand terms it is ``_tails``."""
    deviation = math.sqrt(float(variance))
    far = int(max(first, 0) + deviation * math.sqrt(2 * math.log(2) * (ctx.prec + 30))) + 2
    last = first if deviation > _WIDE else min(first + _MOST_TERMS, far)
    weights = _weights(first, last - first + rows, variance)
    terms = ((weights[i] - factor * weights[i + rows]).max(arb(0)) for i in range(last - first))
    return (sum(terms, arb(0)) + _tails(last, variance, rows, factor)) / _theta(variance)


def _weights(first: int, count: int, variance: arb) -> list[arb]:
    """e^(−s²/2v)/√(2πv) for consecutive s. Each is the one before times e^(−(2s + 1)/2v)."""
    weight = (-(arb(first) ** 2) / (2 * variance)).exp() / (2 * arb.pi() * variance).sqrt()
    ratio, step = (-arb(2 * first + 1) / (2 * variance)).exp(), (-1 / variance).exp()
    weights = []
    for _ in range(count):
        weights.append(weight)
        weight *= ratio
        ratio *= step
    return weights


def _tails(start: int, variance: arb, rows: int, factor: arb) -> arb:
    """Σ over s ≥ a of φ_v(s) − e^ε φ_v(s + k), by the midpoint rule of Euler and Maclaurin.

    ∫ from a − ½ on  +  g′(a − ½)/24  ±  0.00803 × the total variation of g″
    """
    deviation = variance.sqrt()
    edge = arb(start) - arb(1) / 2

    def part(place: arb) -> tuple[arb, arb]:
        z = place / deviation
        density = (-z * z / 2).exp() / (2 * arb.pi()).sqrt()
        slope = -z * density / variance
        # ∫ |φ‴| from z on: (z² − 1) φ(z) from √3 on; 1.52 is the whole line.
        variation = (z * z - 1) * density if z > arb(3).sqrt() + arb(1) / 100 else arb(152) / 100
        reach = (variation / (variance * deviation)).upper() * _MIDPOINT
        return tail(z) + slope / 24, reach

    value, reach = part(edge)
    if rows:
        other, further = part(edge + rows)
        value, reach = value - factor * other, reach + factor * further
    return value + arb(0, reach.upper())


def _theta(variance: arb) -> arb:
    """W(v)/√(2πv) = 1 + 2 Σ e^(−2π²vn²), by Poisson's summation."""
    ratio = (-2 * arb.pi() ** 2 * variance).exp()
    total, n = arb(1), 1
    while True:
        term = 2 * ratio ** (n * n)
        total += term
        if term < arb(2) ** (-ctx.prec - 10):
            return total + arb(0, (2 * term).upper())  # the rest is less than a geometric series of half of it
        n += 1


def _spread(rows: int, variance: arb) -> arb:
    """The ball from 1/R to R."""
    total = arb(0)
    exponent = -2 * arb.pi() ** 2 * variance
    for j in range(1, rows):
        t = (exponent * j / (j + 1)).exp()
        if j > 64:  # each of the others is at most this one
            t = (exponent * 64 / 65).exp()
            ratio = 2 * t / (1 - t)
            total += (rows - j) * ((1 + ratio) / (1 - ratio)).log()
            break
        ratio = 2 * t / (1 - t)
        total += ((1 + ratio) / (1 - ratio)).log()
    return (-total).exp().union(total.exp())


@lru_cache(maxsize=64)
def _masses(rows: int, scale: float, bits: int) -> tuple[list[arb], int, arb]:
    """P(S = s) for s from −kM to kM, k M, and the mass that is left out."""
    variance = arb(scale) ** 2
    most = 2 + int(scale * math.sqrt(2 * math.log(2) * (bits + 20 + rows.bit_length())))
    weights = [(-(arb(s) ** 2) / (2 * variance)).exp() for s in range(-most, most + 1)]
    beyond = 4 * (-(arb(most + 1) ** 2) / (2 * variance)).exp()  # twice a series that falls faster than by a half
    total = sum(weights, arb(0)) + beyond.union(arb(0))
    power = arb_poly([weight / total for weight in weights]) ** rows
    return [power[i] for i in range(2 * most * rows + 1)], most * rows, rows * beyond / total


def _convolved_excess(rows: int, scale: float, first: int, epsilon: arb) -> arb:
    masses, middle, lost = _masses(rows, scale, ctx.prec)
    factor = epsilon.exp()
    total = arb(0)
    for s in range(max(first, -middle), middle + 1):
        paid = masses[s + rows + middle] if s + rows <= middle else arb(0)
        total += (masses[s + middle] - factor * paid).max(arb(0))
    return total + arb(0).union(lost.upper())
