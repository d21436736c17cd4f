"""A request leaves nothing for the garbage collector: its memory is free, and still in the processor's cache, at once.

uvicorn's side of a request holds the scope, and its ``receive`` belongs to it. So nothing in the scope may hold it.
"""

import asyncio
import gc
import json
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from tests.app.client import CASE_STUDY, Client
from tests.app.server.test_cut_off import scope

EXACT = {"mechanism": CASE_STUDY, "epsilon": 0.349}
RELEASE = {"mechanism": CASE_STUDY, "groups": {"keys": ["a", "b"], "counts": [20000, 3]}}
REQUESTS = {
    "an answer": ("POST", "/account/exact", EXACT, 200),
    "a calibration": ("POST", "/calibrate", {"mechanism": {"c_u": 3, "tau": 1}, "epsilon": 1, "delta": 1e-6}, 200),
    "a release": ("POST", "/release", RELEASE, 200),
    "a page": ("GET", "/", None, 200),
    "an invalid body": ("POST", "/account/exact", {}, 422),
    "no route": ("GET", "/nowhere", None, 404),
    "another method": ("GET", "/account/exact", None, 405),
    "an unknown parameter": ("GET", "/healthz?a=1", None, 422),
    "an unknown coding": ("POST", "/account/exact", EXACT, 415),
    "a websocket": ("GET", "/websocket", None, 404),
}


class Exchange:
    """One request as the server holds it."""

    def __init__(self, method: str, target: str, body: Any, status: int) -> None:
        self._content = b"" if body is None else json.dumps(body).encode()
        path, _, query = target.partition("?")
        self.scope = scope(len(self._content)) | {"method": method, "path": path, "query_string": query.encode()}
        self.scope["headers"].append((b"host", b"localhost"))
        if status == 415:
            self.scope["headers"].append((b"content-encoding", b"rot13"))
        if target == "/websocket":
            self.scope["headers"].append((b"upgrade", b"websocket"))
        self.status = 0

    async def receive(self) -> dict[str, Any]:
        return {"type": "http.request", "body": self._content, "more_body": False}

    async def send(self, message: dict[str, Any]) -> None:
        self.status = message.get("status", self.status)


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize(("method", "target", "body", "status"), REQUESTS.values(), ids=REQUESTS)
def test_a_request_is_freed_without_the_collector(
    client: Client, no_collector: None, method: str, target: str, body: Any, status: int
) -> None:
    async def run() -> tuple[int, "weakref.ref[Exchange]"]:
        exchange = Exchange(method, target, body, status)
        await client.app(exchange.scope, exchange.receive, exchange.send)
        return exchange.status, weakref.ref(exchange)

    found, exchange = asyncio.run(run())

    assert found == status
    assert exchange() is None
