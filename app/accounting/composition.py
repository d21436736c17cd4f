"""What several releases about the same users cost together: two numbers, added up.  [docs/composition.md]

A release is no worse than a Gaussian of μ² = S beside an accident of probability 1 − e^(−D), where

    S = C_u (1/σ² + μ₀²),    D = −C_u ln Φ((τ* − τ)/σ)          (no threshold: D = 0)

Both add up over releases, however each was chosen after the ones before it:

    δ(ε) ≤ 1 − e^(−D) (1 − f(√S, ε + D))                        S = Σ Sᵢ,  D = Σ Dᵢ

One release alone is accounted for exactly. Each Sᵢ and Dᵢ is a double rounded up, and doubles are added as fractions,
without error: no number of charges adds up to less than they cost.
"""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from flint import arb, fmpq

from app.accounting import gaussian
from app.accounting.balls import (
    approximate,
    at_most,
    largest_double,
    largest_integer,
    round_down,
    round_up,
    smallest_double,
)
from app.accounting.errors import InvalidParameter
from app.accounting.mechanism import Mechanism, PlainGaussian
from app.accounting.methods import EXACT, at_delta, at_epsilon
from app.accounting.methods import fits as fits_alone

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
    "how_many_fit",
    "lower_delta",
    "lower_epsilon",
    "remaining",
    "used",
]

Release = Mechanism | PlainGaussian

MOST_RELEASES = 10**18
_MOST_S = 1e280  # so that the sum over all of them is a double still
# Splits tried for the lower bound. Releases of one ratio D/S are never split (docs/closed-form.md), so few are needed.
_MOST_SPLITS = 16
# A double rounded up to is within two ulps of the real: one of the rounding, and one should the real be a double.
_LEAST = math.nextafter(0, 1)
_SEVERAL = 2  # as if there were more than one release, which alone would be accounted for exactly
_SHARES = 2**20
_RELATIVE_EXCESS, _ABSOLUTE_EXCESS = Fraction(1, 2**51), Fraction(1, 2**1073)


@dataclass(frozen=True, slots=True)
class Cost:
    """S and D of one release, each the smallest double at or above it (or the next)."""

    s: float
    d: float


@dataclass(frozen=True, slots=True)
class Part:
    """A number of releases that cost the same."""

    cost: Cost
    times: int


@dataclass(frozen=True, slots=True)
class Spent:
    """The exact sums of the costs of some releases; ``only`` is the release where there was just one."""

    s: Fraction = Fraction(0)
    d: Fraction = Fraction(0)
    releases: int = 0
    only: Release | None = None

    def plus(self, release: Release, cost: Cost, times: int = 1) -> "Spent":
        releases = self.releases + times
        only = release if releases == 1 else None
        s, d = Fraction(cost.s), Fraction(cost.d)
        if times == 1:
            return Spent(self.s + s, self.d + d, releases, only)
        return Spent(self.s + times * s, self.d + times * d, releases, only)

    @property
    def rounded(self) -> Cost:
        """The sums as doubles, rounded up."""
        return Cost(_double_above(self.s), _double_above(self.d))


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
        case _:
            return round_up(lambda: [_upper(spent, epsilon)], ceilings=(1.0,))[0]


def epsilon_at(spent: Spent, delta: float) -> float | None:
    """The ε at δ that all releases together are certified for, rounded up; None where no finite ε is."""
    match spent:
        case Spent(releases=0):
            return 0.0
        case Spent(only=Mechanism() as mechanism):
            return at_delta(EXACT, mechanism, delta).epsilon
    if not at_most(lambda: (-(-_ball(spent.d)).expm1(), arb(delta))):
        return None

    def root() -> arb:
        d = _ball(spent.d)
        return gaussian.epsilon_at(_ball(spent.s).sqrt(), (delta + (-d).expm1()) * d.exp()) - d

    return smallest_double(lambda epsilon: fits(spent, epsilon, delta), approximate(root), lowest=0.0)


def fits(spent: Spent, epsilon: float, delta: float) -> bool:
    """Whether all releases together are provably (ε, δ)-private: ``delta_at(spent, epsilon) <= delta``."""
    match spent:
        case Spent(releases=0):
            return True
        case Spent(only=Mechanism() as mechanism):
            return fits_alone(EXACT, mechanism, epsilon, delta)
        case _:
            return at_most(lambda: (_upper(spent, epsilon), arb(delta)))


def how_many_fit(spent: Spent, release: Release, cost: Cost, epsilon: float, delta: float) -> int:
    """How many more releases like this one fit, up to 10¹⁸.  Each more costs more, so there is a last one."""

    def room() -> arb:
        mu = gaussian.mu_at(arb(epsilon), arb(delta))
        by_noise = (mu * mu - _ball(spent.s)) / cost.s
        return by_noise.min(((-arb(delta)).log1p() * -1 - _ball(spent.d)) / cost.d) if cost.d else by_noise

    guess = approximate(room)
    return largest_integer(
        lambda times: fits(spent.plus(release, cost, times), epsilon, delta), guess.max(arb(1)).mid(), MOST_RELEASES
    )


def used(spent: Spent, epsilon: float, delta: float) -> float:
    """The share of the limit that is gone if what comes costs S and D in the proportion of what came; rounded up.

    The least u, in steps of 2⁻²⁰, for which S/u and D/u would fit; 1 where nothing is left.
    """
    if spent.releases == 0:
        return 0.0

    def is_too_small(share: int) -> bool:
        scaled = Fraction(_SHARES, share)
        return not fits(Spent(spent.s * scaled, spent.d * scaled, releases=_SEVERAL), epsilon, delta)

    return min(largest_integer(is_too_small, arb(_SHARES // 2), _SHARES) + 1, _SHARES) / _SHARES


def remaining(spent: Spent, epsilon: float, delta: float) -> Cost:
    """How much S there is room for while D stays as it is, and how much D while S does; rounded down."""
    return Cost(
        _most(lambda s: fits(replace(spent, s=spent.s + Fraction(s), releases=_SEVERAL, only=None), epsilon, delta)),
        _most(lambda d: fits(replace(spent, d=spent.d + Fraction(d), releases=_SEVERAL, only=None), epsilon, delta)),
    )


def lower_delta(parts: Sequence[Part], epsilon: float) -> float:
    """A δ at ε below which no accounting of these releases can get, rounded down.

    Tables exist in which a user's groups sit at τ in some releases (D₁) and far above it in the others (S₂):
    δ(ε) ≥ 1 − e^(−D₁) (1 − f(√S₂, ε + D₁)). Tried are the splits along the order of D/S.
    """
    return max(round_down(partial(_bound, d, s, epsilon)) for d, s in _splits(parts))


def lower_epsilon(parts: Sequence[Part], delta: float) -> float | None:
    """An ε at δ below which no accounting can get, rounded down; None where no finite ε exists."""
    d = _sum(parts, lambda cost: cost.d)
    if not at_most(lambda: (-(-_ball(d)).expm1(), arb(delta))):
        return None
    found = smallest_double(lambda epsilon: lower_delta(parts, epsilon) <= delta, arb(1), lowest=0.0)
    return None if found is None else math.nextafter(found, 0.0) if found > 0 else 0.0


def _upper(spent: Spent, epsilon: float) -> arb:
    return _bound(spent.d, spent.s, epsilon)


def _bound(d: Fraction, s: Fraction, epsilon: float) -> arb:
    """1 − e^(−D) (1 − f(√S, ε + D)), as a ball; written so that nothing cancels."""
    d_ball = _ball(d)
    noise = gaussian.delta(_ball(s).sqrt(), epsilon + d_ball) if s else arb(0)
    return (-d_ball).exp() * noise - (-d_ball).expm1()


def _splits(parts: Sequence[Part]) -> list[tuple[Fraction, Fraction]]:
    """(D₁, S₂) of some splits, both ends among them: from no release at τ to all of them."""
    ordered = sorted(parts, key=lambda part: part.cost.d / part.cost.s, reverse=True)
    step = max(1, math.ceil(len(ordered) / _MOST_SPLITS))
    cuts = sorted({*range(0, len(ordered), step), len(ordered)})
    return [(_sum(ordered[:cut], lambda cost: cost.d), _sum(ordered[cut:], lambda cost: cost.s)) for cut in cuts]


def _sum(parts: Sequence[Part], of: Callable[[Cost], float]) -> Fraction:
    """At most the true sum: what rounding up may have added is taken off again."""
    total = sum((part.times * Fraction(of(part.cost)) for part in parts), Fraction(0))
    excess = total * _RELATIVE_EXCESS + sum(part.times for part in parts) * _ABSOLUTE_EXCESS
    return max(Fraction(0), total - excess)


def _most(allowed: Callable[[float], bool]) -> float:
    """The largest double that is allowed, 0 if none is."""
    return min(largest_double(allowed, _LEAST, arb(1)), sys.float_info.max) if allowed(_LEAST) else 0.0


def _double_above(exact: Fraction) -> float:
    near = float(exact)
    return near if near >= exact else math.nextafter(near, math.inf)


def _ball(exact: Fraction) -> arb:
    return arb(fmpq(exact.numerator, exact.denominator))
