"""Calibration of several tables in one release: each gets a share of the privacy of one table.

Table k has the share w_k of S* and of D*, where f(√S*, ε) = δ and 1 − e^(−D*) = δ:

    S_k ≤ w_k S*,   D_k ≤ w_k D*:        σ_k = √((C_k + κ_k²)/(w_k S*)),   τ*_k = τ_k + σ_k Φ⁻¹(e^(−w_k D*/C_k))

Then all tables together have exactly the privacy curve of one.  [docs/math/joint-tables.md, Theorem C]

With public groups or caps on columns a split between the two ends may cost more than δ. Then all D_k are multiplied by
the largest factor with which no split does. Public groups have no threshold: the other tables share D*.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from flint import arb

from gsh.accounting import gaussian
from gsh.accounting.accountings import EXACT, Point, at_epsilon, fits
from gsh.accounting.calibration.draft import ANY_TAU_STAR, Draft, Target
from gsh.accounting.frontier import frontier_of, scale_guess
from gsh.accounting.mechanism import (
    MOST_TABLES,
    AnyMechanism,
    Release,
    hazard_ball,
    mu_squared_ball,
    release_of,
)
from gsh.accounting.numerics.balls import approximate, at_most, ball_of
from gsh.accounting.numerics.doubles import LEAST_DOUBLE
from gsh.accounting.numerics.search import largest_double, smallest_double
from gsh.errors import InfeasibleTarget, InvalidParameter, renamed

__all__ = [
    "CalibratedTables",
    "Shares",
    "TableDraft",
    "calibrate_tables",
    "check_drafts",
    "check_share",
    "highest_tau_star",
    "largest_hazard",
    "largest_square",
    "shares_of",
    "tables_within",
]

Shares = Literal["balanced"] | Sequence[float | Fraction]
_ROOM = 2.0**-44
_LEAST_SCALE = 2.0**-200


@dataclass(frozen=True, slots=True)
class TableDraft:
    """A table without its σ and τ*. If its groups are public, it gets no threshold."""

    draft: Draft
    is_public: bool = False

    def at(self, sigma: float, tau_star: float = ANY_TAU_STAR) -> AnyMechanism:
        """The table with these numbers."""
        mechanism = self.draft.with_sigma(sigma).complete(tau_star=tau_star)
        return mechanism.without_thresholds if self.is_public else mechanism


@dataclass(frozen=True, slots=True)
class CalibratedTables:
    """The completed tables in their order, the share of each, and the certified point of all together."""

    tables: tuple[AnyMechanism, ...]
    shares: tuple[Fraction, ...]
    point: Point

    @property
    def release(self) -> Release:
        return release_of(self.tables)


def calibrate_tables(drafts: Sequence[TableDraft], shares: Shares, target: Target) -> CalibratedTables:
    """The smallest σ of each table for its share, and then the smallest τ*."""
    check_drafts(drafts)
    weights = shares_of(drafts, shares)
    tables = _within_target(drafts, weights, target)
    return CalibratedTables(tables, weights, at_epsilon(EXACT, release_of(tables), target.epsilon))


def tables_within(
    drafts: Sequence[TableDraft], weights: Sequence[Fraction], square: Fraction, hazard: Fraction
) -> tuple[AnyMechanism, ...]:
    """The tables with the smallest σ for S_k ≤ w_k S, and then the smallest τ* for D_k ≤ v_k D.

    v_k is the share of a table among those with thresholds.
    """
    return _with_thresholds(drafts, _smallest_sigmas(drafts, weights, square), weights, hazard)


def highest_tau_star(drafts: Sequence[TableDraft], weights: Sequence[Fraction], square: arb, hazard: arb) -> arb:
    """Approximately the highest τ* of the tables within S and D, if any has one; not finite if no σ is enough."""
    highest = arb(0)
    for each, weight, part in zip(drafts, weights, _threshold_weights(drafts, weights), strict=True):
        sigma = _sigma_near(each.draft, square * ball_of(weight))
        if not sigma.is_finite():
            return sigma
        if part:
            highest = highest.max(_tau_star_near(each.draft, sigma, hazard * ball_of(part)))
    return highest


def shares_of(drafts: Sequence[TableDraft], shares: Shares) -> tuple[Fraction, ...]:
    """The shares as fractions whose sum is 1. Balanced ones have the least Σσ²:  w_k ∝ √(C_k + κ_k²)."""
    if shares == "balanced":
        parts = [Fraction(math.sqrt(_spread(each.draft))) for each in drafts]
    else:
        if len(shares) != len(drafts):
            raise InvalidParameter("shares", f"must be {len(drafts)} numbers, one for each table")
        for k, share in enumerate(shares):
            check_share(f"tables/{k}/share", share)
        parts = [Fraction(share) for share in shares]
    total = sum(parts)
    return tuple(part / total for part in parts)


def check_share(pointer: str, share: float | Fraction) -> None:
    """Refuse a share that no table can have."""
    if not 0 < share < math.inf:
        raise InvalidParameter(pointer, "must be greater than 0 and finite")


def largest_square(target: Target) -> Fraction:
    """Approximately S*: the largest double S at which the noise costs at most δ."""

    def root() -> arb:
        return gaussian.mu_at(arb(target.epsilon), arb(target.delta)) ** 2

    def is_enough(square: float) -> bool:
        return at_most(lambda: (gaussian.delta(arb(square).sqrt(), arb(target.epsilon)), arb(target.delta)))

    return Fraction(largest_double(is_enough, LEAST_DOUBLE, approximate(root)))


def largest_hazard(target: Target) -> Fraction:
    """Approximately D* = −ln(1 − δ): the largest double D with 1 − e^(−D) ≤ δ."""

    def is_enough(hazard: float) -> bool:
        return at_most(lambda: (-(-arb(hazard)).expm1(), arb(target.delta)))

    return Fraction(largest_double(is_enough, LEAST_DOUBLE, approximate(lambda: -(-arb(target.delta)).log1p())))


def check_drafts(drafts: Sequence[TableDraft]) -> None:
    """Refuse drafts that shares cannot complete."""
    if not 1 <= len(drafts) <= MOST_TABLES:
        raise InvalidParameter("tables", f"must be 1 to {MOST_TABLES} tables")
    for k, each in enumerate(drafts):
        with renamed(("", f"tables/{k}")):
            each.draft.check()
            if each.draft.c_u is None:
                raise InvalidParameter("c_u", "must be given: a share decides sigma and tau_star")
            if each.draft.missing != ("sigma", "tau_star"):
                raise InvalidParameter("", "must omit sigma and tau_star: the share decides them")


def _spread(draft: Draft) -> float:
    """C + κ²: S σ² of a table, if no column has noise that does not scale with σ."""
    assert draft.c_u is not None
    c_u = draft.c_u
    return float(approximate(lambda: c_u + draft.relative_costs.squared(c_u)))


def _threshold_weights(drafts: Sequence[TableDraft], weights: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """The share of each table among those with thresholds: 0 for public groups."""
    secret = [Fraction(0) if each.is_public else weight for each, weight in zip(drafts, weights, strict=True)]
    total = sum(secret)
    return tuple(part / total for part in secret) if total else tuple(secret)


def _sigma_near(draft: Draft, most: arb) -> arb:
    """Approximately the σ with S = ``most``:  √((C + κ²)/(most − what columns with fixed noise cost))."""
    c_u = draft.c_u
    assert c_u is not None
    return ((c_u + draft.relative_costs.squared(c_u)) / (most - draft.fixed_costs.squared(c_u))).sqrt()


def _tau_star_near(draft: Draft, sigma: arb | float, most: arb) -> arb:
    """Approximately the τ* with D = ``most``:  τ + σ Φ⁻¹(e^(−most/C)),  or τ if any threshold is enough."""
    assert draft.c_u is not None
    return draft.effective_tau + sigma * gaussian.quantile(-(-most / draft.c_u).expm1()).max(arb(0))


def _smallest_sigmas(drafts: Sequence[TableDraft], weights: Sequence[Fraction], square: Fraction) -> list[float]:
    """The smallest σ of each table for S_k ≤ w_k S."""
    return [_smallest_sigma(k, each, weights[k] * square, square) for k, each in enumerate(drafts)]


def _smallest_sigma(k: int, each: TableDraft, most: Fraction, whole: Fraction) -> float:
    """The smallest double σ with S ≤ ``most``, the share of the table of ``whole``."""
    draft, c_u = each.draft, each.draft.c_u
    assert c_u is not None

    def is_enough(sigma: float) -> bool:
        table = each.at(sigma)
        return at_most(lambda: (mu_squared_ball(table), ball_of(most)))

    if not at_most(lambda: (draft.fixed_costs.squared(c_u), ball_of(most))):
        raise InfeasibleTarget(f"tables/{k}/aggregates", "must have more noise, or the table a larger share")
    sigma = smallest_double(is_enough, approximate(lambda: _sigma_near(draft, ball_of(most))), LEAST_DOUBLE)
    if sigma is None:
        raise _too_large(k, "sigma", _is_double(lambda: _sigma_near(draft, ball_of(whole))))
    return sigma


def _too_large(k: int, name: str, has_share: bool) -> InfeasibleTarget:
    """A number that is no double. ``has_share``: a larger share would help. Else the target itself is too small."""
    field, bound = ("share", "larger") if has_share else ("c_u", "smaller")
    return InfeasibleTarget(f"tables/{k}/{field}", f"must be {bound}: the {name} needed exceeds the largest double")


def _is_double(near: Callable[[], arb]) -> bool:
    return math.isfinite(float(approximate(near)))


def _within_target(
    drafts: Sequence[TableDraft], weights: Sequence[Fraction], target: Target
) -> tuple[AnyMechanism, ...]:
    """The tables within S* and λ D*, λ the largest factor with which no split costs more than δ."""
    sigmas, hazard = _smallest_sigmas(drafts, weights, largest_square(target)), largest_hazard(target)
    tables, scale, room = _with_thresholds(drafts, sigmas, weights, hazard), None, _ROOM
    while not fits(EXACT, release_of(tables), target.epsilon, target.delta):
        if scale is None:
            scale = _scale_guess(release_of(tables), target)
        scale, room = scale * Fraction(1 - min(room, 0.5)), 16 * room
        if scale < _LEAST_SCALE:
            raise InfeasibleTarget("tables", "must give public tables a smaller share, or delta must be larger")
        tables = _with_thresholds(drafts, sigmas, weights, scale * hazard)
    return tables


def _with_thresholds(
    drafts: Sequence[TableDraft], sigmas: Sequence[float], weights: Sequence[Fraction], hazard: Fraction
) -> tuple[AnyMechanism, ...]:
    """The tables with the smallest τ* for D_k ≤ v_k D."""
    return tuple(
        _smallest_tau_star(k, each, sigmas[k], part * hazard, hazard) if part else each.at(sigmas[k])
        for k, (each, part) in enumerate(zip(drafts, _threshold_weights(drafts, weights), strict=True))
    )


def _scale_guess(release: Release, target: Target) -> Fraction:
    """Approximately the largest factor of all D_k with which no cut costs more than δ."""
    frontier = frontier_of(release.without_columns)

    def guess() -> arb:
        return scale_guess(frontier, frontier.ground(), target.epsilon, arb(target.delta))

    return Fraction(min(float(approximate(guess)), 1.0))


def _smallest_tau_star(k: int, each: TableDraft, sigma: float, most: Fraction, whole: Fraction) -> AnyMechanism:
    """The table with the smallest double τ* that has D ≤ ``most``, its share of ``whole``."""
    draft = each.draft

    def is_enough(tau_star: float) -> bool:
        table = each.at(sigma, tau_star)
        return at_most(lambda: (hazard_ball(table), ball_of(most)))

    guess = approximate(lambda: _tau_star_near(draft, sigma, ball_of(most)))
    tau_star = smallest_double(is_enough, guess, draft.least_tau_star)
    if tau_star is None:
        raise _too_large(k, "tau_star", most < whole)  # a larger share lowers σ too
    return each.at(sigma, tau_star)
