"""X-Request-Id: on every answer, in every problem and in every log line; W3C traceparent in the log lines."""

import asyncio
import contextvars
import json
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi import APIRouter
from hypothesis import given
from hypothesis import strategies as st

from app.http.auth import PUBLIC
from app.http.json_route import DeclaredRoute
from app.http.request_ids import begin_request, log_fields, request_id
from app.ledger.errors import LedgerUnavailable
from app.server.logs import JsonFormatter
from tests.app.client import CASE_STUDY, Client, Json, problem_errors

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
MADE = re.compile(r"[0-9a-f]{32}")


@pytest.fixture
def lines() -> Iterator[list[Json]]:
    """Log lines as the service writes them."""
    found: list[Json] = []

    class _Collecting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(json.loads(self.format(record)))

    handler = _Collecting()
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.addHandler(handler)
    logging.getLogger("app").setLevel("INFO")
    yield found
    logging.getLogger("app").setLevel("NOTSET")
    root.removeHandler(handler)


@pytest.mark.parametrize("path", ["/healthz", "/", "/web/shared/service.js", "/metrics", "/none", "/openapi.json"])
def test_every_answer_has_the_id_that_was_asked_for_or_a_new_one(client: Client, path: str) -> None:
    asked = client.request("GET", path, headers={"x-request-id": "job-7/step:2+a=b.c_d"})
    assert asked.headers.get_list("x-request-id") == ["job-7/step:2+a=b.c_d"]

    made = [client.get(path).headers["x-request-id"] for _ in range(2)]
    assert all(MADE.fullmatch(each) for each in made)
    assert made[0] != made[1]


def test_a_page_and_an_answer_keep_their_other_headers(client: Client) -> None:
    page, answer = client.get("/"), client.get("/healthz")

    assert "script-src" in page.headers["content-security-policy"]
    assert answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    for each in (page, answer):
        assert len(each.headers.get_list("content-security-policy")) == 1
        assert each.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("given_id", ["", "a b", "a\tb", "é", "a" * 129, "a,b", '"a"', "a;b", "<script>", "a\x7f"])
def test_any_other_id_is_replaced_and_never_echoed(client: Client, given_id: str) -> None:
    refused = client.request("GET", "/none", headers={"x-request-id": given_id.encode()})

    problem_errors(refused, 404, "not-found")
    assert MADE.fullmatch(refused.headers["x-request-id"])


def test_two_ids_are_none(client: Client) -> None:
    headers = [("x-request-id", "one"), ("x-request-id", "two")]

    assert MADE.fullmatch(client.request("GET", "/healthz", headers=headers).headers["x-request-id"])


def test_problems_name_the_request(client: Client) -> None:
    """``problem_errors`` compares the member with the header."""
    headers = {"x-request-id": "mine", "content-type": "application/json"}
    for body, status, kind in ((b"{", 400, "invalid-json"), (b"{}", 422, "invalid-request"), (b" " * 2**22, 413, None)):
        refused = client.request("POST", "/account/exact", content=body, headers=headers)
        problem_errors(refused, status, kind or "content-too-large")
        assert refused.json()["request_id"] == "mine"


def test_an_unexpected_error_has_the_id_and_the_safe_headers_and_its_log_line_too(lines: list[Json]) -> None:
    client = Client(access_log=True)
    failing = APIRouter(route_class=DeclaredRoute)

    @failing.get("/fails", dependencies=[PUBLIC])
    async def fails() -> None:
        raise ArithmeticError("posted data")

    client.app.router.routes.extend(failing.routes)
    response = client.request("GET", "/fails", headers={"x-request-id": "broken-1"})

    problem_errors(response, 500, "internal-error")
    assert response.json()["request_id"] == "broken-1"
    assert response.headers["x-content-type-options"] == "nosniff"
    (line,) = [each for each in lines if each["message"] == "request"]
    assert (line["request_id"], line["status"]) == ("broken-1", 500)


def test_access_log_lines_have_the_id_and_the_trace(lines: list[Json]) -> None:
    headers = {"x-request-id": "mine", "traceparent": f"00-{TRACE}-{SPAN}-01"}
    client = Client(access_log=True)
    client.request("GET", "/healthz", headers=headers)
    client.get("/healthz")

    traced, plain = (each for each in lines if each["logger"] == "app.access")
    assert (traced["request_id"], traced["trace_id"], traced["span_id"]) == ("mine", TRACE, SPAN)
    assert MADE.fullmatch(plain["request_id"])
    assert not {"trace_id", "span_id"} & plain.keys()


def test_log_lines_about_the_ledger_name_the_request(tmp_path: Path, lines: list[Json]) -> None:
    client = Client(ledger=str(tmp_path / "ledger.sqlite3"))

    def log_and_fail(*_arguments: object) -> None:
        logging.getLogger("app.ledger").warning("in a thread")
        raise LedgerUnavailable("no disk")

    async def scenario(http: httpx.AsyncClient) -> list[httpx.Response]:
        client.app.state.services.ledger_pool._work = log_and_fail
        names = ({"x-request-id": "first"}, {"x-request-id": "second"})
        return await asyncio.gather(*(http.get("/budgets", headers=headers) for headers in names))

    for response in client.together(scenario):
        problem_errors(response, 503, "ledger-unavailable")
    said = {(each["message"], each["request_id"]) for each in lines}
    assert {("in a thread", name) for name in ("first", "second")} <= said
    assert {("the ledger is unavailable: no disk", name) for name in ("first", "second")} <= said


def test_a_request_that_a_shutdown_cuts_off_has_its_id() -> None:
    client = Client()
    sent: list[Json] = []

    async def cut_off() -> None:
        headers = [(b"x-request-id", b"late"), (b"content-type", b"application/json"), (b"content-length", b"9")]
        scope: Json = {"type": "http", "method": "POST", "path": "/account/exact", "query_string": b"", "root_path": ""}
        scope |= {"headers": headers, "client": ("127.0.0.1", 1), "server": ("localhost", 80), "scheme": "http"}
        waiting = asyncio.Event()

        async def receive() -> Json:
            waiting.set()
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message: Json) -> None:
            sent.append(message)

        task = asyncio.ensure_future(client.app(scope, receive, send))
        await waiting.wait()
        task.cancel()
        await asyncio.wait({task})

    asyncio.run(cut_off())

    assert sent[0]["status"] == 503
    assert (b"x-request-id", b"late") in sent[0]["headers"]
    assert json.loads(sent[1]["body"])["request_id"] == "late"


@pytest.mark.parametrize(
    ("header", "is_valid"),
    [
        (f"00-{TRACE}-{SPAN}-01", True),
        (f"cc-{TRACE}-{SPAN}-01", True),
        (f"cc-{TRACE}-{SPAN}-01-more", True),
        (f"00-{TRACE}-{SPAN}-01-more", False),
        (f"cc-{TRACE}-{SPAN}-01more", False),
        (f"ff-{TRACE}-{SPAN}-01", False),
        (f"00-{'0' * 32}-{SPAN}-01", False),
        (f"00-{TRACE}-{'0' * 16}-01", False),
        (f"00-{TRACE.upper()}-{SPAN}-01", False),
        (f"00-{TRACE}-{SPAN}", False),
        (f"00-{TRACE}-{SPAN}-1", False),
        (f"00-{TRACE}-{SPAN}-01\n", False),
        ("", False),
    ],
)
def test_a_trace_parent_is_read_by_its_grammar(header: str, is_valid: bool) -> None:
    def fields() -> dict[str, str]:
        begin_request(b"a", header.encode())
        return log_fields()

    trace = {"trace_id": TRACE, "span_id": SPAN} if is_valid else {}
    assert asyncio.run(_in_task(fields)) == {"request_id": "a"} | trace


@given(st.binary(max_size=140))
def test_an_id_is_taken_exactly_if_it_has_the_allowed_characters(asked: bytes) -> None:
    def taken() -> str:
        begin_request(asked)
        return request_id()

    allowed = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:/+=-"
    is_allowed = 0 < len(asked) <= 128 and all(character in allowed for character in asked)
    assert (asyncio.run(_in_task(taken)) == asked.decode("latin-1")) == is_allowed


async def _in_task(work):  # type: ignore[no-untyped-def]
    return work()


def test_outside_of_requests_there_is_no_id() -> None:
    assert request_id() == ""
    assert log_fields() == {}


def test_the_point_of_an_answer_does_not_depend_on_the_id(client: Client) -> None:
    body = {"mechanism": CASE_STUDY, "epsilon": 0.349}
    answers = {
        client.request("POST", "/account/exact", json=body, headers={"x-request-id": name}).content for name in "ab"
    }
    assert len(answers) == 1


def test_a_forked_process_draws_other_ids() -> None:
    """The web workers of a service are forked from one process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, begin_request())
        os._exit(0)
    os.waitpid(child, 0)
    with open(reading, "rb") as answer:
        os.close(writing)
        assert answer.read() != contextvars.Context().run(begin_request)
