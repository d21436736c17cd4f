"""A proxy on loopback that fails as networks do: each request takes the next fault of a list, and later ones pass."""

import json
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import BinaryIO, Literal, NamedTuple, Self

from tests.app.process import PATIENCE

__all__ = ["FAULTS", "Fault", "Flaky"]

Fault = Literal["refused", "uploading", "unread", "half", "busy", "busy late", "silent"]
FAULTS: tuple[Fault, ...] = ("refused", "uploading", "unread", "half", "busy", "busy late")
"""The connection is cut before the request is read; after a part of it was forwarded; after the service has answered,
and nobody has read it; in the middle of the answer. Or 503, before or after the service has done its work."""


class Message(NamedTuple):
    head: bytes
    body: bytes


class Flaky:
    """``requests`` are the first lines of all requests that came to the proxy, and ``faults`` those that happened."""

    def __init__(self, upstream: str, faults: Sequence[Fault] = ()) -> None:
        host, _, port = upstream.removeprefix("http://").partition(":")
        self._upstream = host, int(port)
        self._left = list(faults)
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._noted = threading.Condition()
        self.requests: list[str] = []
        self.faults: list[Fault] = []

    def __enter__(self) -> Self:
        self._listening = threading.Thread(target=self._listen, daemon=True)
        self._listening.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listening.join()  # else it could accept at a later listener with the same descriptor
        self._listener.close()

    def wait_for(self, requests: int) -> None:
        """Until so many requests have come. A client that gives up early may be faster than the proxy."""
        with self._noted:
            assert self._noted.wait_for(lambda: len(self.requests) >= requests, PATIENCE)

    def _listen(self) -> None:
        with suppress(OSError):  # until the listener is closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, client.makefile("rb") as source, suppress(OSError, EOFError):
            while (head := _head(source)) is not None:
                with self._noted:
                    self.requests.append(head.partition(b"\r\n")[0].decode())
                    self._noted.notify_all()
                with self._lock:
                    fault = self._left.pop(0) if self._left else None
                if fault is not None:
                    self.faults.append(fault)
                if not self._pass(client, source, head, fault):
                    return

    def _pass(self, client: socket.socket, source: BinaryIO, head: bytes, fault: Fault | None) -> bool:
        """Whether the connection stays."""
        if fault == "refused":
            return False
        request = Message(head, _body(source, head))
        if fault == "silent":
            return bool(source.read(1))  # until the client gives up
        with socket.create_connection(self._upstream) as service:
            if fault == "uploading":
                service.sendall(request.head + request.body[: len(request.body) // 2])
                return False
            if fault != "busy":
                service.sendall(request.head + request.body)
                answer = _answer(service)
        match fault:
            case "unread":
                return False
            case "half":
                client.sendall(answer.head + answer.body[: len(answer.body) // 2])
                return False
            case "busy" | "busy late":
                client.sendall(_BUSY)
            case _:
                client.sendall(answer.head + answer.body)
        return True


def _answer(service: socket.socket) -> Message:
    with service.makefile("rb") as source:
        head = _head(source) or b""
        return Message(head, _body(source, head))


def _head(source: BinaryIO) -> bytes | None:
    lines = b""
    while (line := source.readline()) not in {b"\r\n", b""}:
        lines += line
    return lines + line if lines and line else None


def _body(source: BinaryIO, head: bytes) -> bytes:
    """The bytes of a body, chunked or of a given length, as they are on the wire."""
    fields = dict(line.lower().partition(b": ")[::2] for line in head.split(b"\r\n")[1:])
    if fields.get(b"transfer-encoding") != b"chunked":
        return _exactly(source, int(fields.get(b"content-length", b"0")))
    parts = []
    while True:
        size = source.readline()
        parts += [size, _exactly(source, int(size, 16) + 2)]
        if int(size, 16) == 0:
            return b"".join(parts)


def _exactly(source: BinaryIO, size: int) -> bytes:
    content = source.read(size)
    if len(content) < size:
        raise EOFError
    return content


_PROBLEM = {"type": "/problems/busy", "title": "Busy", "status": 503, "detail": "try again", "errors": []}
_BUSY_BODY = json.dumps(_PROBLEM).encode()
_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nRetry-After: 0\r\n"
    b"Content-Length: %d\r\n\r\n" % len(_BUSY_BODY)
) + _BUSY_BODY
