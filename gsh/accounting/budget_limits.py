"""A limit on (ε, δ), kept by two sums: what S and what D of all releases may add up to.  [docs/composition.md, 4]"""

import math
import sys
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from flint import arb

from gsh.accounting import gaussian
from gsh.accounting.composition import Cost, Release, Spent, double_above, double_below, fits, fits_together
from gsh.accounting.numerics.balls import approximate, largest_double, round_down

__all__ = ["MOST_RELEASES", "Limit"]

MOST_RELEASES = 10**18
_LEAST = math.nextafter(0, 1)
_RESERVED = arb(1) / 8


@dataclass(frozen=True, slots=True)
class Limit:
    """(ε, δ), divided between noise and thresholds: into the most that S, and the most that D, may add up to.

    Whoever may choose between S and D after seeing a release can spend δ nearly twice [docs/composition.md, 4]. So the
    division is settled before: in the ``proportion`` S : D of a typical release, or else of the first.
    """

    epsilon: float
    delta: float
    proportion: Cost | None = None

    def settled_by(self, cost: Cost) -> "Limit":
        """The same, if it is settled already; else by this first release."""
        return self if self.proportion is not None else replace(self, proportion=cost)

    @property
    def division(self) -> tuple[Fraction, Fraction]:
        """The most that S and D may add up to."""
        assert self.proportion is not None
        return _division(self.epsilon, self.delta, self.proportion)

    def admits(self, spent: Spent) -> bool:
        """Whether releases may be made that cost this in all, one by one. One alone is accounted for exactly."""
        if spent.releases <= 1 and fits(spent, self.epsilon, self.delta):
            return True
        return self.admits_several(spent)

    def admits_several(self, spent: Spent) -> bool:
        """The same by the sums alone. If it is not settled yet: were equal releases with these sums to settle it."""
        if self.proportion is None:
            reserve = _reserve(self.delta)
            # Beside the reserve the most that S may be is a double (_division).
            s, d = (
                (spent.mu_squared, spent.hazard)
                if spent.hazard >= reserve
                else (Fraction(double_above(spent.mu_squared)), reserve)
            )
            return fits_together(s, d, self.epsilon, self.delta)
        s, d = self.division
        return spent.mu_squared <= s and spent.hazard <= d

    def how_many_fit(self, spent: Spent, release: Release, cost: Cost) -> int:
        """How many more releases like this one are admitted, up to 10¹⁸."""
        s, d = self.settled_by(cost).division
        if spent.mu_squared > s or spent.hazard > d:
            return 0
        by_noise = (s - spent.mu_squared) / Fraction(cost.mu_squared)
        room = min(by_noise, (d - spent.hazard) / Fraction(cost.hazard)) if cost.hazard else by_noise
        alone = spent.releases == 0 and fits(spent.plus(release, cost), self.epsilon, self.delta)
        return min(max(math.floor(room), int(alone)), MOST_RELEASES)

    def remaining(self, spent: Spent) -> Cost:
        """How much S and how much D there is room for, rounded down; of a limit not settled, for either alone."""
        if self.proportion is None:
            one, none = Fraction(1), Fraction(0)
            alone = (_most(self.epsilon, self.delta, *axis) for axis in ((one, none), (none, one)))
            return Cost(*map(double_below, alone))
        s, d = self.division
        return Cost(
            double_below(max(s - spent.mu_squared, Fraction(0))), double_below(max(d - spent.hazard, Fraction(0)))
        )

    def used(self, spent: Spent) -> float:
        """The share of S, or of D if it is larger, that is gone; rounded up, and 1 where nothing is left."""
        if spent.releases == 0:
            return 0.0
        s, d = self.division
        if spent.mu_squared >= s or spent.hazard >= d:
            return 1.0
        return double_above(max(spent.mu_squared / s, spent.hazard / d))


@lru_cache(maxsize=4096)
def _division(epsilon: float, delta: float, proportion: Cost) -> tuple[Fraction, Fraction]:
    """As often the proportion as fits; but an eighth of δ is left to thresholds at least.

    At usual (ε, δ) that takes some 2 % of S, and a histogram can follow plain Gaussian noise.
    """
    s, d = Fraction(proportion.mu_squared), Fraction(proportion.hazard)
    times = _most(epsilon, delta, s, d)
    reserve = _reserve(delta)
    if times * d >= reserve:
        return times * s, times * d
    return _most(epsilon, delta, Fraction(1), Fraction(0), reserve), reserve


def _reserve(delta: float) -> Fraction:
    return Fraction(round_down(lambda: -(-arb(delta) * _RESERVED).log1p()))


def _most(epsilon: float, delta: float, s: Fraction, d: Fraction, reserve: Fraction = Fraction(0)) -> Fraction:
    """The largest double t for which S = ts and D = td + reserve fit; 0 if none does."""

    def fit(times: float) -> bool:
        exactly = Fraction(times)
        return fits_together(exactly * s, exactly * d + reserve, epsilon, delta)

    def guess() -> arb:
        by_noise = gaussian.mu_at(arb(epsilon), arb(delta)) ** 2 / float(s) if s else arb(math.inf)
        return by_noise.min(-(-arb(delta)).log1p() / float(d)) if d else by_noise

    if not fit(_LEAST):
        return Fraction(0)
    return Fraction(min(largest_double(fit, _LEAST, approximate(guess)), sys.float_info.max))
