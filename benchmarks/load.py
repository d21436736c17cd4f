"""A load generator: keep-alive connections that each send the next request as soon as an answer is complete."""

import asyncio
import itertools
import json
import time
from collections.abc import Iterable, Iterator
from typing import Any

import uvloop

__all__ = ["posts", "throughput"]


def posts(path: str, bodies: Iterable[Any], headers: Iterable[str] = itertools.repeat("")) -> list[bytes]:
    """HTTP/1.1 requests, ready to send, each with more headers as they are sent."""
    requests = []
    for body, more in zip(bodies, headers, strict=False):
        content = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{more}"
        requests.append(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
    return requests


def throughput(port: int, requests: list[bytes], seconds: float, connections: int = 16) -> float:
    """Answers per second; an answer other than 200 is an error."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_measure(port, itertools.cycle(requests), seconds, connections))


class _Connection(asyncio.Protocol):
    def __init__(self, requests: Iterator[bytes], until: float, done: asyncio.Future[None]) -> None:
        self.answers = 0
        self._requests = requests
        self._until = until
        self._done = done
        self._buffer = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        transport.write(next(self._requests))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head_end = self._buffer.find(b"\r\n\r\n")
        if head_end < 0:
            return
        head = self._buffer[:head_end].lower()
        length = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        if len(self._buffer) < head_end + 4 + length:
            return
        if not head.startswith(b"http/1.1 200"):
            self._done.set_exception(RuntimeError(head.decode()))
            return
        self._buffer = b""
        self.answers += 1
        if time.perf_counter() < self._until:
            self._transport.write(next(self._requests))
        elif not self._done.done():
            self._transport.close()
            self._done.set_result(None)


async def _measure(port: int, requests: Iterator[bytes], seconds: float, connections: int) -> float:
    loop = asyncio.get_running_loop()
    started = time.perf_counter()
    protocols, ends = [], []
    for _ in range(connections):
        done: asyncio.Future[None] = loop.create_future()
        _, protocol = await loop.create_connection(
            lambda done=done: _Connection(requests, started + seconds, done), "127.0.0.1", port
        )
        protocols.append(protocol)
        ends.append(done)
    await asyncio.gather(*ends)
    return sum(protocol.answers for protocol in protocols) / (time.perf_counter() - started)
