"""How heavy requests share the service, so that none stalls the others.

Long series of cheap evaluations stay on the event loop, in slices. A scan, where numpy works without the interpreter's
lock, goes to a thread. Ball arithmetic on a wide covariance holds both that lock and the one of the precision, so it
goes to another process. Those who would wait too long are told 503.
"""

import asyncio
import multiprocessing
import multiprocessing.connection
import os
import resource
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

from app.api.problems import Busy

__all__ = ["Workshop", "in_slices"]

P = ParamSpec("P")
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
    """A few threads, as many processes, and a short queue for heavy work."""

    def __init__(self, hands: int, queue: int, process_memory: int) -> None:
        self._hands = hands
        self._process_memory = process_memory
        self._room = hands + queue
        self._threads = ThreadPoolExecutor(hands, thread_name_prefix="heavy")
        self._processes: ProcessPoolExecutor | None = None

    async def in_thread(self, work: Callable[[], T]) -> T:
        """The result of ``work`` from a thread, or Busy when the queue is full."""
        return await self._run(self._threads, work)

    async def in_process(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of a function from another process, which is started when first needed."""
        if self._processes is None:
            context = multiprocessing.get_context("spawn")
            self._processes = ProcessPoolExecutor(self._hands, context, _prepare, (self._process_memory,))
        processes = self._processes
        try:
            return await self._run(processes, partial(function, *args, **kwargs))
        except BrokenProcessPool:  # killed from outside, for want of memory perhaps; the next one starts afresh
            if self._processes is processes:
                self._processes = None
            raise Busy from None

    def check_room(self) -> None:
        """Busy when the queue is full: for those who would take something in before they ask."""
        if self._room == 0:
            raise Busy

    async def _run(self, executor: Executor, work: Callable[[], T]) -> T:
        self.check_room()
        self._room -= 1
        try:
            return await asyncio.get_running_loop().run_in_executor(executor, work)
        finally:
            self._room += 1

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._processes is not None:
            # Python 3.14 has a method for this. Nobody waits for what they do any more.
            processes = list(self._processes._processes.values())
            self._processes.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                process.terminate()


def _prepare(memory: int) -> None:
    """In a new process: let it take this much more memory and no more, and end with the process that began it.

    Without the bound a small compressed table could unpack to more than the machine has; without the watch the process
    would outlive a service that is killed.
    """
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    bound = pages * resource.getpagesize() + memory
    resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)
