"""Gaussian noise, as a real number or rounded to integers.

    q(T − τ) = Φ̄((T − τ)/σ)          H_k(ε) = f(√k/σ, ε)                  [Balle & Wang 2018, Thm. 8]

Rounded noise passes the test ≥ T exactly where the noise before rounding is at least T − ½, for an integer T; and the
test > T where it is more than T + ½. So q is exact. Rounding is post-processing, so H_k is at most that of the noise
before it.  [docs/math/engines.md]
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from flint import arb

from gsh.accounting import gaussian
from gsh.accounting.engines.noise import AnyKind, Keeps, Reach, steps_to_publish
from gsh.accounting.numerics.balls import ball_of
from gsh.accounting.numerics.normal_tail import tail

__all__ = ["GaussianNoise", "RoundedGaussianNoise"]


@dataclass(frozen=True, slots=True)
class GaussianNoise:
    """Gaussian noise with the standard deviation σ."""

    scale: float
    kind: ClassVar[AnyKind] = "gaussian"
    is_ordered: ClassVar[bool] = True
    are_ends_enough: ClassVar[bool] = True

    def edge(self, gap: Fraction, keeps: Keeps) -> Fraction:  # noqa: ARG002 - a continuous noise is never equal
        """The noise from which on a group with τ users is published."""
        return gap

    def published(self, gap: Fraction, keeps: Keeps) -> arb:
        edge = self.edge(gap, keeps)
        beyond = tail(ball_of(abs(edge)) / arb(self.scale))
        return beyond if edge >= 0 else 1 - beyond

    def excess(self, rows: int, epsilon: arb) -> arb:
        return gaussian.delta(arb(rows).sqrt() / arb(self.scale), epsilon)

    def excess_within(self, reach: Reach, epsilon: arb) -> arb | None:
        """f(Δ₂/σ, ε), Δ₂² the largest sum of squares."""
        return gaussian.delta(ball_of(reach.square).sqrt() / arb(self.scale), epsilon)

    def is_exact(self, rows: int) -> bool:  # noqa: ARG002 - always
        return True


class RoundedGaussianNoise(GaussianNoise):
    """The same, rounded to the nearest integer before or after it is added to the count."""

    __slots__ = ()
    kind: ClassVar[AnyKind] = "rounded-gaussian"

    def edge(self, gap: Fraction, keeps: Keeps) -> Fraction:
        return steps_to_publish(gap, keeps) - Fraction(1, 2)

    def is_exact(self, rows: int) -> bool:  # noqa: ARG002 - never
        return False
