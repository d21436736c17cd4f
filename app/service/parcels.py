"""Objects over the pipe between the service and a worker."""

import pickle
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar

__all__ = ["Parcel", "receive", "send"]

T = TypeVar("T")

_LONG = 64 * 1024


class Parcel(Generic[T]):
    """A value that goes from one worker to another through the service, which passes it on unopened.

    To build a million objects in the service would hold the interpreter's lock and stall all other requests.
    """

    def __init__(self, value: T) -> None:
        self._open: Callable[[], T] = lambda: value
        self._pack: Callable[[], bytes] = lambda: pickle.dumps(value, protocol=5)

    @classmethod
    def packed(cls, content: bytes) -> "Parcel[T]":
        parcel = cls.__new__(cls)
        parcel._open = lambda: pickle.loads(content)  # noqa: S301 - packed by a process of our own
        parcel._pack = lambda: content
        return parcel

    def open(self) -> T:
        """The value: in a worker, or in the process that made the parcel."""
        return self._open()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).packed, (pickle.PickleBuffer(self._pack()),)


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
