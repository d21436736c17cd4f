"""Interrupt a job from outside: a proxy that stops at a place of an exchange, and a program that dies at a new file.

``python -m tests.interrupted 2 before script.py …`` runs a script, and kills it before its second file gets its name,
by a link or a rename (0: before none).
"""

import functools
import itertools
import os
import re
import runpy
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Literal, Self

__all__ = ["PLACES", "Place", "Proxy"]

Place = Literal["connected", "uploading", "answered"]
PLACES: tuple[Place, ...] = ("connected", "uploading", "answered")
"""Nothing is sent; a part of a body is sent; the service has answered to a body, and nobody has read it."""


class Proxy:
    """On loopback. The first connections end each at a place, after ``stop`` was called; later ones go through."""

    def __init__(self, upstream: str, places: list[Place], stop: Callable[[], None] = lambda: None) -> None:
        host, _, port = upstream.removeprefix("http://").partition(":")
        self._upstream = host, int(port)
        self._places = iter(places)
        self._stop = stop
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.uploads: list[bytes] = []
        """The tables that were posted to the end."""
        self.reached: list[Place] = []

    def __enter__(self) -> Self:
        self._listening = threading.Thread(target=self._listen, daemon=True)
        self._listening.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listening.join()  # else it could accept at a later listener with the same descriptor
        self._listener.close()

    def _listen(self) -> None:
        with suppress(OSError):  # until the listener is closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client, next(self._places, None)), daemon=True).start()

    def _serve(self, client: socket.socket, place: Place | None) -> None:
        with client, socket.create_connection(self._upstream) as service, suppress(OSError):
            if place != "connected":
                while (request := self._request(client, service, place)) is not None:
                    head, body = request
                    service.sendall(head + body)
                    if not self._answer(service, client, place if body else None):
                        break
            if place is not None:
                self.reached.append(place)
                self._stop()

    def _request(
        self, client: socket.socket, service: socket.socket, place: Place | None
    ) -> tuple[bytes, bytes] | None:
        """A whole request; None if there is none, or if it ends early, after a part was forwarded."""
        head, body = _head(client)
        length = int((re.findall(rb"(?i)content-length: (\d+)", head) or [b"0"])[0])
        is_chunked = b"transfer-encoding: chunked" in head.lower()
        while not body.endswith(b"\r\n0\r\n\r\n") if is_chunked else len(body) < length:
            if place == "uploading" and body:
                service.sendall(head + body)
                return None
            body += client.recv(4096)
        if length:
            self.uploads.append(body.split(b"\r\n\r\n", 2)[2].rpartition(b"\r\n--")[0])
        return (head, body) if head else None

    def _answer(self, service: socket.socket, client: socket.socket, place: Place | None) -> bool:
        head, body = _head(service)
        if place == "answered":
            return False
        length = int(re.findall(rb"(?i)content-length: (\d+)", head)[0])
        while len(body) < length:
            body += service.recv(65536)
        client.sendall(head + body)
        return True


def _head(source: socket.socket) -> tuple[bytes, bytes]:
    """The head of a message, and the part of its body that came with it; empty at the end of a connection."""
    received = b""
    while b"\r\n\r\n" not in received:
        more = source.recv(512)
        if not more:
            return b"", b""
        received += more
    head, end, body = received.partition(b"\r\n\r\n")
    return head + end, body


def _dies_at(number: int, when: str, *namings: Callable[..., Any]) -> list[Callable[..., None]]:
    """Ways to name a file, that kill their process before or after they are used for the file with this number."""
    numbers = itertools.count(1)

    def dying(naming: Callable[..., Any], *arguments: Any, **options: Any) -> None:
        is_last = next(numbers) == number
        if not (is_last and when == "before"):
            naming(*arguments, **options)
        if is_last:
            os.kill(os.getpid(), signal.SIGKILL)

    return [functools.partial(dying, naming) for naming in namings]


if __name__ == "__main__":
    _, _number, _when, *sys.argv = sys.argv
    os.link, os.replace = _dies_at(int(_number), _when, os.link, os.replace)
    runpy.run_path(sys.argv[0], run_name="__main__")
