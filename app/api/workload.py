"""How heavy requests share the process, so that none stalls the others.

Long series of cheap evaluations stay on the event loop, in slices. A scan or a wide covariance, where numpy does the
work without the interpreter's lock, goes to one of a few threads; those who would wait too long are told 503.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from app.api.problems import Busy

__all__ = ["Workshop", "in_slices"]

T = TypeVar("T")

_SLICE_SECONDS = 0.001


async def in_slices(results: Iterable[T]) -> list[T]:
    """All of a lazy series, giving other requests a turn every millisecond."""
    collected: list[T] = []
    turn_ends = time.perf_counter() + _SLICE_SECONDS
    for result in results:
        collected.append(result)
        if time.perf_counter() > turn_ends:
            await asyncio.sleep(0)
            turn_ends = time.perf_counter() + _SLICE_SECONDS
    return collected


class Workshop:
    """A few threads and a short queue for heavy work."""

    def __init__(self, threads: int, queue: int) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="heavy")
        self._room = threads + queue

    async def run(self, work: Callable[[], T]) -> T:
        """The result of ``work`` from a thread, or Busy when the queue is full."""
        if self._room == 0:
            raise Busy
        self._room -= 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, work)
        finally:
            self._room += 1

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)
