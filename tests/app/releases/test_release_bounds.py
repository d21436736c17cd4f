"""One release is bounded before anything of it is computed or drawn: its work, its certificate, and the event loop."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.releases import asked
from app.schemas.mechanism import GaussianIn, MechanismIn
from app.workers.pool import WorkerPool
from tests.app.budgets.test_budgets import LIMIT, SECRET, Bank
from tests.app.client import Client, Json, problem_errors

pytestmark = pytest.mark.slow

MANY = 64
LARGE = {"/tables": "must have fewer tables or columns: the certificate would have more than 1 MiB"}
COLUMNS: Json = {"count_column": "users", "key_columns": ["url"]}
QUIET: Json = {"c_u": 1, "tau": 1, "tau_star": 10**6, "sigma": 1000}


def wide(count: int, sensitivity: Json) -> Json:
    """A mechanism with columns whose noise is correlated."""
    aggregates = {
        "names": [f"c{k}" for k in range(count)],
        "covariance": [[1 + (i == j) for j in range(count)] for i in range(count)],
        "sensitivity": sensitivity,
    }
    return QUIET | {"aggregates": aggregates}


HEAVY = wide(60, {"kind": "l2", "bound": 0.001})
"""64 of them take about 37 seconds."""
LONG = wide(8, {"kind": "vectors", "vectors": [[0.001] * 8] * 5000})
"""It takes little work, and 240 kB of a certificate."""
SMALL = wide(3, {"kind": "l1", "bound": 0.001})
CAPPED = QUIET | {"c_u": 100, "aggregates": {"mu_0": 0, "capped": [{"groups": k, "mu_0": 1e-6} for k in range(1, 21)]}}


_Tables = list[tuple[str, Json]] | None


def named(mechanism: Json, count: int) -> list[tuple[str, Json]]:
    return [(f"t{k}", mechanism) for k in range(count)]


def post_groups(bank: Client, tables: _Tables, **more: Any) -> httpx.Response:
    groups = {"groups": {"keys": [], "counts": []}}
    return _post(bank, "/release", {"budget": "web", **_listed(tables, groups)} | more)


def post_form(bank: Client, tables: _Tables, **more: Any) -> httpx.Response:
    """Only the part with the request: no table is read."""
    request = json.dumps({"budget": "web", **_listed(tables, COLUMNS)} | more)
    files = {"request": (None, request)}
    return bank.request("POST", "/release/table", files=files, headers={"idempotency-key": "first"})


def post_open(bank: Client, tables: _Tables, **more: Any) -> httpx.Response:
    return _post(bank, "/releases", {"budget": "web", **_flat(tables)} | more)


def post_charge(bank: Client, tables: _Tables, **more: Any) -> httpx.Response:
    return _post(bank, "/budgets/web/charges", {**_flat(tables)} | more)


def put_budget(bank: Client, tables: _Tables, **more: Any) -> httpx.Response:
    return bank.request("PUT", "/budgets/web", json=LIMIT | {**_flat(tables)} | more)


def post_preview(bank: Client, tables: _Tables, **more: Any) -> httpx.Response:
    return _post(bank, "/budgets/web/preview", {**_flat(tables)} | more)


def _listed(tables: _Tables, fields: Json) -> Json:
    if tables is None:
        return {}
    return {"tables": [{"name": name, "mechanism": mechanism, **fields} for name, mechanism in tables]}


def _flat(tables: _Tables) -> Json:
    return {} if tables is None else {"tables": [{"name": name} | mechanism for name, mechanism in tables]}


def _post(bank: Client, path: str, body: Json) -> httpx.Response:
    return bank.request("POST", path, json=body, headers={"idempotency-key": "first"})


RELEASES: list[Any] = [post_groups, post_form, post_open, post_charge]
OTHERS: list[Any] = [put_budget, post_preview]


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What this process computes: mechanisms, certificates, and whether δ is within the operator's bound."""
    calls: list[str] = []

    def noted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            calls.append(name)
            return function(*args, **kwargs)

        return call

    for model in (MechanismIn, GaussianIn):
        monkeypatch.setattr(model, "to_domain", noted("mechanism", model.to_domain))
    monkeypatch.setattr(asked, "certificate_of", noted("certificate", asked.certificate_of))
    monkeypatch.setattr("app.releases.asked.fits", noted("rule", asked.fits))
    return calls


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What workers are asked for."""
    calls: list[str] = []
    for name in ("begin", "run", "run_within"):
        monkeypatch.setattr(WorkerPool, name, lambda *_args, name=name, **_kwargs: calls.append(name))
    return calls


@pytest.mark.parametrize("post", [*RELEASES, *OTHERS])
def test_too_much_work_of_a_long_body_is_refused(bank: Bank, post: Any) -> None:
    errors = problem_errors(post(bank, named(HEAVY, MANY)), 422, "limit-exceeded")

    assert set(errors) == {"/tables"}
    assert "at most 20000 are allowed (GSH_MAX_WORK)" in errors["/tables"]
    assert bank.budget()["spent"]["releases"] == 0


@pytest.mark.parametrize("post", [*RELEASES, *OTHERS])
def test_too_much_work_is_refused_before_any_is_done(computed: list[str], begun: list[str], post: Any) -> None:
    client = Client(max_work=1)

    for refused, pointer in [
        (post(client, named(SMALL, 4)), "/tables"),
        (post_one(post, client, wide(12, {"kind": "l2", "bound": 1})), "/mechanism/aggregates"),
    ]:
        assert set(problem_errors(refused, 422, "limit-exceeded")) == {pointer}
    assert (computed, begun) == ([], [])


def post_one(post: Any, client: Client, mechanism: Json) -> httpx.Response:
    """A release of one mechanism."""
    fields = {post_groups: {"groups": {"keys": [], "counts": []}}, post_form: COLUMNS}.get(post, {})
    answer: httpx.Response = post(client, None, mechanism=mechanism, **fields)
    return answer


@pytest.mark.parametrize("post", RELEASES)
def test_a_certificate_of_tables_has_at_most_a_mebibyte(bank: Bank, post: Any) -> None:
    """It is in the file of each table."""
    assert problem_errors(post(bank, named(LONG, 5)), 422, "limit-exceeded") == LARGE
    assert bank.budget()["spent"]["releases"] == 0


LISTS = wide(8, {"kind": "vectors", "vectors": [[0.001] * 8] * 200})
"""9.6 kB of a certificate. That of 64 tables has less than 1 MiB, and their archive would have it 65 times."""
COPIES = {"/tables": "must have fewer tables or columns: the certificates in all files would have more than 16 MiB"}


@pytest.mark.parametrize("post", RELEASES)
def test_the_copies_of_a_certificate_in_an_archive_have_at_most_sixteen_mebibytes(bank: Bank, post: Any) -> None:
    assert problem_errors(post(bank, named(LISTS, 64)), 422, "limit-exceeded") == COPIES
    assert bank.budget()["spent"]["releases"] == 0


@pytest.mark.parametrize("post", [post_groups, post_open, post_charge])
def test_what_the_certificate_says_besides_the_mechanisms_counts_too(
    bank: Bank, monkeypatch: pytest.MonkeyPatch, post: Any
) -> None:
    drawn: list[int] = []
    monkeypatch.setattr("app.releases.groups.operating_system", drawn.append)
    monkeypatch.setattr("app.releases.bounds.MOST_CERTIFICATE_BYTES", 4096 + 1000)

    assert problem_errors(post(bank, named(QUIET, 2), epsilon=1), 422, "limit-exceeded") == LARGE
    assert (drawn, bank.budget()["spent"]["releases"]) == ([], 0)


def test_a_large_certificate_of_one_table_is_as_before(client: Client) -> None:
    mechanism = wide(8, {"kind": "vectors", "vectors": [[0.001] * 8] * 25_000})
    values: Json = {f"c{k}": [] for k in range(8)}
    body = {"mechanism": mechanism, "groups": {"keys": [], "counts": [], "values": values}}

    assert len(json.dumps(client.answer("/release", body)["certificate"])) > 1024**2


SLOW: dict[str, tuple[list[tuple[str, Json]], Json]] = {
    "many tables": (named(QUIET, 12), {"epsilon": 1}),
    "many caps": (named(CAPPED, 1), {"epsilon": 1}),
    "a search by δ": (named(QUIET, 2), {"delta": 0.001}),
    "a search at ε = 0": (named(QUIET, 2), {}),
}


@pytest.mark.parametrize("post", RELEASES)
@pytest.mark.parametrize("name", SLOW)
def test_the_event_loop_does_not_evaluate_many_cuts(tmp_path: Path, computed: list[str], name: str, post: Any) -> None:
    """Neither for the certificate nor for the operator's bound."""
    tables, stated = SLOW[name]
    ledger = str(tmp_path / "ledger.sqlite3")
    client = Client(ledger=ledger, ledger_secret=SECRET, most_epsilon=1.0, most_delta=0.01)
    assert client.request("PUT", "/budgets/web", json=LIMIT | {"epsilon": 5, "delta": 0.1}).status_code == 200

    answer = post(client, tables, **stated)

    if post is post_form:  # its tables are missing, and nothing else
        assert set(problem_errors(answer, 422, "invalid-request")) == {"/tables/0"}
    else:
        assert answer.is_success, answer.text
    assert computed == []


@pytest.mark.parametrize("post", [post_groups, post_open, post_charge])
def test_the_operator_bounds_what_a_worker_has_read(tmp_path: Path, post: Any) -> None:
    ledger = str(tmp_path / "ledger.sqlite3")
    client = Client(ledger=ledger, ledger_secret=SECRET, most_epsilon=1.0, most_delta=1e-9)
    assert client.request("PUT", "/budgets/web", json=LIMIT | {"epsilon": 5, "delta": 0.1}).status_code == 200
    loud = QUIET | {"sigma": 1}

    assert set(problem_errors(post(client, named(loud, 12), epsilon=1), 422, "limit-exceeded")) == {"/tables"}


def test_a_small_release_needs_no_worker(bank: Bank, computed: list[str], begun: list[str]) -> None:
    assert post_groups(bank, named(QUIET, 2), epsilon=1).status_code == 200
    assert (computed, begun) == (["mechanism", "mechanism", "certificate"], [])
