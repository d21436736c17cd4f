"""A survey in front of the library's functions: they say what the core says, and errors name the parameter."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import ndtr

import gsh
from gsh.accounting.accountings import ADD_DELTAS, EXACT, at_delta, at_epsilon
from gsh.accounting.mechanism import AnyMechanism, Joint, Surveyed

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


@pytest.mark.slow
def test_an_adversary_who_attains_delta_never_exceeds_it() -> None:
    """The rule takes C_u = 1 if the noisy bin is small, else C_u = 2, so that the user's groups are at τ or far above.

    Everything is drawn by the release itself: 10⁶ times with the user, and as often without.
    """
    delta, draws = 0.05, 10**6
    plan = gsh.calibrate(c_u=64, epsilon=1, delta=delta, survey=gsh.SurveyShare(0.3)).survey
    assert plan is not None
    tables = [gsh.calibrate(c_u=c_u, epsilon=1, delta=delta, survey=plan).mechanism for c_u in (1, 2)]
    mu, y = math.sqrt(plan.mu_squared), -math.expm1(-plan.hazard)
    ends = np.linspace(-5, 20, 2501)  # the rule breaks where the noise of the table costs as much as its threshold
    hardest = ends[np.argmin(np.abs(ndtr(mu / 2 - ends / mu) - np.exp(ends) * ndtr(-mu / 2 - ends / mu) - y))]

    rates = [_caught(plan.survey[0], tables, 1 - hardest, draws, is_in=is_in) for is_in in (True, False)]

    shown = rates[0] - math.e * rates[1]
    error = math.sqrt((rates[0] + math.e**2 * rates[1]) / draws)
    assert 5 * error < 0.1 * delta
    assert 0.9 * delta < shown < delta + 5 * error
    fixed = {"survey": gsh.PlainGaussian(c_u=1, sigma=plan.survey[0].sigma), "table": tables[0]}
    assert shown > gsh.exact(fixed, epsilon=1).delta  # a choice that follows the survey costs more than a fixed one


def _caught(
    survey: gsh.SurveyNoise, tables: Sequence[gsh.Mechanism], split: float, draws: int, *, is_in: bool
) -> float:
    """How often the output is in the event that distinguishes best."""
    many, places = 10**6, np.arange(draws)
    loss = _losses(gsh.PlainGaussian(c_u=1, sigma=survey.sigma), places, many, is_in=is_in)
    few, rest = places[loss < split], places[loss >= split]
    shown = len(_released(tables[0], few, 1)) if is_in else 0
    rows = _losses(tables[1], np.arange(2 * len(rest)), many, is_in=is_in).reshape(-1, 2).sum(1)
    return float(shown + np.sum(loss[rest] + rows > 1)) / draws


def _losses(mechanism: AnyMechanism, keys: np.ndarray, count: int, *, is_in: bool) -> np.ndarray:
    noisy = _released(mechanism, keys, count + is_in)
    return (noisy - count - 0.5) / mechanism.sigma**2


def _released(mechanism: AnyMechanism, keys: np.ndarray, count: int) -> np.ndarray:
    public = "posted" if isinstance(mechanism, gsh.PlainGaussian) else None
    table = pa.table({"key": keys, "count": np.full(len(keys), count)})
    found = gsh.release(mechanism, table, key_columns=["key"], count_column="count", public_keys=public)
    noisy: np.ndarray = found["count"].to_numpy()
    return noisy
