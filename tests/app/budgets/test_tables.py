"""Several tables in one release, and a budget: previews, the division of a limit, and calibration to what remains."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsh.accounting.accountings import EXACT, at_epsilon
from gsh.accounting.budget_limits import Limit
from gsh.accounting.composition import NOTHING, cost_of, delta_at
from gsh.accounting.mechanism import Release, release_of
from gsh.wire import tables_from_json
from tests.app.budgets.test_budgets import SECRET
from tests.app.client import CASE_STUDY, Client, Json, problem_errors
from tests.gsh.accounting.draws import examples, log_uniform

LEVELS: list[Json] = [{"name": "by_country", "c_u": 1}, {"name": "by_url", "c_u": 16, "tau": 1, "share": 2}]
LIMIT: Json = {"epsilon": 1, "delta": 1e-6}
TYPICAL: Json = {"c_u": 16, "tau": 1, "tau_star": 170, "sigma": 30}


class Bank(Client):
    """A client with its own ledger."""

    def __init__(self, url: str) -> None:
        super().__init__(ledger=url, ledger_secret=SECRET)

    def put(self, name: str, **fields: Any) -> Json:
        response = self.request("PUT", f"/budgets/{name}", json=LIMIT | {"reason": "a test"} | fields)
        assert response.status_code == 200, response.text
        document: Json = response.json()
        return document


@pytest.fixture
def bank(ledger_url: str) -> Any:
    made = Bank(ledger_url)
    yield made
    made.app.state.services.ledger_pool.close()


def release(tables: list[Json]) -> Release:
    return release_of(list(tables_from_json(tables).values()))


def test_a_preview_adds_up_the_costs_of_all_tables_once(bank: Bank) -> None:
    bank.put("web")
    tables = bank.answer("/calibrate", LIMIT | {"tables": LEVELS})["tables"]

    preview = bank.answer("/budgets/web/preview", {"tables": tables})
    joint = release(tables)
    cost = cost_of(joint)
    assert preview["fits"]
    assert (preview["fitting"], preview["asked"]["releases"]) == (1, 1)
    assert (preview["asked"]["mu_squared"], preview["asked"]["hazard"]) == (cost.mu_squared, cost.hazard)
    assert preview["asked"]["delta"] == at_epsilon(EXACT, joint, 1.0).delta


def test_a_first_release_of_tables_is_admitted_by_its_exact_delta(bank: Bank) -> None:
    """Composition of the same tables, one release each, is not admitted."""
    bank.put("web")
    tables = bank.answer("/calibrate", LIMIT | {"tables": LEVELS})["tables"]
    one_by_one = [
        {name: table[name] for name in table if name in {"c_u", "tau", "tau_star", "sigma"}} for table in tables
    ]

    assert bank.answer("/budgets/web/preview", {"tables": tables})["fits"]
    assert not bank.answer("/budgets/web/preview", {"mechanism": one_by_one})["fits"]


@pytest.mark.parametrize("as_table", [False, True])
def test_a_table_that_comes_in_a_second_request_is_composed(bank: Bank, as_table: bool) -> None:
    """It may be chosen after a look at the first: two halves of a target fit it in one release, and not in two."""
    asked = LIMIT | {"tables": [{"name": name, "c_u": 16, "tau": 1} for name in ("first", "second")]}
    tables = bank.answer("/calibrate", asked)["tables"]
    for name in ("together", "adaptive"):
        bank.put(name)
    exact = at_epsilon(EXACT, release(tables), 1.0).delta
    composed = NOTHING
    for each in map(release, ([table] for table in tables)):
        composed = composed.plus(each, cost_of(each))

    def charge(budget: str, once: str, tables: list[Json]) -> Any:
        plain = {name: tables[0][name] for name in ("c_u", "tau", "tau_star", "sigma")}
        body = {"tables": tables} if as_table or len(tables) > 1 else {"mechanism": plain}
        return bank.request("POST", f"/budgets/{budget}/charges", json=body, headers={"idempotency-key": once})

    assert charge("together", "both", tables).status_code == 200
    assert bank.get("/budgets/together").json()["spent"]["delta"] == exact <= 1e-6
    assert charge("adaptive", "first", tables[:1]).status_code == 200
    refused = charge("adaptive", "second", tables[1:])
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/budget-exceeded")
    assert bank.get("/budgets/adaptive").json()["spent"]["releases"] == 1
    assert delta_at(composed, 1.0) > 1.4 * exact
    bank.put("adaptive", delta=1e-3)
    assert charge("adaptive", "third", tables[1:]).status_code == 200
    assert bank.get("/budgets/adaptive").json()["spent"]["delta"] == delta_at(composed, 1.0)


def test_a_limit_is_divided_for_a_release_of_tables(bank: Bank) -> None:
    tables = bank.answer("/calibrate", LIMIT | {"tables": LEVELS, "releases": 4})["tables"]

    limit = bank.put("web", tables=tables)["limit"]
    caps = Limit(1.0, 1e-6).settled_by(cost_of(release(tables))).caps
    assert limit["mu_squared"] == pytest.approx(float(caps.mu_squared), rel=1e-15)
    assert limit["hazard"] == pytest.approx(float(caps.hazard), rel=1e-15)
    assert bank.answer("/budgets/web/preview", {"tables": tables})["more"] == 4


@pytest.mark.parametrize("is_divided", [False, True])
@pytest.mark.parametrize("releases", [1, 3])
def test_tables_share_what_remains_of_a_budget(bank: Bank, is_divided: bool, releases: int) -> None:
    bank.put("web", **({"mechanism": TYPICAL} if is_divided else {}))
    charged = {"c_u": 1, "tau": 1, "tau_star": 160, "sigma": 25}
    response = bank.request(
        "POST", "/budgets/web/charges", json={"mechanism": charged}, headers={"idempotency-key": "first"}
    )
    assert response.status_code == 200, response.text

    answer = bank.answer("/calibrate", {"tables": LEVELS, "budget": "web", "releases": releases})
    assert (answer["kind"], answer["budget"], answer["releases"]) == ("remaining-tables", "web", releases)
    preview = bank.answer("/budgets/web/preview", {"tables": answer["tables"]})
    assert preview["fits"]
    assert preview["more"] == releases
    assert answer["delta"] <= 1e-6
    country, url = answer["tables"]
    assert url["mu_squared"] == pytest.approx(2 * country["mu_squared"], rel=1e-12)
    assert "tau" not in country


def test_a_sliver_of_a_budget_is_not_calibrated_to(bank: Bank) -> None:
    bank.put("web")
    tables = bank.answer("/calibrate", LIMIT | {"tables": LEVELS})["tables"]
    one = tables[1]
    charged = {name: one[name] for name in ("c_u", "tau", "tau_star", "sigma")}
    bank.request("POST", "/budgets/web/charges", json={"mechanism": charged}, headers={"idempotency-key": "first"})

    refused = bank.post("/calibrate", {"tables": LEVELS, "budget": "web"})
    assert set(problem_errors(refused, 409, "too-little-left")) == {"/releases"}


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"tables": [CASE_STUDY]}, "/tables/0/name"),
        ({"tables": [CASE_STUDY | {"name": "a"}, CASE_STUDY | {"name": "a"}]}, "/tables/1/name"),
        ({"tables": [CASE_STUDY | {"name": "a", "sigma": -1}]}, "/tables/0/sigma"),
        ({"tables": [CASE_STUDY | {"name": "a", "sigma": 1e-300}]}, "/tables"),
        ({"tables": [CASE_STUDY | {"name": "a"}], "mechanism": CASE_STUDY}, "/mechanism"),
        ({}, "/mechanism"),
    ],
    ids=str,
)
def test_a_preview_names_what_is_wrong(bank: Bank, body: Json, pointer: str) -> None:
    bank.put("web")
    refused = bank.post("/budgets/web/preview", body)

    assert set(problem_errors(refused, 422, "invalid-request")) == {pointer}


def test_a_typical_release_is_a_mechanism_or_tables(bank: Bank) -> None:
    both = LIMIT | {"mechanism": CASE_STUDY, "tables": [CASE_STUDY | {"name": "a"}]}
    refused = bank.request("PUT", "/budgets/web", json=both)

    assert set(problem_errors(refused, 422, "invalid-request")) == {"/mechanism"}


@given(
    st.lists(st.tuples(st.integers(1, 10**4), st.booleans(), log_uniform(0.2, 5)), min_size=1, max_size=4),
    st.integers(2, 60),
)
@examples(12)
def test_every_number_of_releases_of_tables_fits_a_new_limit(
    tables: list[tuple[int, bool, float]], releases: int
) -> None:
    """All of them together, and the limit that they would divide admits each of them."""
    asked = [
        {"name": f"t{k}", "c_u": c_u, "share": share} | ({} if is_public else {"tau": 1})
        for k, (c_u, is_public, share) in enumerate(tables)
    ]
    answer = SHARED.answer("/calibrate", LIMIT | {"tables": asked, "releases": releases})

    joint = release(answer["tables"])
    cost = cost_of(joint)
    spent = NOTHING.plus(joint, cost, releases)
    assert answer["delta"] == delta_at(spent, 1.0) <= 1e-6
    assert Limit(1.0, 1e-6).settled_by(cost).admits_several(spent)
    assert Limit(1.0, 1e-6).admits_several(spent)


SHARED = Client()
