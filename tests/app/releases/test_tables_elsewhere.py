"""Several tables that another engine makes in one release: charged once, with one certificate."""

from typing import Any

import httpx
import pytest

from gsh.accounting.accountings import EXACT, at_epsilon
from gsh.accounting.composition import cost_of
from gsh.accounting.mechanism import Joint
from gsh.wire import tables_from_json
from tests.app.client import Client, Json, problem_errors

SECRET = "thirty-two characters at least, or more"
LEVELS = [{"name": "by_country", "c_u": 1}, {"name": "by_url", "c_u": 16, "tau": 1, "share": 2}]
LIMIT = {"epsilon": 1, "delta": 1e-6}


class Bank(Client):
    def __init__(self, url: str, **settings: Any) -> None:
        super().__init__(ledger=url, ledger_secret=SECRET, **settings)
        assert self.request("PUT", "/budgets/web", json=LIMIT).status_code == 200
        self.tables: list[Json] = self.answer("/calibrate", LIMIT | {"tables": LEVELS})["tables"]

    def send(self, path: str, key: str, **body: Any) -> httpx.Response:
        return self.request("POST", path, json=body, headers={"idempotency-key": key})


@pytest.fixture
def bank(ledger_url: str) -> Any:
    made = Bank(ledger_url)
    yield made
    made.app.state.services.ledger_pool.close()


def test_a_charge_for_tables_is_recorded_once_and_exactly(bank: Bank) -> None:
    first = bank.send("/budgets/web/charges", "a", tables=bank.tables)
    plain = [{name: table[name] for name in table if name not in {"mu_squared", "hazard"}} for table in bank.tables]
    again = bank.send("/budgets/web/charges", "a", tables=plain[::-1])

    joint = Joint(list(tables_from_json(bank.tables).values()))
    cost = cost_of(joint)
    assert first.status_code == 200, first.text
    assert (first.json()["mu_squared"], first.json()["hazard"]) == (cost.mu_squared, cost.hazard)
    assert first.json()["spent"]["delta"] == at_epsilon(EXACT, joint, 1.0).delta
    assert again.json() == first.json()
    assert again.headers["idempotency-replayed"] == "true"
    newest = bank.get("/budgets/web/charges").json()["entries"][0]
    assert [table["c_u"] for table in newest["details"]["release"]["tables"]] == [1, 16]
    assert bank.get("/budgets/web/verify").json()["intact"]


def test_other_tables_under_a_used_key_are_another_request(bank: Bank) -> None:
    assert bank.send("/budgets/web/charges", "a", tables=bank.tables).status_code == 200
    renamed = [bank.tables[0], bank.tables[1] | {"name": "other"}]

    for tables in (bank.tables[:1], renamed, [bank.tables[0], bank.tables[1] | {"sigma": 99}]):
        problem_errors(bank.send("/budgets/web/charges", "a", tables=tables), 422, "key-reused")


def test_a_second_release_of_tables_does_not_fit(bank: Bank) -> None:
    assert bank.send("/budgets/web/charges", "a", tables=bank.tables).status_code == 200
    refused = bank.send("/budgets/web/charges", "b", tables=bank.tables)

    assert refused.status_code == 409
    assert {error["pointer"] for error in refused.json()["errors"]} == {"/tables"}


def test_an_open_release_of_tables_has_one_seed_and_one_certificate(bank: Bank) -> None:
    opened = bank.send("/releases", "a", tables=bank.tables, budget="web", epsilon=1)

    assert opened.status_code == 201, opened.text
    certificate = opened.json()["certificate"]
    assert [table["name"] for table in certificate["tables"]] == ["by_country", "by_url"]
    assert certificate["delta"] == at_epsilon(EXACT, Joint(list(tables_from_json(bank.tables).values())), 1.0).delta
    again = bank.send("/releases", "a", tables=bank.tables, budget="web", epsilon=1)
    assert (again.status_code, again.json()["seed"]) == (200, opened.json()["seed"])


@pytest.mark.parametrize("path", ["/releases", "/budgets/web/charges"])
def test_errors_name_the_table(bank: Bank, path: str) -> None:
    paid = {"budget": "web"} if path == "/releases" else {}
    for tables, pointer in [
        ([bank.tables[0], bank.tables[1] | {"sigma": 0}], "/tables/1/sigma"),
        ([bank.tables[0], bank.tables[0]], "/tables/1/name"),
        ([bank.tables[0] | {"sigma": 1e-300}], "/tables"),
        ([], "/tables"),
    ]:
        refused = bank.send(path, "a", tables=tables, **paid)
        assert set(problem_errors(refused, 422, "invalid-request")) == {pointer}
    refused = bank.send(path, "a", **paid)
    assert set(problem_errors(refused, 422, "invalid-request")) == {"/mechanism"}


def test_the_least_sigma_of_the_operator_holds_for_each_table(ledger_url: str) -> None:
    bank = Bank(ledger_url, least_sigma=10)
    refused = bank.send("/budgets/web/charges", "a", tables=bank.tables)

    assert set(problem_errors(refused, 422, "limit-exceeded")) == {"/tables/0/sigma"}
    bank.app.state.services.ledger_pool.close()
