"""Budgets that renew, over HTTP: the present period pays, late releases name theirs, and each has its own promise."""

from typing import Any

import pytest

from app.http.auth import Access
from app.ledger.clock import after, now
from app.ledger.periods import name_of, period_at
from tests.app.budgets.test_budgets import LIMIT, Bank
from tests.app.client import CASE_STUDY, problem_errors

WEEK = 7 * 86_400.0
RELEASE = {"mechanism": CASE_STUDY, "groups": {"keys": ["a"], "counts": [10**6]}, "budget": "views"}


@pytest.fixture
def bank(ledger_url: str) -> Any:
    made = Bank(ledger_url)
    made.put("users", LIMIT | {"delta": 1e-3})
    answer = made.put("views", LIMIT | {"renews": "week", "closes_after": 0, "parent": "users"})
    assert (answer.status_code, answer.json()["period"], answer.json()["periods"]) == (200, "week", [])
    yield made
    made.app.state.services.ledger_pool.close()


def period(seconds: float = 0.0) -> str:
    return name_of("views", period_at(after(now(), seconds), "week"))


def test_the_present_period_pays_and_the_certificate_names_it(bank: Bank) -> None:
    before = period()
    calls = [bank.request("POST", "/release", json=RELEASE, headers={"idempotency-key": "a"}) for _ in range(2)]
    charged = bank.charge("b", name="views").json()
    assert before == period(), "the week has turned during the test"

    first, again = calls
    assert again.content == first.content
    assert again.headers["idempotency-replayed"] == "true"
    assert first.json()["certificate"]["budget"]["id"] == charged["budget"] == before
    assert [each["id"] for each in bank.get("/budgets/views").json()["periods"]] == [before]
    shown = bank.get(f"/budgets/{before}").json()
    assert (shown["period_of"], shown["period"], shown["spent"]["releases"]) == ("views", "week", 2)
    assert [each["id"] for each in shown["ancestors"]] == ["users"]
    assert {each["key"] for each in bank.get("/releases?budget=views").json()["releases"]} == {"a", "b"}
    assert all(bank.get(f"/budgets/{name}/verify").json()["intact"] for name in ("views", before, "users"))


def test_previews_and_calibration_are_for_the_present_period(bank: Bank) -> None:
    bank.charge("a", name="views")
    preview = bank.request("POST", "/budgets/views/preview", json={"mechanism": CASE_STUDY}).json()
    assert preview["after"]["releases"] == 2
    plan = {"mechanism": {"c_u": 16, "tau": 1}, "releases": 2}
    for asked in ("views", period()):
        assert bank.request("POST", "/calibrate", json=plan | {"budget": asked}).status_code == 200


def test_a_dry_run_stores_no_period(bank: Bank) -> None:
    dry = bank.request("POST", "/release", json=RELEASE | {"dry_run": True})
    assert dry.json()["budget"]["id"] == period()
    assert bank.get("/budgets/views").json()["periods"] == []
    problem_errors(bank.get(f"/budgets/{period()}"), 404, "unknown-budget")


def test_a_closed_period_is_409_and_one_to_come_404(bank: Bank) -> None:
    problem_errors(bank.charge("late", name=period(-WEEK)), 409, "period-closed")
    problem_errors(bank.charge("early", name=period(WEEK)), 404, "unknown-budget")
    assert "has not begun" in bank.charge("early", name=period(WEEK)).json()["detail"]
    problem_errors(bank.charge("odd", name="views@2026-11"), 404, "unknown-budget")
    problem_errors(bank.charge("none", name="views@week"), 422, "invalid-request")
    bank.put("views", LIMIT | {"closes_after": None})
    assert bank.charge("late", name=period(-WEEK)).json()["budget"] == period(-WEEK)


def test_a_late_release_names_its_period(bank: Bank) -> None:
    bank.put("views", LIMIT | {"closes_after": None})
    late = period(-WEEK)
    named = {"period": late.removeprefix("views@")}
    charged = bank.charge("charged", name="views", **named).json()
    released = bank.request("POST", "/release", json=RELEASE | named, headers={"idempotency-key": "made"}).json()
    opening = {"mechanism": CASE_STUDY, "budget": "views"} | named
    opened = bank.request("POST", "/releases", json=opening, headers={"idempotency-key": "opened"}).json()
    preview = bank.request("POST", "/budgets/views/preview", json={"mechanism": CASE_STUDY} | named).json()

    assert (charged["budget"], released["certificate"]["budget"]["id"], opened["budget"]) == (late,) * 3
    assert preview["after"]["releases"] == 4
    assert [each["id"] for each in bank.get("/budgets/views").json()["periods"]] == [late]


def test_a_period_is_refused_where_it_says_nothing(bank: Bank) -> None:
    label = {"period": period().removeprefix("views@")}
    key = {"idempotency-key": "a"}
    for body in (RELEASE | label | {"budget": period()}, {k: v for k, v in RELEASE.items() if k != "budget"} | label):
        assert "/period" in problem_errors(
            bank.request("POST", "/release", json=body, headers=key), 422, "invalid-request"
        )
    problem_errors(bank.charge("a", name="users", **label), 404, "unknown-budget")
    problem_errors(bank.charge("a", name="views", period="46"), 422, "invalid-request")


def test_the_certificate_states_what_the_ancestors_promise(bank: Bank) -> None:
    certificate = bank.request("POST", "/release", json=RELEASE, headers={"idempotency-key": "a"}).json()["certificate"]
    point = {"epsilon": 1.0, "delta": 1e-3}
    company = {"id": "users", "privacy_unit": "user", "period": None, "promise": point, "limit": point}
    assert certificate["budget"]["ancestors"] == [company]
    assert certificate["period"] == "week"
    page = bank.get("/releases/a/certificate", headers={"accept": "text/html"}).text
    assert "It was also charged to <b>users</b>, which promises <i>ε</i> = 1" in page
    assert "also charged to users" in bank.get("/releases/a/certificate", headers={"accept": "application/yaml"}).text


def test_what_cannot_be_is_422_with_its_field(bank: Bank) -> None:
    for name, settings, field in (
        ("users", {"renews": "week"}, "renews"),
        ("web", {"closes_after": 3}, "closes_after"),
        ("new", {"renews": "week", "period": "year"}, "period"),
        ("web", {"parent": "views"}, "parent"),
    ):
        assert f"/{field}" in problem_errors(bank.put(name, LIMIT | settings), 422, "invalid-request")


def test_an_access_key_that_is_bound_to_a_budget_may_use_its_periods() -> None:
    access = Access(frozenset({"web"}), "client", frozenset())
    assert [access.may_see(name) for name in ("web", "web@2026-W46", "web2@2026-W46", "w", "@2026")] == [
        *(True, True),
        *(False, False, False),
    ]


def test_a_week_that_one_release_fills_has_room_for_one_in_the_next_week(bank: Bank) -> None:
    """By its exact accounting. Two weeks ago is another period than this one."""
    target = {"mechanism": {"c_u": 8, "tau": 1}, "epsilon": 1, "delta": 1e-6}
    mechanism = bank.answer("/calibrate", target)["mechanism"]
    bank.put("full", {"epsilon": 1, "delta": 1e-6, "renews": "week"})
    for place, at in enumerate((after(now(), -14 * 86_400), now())):
        week = period_at(at, "week")
        assert bank.charge(f"full-{place}", mechanism, "full", period=week).status_code == 200
        found = bank.get("/budgets/full").json()
        assert found["more"] == (1, 0)[place]
    assert found["shortage"]["budget"] == f"full@{week}"
    assert bank.get(f"/budgets/full@{week}").json()["shortage"] == found["shortage"]
