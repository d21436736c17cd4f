"""Requests that end before they should: the client hangs up, or the service shuts down."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.app.client import CASE_STUDY, Client
from tests.app.workers.tasks import Meeting

BODY = b'{"mechanism": {"c_u": 51914, "tau": 1, "tau_star": 13948, "sigma": 2228}, "epsilon": 1, "theorem": true}'


def scope(length: int) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/account/exact",
        "raw_path": b"/account/exact",
        "query_string": b"",
        "root_path": "",
        "headers": [(b"content-type", b"application/json"), (b"content-length", str(length).encode())],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
    }


def test_a_client_that_hangs_up_is_no_server_error() -> None:
    """The client sends two of a hundred bytes."""
    client = Client()
    messages = iter([{"type": "http.request", "body": b'{"', "more_body": True}, {"type": "http.disconnect"}])
    sent: list[dict[str, Any]] = []

    async def run() -> None:
        async def receive() -> dict[str, Any]:
            return next(messages)

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await client.app(scope(100), receive, send)

    asyncio.run(run())

    assert sent[0]["status"] == 400
    assert client.metrics()['gsh_requests_total{method="POST",route="/account/exact",status="400"}'] == 1


def test_a_request_cut_off_by_a_shutdown_is_503(tmp_path: Path) -> None:
    """Not a 500 of the server. The request waits for a worker, and all are busy."""
    client, meeting = Client(), Meeting(tmp_path)
    pool = client.app.state.services.accounting
    sent: list[dict[str, Any]] = []

    async def run() -> None:
        watched = asyncio.Event()
        messages = iter([{"type": "http.request", "body": BODY, "more_body": False}])

        async def receive() -> dict[str, Any]:
            for message in messages:
                return message
            watched.set()  # called again only while the request waits for a worker
            return await asyncio.Future()

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        first = asyncio.create_task(pool.run(meeting.attend))
        await meeting.begins()
        task = asyncio.ensure_future(client.app(scope(len(BODY)), receive, send))
        await watched.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await meeting.goes_on()
        await first

    asyncio.run(run())

    assert sent[0]["status"] == 503
    assert (b"content-type", b"application/problem+json") in sent[0]["headers"]


def test_the_theorem_is_refused_before_anything_is_evaluated() -> None:
    """«Refused, not attempted»: the cache sees no miss."""
    client = Client(max_theorem_evaluations=10)
    body = {"mechanism": CASE_STUDY, "epsilon": [0.1, 0.2], "theorem": True}

    assert client.post("/account/exact", body).status_code == 422
    assert client.metrics()["gsh_cache_misses_total"] == 0


def test_a_negative_zero_leaves_no_trace() -> None:
    """−0 and 0 are one key of the cache, and get the same answer."""
    client = Client()

    assert str(client.point(CASE_STUDY, -0.0)["epsilon"]) == "0.0"
    assert str(client.point(CASE_STUDY, 0.0)["epsilon"]) == "0.0"


@pytest.mark.parametrize("path", ["/calibrate/", "/account/exact/", "/account"])
def test_a_path_that_is_not_quite_right_is_404(path: str) -> None:
    assert Client().post(path, {}).status_code == 404


def test_errors_of_wide_requests_are_returned_by_the_worker() -> None:
    """A problem document for nine columns with an infeasible target."""
    names = [f"c{k}" for k in range(9)]
    columns = {
        "names": names,
        "covariance": [[1e-9 * (i == j) + 1e-12 for j in range(9)] for i in range(9)],
        "sensitivity": {"kind": "l2", "bound": 1},
    }
    body = {"mechanism": {"c_u": 5, "tau": 1, "aggregates": columns}, "epsilon": 1, "delta": 1e-6}
    response = Client().post("/calibrate", body)

    assert response.json()["type"] == "/problems/infeasible-target"
    assert response.json()["errors"][0]["pointer"] == "/mechanism/aggregates"
