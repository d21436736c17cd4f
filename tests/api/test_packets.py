"""An answer is sent with as few calls as possible, and in the right order. The transport records what is sent."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from app.http_protocol import BoundedProtocol, ConnectionBounds
from app.metrics import Metrics
from gsh.accounting.curve_cache import CurveCache

App = Callable[[Scope, Receive, Send], Coroutine[Any, Any, None]]

GET = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"
START = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"6")]}


class Recorder(asyncio.Transport):
    """Each item is what one call sends."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self.closed = False

    def write(self, data: Any) -> None:
        self.sent.append(data)

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.sent.append(b"".join(list_of_data))

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


def recorded(app: App, request: bytes, *later: bytes) -> Recorder:
    """What a connection sends after a request; more of it arrives when the first part has been answered."""

    async def run() -> Recorder:
        config = uvicorn.Config(
            app, http=BoundedProtocol, ws="none", lifespan="off", log_config=None, date_header=False
        )
        config.load()
        bounds = ConnectionBounds(2**16, 10.0, 10.0, 10, Metrics(CurveCache(1)))
        state = ServerState()
        protocol = BoundedProtocol(config, state, {"connection_bounds": bounds})
        transport = Recorder()
        protocol.connection_made(transport)
        for part in (request, *later):
            protocol.data_received(part)
            for _ in range(20):
                await asyncio.sleep(0)
        protocol.connection_lost(None)
        assert not state.tasks
        return transport

    return asyncio.run(run())


async def answers(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send(START)
    await send({"type": "http.response.body", "body": b"answer"})


def test_head_and_body_are_sent_together() -> None:
    (sent,) = recorded(answers, GET).sent

    assert sent.startswith(b"HTTP/1.1 200 OK\r\n")
    assert sent.endswith(b"\r\n\r\nanswer")


def test_two_requests_at_once_have_two_answers() -> None:
    sent = recorded(answers, GET + GET).sent

    assert [each.count(b"HTTP/1.1 200") for each in sent] == [1, 1]
    assert all(each.endswith(b"answer") for each in sent)


def test_an_answer_without_a_body_is_sent() -> None:
    (sent,) = recorded(answers, GET.replace(b"GET", b"HEAD")).sent

    assert sent.endswith(b"content-length: 6\r\n\r\n")


@pytest.mark.parametrize("status", [204, 304])
def test_a_status_that_has_no_body_is_sent(status: int) -> None:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body"})

    (sent,) = recorded(app, GET).sent

    assert sent.startswith(f"HTTP/1.1 {status} ".encode())


def test_a_long_answer_is_sent_part_by_part() -> None:
    """The head goes with the first part. What comes later is not held back."""

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send(START)
        for part, more in ((b"an", True), (b"sw", True), (b"er", False)):
            await send({"type": "http.response.body", "body": part, "more_body": more})

    first, *later = recorded(app, GET).sent

    assert first.endswith(b"\r\n\r\nan")
    assert later == [b"sw", b"er"]


def test_the_body_is_asked_for_before_the_answer() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert (await receive())["body"] == b"ab"
        await answers(scope, receive, send)

    head = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n"
    asked, answer = recorded(app, head, b"ab").sent

    assert asked == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")


def test_an_answer_that_breaks_off_shows_its_head_and_closes(caplog: pytest.LogCaptureFixture) -> None:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send(START)
        raise RuntimeError("on purpose")

    transport = recorded(app, GET)

    assert [each[:15] for each in transport.sent] == [b"HTTP/1.1 200 OK"]
    assert transport.closed
    assert "on purpose" in caplog.text


def test_the_connection_closes_after_the_answer_if_the_client_asks() -> None:
    transport = recorded(answers, GET.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))

    (sent,) = transport.sent
    assert sent.endswith(b"answer")
    assert transport.closed
