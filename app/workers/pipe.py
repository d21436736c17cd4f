"""Objects over the pipe between the service and a worker."""

import pickle
from multiprocessing.connection import Connection
from typing import Any

__all__ = ["receive", "send"]

_LONG = 64 * 1024


def send(connection: Connection, *items: Any) -> None:
    """Long byte strings go after the pickle and not in it: to copy them into it would hold the interpreter's lock."""
    buffers: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps([_buffered(item) for item in items], protocol=5, buffer_callback=buffers.append)
    connection.send_bytes(len(buffers).to_bytes(4, "big") + pickled)
    for buffer in buffers:
        connection.send_bytes(buffer.raw())


def receive(connection: Connection) -> list[Any]:
    """The items of the next message; EOFError if the other process has ended."""
    message = connection.recv_bytes()
    buffers = [connection.recv_bytes() for _ in range(int.from_bytes(message[:4], "big"))]
    items: list[Any] = pickle.loads(memoryview(message)[4:], buffers=buffers)  # noqa: S301 - from a process of our own
    return items


def _buffered(item: Any) -> Any:
    return pickle.PickleBuffer(item) if type(item) is bytes and len(item) > _LONG else item
