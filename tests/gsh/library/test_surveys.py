"""A survey in front of the library's functions: they say what the core says, and errors name the parameter."""

from collections.abc import Callable
from typing import Any

import pytest

import gsh
from gsh.accounting.accountings import ADD_DELTAS, EXACT, at_delta, at_epsilon
from gsh.accounting.mechanism import Joint, Surveyed

MECHANISM = gsh.Mechanism(c_u=16, tau_star=93.0, sigma=17.1)
SHARE = gsh.SurveyShare(0.01)


@pytest.mark.parametrize(("account", "accounting"), [(gsh.exact, EXACT), (gsh.add_deltas, ADD_DELTAS)])
def test_a_survey_is_accounted_for(account: Callable[..., Any], accounting: Any) -> None:
    noise = gsh.SurveyNoise(42.25)
    core = Surveyed([noise], MECHANISM)
    plan = gsh.SurveyPlan((noise,), mu_squared=1.0, hazard=1.0)

    for survey in (noise, [noise], plan):
        assert account(MECHANISM, epsilon=1, survey=survey).delta == at_epsilon(accounting, core, 1.0).delta
    curve = account(MECHANISM, delta=[1e-6, 1e-5], survey=noise)
    assert list(curve.epsilon) == [at_delta(accounting, core, delta).epsilon for delta in (1e-6, 1e-5)]
    assert curve[0].mu == core.mu
    tables = {"a": MECHANISM, "b": gsh.PlainGaussian(c_u=1, sigma=30)}
    together = at_epsilon(accounting, Surveyed([noise], Joint(list(tables.values()))), 1.0)
    assert account(tables, epsilon=1, survey=noise).delta == together.delta


def test_a_plan_of_an_answer_gives_the_same_mechanism_at_every_c_u() -> None:
    before = gsh.calibrate(c_u=64, epsilon=1, delta=1e-6, survey=SHARE)
    assert before.survey is not None

    for c_u in (64, 500):
        after = gsh.calibrate(c_u=c_u, epsilon=1, delta=1e-6, survey=before.survey)
        again = gsh.calibrate(c_u=c_u, epsilon=1, delta=1e-6, survey=before.survey.survey)

        assert after == again
        assert after.survey == before.survey
        assert gsh.exact(after.mechanism, epsilon=1, survey=after.survey) == after.privacy
    assert gsh.calibrate(c_u=64, epsilon=1, delta=1e-6).survey is None


def test_several_tables_follow_a_survey() -> None:
    tables = {"url": gsh.Table(c_u=16), "country": gsh.Table(c_u=1, tau=None)}

    found = gsh.calibrate_tables(tables, epsilon=1, delta=1e-6, shares="balanced", survey=[SHARE, SHARE])

    assert found.survey is not None
    assert len(found.survey.survey) == 2
    assert gsh.exact(found.tables, epsilon=1, survey=found.survey) == found.privacy
    assert 0.98e-6 < found.privacy.delta <= 1e-6


@pytest.mark.parametrize(
    ("survey", "pointer", "detail"),
    [
        (42.25, "survey", "must be a gsh.SurveyNoise or a gsh.SurveyShare, not float"),
        ([SHARE, 3], "survey/1", "must be a gsh.SurveyNoise or a gsh.SurveyShare, not int"),
        ([], "survey", "must have at least one histogram"),
        ([SHARE] * 65, "survey", "must be 1 to 64 histograms"),
    ],
)
def test_errors_of_a_calibration_name_the_histogram(survey: Any, pointer: str, detail: str) -> None:
    with pytest.raises(gsh.InvalidParameter) as error:
        gsh.calibrate(c_u=16, epsilon=1, delta=1e-6, survey=survey)

    assert error.value.pointer == pointer
    assert detail in error.value.detail


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ({"sigma": 20}, "sigma"),
        ({"tau_star": 100}, "tau_star"),
        ({"c_u": None}, "c_u"),
        ({"accounting": "add-deltas"}, "accounting"),
    ],
)
def test_a_survey_is_followed_by_what_it_leaves(given: dict[str, Any], pointer: str) -> None:
    with pytest.raises(gsh.InvalidParameter) as error:
        gsh.calibrate(**{"c_u": 16, "epsilon": 1, "delta": 1e-6, "survey": SHARE} | given)

    assert error.value.pointer == pointer


def test_a_share_has_no_noise_yet() -> None:
    with pytest.raises(gsh.InvalidParameter, match=r"must be a gsh\.SurveyNoise, not SurveyShare"):
        gsh.exact(MECHANISM, epsilon=1, survey=SHARE)  # type: ignore[call-overload]


def test_several_tables_of_public_groups_share_what_a_survey_leaves() -> None:
    """All noise then adds up: σ is that without a survey, divided by √0.9."""
    tables = {"by_day": gsh.Table(c_u=4, tau=None), "by_country": gsh.Table(c_u=2, tau=None, share=3)}
    target = {"epsilon": 1, "delta": 1e-6}
    plain = gsh.calibrate_tables(tables, **target)
    after = gsh.calibrate_tables(tables, **target, survey=gsh.SurveyShare(0.1))

    assert after.privacy.delta <= 1e-6
    for name, table in after.tables.items():
        assert table.sigma == pytest.approx(plain.tables[name].sigma / 0.9**0.5, rel=1e-9)
