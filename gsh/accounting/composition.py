"""What several releases about the same users cost together: two numbers, added up.  [docs/composition.md]

A release is no worse than a Gaussian of μ² = S beside an accident of probability 1 − e^(−D), where

    S = C_u (1/σ² + μ₀²),    D = −C_u ln Φ((τ* − τ)/σ)          (no threshold: D = 0)

Both add up over releases:

    δ(ε) ≤ 1 − e^(−D) (1 − f(√S, ε + D))                        S = Σ Sᵢ,  D = Σ Dᵢ

One release alone is accounted for exactly. Each Sᵢ and Dᵢ is a double rounded up, and doubles are added as fractions,
without error: no number of charges adds up to less than they cost.
"""

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import accumulate

from flint import arb, fmpq

from gsh.accounting import gaussian
from gsh.accounting.accountings import EXACT, at_delta, at_epsilon
from gsh.accounting.accountings import fits as fits_alone
from gsh.accounting.errors import InvalidParameter
from gsh.accounting.mechanism import Mechanism, PlainGaussian
from gsh.accounting.numerics.balls import (
    approximate,
    at_most,
    round_down,
    round_up,
    smallest_double,
)

__all__ = [
    "NOTHING",
    "Cost",
    "Part",
    "Release",
    "Spent",
    "cost_of",
    "delta_at",
    "double_above",
    "double_below",
    "epsilon_at",
    "fits",
    "fits_together",
    "lower_delta",
    "lower_epsilon",
]

Release = Mechanism | PlainGaussian

_MOST_S = 1e280  # so that the sum over 10^18 of them is a double still
# Splits tried for the lower bound. Equal releases are not split: that is sharp if all have one ratio D/S, or if
# ε/√S − √S/2 ≥ ½. Else a split between equal ones can be larger [docs/composition.md, 2], and the bound is only valid.
_MOST_SPLITS = 16
# A double rounded up to is within two ulps of the real: one of the rounding, and one should the real be a double.
_RELATIVE_EXCESS, _ABSOLUTE_EXCESS = Fraction(1, 2**51), Fraction(1, 2**1073)


@dataclass(frozen=True, slots=True)
class Cost:
    """S and D of one release, each the smallest double at or above it (or the next)."""

    mu_squared: float
    hazard: float


@dataclass(frozen=True, slots=True)
class Part:
    """A number of releases that cost the same."""

    cost: Cost
    times: int


@dataclass(frozen=True, slots=True)
class Spent:
    """The exact sums of the costs of some releases; ``only`` is the release where there was just one."""

    mu_squared: Fraction = Fraction(0)
    hazard: Fraction = Fraction(0)
    releases: int = 0
    only: Release | None = None

    def plus(self, release: Release, cost: Cost, times: int = 1) -> "Spent":
        releases = self.releases + times
        only = release if releases == 1 else None
        s, d = Fraction(cost.mu_squared), Fraction(cost.hazard)
        if times == 1:
            return Spent(self.mu_squared + s, self.hazard + d, releases, only)
        return Spent(self.mu_squared + times * s, self.hazard + times * d, releases, only)

    @property
    def rounded(self) -> Cost:
        """The sums as doubles, rounded up."""
        return Cost(double_above(self.mu_squared), double_above(self.hazard))


NOTHING = Spent()


def cost_of(release: Release) -> Cost:
    """S and D, rounded up."""
    (s,) = round_up(lambda: [release.c_u * release.mu_squared_per_group])
    if s > _MOST_S:
        raise InvalidParameter("sigma", f"must be large enough that μ² is at most {_MOST_S}")
    if isinstance(release, PlainGaussian):
        return Cost(s, 0.0)
    (d,) = round_up(lambda: [-release.c_u * release.log_p])
    return Cost(s, d)


def delta_at(spent: Spent, epsilon: float) -> float:
    """The δ at ε that all releases together are certified for, rounded up."""
    match spent:
        case Spent(releases=0):
            return 0.0
        case Spent(only=Mechanism() as mechanism):
            return at_epsilon(EXACT, mechanism, epsilon).delta
        case Spent(only=PlainGaussian() as plain):
            return round_up(lambda: [gaussian.delta(plain.mu, arb(epsilon))], ceilings=(1.0,))[0]
        case _:
            return round_up(lambda: [_bound(spent.hazard, spent.mu_squared, epsilon)], ceilings=(1.0,))[0]


def epsilon_at(spent: Spent, delta: float) -> float | None:
    """The ε at δ that all releases together are certified for, rounded up; None where no finite ε is."""
    match spent:
        case Spent(releases=0):
            return 0.0
        case Spent(only=Mechanism() as mechanism):
            return at_delta(EXACT, mechanism, delta).epsilon
    if not at_most(lambda: (-(-_ball(spent.hazard)).expm1(), arb(delta))):
        return None

    root = partial(_epsilon_at, spent.hazard, spent.mu_squared, delta)
    return smallest_double(lambda epsilon: fits(spent, epsilon, delta), approximate(root), lowest=0.0)


def fits(spent: Spent, epsilon: float, delta: float) -> bool:
    """Whether all releases together are provably (ε, δ)-private: ``delta_at(spent, epsilon) <= delta``."""
    if spent.releases == 0:
        return True
    if spent.only is not None:
        return _fits_alone(spent.only, epsilon, delta)
    return fits_together(spent.mu_squared, spent.hazard, epsilon, delta)


def _fits_alone(release: Release, epsilon: float, delta: float) -> bool:
    if isinstance(release, Mechanism):
        return fits_alone(EXACT, release, epsilon, delta)
    return at_most(lambda: (gaussian.delta(release.mu, arb(epsilon)), arb(delta)))


def fits_together(s: Fraction, d: Fraction, epsilon: float, delta: float) -> bool:
    """Whether several releases with these sums are provably (ε, δ)-private."""
    return at_most(lambda: (_bound(d, s, epsilon), arb(delta)))


def lower_delta(parts: Sequence[Part], epsilon: float) -> float:
    """A δ at ε below which no accounting of these releases can get if their tables may be unrelated, rounded down.

    Tables exist in which a user's groups sit at τ in some releases (D₁) and far above it in the others (S₂):
    δ(ε) ≥ 1 − e^(−D₁) (1 − f(√S₂, ε + D₁)). Tried are the splits along the order of D/S.
    """
    return _largest(_splits(parts), epsilon)


def lower_epsilon(parts: Sequence[Part], delta: float) -> float | None:
    """The same for ε at δ, rounded down; None where no finite ε exists."""
    splits = _splits(parts)
    if not at_most(lambda: (-(-_ball(splits[-1][0])).expm1(), arb(delta))):
        return None

    def root() -> arb:
        """Of the upper bound, which is near."""
        return _epsilon_at(splits[-1][0], splits[0][1], delta)

    found = smallest_double(lambda epsilon: _largest(splits, epsilon) <= delta, approximate(root), lowest=0.0)
    return None if found is None else math.nextafter(found, 0.0) if found > 0 else 0.0


def _largest(splits: Sequence[tuple[Fraction, Fraction]], epsilon: float) -> float:
    return max(round_down(partial(_bound, d, s, epsilon)) for d, s in splits)


def _bound(d: Fraction, s: Fraction, epsilon: float) -> arb:
    """1 − e^(−D) (1 − f(√S, ε + D)), as a ball; written so that nothing cancels."""
    d_ball = _ball(d)
    noise = gaussian.delta(_ball(s).sqrt(), epsilon + d_ball) if s else arb(0)
    return (-d_ball).exp() * noise - (-d_ball).expm1()


def _epsilon_at(d: Fraction, s: Fraction, delta: float) -> arb:
    """About the ε at which the bound is δ."""
    d_ball = _ball(d)
    if not s:
        return arb(0)
    return gaussian.epsilon_at(_ball(s).sqrt(), (delta + (-d_ball).expm1()) * d_ball.exp()) - d_ball


def _splits(parts: Sequence[Part]) -> list[tuple[Fraction, Fraction]]:
    """(D₁, S₂) of some splits, both ends among them: from no release at τ to all of them."""
    ordered = sorted(parts, key=lambda part: part.cost.hazard / part.cost.mu_squared, reverse=True)
    d = _running(part.times * Fraction(part.cost.hazard) for part in ordered)
    s = _running(part.times * Fraction(part.cost.mu_squared) for part in ordered)
    times = _running(Fraction(part.times) for part in ordered)
    step = max(1, math.ceil(len(ordered) / _MOST_SPLITS))
    cuts = sorted({*range(0, len(ordered), step), len(ordered)})
    return [(_lowered(d[cut], times[cut]), _lowered(s[-1] - s[cut], times[-1] - times[cut])) for cut in cuts]


def _running(terms: Iterable[Fraction]) -> list[Fraction]:
    return list(accumulate(terms, initial=Fraction(0)))


def _lowered(total: Fraction, releases: Fraction) -> Fraction:
    """At most the true sum: what rounding up may have added is taken off again."""
    return max(Fraction(0), total - total * _RELATIVE_EXCESS - releases * _ABSOLUTE_EXCESS)


def double_above(exact: Fraction) -> float:
    """The smallest double at or above a fraction."""
    near = float(exact)
    return near if near >= exact else math.nextafter(near, math.inf)


def double_below(exact: Fraction) -> float:
    """The largest finite double at or below a fraction."""
    near = min(float(exact), sys.float_info.max)
    return near if near <= exact else math.nextafter(near, 0.0)


def _ball(exact: Fraction) -> arb:
    return arb(fmpq(exact.numerator, exact.denominator))
