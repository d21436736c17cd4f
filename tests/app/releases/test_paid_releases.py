"""Releases that a budget pays for: charged and stored before they are sent, and then always the same."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from app.places import Places
from app.workers.pool import WorkerPool
from app.workers.steps import StepsHere
from tests.app.budgets.test_budgets import LIMIT, SECRET, Bank
from tests.app.client import CASE_STUDY, Client, Json, problem_errors
from tests.gsh.histogram.uploads import as_parquet, as_stream, from_bytes

pytestmark = pytest.mark.slow

GROUPS = {"keys": ["a", "b"], "counts": [61000, 70000]}
MANY = {"keys": [f"{'k' * 60}{number:04}" for number in range(1500)], "counts": [61000] * 1500}
TABLE = pa.table({"url": ["b", "a"], "users": [61000, 70000]})


@pytest.fixture
def bank(ledger_url: str) -> Iterator[Bank]:
    made = Bank(ledger_url)
    yield made
    made.app.state.services.ledger_pool.close()
    made.app.state.services.close_pools()


def small(bank: Bank, key: str | None, **changes: Any) -> httpx.Response:
    body = {"mechanism": CASE_STUDY, "budget": "web", "groups": GROUPS} | changes
    return bank.request("POST", "/release", json=body, headers={} if key is None else {"idempotency-key": key})


def large(bank: Bank, key: str | None, **changes: Any) -> httpx.Response:
    return small(bank, key, **{"groups": MANY} | changes)


def table(bank: Bank, key: str | None, **changes: Any) -> httpx.Response:
    posted = changes.pop("table", as_stream(TABLE))
    request = {"mechanism": CASE_STUDY, "budget": "web", "count_column": "users", "key_columns": ["url"]} | changes
    request = {name: value for name, value in request.items() if value is not None}
    files = {"request": (None, json.dumps(request)), "table": ("t", posted)}
    return bank.request("POST", "/release/table", files=files, headers={} if key is None else {"idempotency-key": key})


Post = Callable[..., httpx.Response]
KINDS = {"small": small, "large": large, "table": table}
each_kind = pytest.mark.parametrize("post", KINDS.values(), ids=KINDS)


@each_kind
def test_a_repeated_request_gets_the_same_bytes_and_is_charged_once(bank: Bank, post: Post) -> None:
    """Never new noise, not even from another process with the same ledger."""
    first, again = post(bank, "first"), post(bank, "first")

    assert first.status_code == 200, first.text
    assert first.content == again.content
    assert first.headers["content-type"] == again.headers["content-type"]
    assert first.headers["content-length"] == again.headers["content-length"]
    assert bank.budget()["spent"]["releases"] == 1
    assert bank.budget()["spent"]["delta"] == bank.point(CASE_STUDY, 1.0)["delta"]
    assert post(bank, "second").content != first.content
    assert bank.get("/budgets/web/verify").json()["intact"] is True


@each_kind
def test_another_request_with_the_same_key_is_refused(bank: Bank, post: Post) -> None:
    post(bank, "first")
    bank.put("ads", LIMIT)

    problem_errors(post(bank, "first", epsilon=0.5), 422, "key-reused")
    problem_errors(post(bank, "first", budget="ads"), 422, "key-reused")
    assert bank.budget()["spent"]["releases"] == 1


def test_tables_are_compared_by_content_and_not_by_how_the_form_is_cut(bank: Bank) -> None:
    """httpx makes a new boundary each time. A table that differs in one row is another request."""
    other = pa.table({"url": ["b", "a"], "users": [61000, 70001]})
    first = table(bank, "first")

    assert table(bank, "first").content == first.content
    problem_errors(table(bank, "first", table=as_stream(other)), 422, "key-reused")
    assert from_bytes(table(bank, "first", table=as_parquet(TABLE)).content).equals(from_bytes(first.content))
    assert sorted(from_bytes(first.content)["url"].to_pylist()) == ["a", "b"]


@each_kind
def test_a_budget_and_an_idempotency_key_need_each_other(bank: Bank, post: Post) -> None:
    missing = problem_errors(post(bank, None), 400, "idempotency-key-missing")
    assert set(missing) == {"header Idempotency-Key"}
    without = {"budget": None} if post is table else {"groups": GROUPS if post is small else MANY}
    response = post(bank, "first", budget=None) if post is table else _without_budget(bank, post, without)
    assert "/budget" in problem_errors(response, 422, "invalid-request")
    assert bank.budget()["spent"]["releases"] == 0


def _without_budget(bank: Bank, post: Post, groups: Json) -> httpx.Response:
    body = {"mechanism": CASE_STUDY} | groups
    return bank.request("POST", "/release", json=body, headers={"idempotency-key": "first"})


@each_kind
def test_a_release_over_budget_is_refused_before_any_noise(
    bank: Bank, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank.put("web", LIMIT | {"delta": 1e-6})
    drawn = []
    for module in ("groups", "uploaded_table"):
        monkeypatch.setattr(f"app.releases.{module}.operating_system", drawn.append)
    monkeypatch.setattr(WorkerPool, "begin", lambda _pool, function, *args: StepsHere(function(*args)))
    monkeypatch.setattr(WorkerPool, "run", None)

    refused = post(bank, "first")

    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/budget-exceeded")
    assert refused.json()["spent"]["releases"] == 0
    assert refused.json()["asked"]["releases"] == 1
    assert drawn == []


@each_kind
def test_a_release_that_is_refused_costs_nothing(bank: Bank, post: Post) -> None:
    broken: Json = {"table": b"no table"} if post is table else {"groups": {"keys": ["a", "a"], "counts": [1, 2]}}
    if post is large:
        broken = {"groups": {"keys": ["a" * 70_000] * 2, "counts": [1, 2]}}

    assert post(bank, "first", **broken).status_code == 422
    assert bank.budget()["spent"]["releases"] == 0
    assert post(bank, "first").status_code == 200  # the idempotency key is still unused


@each_kind
def test_an_unknown_budget_is_404(bank: Bank, post: Post) -> None:
    problem_errors(post(bank, "first", budget="none"), 404, "unknown-budget")


def test_simultaneous_requests_share_one_answer(bank: Bank) -> None:
    body = {"mechanism": CASE_STUDY, "budget": "web", "groups": GROUPS}

    async def scenario(http: httpx.AsyncClient) -> list[httpx.Response]:
        posts = (http.post("/release", json=body, headers={"idempotency-key": "first"}) for _ in range(8))
        return list(await asyncio.gather(*posts))

    responses = bank.together(scenario)

    assert {response.status_code for response in responses} == {200}
    assert len({response.content for response in responses}) == 1
    assert bank.budget()["spent"]["releases"] == 1


def test_the_ledger_stores_the_answer_and_no_other_part_of_the_groups(tmp_path: Path) -> None:
    """No dropped group, no true count, and no hash that can be tested without the secret."""
    bank = Bank(str(tmp_path / "ledger.sqlite3"))
    dropped = {"keys": ["kept", "s3ntinel"], "counts": [918273645, 3]}
    assert small(bank, "first", groups=dropped).status_code == 200
    bank.app.state.services.ledger_pool.close()

    everything = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"kept" in everything
    assert b"s3ntinel" not in everything
    assert b"918273645" not in everything


def test_another_instance_with_the_same_ledger_gives_the_same_answer(bank: Bank, ledger_url: str) -> None:
    first = small(bank, "first")
    other = Bank(ledger_url)

    assert small(other, "first").content == first.content
    other.app.state.services.ledger_pool.close()


def test_a_secret_that_is_too_short_is_refused() -> None:
    assert len(SECRET) >= 32
    with pytest.raises(ValueError, match="at least 32 characters"):
        Client(ledger_secret="short")


def test_a_large_request_is_read_once_and_by_one_worker(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker keeps it while the ledger checks the budget. The service itself never reads it."""
    begun: list[str] = []
    original = WorkerPool.begin

    def recorded(pool: WorkerPool, function: Any, *args: Any) -> Any:
        begun.append(function.__name__)
        return original(pool, function, *args)

    monkeypatch.setattr(WorkerPool, "begin", recorded)
    monkeypatch.setattr(WorkerPool, "run", None)
    monkeypatch.setattr("app.releases.groups.parsed", None)

    first, again = large(bank, "first"), large(bank, "first")

    assert (first.status_code, again.status_code) == (200, 200)
    assert begun == ["_release_content"] * 2


def test_a_worker_that_is_not_needed_any_more_serves_the_next_request(bank: Bank) -> None:
    """After a repeated request, or one that does not fit: the worker gets a signal to stop, and is not killed."""
    pool = bank.app.state.services.release_workers
    assert large(bank, "first").status_code == 200
    (worker,) = pool._idle
    assert large(bank, "first").status_code == 200
    assert large(bank, "second", budget="none").status_code == 404
    assert large(bank, "second", mechanism=CASE_STUDY | {"sigma": 1}).status_code == 409

    assert list(pool._idle) == [worker]
    assert large(bank, "second").status_code == 200
    assert list(pool._idle) == [worker]


@each_kind
def test_a_paid_release_does_not_wait_for_readers_of_budgets(
    bank: Bank, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker waits for the ledger's decision. How long others read histories must not hold it."""
    monkeypatch.setattr(bank.app.state.services.ledger_pool._reading, "_places", Places(0))

    assert bank.get("/budgets/web").status_code == 503
    assert post(bank, "first").status_code == 200


def test_a_certificate_under_a_lowered_limit_states_the_promise(bank: Bank) -> None:
    """A limit that is lowered does not undo what was released under the larger one."""
    mechanism = {"c_u": 1, "tau": 1, "tau_star": 5000, "sigma": 500}
    bank.put("web", LIMIT | {"delta": 1e-2})
    small(bank, "first", mechanism=mechanism)
    bank.put("web", LIMIT | {"delta": 3e-6})
    assert small(bank, "second", mechanism=mechanism).status_code == 200
    assert bank.charge("third", {"c_u": 1, "sigma": 500}).status_code == 200
    promise = bank.budget()["promise"]
    assert promise["delta"] == pytest.approx(1e-2)

    paid = {key: bank.get(f"/releases/{key}/certificate").json()["budget"] for key in ("first", "second", "third")}
    assert paid["first"]["promise"] == {"epsilon": 1.0, "delta": 1e-2}
    assert paid["second"]["promise"] == paid["third"]["promise"] == promise
    for media_type in ("text/html", "application/yaml"):
        shown = bank.request("GET", "/releases/second/certificate", headers={"accept": media_type}).text
        assert "≤ 0.01" in shown
        assert "3e-06" not in shown
        assert "3e-6" not in shown
