"""Releases after a survey: the certificate states the δ of both stages, and a budget is charged for them once."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import gsh
from gsh.accounting.accountings import EXACT, at_epsilon
from gsh.accounting.composition import cost_of
from gsh.accounting.mechanism import Surveyed
from gsh.certificate import Certificate
from gsh.wire import mechanism_to_json
from tests.app.budgets.test_budgets import SECRET
from tests.app.client import Client, Json, problem_errors
from tests.app.releases.test_releases import TABLE, Platform
from tests.gsh.histogram.uploads import as_stream

TARGET = {"epsilon": 1.0, "delta": 1e-6}
PLANNED = gsh.calibrate(c_u=64, **TARGET, survey=gsh.SurveyShare(0.01))
AFTER = gsh.calibrate(c_u=256, **TARGET, survey=PLANNED.survey)
assert PLANNED.survey is not None
SURVEY: Json = {"sigma": PLANNED.survey.survey[0].sigma, "of": "groups of a user", "bins": [1, 2, 4]}
FIXED: Json = {"mu_squared": PLANNED.survey.mu_squared, "hazard": PLANNED.survey.hazard}
MECHANISM: Json = {
    "c_u": 256,
    "tau": 1,
    "tau_star": AFTER.mechanism.tau_star,
    "sigma": AFTER.mechanism.sigma,
}
BODY: Json = {"mechanism": MECHANISM, "epsilon": 1.0, "survey": SURVEY, "after_survey": FIXED, "chosen": ["c_u = 256"]}
GROUPS: Json = {"groups": {"keys": ["a", "b"], "counts": [90000, 3]}}


def _is_right(certificate: Json) -> None:
    """It has the survey, and its numbers are those of the worst tables that the plan allows."""
    read = Certificate.from_json(certificate)
    release = read.release
    assert isinstance(release, Surveyed)
    point, cost = at_epsilon(EXACT, release, 1.0), cost_of(release)
    assert certificate["delta"] == point.delta <= TARGET["delta"]
    assert point.delta > at_epsilon(EXACT, AFTER.mechanism, 1.0).delta
    assert (certificate["mu_squared"], certificate["hazard"]) == (cost.mu_squared, cost.hazard)
    assert cost.mu_squared > FIXED["mu_squared"]
    assert cost.hazard >= FIXED["hazard"]
    assert certificate["unprotected"] is None
    assert certificate["survey"] == FIXED | {"histograms": [SURVEY], "chosen": ["c_u = 256"]}
    assert "mean of h" in certificate["curve"]


def test_a_certificate_after_a_survey_states_the_delta_of_both_stages(client: Client) -> None:
    _is_right(client.answer("/release", BODY | GROUPS)["certificate"])


def test_whatever_is_chosen_costs_the_same(client: Client) -> None:
    """A cost that depended on the chosen C_u would be a number of the survey that nobody accounted for."""
    found = set()
    for c_u in (1, 64, 1000):
        after = gsh.calibrate(c_u=c_u, **TARGET, survey=PLANNED.survey).mechanism
        changed = {"c_u": c_u, "tau": 1, "tau_star": after.tau_star, "sigma": after.sigma}
        certificate = client.answer("/release", BODY | GROUPS | {"mechanism": changed})["certificate"]
        found.add(tuple(certificate[name] for name in ("delta", "mu", "mu_squared", "hazard", "delta_infinite")))
    assert len(found) == 1


@pytest.mark.parametrize(
    ("changed", "pointer"),
    [
        ({"after_survey": None}, "/after_survey"),
        ({"survey": None, "chosen": []}, "/after_survey"),
        ({"survey": None, "after_survey": None}, "/chosen"),
        ({"after_survey": FIXED | {"mu_squared": FIXED["mu_squared"] * 0.99}}, "/after_survey/mu_squared"),
        ({"after_survey": FIXED | {"hazard": FIXED["hazard"] * 0.99}}, "/after_survey/hazard"),
        ({"survey": SURVEY | {"sigma": 0}}, "/survey/sigma"),
    ],
)
def test_a_survey_that_does_not_fit_is_refused_by_field(client: Client, changed: Json, pointer: str) -> None:
    body = {name: value for name, value in (BODY | GROUPS | changed).items() if value is not None}
    assert list(problem_errors(client.post("/release", body), 422, "invalid-request")) == [pointer]


def test_several_tables_after_a_survey(client: Client) -> None:
    tables = {"by_url": gsh.Table(c_u=16, share=2), "by_day": gsh.Table(c_u=2)}
    found = gsh.calibrate_tables(tables, **TARGET, survey=gsh.SurveyShare(0.01))
    plan = found.survey
    assert plan is not None
    posted: list[Any] = [
        {"name": name, "mechanism": mechanism_to_json(each), **GROUPS} for name, each in found.tables.items()
    ]
    survey = {"survey": {"sigma": plan.survey[0].sigma}}
    survey["after_survey"] = {"mu_squared": plan.mu_squared, "hazard": plan.hazard}
    certificate = client.answer("/release", {"tables": posted, "epsilon": 1.0} | survey)["certificate"]
    assert certificate["delta"] <= TARGET["delta"]
    assert certificate["delta"] == found.privacy.delta or certificate["delta"] > found.privacy.delta
    assert certificate["mu_squared"] > plan.mu_squared


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    """A budget with exactly the target of the survey and the table."""
    made = Platform(ledger=str(tmp_path / "ledger.sqlite3"), ledger_secret=SECRET)
    made.request("PUT", "/budgets/web", json=TARGET)
    yield made
    made.app.state.services.ledger_pool.close()
    made.app.state.services.close_pools()


PAID = BODY | {"budget": "web"}
WAYS: dict[str, Callable[[Platform, str], httpx.Response]] = {
    "groups": lambda platform, key: platform.release(key, PAID | GROUPS),
    "table": lambda platform, key: platform.table(
        key, as_stream(TABLE.select(["url", "users"])), PAID | {"key_columns": ["url"], "count_column": "users"}
    ),
    "open": lambda platform, key: platform.open(key, **BODY),
    "charge": lambda platform, key: platform.request(
        "POST", "/budgets/web/charges", json=BODY, headers={"idempotency-key": key}
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_budget_is_charged_once_for_both_stages(platform: Platform, way: str) -> None:
    release = WAYS[way]
    first, again = release(platform, "one"), release(platform, "one")

    assert {first.status_code, again.status_code} <= {200, 201}, first.text
    spent = platform.get("/budgets/web").json()["spent"]
    certificate = platform.get("/releases/one/certificate").json()
    _is_right(certificate)
    assert spent["releases"] == 1
    assert (spent["mu_squared"], spent["hazard"]) == (certificate["mu_squared"], certificate["hazard"])
    assert spent["delta"] == certificate["delta"]
    assert release(platform, "two").status_code == 409


OTHER = gsh.calibrate(c_u=64, **TARGET, survey=PLANNED.survey).mechanism
OPENED: Json = BODY | {"mechanism": mechanism_to_json(OTHER), "chosen": []}
CHOSEN: Json = {"digest": "a" * 64, "chosen": ["c_u = 256"], "mechanism": MECHANISM}
CHOSEN |= {"provenance": {"enforced_by": "gsh.spark", "plan_digest": "b" * 64, "plan": {"c_u": 256}}}


def chosen(platform: Platform, **changes: Any) -> httpx.Response:
    return platform.request("POST", "/releases/one/survey", json=CHOSEN | changes)


def test_the_chosen_bounds_of_an_open_release_are_recorded_once(platform: Platform) -> None:
    opened = platform.open("one", **OPENED)
    before = platform.get("/budgets/web").json()["spent"]

    first, again = chosen(platform), chosen(platform)

    assert (first.status_code, again.status_code) == (200, 200), first.text
    assert first.json() == again.json()
    assert "seed" not in first.json()
    certificate = platform.get("/releases/one/certificate").json()
    assert certificate["survey"] == FIXED | {"histograms": [SURVEY], "chosen": ["c_u = 256"], "digest": "a" * 64}
    assert certificate["mechanism"]["c_u"] == certificate["bounds"]["c_u"] == 256
    assert (certificate["bounds"]["enforced_by"], certificate["bounds"]["plan_digest"]) == ("gsh.spark", "b" * 64)
    given = opened.json()["certificate"]
    for name in ("release_id", "released_at", "delta", "mu_squared", "hazard", "delta_infinite", "mu", "budget"):
        assert certificate[name] == given[name]
    assert platform.get("/budgets/web").json()["spent"] == before
    assert platform.open("one", **OPENED).json()["seed"] == opened.json()["seed"]
    assert platform.open("one", **OPENED).json()["certificate"]["survey"]["digest"] == "a" * 64
    entries = platform.get("/budgets/web/charges").json()["entries"]
    assert [entry["kind"] for entry in entries] == ["surveyed", "charge", "created"]
    assert entries[1]["details"]["release"]["survey"] == [{"sigma": SURVEY["sigma"]}]
    assert platform.get("/budgets/web/verify").json()["intact"]
    assert platform.commit("one", "c" * 64).status_code == 200
    assert chosen(platform).json()["state"] == "committed"
    verified = platform.request(
        "POST", "/releases/verify", json=platform.get("/releases/one/certificate").json()
    ).json()
    assert verified["made_here"]


@pytest.mark.parametrize(
    "change",
    [{"digest": "b" * 64}, {"chosen": []}, {"mechanism": mechanism_to_json(OTHER)}, {"provenance": {}}],
)
def test_other_bounds_under_the_same_name_are_refused(platform: Platform, change: Json) -> None:
    platform.open("one", **OPENED)
    chosen(platform)

    assert chosen(platform, **change).json()["type"].endswith("already-surveyed")
    assert platform.get("/releases/one/certificate").json()["mechanism"]["c_u"] == 256


def test_bounds_that_would_be_charged_otherwise_are_refused_by_field(platform: Platform) -> None:
    platform.open("one", **OPENED)
    small, public = MECHANISM | {"sigma": MECHANISM["sigma"] * 0.99}, {"c_u": 256, "sigma": MECHANISM["sigma"]}
    named = [{"name": "by_url"} | MECHANISM]

    problems = [
        (chosen(platform, mechanism=small), "/after_survey/mu_squared"),
        (chosen(platform, mechanism=public), "/after_survey"),
        (chosen(platform, mechanism=None, tables=named), "/tables"),
        (chosen(platform, digest="x"), "/digest"),
    ]
    for problem, pointer in problems:
        assert list(problem_errors(problem, 422, "invalid-request")) == [pointer]
    platform.request("POST", "/releases/one/survey", json=CHOSEN)
    without = {name: value for name, value in OPENED.items() if name not in ("survey", "after_survey", "chosen")}
    platform.request("PUT", "/budgets/web", json=TARGET | {"epsilon": 9, "delta": 1e-3, "reason": "room"})
    assert platform.open("plain", **without).status_code == 201
    refused = platform.request("POST", "/releases/plain/survey", json=CHOSEN)
    assert list(problem_errors(refused, 422, "invalid-request")) == ["/survey"]
