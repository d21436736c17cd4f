"""Calibration of tables after a survey: S and D of the tables are fixed before it, their C_u may be chosen from it.

With the survey's S_h, each θ in (0, 1) gives a pair that meets the target:

    D = −ln(1 − θδ),     S(θ) the root of δ(S_h, S, D; ε) = δ        by (2s) of two_stages.py

The smallest σ has no room for a threshold: S and D do not decouple. θ is the one with nearly the smallest τ* of a table
with C_u = 64. It costs at most 0.1 % of τ* at any C_u up to 10⁶, so C_u can be chosen afterwards. Then

    σ_k = √((C_k + κ_k²)/(w_k S)),     τ*_k = τ_k + σ_k Φ⁻¹(e^(−w_k D/C_k))                           (shares.py)

Public groups have no threshold, and columns with caps count as public after a survey. Then D is multiplied by a factor
with which all tables together meet the target.  [docs/math/two-stages.md]
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from flint import arb

from gsh.accounting import gaussian, two_stages
from gsh.accounting.accountings import EXACT, at_epsilon, fits
from gsh.accounting.calibration.draft import Draft, Target
from gsh.accounting.calibration.shares import (
    CalibratedTables,
    Shares,
    TableDraft,
    check_drafts,
    largest_square,
    shares_of,
    tables_within,
)
from gsh.accounting.calibration.target import CalibratedMechanism
from gsh.accounting.mechanism import (
    MOST_SURVEYS,
    AnyMechanism,
    Mechanism,
    Surveyed,
    SurveyNoise,
    release_of,
    survey_ball,
)
from gsh.accounting.numerics.balls import approximate, at_most, ball_of
from gsh.accounting.numerics.doubles import next_above
from gsh.accounting.numerics.newton import secant
from gsh.accounting.numerics.search import bisect, golden_section
from gsh.accounting.two_stages import Costs, height
from gsh.arguments import real
from gsh.errors import InfeasibleTarget, InvalidParameter, renamed

__all__ = ["Bound", "SurveyPlan", "SurveyShare", "calibrate_after", "calibrate_one_after", "plan_of"]

_TYPICAL_C_U = 64
_THETA_STEPS, _THETA_WIDTH = 1024, 4
_LEAST_PART, _ROOM = 2.0**-60, 2.0**-44
_ROUGHLY, _FINELY = 2.0**-14, 2.0**-40
_FACTOR_STEPS = 64


@dataclass(frozen=True, slots=True)
class SurveyShare:
    """The share of a survey in the noise cost of a target: S_h is this part of S*, where f(√S*, ε) = δ.

    >>> import gsh
    >>> gsh.SurveyShare(0.01)
    SurveyShare(share=0.01)
    """

    share: float

    def __post_init__(self) -> None:
        share = real("share", self.share)
        if not 0 < share < 1:
            raise InvalidParameter("share", "must be greater than 0 and less than 1")
        object.__setattr__(self, "share", share)


@dataclass(frozen=True, slots=True)
class SurveyPlan:
    """What is fixed before a survey: its noise, and the costs of all tables together that follow it."""

    survey: tuple[SurveyNoise, ...]
    mu_squared: float
    """The largest sum of the noise costs of the tables."""
    hazard: float
    """The largest sum of their threshold costs."""

    def __post_init__(self) -> None:
        square, hazard = real("mu_squared", self.mu_squared), real("hazard", self.hazard)
        if not 0 < square < math.inf:
            raise InvalidParameter("mu_squared", "must be greater than 0 and finite")
        if not 0 <= hazard < math.inf:
            raise InvalidParameter("hazard", "must be at least 0 and finite")
        object.__setattr__(self, "mu_squared", square)
        object.__setattr__(self, "hazard", hazard)


Wanted: TypeAlias = Sequence[SurveyNoise | SurveyShare]
Bound: TypeAlias = Callable[[Costs, arb], arb]
"""δ as a function of the costs and ε: ``delta`` or ``composed`` of two_stages.py."""


def calibrate_after(
    drafts: Sequence[TableDraft], shares: Shares, target: Target, survey: Wanted | SurveyPlan
) -> tuple[CalibratedTables, SurveyPlan]:
    """The smallest σ of each table for its share of S, and then the smallest τ* for its share of D; and what they keep.

    Give the plan of an earlier answer to keep its numbers after the survey.
    """
    check_drafts(drafts)
    weights = shares_of(drafts, shares)
    if isinstance(survey, SurveyPlan):
        plan, tables = survey, _within(drafts, weights, survey)
        if not _meets(survey, tables, target):
            raise InfeasibleTarget("survey", "must be planned for this epsilon and delta, and for these shares")
    else:
        plan = plan_of(target, tuple(survey), is_public=all(each.is_public for each in drafts))
        plan, tables = _largest_factor(drafts, weights, target, plan)
    point = at_epsilon(EXACT, Surveyed(plan.survey, release_of(tables)), target.epsilon)
    return CalibratedTables(tables, weights, point), plan


def calibrate_one_after(
    draft: Draft, target: Target, survey: Wanted | SurveyPlan
) -> tuple[CalibratedMechanism, SurveyPlan]:
    """The same for a single table."""
    if draft.c_u is None:
        raise InvalidParameter("c_u", "must be given with a survey")
    for name in ("sigma", "tau_star"):
        if name not in draft.missing:
            raise InvalidParameter(name, "must be omitted with a survey: mu_squared and hazard are fixed before it")
    with renamed(("tables/0", "")):
        found, plan = calibrate_after([TableDraft(draft)], [1], target, survey)
    (mechanism,) = found.tables
    assert isinstance(mechanism, Mechanism)
    return CalibratedMechanism(mechanism, draft.missing, found.point), plan


@lru_cache(maxsize=1024)
def plan_of(target: Target, survey: tuple[SurveyNoise | SurveyShare, ...], *, is_public: bool = False) -> SurveyPlan:
    """The noise of a survey, and S and D of the tables after it. D is 0 if all groups are public."""
    noise = _noise_of(target, survey)
    if is_public:
        return SurveyPlan(noise, _square(noise, 0.0, target, two_stages.composed), 0.0)
    plan = _planned(noise, target, two_stages.delta)
    if two_stages.has_condition(lambda: (arb(plan.mu_squared), arb(plan.hazard))):
        return plan
    return _planned(noise, target, two_stages.composed)  # (2s) needs the condition, and composition does not


def _planned(noise: tuple[SurveyNoise, ...], target: Target, bound: Bound) -> SurveyPlan:
    hazard = _hazard(_best_theta(noise, target, bound), target)
    return SurveyPlan(noise, _square(noise, hazard, target, bound), hazard)


def _noise_of(target: Target, survey: Sequence[SurveyNoise | SurveyShare]) -> tuple[SurveyNoise, ...]:
    """The noise of each histogram: for a share the smallest σ with 1/σ² ≤ share · S*."""
    if not 1 <= len(survey) <= MOST_SURVEYS:
        raise InvalidParameter("survey", f"must be 1 to {MOST_SURVEYS} histograms")
    most = largest_square(target)
    noise = []
    for each in survey:
        if isinstance(each, SurveyShare):
            part = Fraction(each.share) * most
            sigma = math.sqrt(1 / part)
            while part * Fraction(sigma) ** 2 < 1:
                sigma = next_above(sigma)
            noise.append(SurveyNoise(sigma))
        else:
            noise.append(each)
    if not at_most(lambda: (survey_ball(noise) * (1 + _LEAST_PART), ball_of(most))):
        bound = f"the sum of 1/sigma^2 must be less than {float(most):.6g} for this epsilon and delta"
        raise InfeasibleTarget("survey", f"must leave something for the tables: {bound}")
    return tuple(noise)


def _best_theta(noise: tuple[SurveyNoise, ...], target: Target, bound: Bound) -> float:
    """About the θ with the smallest τ* of a table with the typical C_u, by golden section."""

    def threshold(theta: float) -> float:
        """τ* − τ, in units of √C_u."""
        hazard = _hazard(theta, target)
        square = _square_near(noise, hazard, target, bound, _ROUGHLY)
        quantile = float(approximate(lambda: gaussian.quantile(-(-arb(hazard) / _TYPICAL_C_U).expm1())))
        return quantile / math.sqrt(square)

    intervals = golden_section(threshold, 0.0, 1.0)
    middle = next((low + high) / 2 for low, high in intervals if (high - low) * _THETA_STEPS < _THETA_WIDTH)
    # Flat enough to round: so doubles that differ between machines give the same plan.
    return min(max(round(middle * _THETA_STEPS), 1), _THETA_STEPS - 1) / _THETA_STEPS


def _hazard(theta: float, target: Target) -> float:
    """D = −ln(1 − θδ), nearly."""
    return -math.log1p(-theta * target.delta)


def _square_near(
    noise: tuple[SurveyNoise, ...], hazard: float, target: Target, bound: Bound, tolerance: float = _FINELY
) -> float:
    """About the S with which the bound is δ: between that of composition and that of all noise alone."""
    epsilon, delta, whole = target.epsilon, target.delta, largest_square(target)

    def composed() -> arb:
        noise_part = gaussian.mu_at(epsilon + arb(hazard), (delta + (-arb(hazard)).expm1()) * arb(hazard).exp())
        return noise_part**2 - survey_ball(noise)

    def excess(square: float) -> float:
        def here() -> arb:
            return bound(Costs(survey_ball(noise), arb(square), arb(hazard)), arb(epsilon))

        return height(delta) - height(float(approximate(here)))

    most = float(approximate(lambda: ball_of(whole) - survey_ball(noise)))
    low = max(float(approximate(composed)), most * _LEAST_PART)
    return low if bound is two_stages.composed else secant(excess, low, most, tolerance)


def _square(noise: tuple[SurveyNoise, ...], hazard: float, target: Target, bound: Bound) -> float:
    """Nearly the largest S with which the bound is at most δ: rounded σ and τ* make it use a little more."""
    near, room = _square_near(noise, hazard, target, bound), _ROOM

    def is_enough(square: float) -> bool:
        def compared() -> tuple[arb, arb]:
            return bound(Costs(survey_ball(noise), arb(square), arb(hazard)), arb(target.epsilon)), arb(target.delta)

        return at_most(compared)

    while room < 1:
        square = near * (1 - room)
        if is_enough(square):
            return square
        room *= 16
    raise InfeasibleTarget("survey", "must have more noise: this epsilon and delta leave nothing for the tables")


def _largest_factor(
    drafts: Sequence[TableDraft], weights: Sequence[Fraction], target: Target, plan: SurveyPlan
) -> tuple[SurveyPlan, tuple[AnyMechanism, ...]]:
    """The plan with D times the largest of 64 factors with which the tables meet the target, and the tables."""

    def reduced(part: int) -> SurveyPlan:
        return replace(plan, hazard=plan.hazard * part / _FACTOR_STEPS)

    def fails(part: int) -> bool:
        return not _meets(plan, _within(drafts, weights, reduced(part)), target)

    part = _FACTOR_STEPS
    if fails(part):
        part = bisect(fails, 0, part) - 1
    if part == 0:
        raise InfeasibleTarget("tables", "must give public tables a smaller share, or delta must be larger")
    return reduced(part), _within(drafts, weights, reduced(part))


def _within(drafts: Sequence[TableDraft], weights: Sequence[Fraction], plan: SurveyPlan) -> tuple[AnyMechanism, ...]:
    return tables_within(drafts, weights, Fraction(plan.mu_squared), Fraction(plan.hazard))


def _meets(plan: SurveyPlan, tables: Sequence[AnyMechanism], target: Target) -> bool:
    return fits(EXACT, Surveyed(plan.survey, release_of(tables)), target.epsilon, target.delta)
