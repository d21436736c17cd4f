"""The privacy cost of several releases about the same users: two numbers that add up.  [docs/math/composition.md]

A release is at least as private as a Gaussian with μ² = S together with an accident of probability 1 − e^(−D):

    S = ``mu_squared`` = C_u (1/σ² + μ₀²)              the noise cost; S(C_u) of mechanism.py with capped columns
    D = ``hazard``     = −C_u ln Φ((τ* − τ)/σ)         the threshold cost; 0 without a threshold

Both add up over releases:

    δ(ε) ≤ 1 − e^(−D) (1 − f(√S, ε + D)),              S = Σ Sᵢ,  D = Σ Dᵢ

A single release has exact accounting instead. Each Sᵢ and Dᵢ is a double, rounded up. Sums are fractions, without
error: charges never add up to less than they cost.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import accumulate

from flint import arb

from gsh.accounting import gaussian
from gsh.accounting.accountings import EXACT, at_delta, at_epsilon
from gsh.accounting.accountings import fits as fits_alone
from gsh.accounting.mechanism import Release, hazard_ball, mu_squared_ball
from gsh.accounting.numerics.balls import approximate, at_most, ball_of, round_down, round_up
from gsh.accounting.numerics.doubles import double_above, next_below
from gsh.accounting.numerics.search import smallest_double
from gsh.errors import InvalidParameter

__all__ = [
    "NOTHING",
    "Cost",
    "Part",
    "Release",
    "Spent",
    "cost_of",
    "delta_at",
    "epsilon_at",
    "fits",
    "fits_together",
    "lower_delta",
    "lower_epsilon",
]

_MOST_MU_SQUARED = 1e280  # the sum of 10^18 of them is still a double
# The lower bound tries this many splits. It does not split equal releases. That is sharp if all have one ratio D/S, or
# if ε ≥ 0.105 or ε/√S − √S/2 ≥ ½. Otherwise a split among equal releases can be larger, and the bound is valid but not
# sharp.  [docs/math/composition.md, section 2]
_MOST_SPLITS = 16
# A rounded-up double is within two ulps of the real: one for the rounding, and one if the real is itself a double.
_RELATIVE_EXCESS, _ABSOLUTE_EXCESS = Fraction(1, 2**51), Fraction(1, 2**1073)


@dataclass(frozen=True, slots=True)
class Cost:
    """The noise cost and the threshold cost of one release, each rounded up to a double (or the next one)."""

    mu_squared: float
    hazard: float


@dataclass(frozen=True, slots=True)
class Part:
    """A number of releases with the same cost."""

    cost: Cost
    times: int


@dataclass(frozen=True, slots=True)
class Spent:
    """The exact sums of the costs of some releases. ``only`` is the release if there is exactly one."""

    mu_squared: Fraction = Fraction(0)
    hazard: Fraction = Fraction(0)
    releases: int = 0
    only: Release | None = None

    def plus(self, release: Release, cost: Cost, times: int = 1) -> "Spent":
        releases = self.releases + times
        only = release if releases == 1 else None
        mu_squared, hazard = Fraction(cost.mu_squared), Fraction(cost.hazard)
        if times == 1:
            return Spent(self.mu_squared + mu_squared, self.hazard + hazard, releases, only)
        return Spent(self.mu_squared + times * mu_squared, self.hazard + times * hazard, releases, only)

    @property
    def rounded(self) -> Cost:
        """The sums as doubles, rounded up."""
        return Cost(double_above(self.mu_squared), double_above(self.hazard))


NOTHING = Spent()


def cost_of(release: Release) -> Cost:
    """The noise cost and the threshold cost of a release, rounded up."""
    (mu_squared,) = round_up(lambda: [mu_squared_ball(release)])
    if mu_squared > _MOST_MU_SQUARED:
        raise InvalidParameter("sigma", f"must be large enough that μ² is at most {_MOST_MU_SQUARED}")
    (hazard,) = round_up(lambda: [hazard_ball(release)])
    return Cost(mu_squared, hazard)


def delta_at(spent: Spent, epsilon: float) -> float:
    """The certified δ at ε of all releases together, rounded up."""
    if spent.releases == 0:
        return 0.0
    if spent.only is not None:
        return at_epsilon(EXACT, spent.only, epsilon).delta
    return round_up(lambda: [_bound(spent.mu_squared, spent.hazard, epsilon)], ceilings=(1.0,))[0]


def epsilon_at(spent: Spent, delta: float) -> float | None:
    """The certified ε at δ of all releases together, rounded up; None if no finite ε exists."""
    if spent.releases == 0:
        return 0.0
    if spent.only is not None:
        return at_delta(EXACT, spent.only, delta).epsilon
    if _threshold_exceeds(spent.hazard, delta):
        return None

    root = partial(_epsilon_at, spent.mu_squared, spent.hazard, delta)
    return smallest_double(lambda epsilon: fits(spent, epsilon, delta), approximate(root), lowest=0.0)


def fits(spent: Spent, epsilon: float, delta: float) -> bool:
    """Whether all releases together are provably (ε, δ)-private: ``delta_at(spent, epsilon) <= delta``."""
    if spent.releases == 0:
        return True
    if spent.only is not None:
        return fits_alone(EXACT, spent.only, epsilon, delta)
    return fits_together(spent.mu_squared, spent.hazard, epsilon, delta)


def fits_together(mu_squared: Fraction, hazard: Fraction, epsilon: float, delta: float) -> bool:
    """Whether several releases with these sums are provably (ε, δ)-private."""
    return at_most(lambda: (_bound(mu_squared, hazard, epsilon), arb(delta)))


def lower_delta(parts: Sequence[Part], epsilon: float) -> float:
    """A lower bound on δ at ε that no accounting can beat if the tables may be unrelated, rounded down.

    There are tables in which a user's groups are at τ in some releases (sum D₁) and far above τ in the others (sum
    S₂). They have δ(ε) ≥ 1 − e^(−D₁) (1 − f(√S₂, ε + D₁)). The bound tries the splits in the order of D/S.
    """
    return _largest(_splits(parts), epsilon)


def lower_epsilon(parts: Sequence[Part], delta: float) -> float | None:
    """A lower bound on ε at δ that no accounting can beat, rounded down; None if no finite ε exists."""
    splits = _splits(parts)
    (whole_mu_squared, _), (_, whole_hazard) = splits[0], splits[-1]
    if _threshold_exceeds(whole_hazard, delta):
        return None

    # The root of the upper bound is near.
    root = partial(_epsilon_at, whole_mu_squared, whole_hazard, delta)
    found = smallest_double(lambda epsilon: _largest(splits, epsilon) <= delta, approximate(root), lowest=0.0)
    return None if found is None else max(next_below(found), 0.0)


def _threshold_exceeds(hazard: Fraction, delta: float) -> bool:
    """Whether 1 − e^(−D) is not provably at most δ: then no finite ε exists."""
    return not at_most(lambda: (-(-ball_of(hazard)).expm1(), arb(delta)))


def _largest(splits: Sequence[tuple[Fraction, Fraction]], epsilon: float) -> float:
    return max(round_down(partial(_bound, mu_squared, hazard, epsilon)) for mu_squared, hazard in splits)


def _bound(mu_squared: Fraction, hazard: Fraction, epsilon: float) -> arb:
    """1 − e^(−D) (1 − f(√S, ε + D)), as a ball."""
    return gaussian.delta_with_accident(ball_of(mu_squared).sqrt(), ball_of(hazard), epsilon)


def _epsilon_at(mu_squared: Fraction, hazard: Fraction, delta: float) -> arb:
    """Approximately the ε at which the bound is δ."""
    return gaussian.epsilon_with_accident(ball_of(mu_squared).sqrt(), ball_of(hazard), delta)


def _splits(parts: Sequence[Part]) -> list[tuple[Fraction, Fraction]]:
    """(S₂, D₁) of some splits, from no release at τ to all of them, both included."""
    ordered = sorted(parts, key=lambda part: part.cost.hazard / part.cost.mu_squared, reverse=True)
    mu_squared = _running(part.times * Fraction(part.cost.mu_squared) for part in ordered)
    hazard = _running(part.times * Fraction(part.cost.hazard) for part in ordered)
    times = _running(Fraction(part.times) for part in ordered)
    step = max(1, math.ceil(len(ordered) / _MOST_SPLITS))
    cuts = sorted({*range(0, len(ordered), step), len(ordered)})
    return [
        (_lowered(mu_squared[-1] - mu_squared[cut], times[-1] - times[cut]), _lowered(hazard[cut], times[cut]))
        for cut in cuts
    ]


def _running(terms: Iterable[Fraction]) -> list[Fraction]:
    return list(accumulate(terms, initial=Fraction(0)))


def _lowered(total: Fraction, releases: Fraction) -> Fraction:
    """At most the true sum: the total less the most that rounding up can have added."""
    return max(Fraction(0), total - total * _RELATIVE_EXCESS - releases * _ABSOLUTE_EXCESS)
