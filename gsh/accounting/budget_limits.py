"""A limit on (ε, δ), kept by a cap on each of two sums: ``mu_squared`` and ``hazard``.  [docs/math/composition.md, 4]

The first charge fixes the direction of the caps, the *ray*. Every later limit has caps on this ray, so the caps of two
limits never cross. The largest caps since the first charge are the *hull*. Composition at the hull covers all releases,
whatever was chosen after seeing results.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from flint import arb

from gsh.accounting import gaussian
from gsh.accounting.composition import Cost, Release, Spent, delta_at, fits, fits_together
from gsh.accounting.numerics.balls import approximate, round_down
from gsh.accounting.numerics.doubles import LARGEST_DOUBLE, LEAST_DOUBLE, double_above, double_below
from gsh.accounting.numerics.search import largest_double

__all__ = ["MOST_RELEASES", "Account", "Caps", "Limit", "promised_delta", "same_proportion"]

MOST_RELEASES = 10**18
_RESERVED = arb(1) / 8


@dataclass(frozen=True, slots=True)
class Caps:
    """The largest sums of ``mu_squared`` and of ``hazard`` that releases may reach."""

    mu_squared: Fraction
    hazard: Fraction

    def cover(self, spent: Spent) -> bool:
        return spent.mu_squared <= self.mu_squared and spent.hazard <= self.hazard

    def fit(self, epsilon: float, delta: float) -> bool:
        """Whether releases up to both caps are provably (ε, δ)-private."""
        return fits_together(self.mu_squared, self.hazard, epsilon, delta)

    def joined(self, other: "Caps | None") -> "Caps":
        """The componentwise maximum."""
        return self if other is None else Caps(max(self.mu_squared, other.mu_squared), max(self.hazard, other.hazard))

    def times(self, factor: Fraction) -> "Caps":
        return Caps(factor * self.mu_squared, factor * self.hazard)

    def is_parallel_to(self, other: "Caps") -> bool:
        return self.mu_squared * other.hazard == self.hazard * other.mu_squared


@dataclass(frozen=True, slots=True)
class Limit:
    """(ε, δ), split into a cap on noise cost and a cap on threshold cost before the first release.

    Choosing between noise and thresholds after seeing results could nearly double δ [docs/math/composition.md, 4]. So
    the split is fixed first: in the ``proportion`` of a typical release, or else of the first release.
    """

    epsilon: float
    delta: float
    proportion: Cost | None = None
    ray: Caps | None = None
    """What all caps are multiples of, the reserve for thresholds included; None before the first charge."""

    def settled_by(self, cost: Cost) -> "Limit":
        """The same limit, with its proportion fixed by this first release unless it is fixed already."""
        return self if self.proportion is not None else replace(self, proportion=cost)

    @property
    def caps(self) -> Caps:
        """The caps of a limit whose proportion is fixed: λ times the ray, for the largest λ that fits."""
        if self.ray is not None:
            return _largest_multiple(self.epsilon, self.delta, self.ray)
        assert self.proportion is not None
        return _caps(self.epsilon, self.delta, self.proportion)

    @property
    def reserve(self) -> Fraction:
        """The least cap of ``hazard``: an eighth of δ for thresholds, whatever the first release costs."""
        return _reserve(self.delta)

    def with_ray_through(self, caps: Caps) -> "Limit":
        """The same limit, and all that follow it, with caps in the direction of these.

        The ray is the proportion itself if the caps are a multiple of it: its multiples are the caps of ``_caps``.
        """
        assert self.proportion is not None
        proportion = _vector(self.proportion)
        return replace(self, ray=proportion if caps.is_parallel_to(proportion) else caps)

    def admits(self, spent: Spent) -> bool:
        """Whether releases with these sums are admitted, one by one. A single release has exact accounting."""
        if spent.releases <= 1 and fits(spent, self.epsilon, self.delta):
            return True
        return self.admits_several(spent)

    def admits_several(self, spent: Spent) -> bool:
        """Whether the sums alone are admitted. Without a proportion: as if equal releases with these sums fixed it."""
        if self.proportion is None:
            reserve = self.reserve
            # With the reserve, the cap of mu_squared is a double (_caps).
            caps = (
                Caps(spent.mu_squared, spent.hazard)
                if spent.hazard >= reserve
                else Caps(Fraction(double_above(spent.mu_squared)), reserve)
            )
            return caps.fit(self.epsilon, self.delta)
        return self.caps.cover(spent)

    def how_many_fit(self, spent: Spent, release: Release, cost: Cost) -> int:
        """The number of further releases like this one that are admitted, at most 10¹⁸."""
        alone = spent.releases == 0 and fits(spent.plus(release, cost), self.epsilon, self.delta)
        return max(self.how_many_cost(spent, cost), int(alone))

    def how_many_cost(self, spent: Spent, cost: Cost) -> int:
        """The number of further releases of this cost within the caps, at most 10¹⁸."""
        caps = self.settled_by(cost).caps
        if not caps.cover(spent):
            return 0
        by_noise = (caps.mu_squared - spent.mu_squared) / Fraction(cost.mu_squared)
        by_threshold = (caps.hazard - spent.hazard) / Fraction(cost.hazard) if cost.hazard else by_noise
        return min(math.floor(min(by_noise, by_threshold)), MOST_RELEASES)

    def remaining(self, spent: Spent) -> Cost:
        """The remaining ``mu_squared`` and ``hazard``, rounded down. Without a proportion: the most of either alone."""
        if self.proportion is None:
            one, none = Fraction(1), Fraction(0)
            only_noise = _most(self.epsilon, self.delta, mu_squared=one, hazard=none)
            only_threshold = _most(self.epsilon, self.delta, mu_squared=none, hazard=one)
            return Cost(double_below(only_noise), double_below(only_threshold))
        return Cost(
            double_below(max(self.caps.mu_squared - spent.mu_squared, Fraction(0))),
            double_below(max(self.caps.hazard - spent.hazard, Fraction(0))),
        )

    def used(self, spent: Spent) -> float:
        """The used share of the cap of ``mu_squared`` or of ``hazard``, the larger, rounded up; 1 if one is reached."""
        return max(self.used_shares(spent))

    def used_shares(self, spent: Spent) -> tuple[float, float]:
        """The used shares of the caps of ``mu_squared`` and of ``hazard``, rounded up, at most 1."""
        if spent.releases == 0:
            return 0.0, 0.0
        caps = self.caps
        return _share(spent.mu_squared, caps.mu_squared), _share(spent.hazard, caps.hazard)


class Account(NamedTuple):
    """What a limit admitted so far, and the limit: all that decides what a budget admits next."""

    spent: Spent
    limit: Limit

    def admits(self, release: Release, cost: Cost, times: int = 1) -> bool:
        """Whether it admits this release, so many times, one by one."""
        return self.limit.admits(self.spent.plus(release, cost, times))


def same_proportion(one: Limit, other: Limit) -> bool:
    """Whether two limits split (ε, δ) in the same proportion of noise cost to threshold cost."""
    assert one.proportion is not None
    assert other.proportion is not None
    return _vector(one.proportion).is_parallel_to(_vector(other.proportion))


def promised_delta(hull: Caps, spent: Spent, epsilon: float) -> float:
    """The δ at ε for all releases so far and all that the caps allow, rounded up.

    A single first release may exceed the caps. It has exact accounting, and no release can follow it. Other sums
    beyond the hull come from earlier versions, which had no caps.
    """
    alone = spent if spent.only is not None else None
    reached = hull if alone else hull.joined(Caps(spent.mu_squared, spent.hazard))
    together = delta_at(Spent(reached.mu_squared, reached.hazard, releases=2), epsilon)
    return max(together, delta_at(alone, epsilon)) if alone else together


def _share(used: Fraction, cap: Fraction) -> float:
    return 1.0 if used >= cap else double_above(used / cap)


def _vector(cost: Cost) -> Caps:
    return Caps(Fraction(cost.mu_squared), Fraction(cost.hazard))


@lru_cache(maxsize=4096)
def _largest_multiple(epsilon: float, delta: float, ray: Caps) -> Caps:
    """The largest multiple of the ray that fits, by a double."""
    return ray.times(_most(epsilon, delta, ray.mu_squared, ray.hazard))


@lru_cache(maxsize=4096)
def _caps(epsilon: float, delta: float, proportion: Cost) -> Caps:
    """The largest multiple of the proportion that fits, but with at least an eighth of δ for thresholds.

    At usual (ε, δ) the reserve takes about 2 % of ``mu_squared``, and a histogram can follow plain Gaussian noise.
    """
    caps, reserve = _largest_multiple(epsilon, delta, _vector(proportion)), _reserve(delta)
    if caps.hazard >= reserve:
        return caps
    return Caps(_most(epsilon, delta, mu_squared=Fraction(1), hazard=Fraction(0), reserve=reserve), reserve)


def _reserve(delta: float) -> Fraction:
    """−ln(1 − δ/8), rounded down."""
    return Fraction(round_down(lambda: -(-arb(delta) * _RESERVED).log1p()))


def _most(
    epsilon: float, delta: float, mu_squared: Fraction, hazard: Fraction, reserve: Fraction = Fraction(0)
) -> Fraction:
    """The largest double t for which the caps t · mu_squared and t · hazard + reserve fit; 0 if none does."""

    def fit(times: float) -> bool:
        exactly = Fraction(times)
        return Caps(exactly * mu_squared, exactly * hazard + reserve).fit(epsilon, delta)

    def guess() -> arb:
        by_noise = gaussian.mu_at(arb(epsilon), arb(delta)) ** 2 / float(mu_squared) if mu_squared else arb(math.inf)
        return by_noise.min(-(-arb(delta)).log1p() / float(hazard)) if hazard else by_noise

    if not fit(LEAST_DOUBLE):
        return Fraction(0)
    return Fraction(min(largest_double(fit, LEAST_DOUBLE, approximate(guess)), LARGEST_DOUBLE))
