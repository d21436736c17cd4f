"""Two-sided geometric noise: P(z) ∝ e^(−|z|/b) on the integers.

One row has the loss ±1/b, + with the probability π = 1/(1 + e^(−1/b)): randomised response. So k rows are binomial:

    H_k(ε) = Σ over j with (2j − k)/b > ε of  C(k, j) π^j (1 − π)^(k−j) (1 − e^(ε − (2j − k)/b))
           = P(Bin(k, π) ≥ j₀) − e^ε P(Bin(k, 1 − π) ≥ j₀),   j₀ = ⌊(k + εb)/2⌋ + 1

Every mechanism that is 1/b-private in each row is dominated by it, Laplace noise on any grid too.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from flint import arb

from gsh.accounting.engines.noise import Keeps, NoiseKind, floor_of, steps_to_publish

__all__ = ["GeometricNoise", "response_excess"]

_MOST_TERMS = 400


@dataclass(frozen=True, slots=True)
class GeometricNoise:
    """Two-sided geometric noise with the scale b."""

    scale: float
    kind: ClassVar[NoiseKind] = "geometric"
    is_ordered: ClassVar[bool] = False
    are_ends_enough: ClassVar[bool] = False

    def published(self, gap: Fraction, keeps: Keeps) -> arb:
        """P(Z ≥ n) = a^n/(1 + a) for n ≥ 1, a = e^(−1/b); and 1 − P(Z ≥ 1 − n) for n ≤ 0."""
        steps = steps_to_publish(gap, keeps)
        ratio = (-1 / arb(self.scale)).exp()
        if steps >= 1:
            return ratio**steps / (1 + ratio)
        return 1 - ratio ** (1 - steps) / (1 + ratio)

    def excess(self, rows: int, epsilon: arb) -> arb:
        return response_excess(rows, 1 / arb(self.scale), epsilon)

    def is_exact(self, rows: int) -> bool:  # noqa: ARG002 - always
        return True


def response_excess(rows: int, loss: arb, epsilon: arb) -> arb:
    """H_k(ε) of k randomised responses with the loss ±λ.

    A term whose loss is at ε is 0, so it does not matter whether it is counted.
    """
    first = max(0, floor_of((rows + epsilon / loss) / 2))
    if first > rows:
        return arb(0)
    odds = (-loss).exp()
    gain = 1 / (1 + odds)
    if rows - first > _MOST_TERMS:
        first += 1
        if first > rows:
            return arb(0)
        a, b = arb(first), arb(rows - first + 1)
        with_user = gain.beta_lower(a, b, regularized=True)
        return with_user - epsilon.exp() * (odds * gain).beta_lower(a, b, regularized=True)
    total = arb(0)
    weight = arb(math.comb(rows, first)) * gain**rows * odds ** (rows - first)
    for j in range(first, rows + 1):
        kept = -(epsilon - loss * (2 * j - rows)).expm1()
        total += weight * kept.max(arb(0))
        if j < rows:
            weight = weight * (rows - j) / (j + 1) / odds
    return total
