"""The largest caps that a budget had while it had charges, and what they promise.  [docs/composition.md, 4]

Releases made under several limits, one after the other, stay within the componentwise maximum of their caps: the hull.
Composition at the hull covers them all, whatever was chosen after looking.
"""

from dataclasses import dataclass
from fractions import Fraction

from gsh.accounting.budget_limits import Limit
from gsh.accounting.composition import Spent, delta_at, fits_together

__all__ = ["Caps", "admits_change", "promised_delta", "same_proportion"]


@dataclass(frozen=True, slots=True)
class Caps:
    """The most that S and D may add up to."""

    mu_squared: Fraction
    hazard: Fraction

    @classmethod
    def of(cls, limit: Limit) -> "Caps":
        return cls(*limit.division)

    def joined(self, other: "Caps | None") -> "Caps":
        return self if other is None else Caps(max(self.mu_squared, other.mu_squared), max(self.hazard, other.hazard))


def same_proportion(one: Limit, other: Limit) -> bool:
    """Whether two limits divide (ε, δ) by the same S : D."""
    assert one.proportion is not None
    assert other.proportion is not None
    s, d = Fraction(one.proportion.mu_squared), Fraction(one.proportion.hazard)
    return s * Fraction(other.proportion.hazard) == d * Fraction(other.proportion.mu_squared)


def admits_change(hull: Caps, limit: Limit) -> bool:
    """Whether a budget with charges may get this limit, which has the proportion of the first charge.

    Caps within the hull add nothing. Larger ones must keep the promise of the new limit together with the hull.
    """
    joined = hull.joined(Caps.of(limit))
    return joined == hull or fits_together(joined.mu_squared, joined.hazard, limit.epsilon, limit.delta)


def promised_delta(hull: Caps, spent: Spent, epsilon: float) -> float:
    """The δ at ε that holds for all releases so far and all that the caps allow, rounded up.

    A first and only release may exceed the caps. It is accounted for exactly, and nothing can follow it. Sums that
    exceed the hull otherwise are those of earlier versions, which kept no caps.
    """
    alone = spent if spent.only is not None else None
    reached = hull if alone else hull.joined(Caps(spent.mu_squared, spent.hazard))
    together = delta_at(Spent(reached.mu_squared, reached.hazard, releases=2), epsilon)
    return max(together, delta_at(alone, epsilon)) if alone else together
