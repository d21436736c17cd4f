"""A survey before mechanisms and tables, over HTTP: answers equal those of the core, and errors name the histogram."""

from typing import Any

import pytest

from app.accounting.schemas.account import AccountAnswer
from app.workers.work_bounds import surveyed_points_work
from gsh.accounting.accountings import ADD_DELTAS, EXACT, at_delta, at_epsilon
from gsh.accounting.calibration.after_survey import SurveyShare, calibrate_after, calibrate_one_after
from gsh.accounting.calibration.draft import Draft, Target
from gsh.accounting.calibration.shares import TableDraft
from gsh.accounting.mechanism import Joint, Mechanism, PlainGaussian, Surveyed, SurveyNoise
from gsh.wire import mechanism_from_json, tables_from_json
from tests.app.client import Client, Json, problem_errors

MECHANISM: Json = {"c_u": 16, "tau": 1, "tau_star": 93.0, "sigma": 17.1}
TABLES: list[Json] = [
    {"name": "by_url", "c_u": 16, "tau": 1, "tau_star": 161.5, "sigma": 29.27},
    {"name": "by_day", "c_u": 2, "sigma": 11.0},
]
TARGET = {"epsilon": 1, "delta": 1e-6}


@pytest.mark.parametrize("path", ["/account/exact", "/account/add-deltas"])
@pytest.mark.parametrize("asked", [{"epsilon": [1, 0.4]}, {"delta": [1e-5]}], ids=["epsilon", "delta"])
@pytest.mark.parametrize(
    ("survey", "sigmas"),
    [({"sigma": 42.25}, [42.25]), ([{"sigma": 60}, {"sigma": 80}], [60.0, 80.0])],
    ids=["one", "two"],
)
def test_points_after_a_survey_are_those_of_the_core(
    client: Client, path: str, asked: Json, survey: Any, sigmas: list[float]
) -> None:
    accounting = EXACT if path == "/account/exact" else ADD_DELTAS
    noise = [SurveyNoise(sigma) for sigma in sigmas]
    for posted in ({"mechanism": MECHANISM}, {"tables": TABLES}):
        answer = client.answer(path, posted | asked | {"survey": survey})

        core: Mechanism | Joint = (
            mechanism_from_json(MECHANISM) if "mechanism" in posted else Joint(list(tables_from_json(TABLES).values()))
        )
        release = Surveyed(noise, core)
        points = [
            *(at_epsilon(accounting, release, epsilon) for epsilon in asked.get("epsilon", ())),
            *(at_delta(accounting, release, delta) for delta in asked.get("delta", ())),
        ]
        assert answer["survey"] == survey
        assert (answer["mechanism"] if "mechanism" in posted else answer)["mu"] == points[0].mu
        assert [point["delta"] for point in answer["points"]] == [point.delta for point in points]
        assert [point["epsilon"] for point in answer["points"]] == [point.epsilon for point in points]
        AccountAnswer.model_validate(answer)


def test_an_answer_without_a_survey_says_nothing_of_it(client: Client) -> None:
    assert "survey" not in client.answer("/account/exact", {"mechanism": MECHANISM, "epsilon": 1})
    found = client.answer("/calibrate", {"mechanism": {"c_u": 16, "tau": 1}} | TARGET)
    assert not {"survey", "after_survey"} & set(found)


def test_a_calibration_fixes_what_follows_the_survey(client: Client) -> None:
    outline = {"c_u": 64, "tau": 1}
    before = client.answer("/calibrate", {"mechanism": outline, "survey": {"share": 0.01}} | TARGET)

    draft = Draft(c_u=64, tau=1, tau_star=None, sigma=None)
    found, plan = calibrate_one_after(draft, Target(1.0, 1e-6), [SurveyShare(0.01)])
    assert mechanism_from_json(before["mechanism"]) == found.mechanism
    assert before["survey"] == {"sigma": plan.survey[0].sigma}
    assert before["after_survey"] == {"mu_squared": plan.mu_squared, "hazard": plan.hazard}
    assert (before["kind"], before["solved"], before["comparison"]) == ("solution", ["sigma", "tau_star"], None)

    fixed = {name: before[name] for name in ("survey", "after_survey")}
    after = client.answer("/calibrate", {"mechanism": outline | {"c_u": 300}} | fixed | TARGET)
    assert {name: after[name] for name in fixed} == fixed
    checked = client.answer(
        "/account/exact", {"mechanism": after["mechanism"], "survey": fixed["survey"], "epsilon": 1}
    )
    assert checked["points"][0]["delta"] == after["delta"] <= 1e-6


def test_tables_are_calibrated_after_a_survey(client: Client) -> None:
    tables = [{"name": "by_url", "c_u": 16, "tau": 1, "share": 3}, {"name": "by_day", "c_u": 2}]
    body = {"tables": tables, "survey": [{"share": 0.005}, {"sigma": 90}]} | TARGET
    answer = client.answer("/calibrate", body)

    drafts = [
        TableDraft(Draft(c_u=16, tau=1, tau_star=None, sigma=None)),
        TableDraft(Draft(c_u=2, tau=1, tau_star=None, sigma=None), is_public=True),
    ]
    survey = [SurveyShare(0.005), SurveyNoise(90.0)]
    found, plan = calibrate_after(drafts, [3.0, 1.0], Target(1.0, 1e-6), survey)
    assert tuple(tables_from_json(answer["tables"]).values()) == found.tables
    assert answer["survey"] == [{"sigma": noise.sigma} for noise in plan.survey]
    assert answer["delta"] == found.point.delta
    again = client.answer("/calibrate", body | {name: answer[name] for name in ("survey", "after_survey")})
    assert again == answer


@pytest.mark.parametrize(
    ("change", "pointer", "detail"),
    [
        ({"survey": 3}, "/survey", "must be an object"),
        ({"survey": []}, "/survey", "at least 1"),
        ({"survey": [{"share": 0.1}] * 65}, "/survey", "at most 64"),
        ({"survey": {}}, "/survey/sigma", "is required"),
        ({"survey": {"sigma": 0}}, "/survey/sigma", "greater than 0"),
        ({"survey": {"share": 1}}, "/survey/share", "less than 1"),
        ({"survey": [{"sigma": 9}, {"sigma": "9"}]}, "/survey/1/sigma", "must be a number"),
        ({"survey": {"sigma": 9, "share": 0.1}}, "/survey/sigma", "not a field"),
        ({"accounting": "add-deltas"}, "/accounting", "must be exact with a survey"),
        ({"releases": 2}, "/releases", "must be 1 with a survey"),
        ({"epsilon": None, "delta": None, "budget": "web"}, "/budget", "must be omitted with a survey"),
        ({"after_survey": {"mu_squared": 1, "hazard": 0}}, "/survey", "must have the noise of every histogram"),
        ({"survey": None, "after_survey": {"mu_squared": 1, "hazard": 0}}, "/after_survey", "without a survey"),
        (
            {"survey": {"sigma": 9}, "after_survey": {"mu_squared": 0, "hazard": 0}},
            "/after_survey/mu_squared",
            "greater",
        ),
        ({"mechanism": {"tau": 1}}, "/mechanism/c_u", "must be given with a survey"),
        ({"mechanism": {"c_u": 9, "tau": 1, "sigma": 30}}, "/mechanism/sigma", "must be omitted with a survey"),
        ({"mechanism": {"c_u": 9, "tau": 1, "sigma": [30]}}, "/mechanism/sigma", "must be omitted with a survey"),
        ({"mechanism": {"c_u": 9, "tau": 1, "tau_star": 30}}, "/mechanism/tau_star", "must be omitted with a survey"),
    ],
)
def test_errors_of_a_calibration_name_the_place(client: Client, change: Json, pointer: str, detail: str) -> None:
    body = {"mechanism": {"c_u": 16, "tau": 1}, "survey": {"share": 0.01}} | TARGET | change

    errors = problem_errors(
        client.post("/calibrate", {name: body[name] for name in body if body[name] is not None}), 422, "invalid-request"
    )

    assert detail in errors[pointer]


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"survey": {"sigma": 2}}, "/survey"),
        ({"survey": {"sigma": 42.25}, "after_survey": {"mu_squared": 0.06, "hazard": 1e-6}}, "/survey"),
    ],
)
def test_a_survey_that_leaves_too_little_is_infeasible(client: Client, change: Json, pointer: str) -> None:
    body = {"mechanism": {"c_u": 16, "tau": 1}} | TARGET | change

    assert set(problem_errors(client.post("/calibrate", body), 422, "infeasible-target")) == {pointer}


def test_the_theorem_knows_no_survey(client: Client) -> None:
    body = {"mechanism": MECHANISM, "survey": {"sigma": 42.25}, "epsilon": 1, "theorem": True}

    errors = problem_errors(client.post("/account/exact", body), 422, "invalid-request")

    assert errors == {"/theorem": "must be omitted with a survey"}


def test_work_is_bounded() -> None:
    client = Client(max_work=1000)
    body = {"survey": {"sigma": 42.25}, "delta": [1e-5] * 30}

    errors = problem_errors(client.post("/account/exact", {"mechanism": MECHANISM} | body), 422, "limit-exceeded")

    assert "GSH_MAX_WORK" in errors["/delta"]
    exact = Surveyed([SurveyNoise(9.0)], mechanism_from_json(MECHANISM))
    mixed = Surveyed([SurveyNoise(9.0)], Joint([mechanism_from_json(MECHANISM), PlainGaussian(c_u=1, sigma=9.0)]))
    for by_delta in (False, True):
        assert surveyed_points_work(exact, 5, by_delta=by_delta) < surveyed_points_work(mixed, 5, by_delta=by_delta)
