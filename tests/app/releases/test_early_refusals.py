"""POST /release/table refuses before it reads the table."""

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pyarrow as pa
import pytest

from app.ledger.access.access_keys import new_key
from app.ledger.opening import open_ledger
from gsh.accounting.budget_limits import Limit
from tests.app.budgets.test_budgets import SECRET
from tests.app.client import CASE_STUDY, Json
from tests.app.ledger.examples import AT
from tests.app.process import PATIENCE, Service, held_by
from tests.gsh.histogram.uploads import as_stream

pytestmark = pytest.mark.slow

REQUEST: Json = {"mechanism": CASE_STUDY, "budget": "web", "count_column": "users", "key_columns": ["url"]}
PART = b'--x\r\nContent-Disposition: form-data; name="%b"\r\n\r\n'
TABLE_BYTES = 10**9


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(temporary=tmp_path_factory.mktemp("refusals")) as running:
        for name, delta in (("web", 1e-4), ("small", 1e-6)):
            made = httpx.put(f"{running.url}/budgets/{name}", json={"epsilon": 1.0, "delta": delta}, timeout=PATIENCE)
            assert made.status_code == 200
        yield running


def told(service: Service, request: Json, key: str | None = "first", access_key: str = "") -> tuple[int, str]:
    """The status and type of the answer to a form whose table never ends."""
    address = httpx.URL(service.url)
    part = PART % b"request" + json.dumps(request).encode() + b"\r\n" + PART % b"table" + b"ARROW1"
    head = b"POST /release/table HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\n"
    head += b"" if key is None else b"Idempotency-Key: %b\r\n" % key.encode()
    head += b"Authorization: Bearer %b\r\n" % access_key.encode() if access_key else b""
    with closing(socket.create_connection((address.host, address.port or 80), timeout=PATIENCE)) as connection:
        connection.sendall(head + b"Content-Length: %d\r\n\r\n" % (len(part) + TABLE_BYTES) + part)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    fields, _, body = answer.partition(b"\r\n\r\n")
    assert b"connection: close" in fields.lower()
    return int(fields.split()[1]), kind_of(json.loads(body))


def kind_of(problem: Json) -> str:
    return str(problem["type"]).rpartition("/")[2]


REFUSED = {
    "a budget that cannot pay": (REQUEST | {"budget": "small"}, "first", 409, "budget-exceeded"),
    "a budget that is unknown": (REQUEST | {"budget": "none"}, "first", 404, "unknown-budget"),
    "a budget without an idempotency key": (REQUEST, None, 400, "idempotency-key-missing"),
    "an idempotency key without a budget": (
        {name: value for name, value in REQUEST.items() if name != "budget"},
        "first",
        422,
        "invalid-request",
    ),
    "a field that is unknown": (REQUEST | {"more": 1}, "first", 422, "invalid-request"),
    "a mechanism that is none": (REQUEST | {"mechanism": CASE_STUDY | {"tau": 20000}}, "first", 422, "invalid-request"),
    "a long request": (REQUEST | {"key_columns": ["k" * 200] * 100, "budget": "none"}, "first", 404, "unknown-budget"),
}


@pytest.mark.parametrize(("request_part", "key", "status", "kind"), REFUSED.values(), ids=REFUSED)
def test_a_refusal_comes_before_the_table(
    service: Service, request_part: Json, key: str | None, status: int, kind: str
) -> None:
    """The table is never sent to its end, so an answer shows that the service did not wait for it."""
    assert told(service, request_part, key) == (status, kind)
    assert held_by(service.pid) == []


def test_a_table_that_comes_first_is_not_read(service: Service) -> None:
    """It may have 4 GiB, for a request that may be refused."""
    content = PART % b"table" + b"no table" + b"\r\n" + PART % b"request"
    content += json.dumps(REQUEST).encode() + b"\r\n--x--\r\n"
    headers = {"content-type": "multipart/form-data; boundary=x", "idempotency-key": "first"}
    refused = httpx.post(service.url + "/release/table", content=content, headers=headers, timeout=PATIENCE)

    assert refused.status_code == 422
    assert refused.json()["errors"] == [{"pointer": "/request", "detail": "must be the first part of the form"}]
    assert held_by(service.pid) == []


def test_an_access_key_of_another_budget_is_refused_before_the_table(tmp_path: Path) -> None:
    place = str(tmp_path / "ledger.sqlite3")
    secret, kept = new_key(frozenset({"release"}), frozenset({"ads"}), "", AT)
    with closing(open_ledger(place, SECRET)) as ledger:
        ledger.keys.add(kept)
        ledger.put_budget("web", Limit(1.0, 1e-4), "", AT)
    with Service(temporary=tmp_path, ledger=place, ledger_secret=SECRET) as service:
        assert told(service, REQUEST, access_key=secret) == (403, "not-allowed")
        assert held_by(service.pid) == []


def test_a_stored_answer_needs_the_whole_table(service: Service) -> None:
    """Only the table shows whether the request is the stored one. The stored answer stays available."""
    table = as_stream(pa.table({"url": ["a"], "users": [70000]}))
    files = {"request": (None, json.dumps(REQUEST)), "table": ("t", table)}
    answers = [
        httpx.post(service.url + "/release/table", files=files, headers={"idempotency-key": "paid"}, timeout=PATIENCE)
        for _ in range(2)
    ]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].content == answers[1].content
