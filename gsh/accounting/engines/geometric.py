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

from gsh.accounting.engines.noise import AnyKind, Keeps, Reach, floor_of, steps_to_publish

__all__ = ["GeometricNoise", "TruncatedGeometric", "response_excess", "response_within"]

_MOST_TERMS = 400


@dataclass(frozen=True, slots=True)
class GeometricNoise:
    """Two-sided geometric noise with the scale b."""

    scale: float
    kind: ClassVar[AnyKind] = "geometric"
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

    def excess_within(self, reach: Reach, epsilon: arb) -> arb | None:
        return response_within(reach, 1 / arb(self.scale), epsilon)

    def is_exact(self, rows: int) -> bool:  # noqa: ARG002 - always
        return True


@dataclass(frozen=True, slots=True)
class TruncatedGeometric:
    """The best selection of keys alone, (ε₀, δ₀) in each row.  [Desfontaines, Voss, Gipson & Mandayam 2022]

    A key with τ users is published with the probability δ₀. Every row is dominated by an accident of δ₀ and a loss of
    ±ε₀ = ±1/b. No count is published.
    """

    scale: float
    delta: float
    kind: ClassVar[AnyKind] = "truncated-geometric"
    is_ordered: ClassVar[bool] = False
    are_ends_enough: ClassVar[bool] = False

    def published(self, gap: Fraction, keeps: Keeps) -> arb:  # noqa: ARG002 - no threshold
        return arb(self.delta)

    def excess(self, rows: int, epsilon: arb) -> arb:
        return response_excess(rows, 1 / arb(self.scale), epsilon)

    def excess_within(self, reach: Reach, epsilon: arb) -> arb | None:
        return self.excess(reach.groups, epsilon) if reach.is_counted_once else None

    def is_exact(self, rows: int) -> bool:  # noqa: ARG002 - at large ε alone, where the threshold decides
        return False


def response_within(reach: Reach, loss: arb, epsilon: arb) -> arb:
    """A bound on H(ε) of noise that is λ-private in each row, for several rows of a user in a group.

    All rows together are Δ₁λ-private, and each group L∞λ-private. Both are dominated by randomised response.
    """
    together = response_excess(1, reach.l1 * loss, epsilon)
    return together.min(response_excess(reach.groups, reach.l_inf * loss, epsilon))


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
