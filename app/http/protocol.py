"""HTTP connections with bounds: how much a client may send before its request is admitted, how long it may take, how
many connections are open, and how a connection ends if the answer comes before the end of the request.

httptools has no such limits, but is twice as fast as a parser that has them. So its bytes are counted here.
"""

import asyncio
from contextvars import Context
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, cast

import httptools

from app.http.metrics import Metrics
from app.http.middleware import SAFE_HEADERS
from app.http.problems import problem_response
from app.http.problems.kinds import CONNECTION_KINDS
from app.http.request_ids import begin_request
from app.http.uvicorn_internals import STATUS_LINE, HttpToolsProtocol

__all__ = ["BoundedProtocol", "ConnectionBounds"]

_MOST_FIELDS = 100
# Each parameter of a query takes time on the event loop.
_MOST_URL = 8 * 1024
_MOST_PIPELINED = 4
# The parser gets slices of this size: after each one the bounds are checked.
_SLICE = 16 * 1024
# Framing of a chunked body that is free. Beyond it at least half of the bytes must be body.
_FREE_FRAMING = 64 * 1024
# The rest of a refused body is read and dropped, so that the client can read its answer before the connection ends.
_MOST_DRAINED_BYTES = 256 * 1024**2
_DRAIN_SECONDS = 10.0
_STALLED_SECONDS = 60.0
_POLL_SECONDS = 1.0
_BODY_BYTES_PER_SECOND = 16 * 1024
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


@dataclass(frozen=True, slots=True)
class ConnectionBounds:
    """What one connection may use, and how many may be open in a process."""

    head_bytes: int
    head_seconds: float
    body_seconds: float
    connections: int
    metrics: Metrics


class _Lingering:
    """A transport that does not close while its client is still sending: the client would never see the answer."""

    def __init__(self, transport: asyncio.Transport, protocol: "BoundedProtocol") -> None:
        self._transport = transport
        self._protocol = protocol
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        """Send nothing more to a client that was refused. A pipelined request of its own may still end."""
        if not self._protocol.is_draining:
            self._protocol.is_within_answer = data != _CONTINUE
            self._transport.write(data)

    def close(self) -> None:
        self._protocol.end()


class _OnePacket:
    """The transport of one answer: its head waits for the first bytes of the body, so they are sent together.

    To send takes a tenth of the time of a small answer, and uvicorn would do it twice.
    """

    __slots__ = ("_head", "_transport", "is_closing")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head: bytes | None = None
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        """The first bytes are the head, except for «100 Continue», which is sent at once."""
        if self._head is None and data != _CONTINUE:
            self._head = data
        elif self._head and len(data) <= _SLICE:
            data, self._head = self._head + data, b""
            self._transport.write(data)
        else:
            self._send_head()
            self._transport.write(data)

    def close(self) -> None:
        self._send_head()
        self._transport.close()

    def _send_head(self) -> None:
        if self._head:
            self._transport.write(self._head)
            self._head = b""


def _refusal(status: int) -> bytes:
    """A whole answer. It has a new id: the request, which cannot be read, may have asked for one."""
    name = begin_request()
    answer = problem_response(status, CONNECTION_KINDS.get(status))
    fields = [*answer.raw_headers, *SAFE_HEADERS, (b"x-request-id", name), (b"connection", b"close")]
    head = b"".join(b"%b: %b\r\n" % field for field in fields)
    return STATUS_LINE[status] + head + b"\r\n" + cast(bytes, answer.body)


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with the bounds that the application gives in its lifespan state."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._bounds: ConnectionBounds = self.app_state["connection_bounds"]
        self._raw = transport
        self.transport = cast(asyncio.Transport, _Lingering(transport, self))
        self._since = self.loop.time()
        self._in_head = True
        self._framing = self._fed_bytes = self._fed_body = self._body_bytes = self._drained = 0
        self._begun = 0
        self.url, self.headers = b"", []
        self._waited = 0.0
        self.is_draining = self.is_within_answer = self._is_too_large = False
        self._timer: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None
        self._await_head()
        if len(self.connections) > self._bounds.connections:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._set_timer(None)
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.is_draining:
            return self._drop(len(data))
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None
        self._since = self.loop.time()
        if len(data) <= _SLICE:
            refusal = self._take(data)
        else:
            slices = memoryview(data)
            refusals = (self._take(slices[start : start + _SLICE]) for start in range(0, len(data), _SLICE))
            refusal = next((each for each in refusals if each is not None), None)
        if refusal is not None:
            return self._refuse(refusal)
        return self._watch()

    def _take(self, data: bytes | memoryview) -> int | None:
        """Parse some bytes; the status to refuse them with, or None."""
        self._fed_bytes, self._fed_body, self._begun = len(data), 0, 0
        refusal = self._fed(data)
        if refusal is None and not self._is_complete:
            # Of several requests in these bytes only the last is incomplete, and may be longer than what was parsed.
            framing = self._parsed_head if self._begun > 1 else len(data) - self._fed_body
            self._framing = framing if self._begun else self._framing + framing
            refusal = self._overrun()
        return refusal

    def _fed(self, data: bytes | memoryview) -> int | None:
        """The status to refuse bytes with that the parser does not accept, or None."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # The request is answered without an upgrade. The parser reads no other after it.
            self.cycle.keep_alive = False
            return None
        except httptools.HttpParserError:
            return 400
        return None

    def _overrun(self) -> int | None:
        """The status of the first bound that the connection has passed."""
        if len(self.pipeline) >= _MOST_PIPELINED:
            return 400
        if self._is_too_large or len(self.headers) > _MOST_FIELDS:
            return 431
        if self._in_head and self._framing > self._bounds.head_bytes:
            return 431
        return 400 if self._framing > self._bounds.head_bytes + _FREE_FRAMING + self._body_bytes else None

    def _watch(self) -> None:
        """Set a timer for the rest of the request, if it is not complete."""
        if self._in_head:
            self._await_head()
        elif self._is_complete:
            self._set_timer(None)
        elif self._timer is None:
            self._waited = 0.0
            self._set_timer(_POLL_SECONDS, self._check_speed)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True
        self._begun += 1
        self._body_bytes = 0

    def on_headers_complete(self) -> None:
        self._set_timer(None)
        self._is_too_large = (
            len(self.headers) > _MOST_FIELDS or len(self.url) > _MOST_URL or self._head_size() > self._bounds.head_bytes
        )
        if self._is_too_large or len(self.pipeline) >= _MOST_PIPELINED:
            return  # still in the head: refused when the parser returns
        self._in_head = False
        super().on_headers_complete()
        if self.cycle.scope["method"] != "HEAD":  # such an answer is a head alone
            self.cycle.transport = cast(asyncio.Transport, _OnePacket(self.transport))
        self.headers = []  # for trailers, which must not join the headers that the application reads

    @property
    def _is_complete(self) -> bool:
        """Whether the last request has arrived completely."""
        return not self._in_head and (self.cycle is None or not self.cycle.more_body)

    def _head_size(self) -> int:
        """An upper bound if the head came at once and is small anyway; else its exact size."""
        came_at_once = self._begun and self._fed_bytes <= self._bounds.head_bytes
        return self._fed_bytes if came_at_once else self._parsed_head

    @property
    def _parsed_head(self) -> int:
        return len(self.url) + sum(len(name) + len(value) for name, value in self.headers)

    def on_body(self, body: bytes) -> None:
        if not self._in_head:
            self._body_bytes += len(body)
            self._fed_body += len(body)
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._in_head:
            self.headers = []
            super().on_message_complete()

    def on_response_complete(self) -> None:
        self.is_within_answer = False
        super().on_response_complete()
        if self.cycle is not None and self.cycle.more_body and self.cycle.response_complete:
            self.end()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall = self._stall or self.loop.call_later(_STALLED_SECONDS, self._raw.abort)

    def resume_writing(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
        super().resume_writing()

    def end(self) -> None:
        """Close after the answer. A client that is still sending is first read to its end, within bounds."""
        if self.pipeline or (self.cycle is not None and self.cycle.more_body):
            self._drain()
        else:
            self._raw.close()

    def _refuse(self, status: int) -> None:
        """Answer without the application: there is no request to give to it."""
        self._bounds.metrics.refuse_connection(status)
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.is_within_answer:  # of this request, or of an earlier one
            self._raw.abort()
            return
        self._raw.write(Context().run(_refusal, status))  # a context of its own, as the request would have had
        self._drain()

    def _drain(self) -> None:
        """Send no more, and drop what still arrives. To close now would lose the answer."""
        if self.is_draining or self._raw.is_closing():
            return
        self.is_draining = True
        self.pipeline.clear()
        self._set_timer(_DRAIN_SECONDS, self._raw.abort)
        self.flow.resume_reading()
        self._raw.write_eof()

    def _drop(self, size: int) -> None:
        self._drained += size
        if self._drained > _MOST_DRAINED_BYTES:
            self._raw.abort()

    def eof_received(self) -> None:
        """The client will send no more. While draining, that is the end."""
        if self.is_draining:
            self._raw.close()

    def _await_head(self) -> None:
        if self._timer is None:
            self._set_timer(self._bounds.head_seconds, self._refuse, 408)

    def _check_speed(self) -> None:
        """A body must keep arriving, at some speed. Time in which the service does not read it does not count."""
        self._timer = None
        if self._raw.is_closing() or self.cycle is None or not self.cycle.more_body:
            return
        if not self.flow.read_paused:
            self._waited += _POLL_SECONDS
        allowed = self._bounds.body_seconds + self._body_bytes / _BODY_BYTES_PER_SECOND
        if self._waited > allowed:
            self._refuse(408)
        else:
            self._set_timer(_POLL_SECONDS, self._check_speed)

    def _set_timer(self, seconds: float | None, call: Any = None, *arguments: Any) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, call, *arguments)

    def _make_room(self) -> None:
        """End the connections whose clients were silent longest. If all clients wait for the service, end this one."""
        others = cast(set[BoundedProtocol], self.connections - {self})
        silent = sorted((each for each in others if each._waits_for_client), key=attrgetter("_since"))
        for each in silent[: 1 + len(others) // 16]:
            each._raw.abort()
        if not silent:
            self._refuse(503)

    @property
    def _waits_for_client(self) -> bool:
        """Whether the service waits for a request, or for the rest of one."""
        return self._in_head or self.cycle is None or self.cycle.response_complete or self.cycle.more_body
