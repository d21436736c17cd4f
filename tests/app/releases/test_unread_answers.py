"""Over HTTP: an answer is sent after its key is stored. A charge without a key is drawn again, and charged once."""

import asyncio
import hashlib
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pyarrow as pa
import pytest

from app.releases import payments
from tests.app.client import Client, problem_errors
from tests.app.crashes import BODY, MECHANISM
from tests.app.ledger.cuts import BEFORE_KEY, cut_connections
from tests.app.releases.test_release_table import form
from tests.gsh.histogram.uploads import as_stream

SECRET = "thirty-two characters at least, or more"


class Cut(Client):
    """A service whose ledger breaks off where ``at`` says."""

    def __init__(self, place: str) -> None:
        super().__init__(ledger=place, ledger_secret=SECRET)
        self.pool = self.app.state.services.ledger_pool
        self.connections = self.pool._connections = cut_connections(place)

    def release(self, key: str = "first") -> httpx.Response:
        return self.request("POST", "/release", json=BODY, headers={"idempotency-key": key})

    def release_table(self, kind: str) -> httpx.Response:
        table = pa.table({"url": ["a", "b"], "users": [10**6, 10**6]})
        request: dict[str, Any] = {"mechanism": MECHANISM, "budget": "web", "key_columns": ["url"]}
        request |= {"count_column": "users"} | (
            {"csv_types": {"url": "string", "users": "int64"}} if kind == "csv" else {}
        )
        content = b"url,users\na,1000000\nb,1000000\n" if kind == "csv" else as_stream(table)
        return self.request("POST", "/release/table", files=form(content, request), headers={"idempotency-key": "t"})

    def close(self) -> None:
        self.pool.close()
        self.app.state.services.close_pools()


@pytest.fixture
def service(ledger_url: str) -> Iterator[Cut]:
    made = Cut(ledger_url)
    assert made.request("PUT", "/budgets/web", json={"epsilon": 10, "delta": 1e-3}).status_code == 200
    yield made
    made.close()


@pytest.fixture
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that drew the first answer has ended: nothing is to be waited for."""
    monkeypatch.setattr(payments, "_KEY_SECONDS", 0.0)


@pytest.mark.usefixtures("_no_waiting")
def test_a_charge_whose_answer_was_never_stored_is_drawn_again(service: Cut) -> None:
    service.connections.at = BEFORE_KEY
    problem_errors(service.release(), 503, "ledger-unavailable")
    shown = service.get("/releases/first").json()
    assert (shown["state"], shown["answer"]) == ("made", None)
    problem_errors(service.get("/releases/first/answer"), 404, "unknown-release")
    assert service.get("/releases/first/certificate").json()["record"]["answer_sha256"] is None
    other = BODY | {"groups": {"keys": ["a"], "counts": [5]}}
    wrong = service.request("POST", "/release", json=other, headers={"idempotency-key": "first"})
    problem_errors(wrong, 422, "key-reused")
    for body, status in ((BODY, 200), (other, 422)):  # a dry run compares as the release itself would
        dry = service.request("POST", "/release", json=body | {"dry_run": True}, headers={"idempotency-key": "first"})
        assert dry.status_code == status
        if status == 200:
            assert (dry.json()["released_at"], dry.json()["budget"]["after"]["releases"]) == (None, 1)

    drawn = service.release()

    assert (drawn.status_code, "idempotency-replayed" in drawn.headers) == (200, False)
    again = service.release()
    assert (again.content, again.headers["idempotency-replayed"]) == (drawn.content, "true")
    assert service.get("/releases/first/answer").content == drawn.content
    certificate = service.get("/releases/first/certificate").json()
    assert certificate["record"].pop("answer_sha256") == hashlib.sha256(drawn.content).hexdigest()
    assert certificate | {"record": None} == drawn.json()["certificate"] | {"record": None}
    assert service.answer("/releases/verify", drawn.json()["certificate"])["made_here"] is True
    assert service.get("/budgets/web").json()["spent"]["releases"] == 1
    history = service.get("/budgets/web/charges").json()["entries"]
    assert [entry["kind"] for entry in history] == ["redrawn", "charge", "created"]
    assert history[0]["details"]["release_id"] == certificate["release_id"]
    assert service.get("/budgets/web/verify").json()["intact"] is True


@pytest.mark.usefixtures("_no_waiting")
def test_a_table_that_comes_again_in_another_format_is_drawn_and_stored_in_that_format(service: Cut) -> None:
    service.connections.at = BEFORE_KEY
    problem_errors(service.release_table("arrow"), 503, "ledger-unavailable")

    drawn = service.release_table("csv")

    assert (drawn.status_code, drawn.headers["content-type"].partition(";")[0]) == (200, "text/csv")
    assert service.get("/releases/t").json()["answer"]["media_type"] == "text/csv"
    assert service.get("/releases/t/answer", headers={"accept": "text/csv"}).content == drawn.content
    assert service.release_table("arrow").headers["idempotency-replayed"] == "true"
    assert service.get("/budgets/web/verify").json()["intact"] is True


def test_a_request_waits_for_the_key_that_another_process_stores(service: Cut, ledger_url: str) -> None:
    """Two equal requests at once get one answer, and the history has no second draw."""
    other, is_posting, is_waiting = Cut(ledger_url), threading.Event(), threading.Event()
    store_key, read = service.connections.execute_alone, other.pool.read

    def late(statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        assert is_waiting.wait(60)
        rows: list[tuple[Any, ...]] = store_key(statement, values)
        return rows

    async def noticed(work: Any) -> Any:
        found = await read(work)
        if is_posting.is_set():
            is_waiting.set()
        return found

    service.connections.execute_alone, other.pool.read = late, noticed

    async def both(http: httpx.AsyncClient) -> list[httpx.Response]:
        first = asyncio.ensure_future(http.post("/release", json=BODY, headers={"idempotency-key": "first"}))
        transport = httpx.ASGITransport(other.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http_of_other:
            while (await http_of_other.get("/releases/first")).status_code == 404:
                pass
            is_posting.set()
            second = await http_of_other.post("/release", json=BODY, headers={"idempotency-key": "first"})
        return [await first, second]

    first, second = service.together(both)
    other.close()

    assert (first.status_code, second.status_code, second.content == first.content) == (200, 200, True)
    history = service.get("/budgets/web/charges").json()["entries"]
    assert [entry["kind"] for entry in history] == ["charge", "created"]
