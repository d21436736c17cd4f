"""Several tables that another engine makes in one release: charged once, with one certificate."""

from typing import Any

import httpx
import pytest

import gsh
from gsh.accounting.accountings import EXACT, at_epsilon
from gsh.accounting.composition import cost_of
from gsh.accounting.mechanism import Joint
from gsh.events.tables import planned
from gsh.wire import tables_from_json
from tests.app.client import Client, Json, problem_errors

SECRET = "thirty-two characters at least, or more"
LEVELS = [{"name": "by_country", "c_u": 1}, {"name": "by_url", "c_u": 16, "tau": 1, "share": 2}]
LIMIT = {"epsilon": 1, "delta": 1e-6}
SUM = {"name": "likes", "lower": 0, "upper": 1, "unit": None, "groups": None}


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


def test_the_certificate_names_the_columns_of_the_plan(bank: Bank) -> None:
    """Only if a plan of the library is about these tables, with these columns."""
    tables = {"by_country": gsh.Table(by=["country"], c_u=1), "by_url": gsh.Table(by=["url", "day"], c_u=16)}
    plan = planned(tables, user="user_id", salt="0" * 32, partitions=2)[0].to_json()
    cheap = [{"name": "by_country", "c_u": 1, "sigma": 1e3}, {"name": "by_url", "c_u": 16, "sigma": 1e3}]

    def columns(key: str, tables: list[Json], plan: Json | None) -> list[Json | None]:
        provenance = {"enforced_by": "gsh.spark"} | ({} if plan is None else {"plan": plan})
        opened = bank.send("/releases", key, budget="web", tables=tables, provenance=provenance)
        assert opened.status_code == 201, opened.text
        return [table.get("roles") for table in opened.json()["certificate"]["tables"]]

    assert columns("a", cheap, plan) == [
        {"keys": ["country"], "count": "count", "values": []},
        {"keys": ["url", "day"], "count": "count", "values": []},
    ]
    others = [cheap[0], cheap[1] | {"name": "other"}]
    wide = plan | {"tables": [plan["tables"][0], plan["tables"][1] | {"sums": [SUM]}]}
    for key, given, said in (
        ("none", cheap, None),
        ("of tables with other names", others, plan),
        ("of tables with other columns", cheap, wide),
        ("of one table", cheap, plan["tables"][0]),
        ("of another program", cheap, {"source": "views", "tables": [3]}),
    ):
        assert columns(key.replace(" ", "-"), given, said) == [None, None], key


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
