"""Ways to account for several tables, compared at one target (ε, δ) and with the same shares: the σ and τ* of each.

shares         one release of all tables: exactly the privacy curve of one  [docs/math/joint-tables.md, Theorem C]
composition    1 − e^(−D) (1 − f(√S, ε + D)) ≤ δ: as if each table were a release, chosen after seeing the others
zcdp           1 − e^(−D) + δ of zCDP at ρ = S/2 ≤ δ
separate       table k has a certificate of its own at (w_k ε, w_k δ), and these add up

S and D are sums over all tables. Composition and zCDP leave a choice between them: more noise leaves more of δ to the
thresholds. A search finds nearly the division with which the highest τ* is lowest. It is certified that the tables meet
the target by their own way, and that each σ and then each τ* is the smallest double for its share of that division.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from flint import arb

from gsh.accounting import gaussian
from gsh.accounting.accountings import EXACT, ZCDP, at_epsilon
from gsh.accounting.calibration.comparison import or_none
from gsh.accounting.calibration.draft import Target
from gsh.accounting.calibration.shares import (
    CalibratedTables,
    Shares,
    TableDraft,
    calibrate_tables,
    highest_tau_star,
    tables_within,
)
from gsh.accounting.calibration.target import calibrate, smallest_sigma_for_noise
from gsh.accounting.mechanism import AnyMechanism, Mechanism, hazard_ball, mu_squared_ball, release_of
from gsh.accounting.numerics.balls import approximate, at_most, ball_of, round_up
from gsh.accounting.numerics.doubles import LEAST_DOUBLE, double_above, double_below
from gsh.accounting.numerics.search import golden_section, largest_double
from gsh.errors import InfeasibleTarget

__all__ = ["PricedTables", "WayName", "best_composition", "compare_tables"]

WayName = Literal["shares", "composition", "zcdp", "separate"]

_TOLERANCE = 1e-7
_POSITIONS = (-25.0, 25.0)


@dataclass(frozen=True, slots=True)
class PricedTables:
    """The price of a way: tables that meet the target by it, and the δ that it claims for them, rounded up."""

    tables: tuple[AnyMechanism, ...]
    delta: float
    exact: tuple[AnyMechanism, ...]
    """The tables that one release needs for the same shares."""

    @property
    def sigma_ratios(self) -> tuple[float, ...]:
        """The σ of each table divided by its σ in one release."""
        return tuple(ours.sigma / theirs.sigma for ours, theirs in zip(self.tables, self.exact, strict=True))

    @property
    def tau_star_ratios(self) -> tuple[float | None, ...]:
        """The τ* of each table divided by its τ* in one release; None if its groups are public."""
        return tuple(
            ours.tau_star / theirs.tau_star if isinstance(ours, Mechanism) and isinstance(theirs, Mechanism) else None
            for ours, theirs in zip(self.tables, self.exact, strict=True)
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Way:
    """An upper bound on δ that rises in the sums S and D, and about the μ with which it is δ at a given D."""

    bound: Callable[[arb, arb, arb], arb]
    """of S, D and ε"""
    mu_at: Callable[[arb, arb, arb], arb]
    """of D, ε and δ"""


def _infinite(hazard: arb) -> arb:
    return -(-hazard).expm1()


_COMPOSITION = _Way(
    bound=lambda square, hazard, epsilon: gaussian.delta_with_accident(square.sqrt(), hazard, epsilon),
    mu_at=lambda hazard, epsilon, delta: gaussian.mu_at(epsilon + hazard, delta - (1 - delta) * hazard.expm1()),
)
_ZCDP = _Way(
    bound=lambda square, hazard, epsilon: ZCDP.total(_infinite(hazard), ZCDP.noise.delta(square.sqrt(), epsilon)),
    mu_at=lambda hazard, epsilon, delta: ZCDP.noise.mu_at(epsilon, ZCDP.room(delta, lambda: _infinite(hazard))),
)


def compare_tables(drafts: Sequence[TableDraft], shares: Shares, target: Target) -> dict[WayName, PricedTables | None]:
    """The price of each way; None if it cannot meet the target. If shares cannot, it raises InfeasibleTarget."""
    found = calibrate_tables(drafts, shares, target)
    return {
        "shares": PricedTables(found.tables, found.point.delta, found.tables),
        "composition": or_none(lambda: _divided(_COMPOSITION, drafts, found, target)),
        "zcdp": or_none(lambda: _divided(_ZCDP, drafts, found, target)),
        "separate": or_none(lambda: _separate(drafts, found, target)),
    }


def best_composition(
    drafts: Sequence[TableDraft], weights: Sequence[Fraction], target: Target, releases: int, least_hazard: Fraction
) -> tuple[Fraction, Fraction]:
    """Approximately the S and D of equal releases of all these tables that minimise the highest τ*.

    Composition meets the target with them. D is at least ``least_hazard``.
    """
    hazard = max(_best_hazard(_COMPOSITION, drafts, weights, target, releases), least_hazard)
    return _largest_square(_COMPOSITION, hazard, target), hazard


def _divided(way: _Way, drafts: Sequence[TableDraft], found: CalibratedTables, target: Target) -> PricedTables:
    """The tables at about the best division of δ between noise and thresholds."""
    hazard = _best_hazard(way, drafts, found.shares, target)
    tables = tables_within(drafts, found.shares, _largest_square(way, hazard, target), hazard)
    release = release_of(tables)

    def claimed() -> list[arb]:
        return [way.bound(mu_squared_ball(release), hazard_ball(release), arb(target.epsilon))]

    return PricedTables(tables, round_up(claimed, ceilings=(1.0,))[0], found.tables)


def _best_hazard(
    way: _Way, drafts: Sequence[TableDraft], weights: Sequence[Fraction], target: Target, releases: int = 1
) -> Fraction:
    """Approximately the D that minimises the highest τ*, by golden section in ln(θ/(1 − θ)), θ = δ_infinite/δ.

    Several equal releases share it.
    """
    if all(each.is_public for each in drafts):
        return Fraction(0)

    def highest(position: float) -> float:
        hazard = _hazard(position, target)
        if hazard == 0:
            return math.inf

        def tau_star() -> arb:
            mu = way.mu_at(ball_of(hazard), arb(target.epsilon), arb(target.delta))
            return highest_tau_star(drafts, weights, mu * mu / releases, ball_of(hazard) / releases)

        found = float(approximate(tau_star))
        return found if math.isfinite(found) else math.inf

    intervals = golden_section(highest, *_POSITIONS)
    left, right = next((left, right) for left, right in intervals if right - left <= _TOLERANCE)
    return _hazard(min((left, (left + right) / 2, right), key=highest), target)


def _hazard(position: float, target: Target) -> Fraction:
    """A double near −ln(1 − θδ), θ = 1/(1 + e^(−position))."""
    return Fraction(float(approximate(lambda: -(-arb(target.delta) / (1 + arb(-position).exp())).log1p())))


def _largest_square(way: _Way, hazard: Fraction, target: Target) -> Fraction:
    """The largest double S with which the bound is at most δ at a given D."""

    def is_enough(square: float) -> bool:
        return at_most(lambda: (way.bound(arb(square), ball_of(hazard), arb(target.epsilon)), arb(target.delta)))

    def root() -> arb:
        return way.mu_at(ball_of(hazard), arb(target.epsilon), arb(target.delta)) ** 2

    square = largest_double(is_enough, LEAST_DOUBLE, approximate(root))
    if square == 0:
        raise InfeasibleTarget("delta", "must be larger: it leaves nothing for the noise")
    return Fraction(square)


def _separate(drafts: Sequence[TableDraft], found: CalibratedTables, target: Target) -> PricedTables:
    """Each table at its share of ε and of δ, by exact accounting."""
    tables, total = [], Fraction(0)
    for each, share in zip(drafts, found.shares, strict=True):
        epsilon, delta = (double_below(share * Fraction(number)) for number in (target.epsilon, target.delta))
        if delta == 0:
            raise InfeasibleTarget("delta", "must be larger: a share of it is below the least double")
        table = _alone(each, Target(epsilon, delta))
        tables.append(table)
        total += Fraction(at_epsilon(EXACT, table, epsilon).delta)
    return PricedTables(tuple(tables), double_above(total), found.tables)


def _alone(each: TableDraft, target: Target) -> AnyMechanism:
    """The table with the smallest σ, and then the smallest τ*, by exact accounting."""
    if each.is_public:
        return each.at(smallest_sigma_for_noise(EXACT.noise, each.draft, target))
    return calibrate(EXACT, each.draft, target).mechanism
