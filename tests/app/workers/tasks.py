"""Work for worker processes that tests follow through named pipes, without sleeping."""

import asyncio
import mmap
import os
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

from app.workers.memory import resident

__all__ = [
    "Meeting",
    "Refused",
    "exit_at_once",
    "fail_with_a_mapped_file",
    "failing_at",
    "freed_and_kept",
    "hang_without_memory",
    "in_two_steps",
    "length_and_reverse",
    "meeting_in_two_steps",
    "pid",
    "take_all_memory",
]


def in_two_steps(content: bytes) -> Generator[int, str, tuple[int, bytes, str]]:
    """Yields its process id, then returns its process id, the content and the decision."""
    decision = yield os.getpid()
    return os.getpid(), content, decision


def failing_at(step: int) -> Generator[int, None, int]:
    if step == 0:
        raise Refused(step)
    yield os.getpid()
    if step == 1:
        raise Refused(step)
    os._exit(7)


class Refused(Exception):
    """A failure of a task."""


class Meeting:
    """A task that reports its start, and then waits for a signal to go on."""

    def __init__(self, folder: Path, name: str = "meeting") -> None:
        self._begun, self._go_on = str(folder / f"{name}-begun"), str(folder / f"{name}-go-on")
        os.mkfifo(self._begun)
        os.mkfifo(self._go_on)

    def attend(self) -> int:
        """In the worker."""
        with open(self._begun, "w"):
            pass
        with open(self._go_on):
            pass
        return os.getpid()

    async def begins(self) -> None:
        await asyncio.to_thread(_open_and_close, self._begun, "r")

    async def goes_on(self) -> None:
        await asyncio.to_thread(_open_and_close, self._go_on, "w")


def _open_and_close(path: str, mode: str) -> None:
    with open(path, mode):
        pass


def pid() -> int:
    return os.getpid()


def length_and_reverse(content: bytes) -> bytes:
    return content[::-1]


def exit_at_once() -> None:
    os._exit(7)


def fail_with_a_mapped_file(path: str) -> None:
    """As a refusal does: the exception has a context, and its frames hold the file and a cycle."""
    file = open(path, "r+b")  # noqa: SIM115
    mapped: Any = mmap.mmap(file.fileno(), 0)
    kept: list[Any] = [mapped]
    try:
        raise KeyError(len(kept))
    except KeyError as error:
        kept.append(error)
        raise Refused from None


def meeting_in_two_steps(first: Meeting, last: Meeting) -> Generator[int, None, int]:
    """One meeting in each step."""
    yield first.attend()
    return last.attend()


def take_all_memory() -> int:
    """Ask for memory until there is none."""
    taken: list[bytes] = []
    while True:
        taken.append(bytes(2**20))


def hang_without_memory() -> None:
    """As a library does that needs memory to report that there is none."""
    taken: list[bytes] = []
    size = 2**20
    while size > 1024:
        try:
            taken.append(bytes(size))
        except MemoryError:
            size //= 2
    threading.Event().wait()


def freed_and_kept() -> int:
    """Take and free a lot of memory in small pieces, but for the last one: the bytes in use afterwards."""
    pieces = [os.urandom(2000) for _ in range(50_000)]
    _LAST.append(pieces[-1])
    pieces.clear()
    return resident()


_LAST: list[bytes] = []
