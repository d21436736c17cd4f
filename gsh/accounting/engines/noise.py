"""What the accounting of an engine needs to know of its noise.  [docs/math/engines.md]

    q(T − τ)      the probability that a group with τ users is published
    H_k(ε)        the δ of k rows with counts far above the threshold:  sup over E of  P_k(E) − e^ε Q_k(E)

The functions take and return balls, so they run inside ``balls.at_precision``.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, Protocol

from flint import arb

__all__ = ["AnyKind", "CountNoise", "Keeps", "NoiseKind", "Reach", "floor_of", "of_sign", "steps_to_publish"]

NoiseKind = Literal["gaussian", "rounded-gaussian", "discrete-gaussian", "laplace", "rounded-laplace", "geometric"]
AnyKind = Literal[NoiseKind, "truncated-geometric"]
"""And what publishes the keys alone."""
Keeps = Literal[">=", ">"]


@dataclass(frozen=True, slots=True)
class Reach:
    """What one user may add to the counts: rows in at most so many groups."""

    groups: int
    l_inf: int
    """The most in one group."""
    l1: int
    """The most in all groups together."""
    square: Fraction
    """The most of the sum of the squares."""

    @property
    def is_counted_once(self) -> bool:
        return self.l_inf == 1 and self.groups <= self.l1 and self.groups <= self.square


class CountNoise(Protocol):
    """Symmetric noise on the count of each group."""

    kind: ClassVar[AnyKind]
    is_ordered: ClassVar[bool]
    """Whether adding a user is always worse than removing one: T3 ≤ T2. It is proven for some noises."""

    are_ends_enough: ClassVar[bool]
    """Whether the worst split has all groups at τ, or none. It is proven for Gaussian noise alone."""

    @property
    def scale(self) -> float:
        """σ or b."""

    def published(self, gap: Fraction, keeps: Keeps) -> arb:
        """The probability q that a group with τ users is published; the gap is the threshold less τ."""

    def excess(self, rows: int, epsilon: arb) -> arb:
        """H_k(ε), k ≥ 1, ε ≥ 0. Its upper end is what is certified."""

    def excess_within(self, reach: Reach, epsilon: arb) -> arb | None:
        """A bound on H(ε) for all that one user may add within these bounds; None if none is known."""

    def is_exact(self, rows: int) -> bool:
        """Whether ``excess`` encloses H_k itself, and not only a bound above it."""


def steps_to_publish(gap: Fraction, keeps: Keeps) -> int:
    """The least integer noise with which a group of τ users passes the test: ≥ or > a threshold."""
    below = gap.numerator // gap.denominator
    if keeps == ">":
        return below + 1
    return below if below == gap else below + 1


def of_sign(excess: arb, epsilon: arb) -> arb:
    """H(−ε) from H(ε):  H(−ε) = 1 − e^(−ε) (1 − H(ε)), which holds for all symmetric noise."""
    return (-epsilon).exp() * excess - (-epsilon).expm1()


def floor_of(number: arb) -> int:
    """An integer that is at most the floor of every point of the ball."""
    return int(number.lower().floor().fmpz())
