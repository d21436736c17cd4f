"""An answer is sent with as few calls as possible, and in the right order. The transport records what is sent."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from app.http.metrics import Metrics
from app.http.protocol import BoundedProtocol, ConnectionBounds
from gsh.accounting.curve_cache import CurveCache

App = Callable[[Scope, Receive, Send], Coroutine[Any, Any, None]]

GET = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"
START = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"6")]}


class Recorder(asyncio.Transport):
    """Each item is what one call sends."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self.closed = self.aborted = self.ended = False

    def write(self, data: Any) -> None:
        if not self.closed:
            self.sent.append(data)

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = self.aborted = True

    def write_eof(self) -> None:
        self.ended = True

    def is_closing(self) -> bool:
        return self.closed

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


def recorded(app: App, *steps: bytes | Callable[[], None]) -> Recorder:
    """What a connection sends. Bytes arrive, or something is done, when there is nothing else to do."""

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
        for step in steps:
            protocol.data_received(step) if isinstance(step, bytes) else step()
            for _ in range(20):
                await asyncio.sleep(0)
        closed = transport.closed
        protocol.connection_lost(None)
        transport.closed = closed  # as it was before the end
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


def test_a_connection_is_not_closed_while_requests_are_unread() -> None:
    """To close it then would reset it, and the answer could be lost on its way."""

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send(START | {"headers": [(b"content-length", b"6"), (b"connection", b"close")]})
        await send({"type": "http.response.body", "body": b"answer"})

    transport = recorded(app, GET + GET)

    assert len(transport.sent) == 1
    assert transport.ended
    assert not transport.closed


def test_a_long_body_is_not_copied_to_its_head() -> None:
    content = b"x" * 100_000

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send(START | {"headers": [(b"content-length", b"100000")]})
        await send({"type": "http.response.body", "body": content})

    head, body = recorded(app, GET).sent

    assert head.endswith(b"\r\n\r\n")
    assert body is content


@pytest.mark.parametrize("parts", [(b"an", b"swer"), (b"answer", b"")], ids=["within an answer", "before an answer"])
def test_nothing_is_written_into_an_answer_that_an_earlier_request_gets(parts: tuple[bytes, bytes]) -> None:
    """The client cannot tell the refusal of a later request from it. So it is cut off."""
    later = asyncio.Event()

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send(START)
        await send({"type": "http.response.body", "body": parts[0], "more_body": True})
        await later.wait()
        await send({"type": "http.response.body", "body": parts[1]})

    transport = recorded(app, GET, GET + b"no request\r\n\r\n", later.set)

    assert len(transport.sent) == 1
    assert b"400" not in transport.sent[0]
    assert transport.aborted


def test_nothing_follows_a_refusal() -> None:
    """An answer that is ready only then would belong to no request."""
    refused = asyncio.Event()

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await refused.wait()
        await answers(_scope, _receive, send)

    (sent,) = recorded(app, GET, b"no request\r\n\r\n", refused.set).sent

    assert sent.startswith(b"HTTP/1.1 400 ")
