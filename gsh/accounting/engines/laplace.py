"""Laplace noise: density e^(−|z|/b)/(2b).

The loss of one row is cut at ±λ, λ = 1/b. With m = e^(−λ/2), the loss of k rows has a finite sum:

    e^(−ε/2) H_k(ε) = (m/2)^k Σ over i with λ(k − 2i) > ε of  C(k, i) h_i(λ(k − 2i) − ε)

where h_i(u) is the inverse Laplace transform of t^(−k) (t + ½)^(k−i−1) (t − ½)^(i−1): a polynomial of u, and for i = 0
also 2^k e^(u/2). The terms alternate and cancel, so that about five bits a row are lost.  [docs/math/engines.md]

For many rows the loss is bounded by that of randomised response, which is up to a few per cent larger (geometric.py).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from flint import arb, arb_poly, ctx, fmpq, fmpq_poly

from gsh.accounting.engines.geometric import response_excess, response_within
from gsh.accounting.engines.noise import AnyKind, Keeps, Reach, steps_to_publish
from gsh.accounting.numerics.balls import ball_of

__all__ = ["MOST_EXACT_ROWS", "LaplaceNoise", "RoundedLaplaceNoise"]

MOST_EXACT_ROWS = 64
"""Up to so many rows H_k is exact."""
_BITS_OF_A_ROW = 6


@dataclass(frozen=True, slots=True)
class LaplaceNoise:
    """Laplace noise with the scale b."""

    scale: float
    kind: ClassVar[AnyKind] = "laplace"
    is_ordered: ClassVar[bool] = True
    are_ends_enough: ClassVar[bool] = False

    def edge(self, gap: Fraction, keeps: Keeps) -> Fraction:  # noqa: ARG002 - a continuous noise is never equal
        """The noise from which on a group with τ users is published."""
        return gap

    def published(self, gap: Fraction, keeps: Keeps) -> arb:
        """P(Z ≥ z) = e^(−z/b)/2, and 1 − e^(z/b)/2 for z < 0."""
        edge = self.edge(gap, keeps)
        distance = ball_of(edge) / arb(self.scale)
        return (-distance).exp() / 2 if edge >= 0 else 1 - distance.exp() / 2

    def excess(self, rows: int, epsilon: arb) -> arb:
        loss = 1 / arb(self.scale)
        return _summed(rows, loss, epsilon) if rows <= MOST_EXACT_ROWS else response_excess(rows, loss, epsilon)

    def excess_within(self, reach: Reach, epsilon: arb) -> arb | None:
        return response_within(reach, 1 / arb(self.scale), epsilon)

    def is_exact(self, rows: int) -> bool:
        return rows <= MOST_EXACT_ROWS


class RoundedLaplaceNoise(LaplaceNoise):
    """The same, rounded to the nearest integer before the test."""

    __slots__ = ()
    kind: ClassVar[AnyKind] = "rounded-laplace"

    def edge(self, gap: Fraction, keeps: Keeps) -> Fraction:
        return steps_to_publish(gap, keeps) - Fraction(1, 2)

    def is_exact(self, rows: int) -> bool:  # noqa: ARG002 - rounding is post-processing
        return False


def _summed(rows: int, loss: arb, epsilon: arb) -> arb:
    bits = ctx.prec + _BITS_OF_A_ROW * rows
    with ctx.workprec(bits):
        total = arb(0)
        for i in range(rows):
            beyond = loss * (rows - 2 * i) - epsilon
            if beyond <= 0:
                break
            u = beyond.max(arb(0))  # at 0 the term is 0
            term = _polynomial(rows, i, bits)(u)
            if i == 0:
                term += (u / 2).exp() * 2**rows
            total += math.comb(rows, i) * term
        scale = (-loss / 2).exp() / 2
        return (scale**rows * (epsilon / 2).exp() * total).max(arb(0))


@lru_cache(maxsize=4096)
def _polynomial(rows: int, i: int, _bits: int) -> arb_poly:
    """The polynomial part of h_i: each t^(−n) of the expansion becomes u^(n−1)/(n − 1)!.

    For i = 0 it is the expansion around 0 of (t + ½)^(k−1) (−2)/(1 − 2t), up to t^(k−1).
    """
    half = fmpq(1, 2)
    if i == 0:
        base = fmpq_poly([half, 1]) ** (rows - 1)
        coefficients, carried = [], fmpq(0)
        for d in range(rows):
            carried = 2 * carried - 2 * base[d]
            coefficients.append(carried)
    else:
        product = fmpq_poly([half, 1]) ** (rows - i - 1) * fmpq_poly([-half, 1]) ** (i - 1)
        coefficients = [product[d] for d in range(rows - 1)]
    powers = [fmpq(0)] * rows
    for d, coefficient in enumerate(coefficients):
        powers[rows - d - 1] = coefficient / math.factorial(rows - d - 1)
    return arb_poly([arb(each) for each in powers])
