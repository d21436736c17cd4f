"""Calibration after a survey: what is fixed before it, what it costs, and every C_u that it may suggest."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsh.accounting.accountings import EXACT, at_epsilon
from gsh.accounting.calibration.after_survey import (
    SurveyPlan,
    SurveyShare,
    calibrate_after,
    calibrate_one_after,
    plan_of,
)
from gsh.accounting.calibration.balanced import balanced
from gsh.accounting.calibration.draft import Draft, Target
from gsh.accounting.calibration.shares import TableDraft, largest_square
from gsh.accounting.calibration.target import calibrate
from gsh.accounting.mechanism import PlainGaussian, Surveyed, SurveyNoise, release_of
from gsh.accounting.numerics.doubles import next_below
from gsh.accounting.sensitivity import Box
from gsh.errors import InfeasibleTarget
from tests.gsh.accounting.draws import assert_refused, examples, log_uniform

TARGET = Target(1.0, 1e-6)
ONE_PERCENT = (SurveyShare(0.01),)


def draft(c_u: int) -> Draft:
    return Draft(c_u=c_u, tau=1, tau_star=None, sigma=None)


def capped(c_u: int) -> Draft:
    """Two columns, one of which changes in at most two groups of a user."""
    box = Box((0.0, 0.0), (5.0, 1.0), (2, None))
    return Draft(c_u=c_u, tau=1, tau_star=None, sigma=None, columns=balanced(("likes", "views"), box, c_u))


@pytest.mark.parametrize(
    ("target", "c_u", "share", "sigma_h", "sigma", "tau_star"),
    [
        (TARGET, 16, 0.001, 133.6, 0.0024, 0.0050),
        (TARGET, 16, 0.01, 42.25, 0.0107, 0.0186),
        (TARGET, 16, 0.05, 18.89, 0.0377, 0.0543),
        (Target(0.349, 1e-5), 51914, 0.01, 97.81, 0.0109, 0.0167),
    ],
)
def test_what_a_survey_costs(
    target: Target, c_u: int, share: float, sigma_h: float, sigma: float, tau_star: float
) -> None:
    """The table of docs/math/two-stages.md: how much more noise, and how much higher a threshold."""
    alone = calibrate(EXACT, draft(c_u), target).mechanism

    found, plan = calibrate_one_after(draft(c_u), target, [SurveyShare(share)])

    assert plan.survey[0].sigma == pytest.approx(sigma_h, rel=2e-4)
    assert found.mechanism.sigma / alone.sigma - 1 == pytest.approx(sigma, abs=1e-4)
    assert found.mechanism.tau_star / alone.tau_star - 1 == pytest.approx(tau_star, abs=1e-4)


@examples(12)
@given(log_uniform(0.05, 8), log_uniform(1e-12, 1e-3), log_uniform(1e-4, 0.5), st.sampled_from([1, 16, 10**6]))
def test_all_of_the_target_is_used_and_no_more(epsilon: float, delta: float, share: float, c_u: int) -> None:
    target = Target(epsilon, delta)

    found, plan = calibrate_one_after(draft(c_u), target, [SurveyShare(share)])

    assert found.point.delta == at_epsilon(EXACT, Surveyed(plan.survey, found.mechanism), epsilon).delta
    assert delta * (1 - 1e-9) <= found.point.delta <= delta
    # What is fixed before the survey is kept, and the next smaller σ and τ* would not keep it.
    assert found.mechanism.mu_squared <= plan.mu_squared
    assert found.mechanism.hazard <= plan.hazard
    assert Fraction(c_u) / Fraction(next_below(found.mechanism.sigma)) ** 2 > Fraction(plan.mu_squared)


def test_every_c_u_keeps_what_is_fixed_before_the_survey() -> None:
    _, plan = calibrate_one_after(draft(64), TARGET, ONE_PERCENT)

    for c_u in (1, 2, 64, 1000, 2**20):
        again, same = calibrate_one_after(draft(c_u), TARGET, ONE_PERCENT)
        kept, given_plan = calibrate_one_after(draft(c_u), TARGET, plan)

        assert same == given_plan == plan
        assert again == kept
        assert again.point.delta <= TARGET.delta


@pytest.mark.parametrize("c_u", [1, 16, 10**6])
def test_no_other_division_has_a_much_lower_threshold(c_u: int) -> None:
    plan = plan_of(TARGET, ONE_PERCENT)
    found, _ = calibrate_one_after(draft(c_u), TARGET, plan)
    for part in (0.8, 0.9, 1.05):  # of the hazard
        hazard = part * plan.hazard
        low, high = 0.9 * plan.mu_squared, 1.1 * plan.mu_squared
        for _ in range(12):
            middle = (low + high) / 2
            low, high = (middle, high) if _meets(SurveyPlan(plan.survey, middle, hazard), c_u) else (low, middle)
        other, _ = calibrate_one_after(draft(c_u), TARGET, SurveyPlan(plan.survey, low, hazard))
        assert found.mechanism.tau_star <= other.mechanism.tau_star * 1.001


def _meets(plan: SurveyPlan, c_u: int) -> bool:
    try:
        calibrate_one_after(draft(c_u), TARGET, plan)
    except InfeasibleTarget:
        return False
    return True


def test_the_noise_of_a_share_is_the_smallest() -> None:
    most = Fraction(0.003) * largest_square(TARGET)

    (noise, other) = plan_of(TARGET, (SurveyShare(0.003), SurveyNoise(50.0))).survey

    assert other.sigma == 50.0
    assert 1 / Fraction(noise.sigma) ** 2 <= most < 1 / Fraction(next_below(noise.sigma)) ** 2


def test_several_tables_share_what_is_fixed() -> None:
    drafts = [TableDraft(draft(16)), TableDraft(draft(1))]

    found, plan = calibrate_after(drafts, [3, 1], TARGET, ONE_PERCENT)

    assert plan == plan_of(TARGET, ONE_PERCENT)
    for table, share in zip(found.tables, (0.75, 0.25), strict=True):
        assert table.mu_squared <= share * plan.mu_squared * (1 + 1e-15)
    assert TARGET.delta * (1 - 1e-9) <= found.point.delta <= TARGET.delta


@pytest.mark.parametrize(
    "drafts",
    [
        pytest.param([TableDraft(draft(16)), TableDraft(draft(1), is_public=True)], id="public groups"),
        pytest.param([TableDraft(capped(16))], id="caps"),
    ],
)
def test_public_groups_and_caps_lower_the_threshold_cost_a_little(drafts: list[TableDraft]) -> None:
    found, plan = calibrate_after(drafts, [1] * len(drafts), TARGET, ONE_PERCENT)

    assert plan.mu_squared == plan_of(TARGET, ONE_PERCENT).mu_squared
    assert plan.hazard <= plan_of(TARGET, ONE_PERCENT).hazard
    assert 0.98 * TARGET.delta <= found.point.delta <= TARGET.delta
    assert found.point.delta == at_epsilon(EXACT, Surveyed(plan.survey, release_of(found.tables)), 1.0).delta


def test_caps_cost_the_same_at_every_c_u() -> None:
    _, plan = calibrate_one_after(capped(64), TARGET, ONE_PERCENT)

    for c_u in (2, 64, 2**20):
        found, _ = calibrate_one_after(capped(c_u), TARGET, plan)
        assert found.point.delta <= TARGET.delta


def test_public_groups_alone_have_no_threshold() -> None:
    found, plan = calibrate_after([TableDraft(draft(4), is_public=True)], [1], TARGET, ONE_PERCENT)

    assert isinstance(found.tables[0], PlainGaussian)
    assert plan.hazard == 0
    assert TARGET.delta * (1 - 1e-9) <= found.point.delta <= TARGET.delta


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 1e-3), (0.0, 0.3), (1e-3, 0.1), (40.0, 0.7), (10.0, 1e-290)])
def test_unusual_targets_are_met(epsilon: float, delta: float) -> None:
    found, _ = calibrate_one_after(draft(3), Target(epsilon, delta), ONE_PERCENT)

    assert 0.5 * delta <= found.point.delta <= delta


def test_a_survey_must_leave_something() -> None:
    for survey in ([SurveyNoise(2.0)], [SurveyShare(0.6), SurveyShare(0.5)]):
        with pytest.raises(InfeasibleTarget) as error:
            calibrate_one_after(draft(16), TARGET, survey)
        assert error.value.pointer == "survey"
        assert "the sum of 1/sigma^2 must be less than 0.056029" in error.value.detail


def test_a_plan_of_another_target_is_refused() -> None:
    _, plan = calibrate_one_after(draft(16), TARGET, ONE_PERCENT)

    with pytest.raises(InfeasibleTarget, match="must be planned for this epsilon and delta"):
        calibrate_one_after(draft(16), Target(0.9, 1e-6), plan)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, math.nan])
def test_a_share_is_between_0_and_1(share: float) -> None:
    assert_refused(lambda: SurveyShare(share), "share", "must be greater than 0 and less than 1")


def test_what_is_fixed_must_be_a_cost() -> None:
    noise = (SurveyNoise(9.0),)
    assert_refused(lambda: SurveyPlan(noise, 0.0, 1e-6), "mu_squared", "must be greater than 0 and finite")
    assert_refused(lambda: SurveyPlan(noise, 1.0, -1e-6), "hazard", "must be at least 0 and finite")


def test_a_survey_fixes_sigma_and_tau_star() -> None:
    with_sigma = Draft(c_u=16, tau=1, tau_star=None, sigma=20.0)
    assert_refused(lambda: calibrate_one_after(with_sigma, TARGET, ONE_PERCENT), "sigma", "must be omitted")
    without_c_u = Draft(c_u=None, tau=1, tau_star=None, sigma=None)
    assert_refused(lambda: calibrate_one_after(without_c_u, TARGET, ONE_PERCENT), "c_u", "must be given")
