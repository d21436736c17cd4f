"""Budgets with parents over HTTP: what is charged, what remains, what is refused, and who may do it."""

from typing import Any

import pytest

from gsh.accounting.budget_limits import Limit
from gsh.accounting.composition import NOTHING, cost_of
from tests.app.budgets.test_budgets import LIMIT, URLS, Bank
from tests.app.client import CASE_STUDY, Json, problem_errors

WIDE = LIMIT | {"epsilon": 4.0, "delta": 1e-3}
MANY = Limit(1.0, 1e-4).how_many_fit(NOTHING, URLS, cost_of(URLS))
RELEASE = {"mechanism": CASE_STUDY, "groups": {"keys": ["a"], "counts": [10**6]}, "budget": "team"}
TABLES = {"tables": [{"name": "all"} | CASE_STUDY]}


@pytest.fixture
def bank(ledger_url: str) -> Any:
    """The company has less than its team."""
    made = Bank(ledger_url)
    made.put("company", LIMIT | {"description": "all users"})
    made.put("team", WIDE | {"parent": "company"})
    yield made
    made.app.state.services.ledger_pool.close()


def exactly(bank: Bank, number: int) -> None:
    for key in range(number):
        assert bank.charge(f"c{key}", name="team").status_code == 200


def test_a_charge_names_its_entry_at_each_level_and_so_does_its_release(bank: Bank) -> None:
    charged = bank.charge("a", name="team").json()
    assert (charged["number"], charged["ancestors"]) == (2, [{"budget": "company", "number": 2}])
    assert bank.charge("a", name="team").json() == charged
    assert bank.get("/releases/a").json()["ancestors"] == charged["ancestors"]

    team = bank.get("/budgets/team").json()
    (company,) = team["ancestors"]
    assert (team["parent"], company["id"], company["parent"]) == ("company", "company", None)
    assert company == {name: bank.get("/budgets/company").json()[name] for name in company} | {
        "spent": company["spent"]
    }
    assert [each["promise"]["epsilon"] for each in (team, company)] == [4.0, 1.0]
    (above,) = [entry for entry in bank.get("/budgets/company/charges").json()["entries"] if entry["kind"] == "charge"]
    own = bank.get("/budgets/team/charges").json()["entries"][0]
    assert above["details"]["through"] == {
        "budget": "team",
        "number": 2,
        "hash": own["hash"],
        "idempotency_key": "a",
    }
    assert own["details"]["ancestors"] == charged["ancestors"]
    assert all(bank.get(f"/budgets/{name}/verify").json()["intact"] for name in ("team", "company"))


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_release_that_an_ancestor_cannot_pay_is_409_and_names_it(bank: Bank, dry_run: bool) -> None:
    exactly(bank, MANY)
    body = RELEASE | ({"dry_run": True} if dry_run else {})

    refused = bank.request("POST", "/release", json=body, headers={"idempotency-key": "more"})
    problem = refused.json()
    assert (refused.status_code, problem["type"]) == (409, "/problems/budget-exceeded")
    assert (problem["budget"], problem["limit"]["epsilon"], problem["spent"]["releases"]) == ("company", 1.0, MANY)
    assert "budget of its ancestor company: " in problem["detail"]
    opened = bank.request(
        "POST", "/releases", json={"mechanism": CASE_STUDY, "budget": "team"}, headers={"idempotency-key": "o"}
    )
    assert opened.json()["budget"] == "company"
    assert [bank.get(f"/budgets/{name}").json()["spent"]["releases"] for name in ("team", "company")] == [MANY, MANY]


def test_a_release_and_an_open_one_are_charged_to_all_levels_and_replayed_free(bank: Bank) -> None:
    for path, body in (("/release", RELEASE), ("/releases", {"mechanism": CASE_STUDY, "budget": "team"})):
        first, again = (bank.request("POST", path, json=body, headers={"idempotency-key": path[1:]}) for _ in range(2))
        assert first.status_code in (200, 201)
        assert again.headers["idempotency-replayed"] == "true"
    assert [bank.get(f"/budgets/{name}").json()["spent"]["releases"] for name in ("team", "company")] == [2, 2]


def test_previews_and_calibration_keep_within_the_least_of_all_levels(bank: Bank) -> None:
    exactly(bank, MANY - 2)
    company, team = (bank.get(f"/budgets/{name}").json() for name in ("company", "team"))
    assert team["remaining"] == company["remaining"]
    listed = {each["id"]: each for each in bank.get("/budgets").json()["budgets"]}
    assert listed["team"]["remaining"] == team["remaining"]

    two = bank.request("POST", "/budgets/team/preview", json={"mechanism": [CASE_STUDY] * 2}).json()
    three = bank.request("POST", "/budgets/team/preview", json={"mechanism": [CASE_STUDY] * 3}).json()
    assert (two["fits"], two["more"], two["after"]["releases"]) == (True, 2, MANY)
    assert (three["fits"], three["fitting"], three["shortage"]["budget"]) == (False, 2, "company")
    outline = {"c_u": CASE_STUDY["c_u"], "tau": 1}
    for asked in ({"mechanism": outline}, {"tables": [{"name": "all", "share": 1} | outline]}):
        below, above = (
            bank.request("POST", "/calibrate", json=asked | {"budget": name, "releases": 2}).json()
            for name in ("team", "company")
        )
        assert [below.get(field) for field in asked] == [above.get(field) for field in asked]
        assert below["budget"] == "team"
    assert bank.charge("fits", _alone(below), "team").status_code == 200


def _alone(answer: Json) -> Json:
    return {name: value for name, value in answer["tables"][0].items() if name in ("c_u", "tau", "tau_star", "sigma")}


@pytest.mark.parametrize("releases", [1, 3])
def test_calibration_to_a_new_tree_fits_each_level_exactly(bank: Bank, releases: int) -> None:
    outline = {"c_u": 16, "tau": 1}
    for asked in ({"mechanism": outline}, {"tables": [{"name": "all", "share": 1} | outline]}):
        answer = bank.request("POST", "/calibrate", json=asked | {"budget": "team", "releases": releases}).json()
        found = answer["mechanism"] if "mechanism" in asked else _alone(answer)
        preview = bank.request("POST", "/budgets/team/preview", json={"mechanism": [found] * releases}).json()
        assert preview["fits"]
        assert preview["more"] == releases


@pytest.mark.parametrize(
    ("name", "parent", "said"),
    [
        ("team", "nobody", "names no budget"),
        ("company", "team", "must not be the budget itself"),
        ("company", "company", "must not be the budget itself"),
    ],
)
def test_a_parent_that_cannot_be_is_422(bank: Bank, name: str, parent: str, said: str) -> None:
    errors = problem_errors(bank.put(name, LIMIT | {"parent": parent}), 422, "invalid-request")
    assert said in errors["/parent"]


def test_after_a_charge_the_parent_is_fixed_and_what_is_omitted_stays(bank: Bank) -> None:
    assert bank.put("team", WIDE | {"parent": None}).json()["parent"] is None
    assert bank.put("team", WIDE | {"parent": "company"}).json()["parent"] == "company"
    bank.charge("a", name="team")

    for parent in (None, "web"):
        problem_errors(bank.put("team", WIDE | {"parent": parent}), 409, "parent-settled")
    kept = bank.put("team", {"epsilon": 5.0, "delta": 1e-3}).json()
    assert (kept["parent"], kept["description"], kept["limit"]["epsilon"]) == ("company", "page views", 5.0)
    changes = bank.get("/budgets/team/charges").json()["entries"][0]["details"]["changes"]
    assert changes == [{"field": "epsilon", "before": 4.0, "after": 5.0}]


def test_tables_are_charged_to_all_levels(bank: Bank) -> None:
    charged = bank.request("POST", "/budgets/team/charges", json=TABLES, headers={"idempotency-key": "t"})
    assert charged.json()["ancestors"] == [{"budget": "company", "number": 2}]
    assert bank.get("/budgets/company").json()["spent"]["mu_squared"] == charged.json()["mu_squared"]


def test_the_smallest_most_sigma_of_all_levels_bounds_a_calibration_that_names_none(bank: Bank) -> None:
    exactly(bank, MANY)
    plan = {"mechanism": {"c_u": 1, "tau": 1}, "budget": "team"}
    bank.put("team", WIDE | {"most_sigma": 1e9})
    found = bank.request("POST", "/calibrate", json=plan).json()["mechanism"]["sigma"]
    assert bank.put("company", LIMIT | {"most_sigma": found / 2}).json()["most_sigma"] == found / 2

    problem_errors(bank.request("POST", "/calibrate", json=plan), 409, "too-little-left")
    asked = bank.request("POST", "/calibrate", json=plan | {"most_sigma": found})
    assert asked.json()["mechanism"]["sigma"] == found
    bank.put("company", LIMIT | {"most_sigma": None})
    assert bank.request("POST", "/calibrate", json=plan).json()["mechanism"]["sigma"] == found
    assert all(bank.get(f"/budgets/{name}/verify").json()["intact"] for name in ("team", "company"))
