"""Worker processes for heavy work, with a short queue.

A process can be stopped, a thread cannot. If a request is cancelled or its deadline passes, its worker is killed and
replaced. Workers are forked from one process that has imported everything (fork_server.py), so a new one is ready in
about 20 ms.
"""

import asyncio
import os
import re
import resource
import select
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from app.errors import Busy, DeadlinePassed, TooLarge
from app.places import Places
from app.workers.fork_server import FORK_SERVER
from app.workers.steps import Steps
from app.workers.tasks import RETURNED, YIELDED, receive, send

__all__ = ["WorkerPool"]

F = TypeVar("F")
P = ParamSpec("P")
T = TypeVar("T")

_POLL_MILLISECONDS = 100
_NEARLY = 4 * 1024**2
"""A worker with less memory than this below its bound is at its bound."""


class _Worker:
    """A process that is started at once and killed to stop it. Only ``kill`` may be called from another thread.

    It does one task at a time. At its bound on memory a process may stop for ever instead of ending: a library that
    cannot report its own failure without memory waits for a lock that it holds. So the service looks at a worker that
    has not answered, and kills one at its bound.
    """

    def __init__(self, name: str, memory: int) -> None:
        self._connection, self._process = FORK_SERVER.fork_worker(name, memory)

    @property
    def is_alive(self) -> bool:
        """While it has no task: a worker that has ended has closed its pipe. A living one sends nothing."""
        return not self._connection.poll()

    def do(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        decide: Callable[[Any], Any],
    ) -> tuple[bool, Any]:
        """Whether the function returned, and its result or its exception. OSError or EOFError if the process ended.

        MemoryError if it needs more memory than it may take; it is killed then.

        If the function is a generator, ``decide`` gets what it yields. The generator goes on with the decision, or is
        stopped if that is None.
        """
        send(self._connection, function, kwargs, *args)
        kind, value = self._answer()
        while kind == YIELDED:
            send(self._connection, decide(value))
            kind, value = self._answer()
        if isinstance(value, MemoryError):
            raise MemoryError
        return kind == RETURNED, value

    def _answer(self) -> list[Any]:
        """The next message of the process."""
        answered = select.poll()
        answered.register(self._connection.fileno(), select.POLLIN)
        was_at_bound = False
        while not answered.poll(_POLL_MILLISECONDS):
            is_at_bound = self._is_at_bound()
            if is_at_bound and was_at_bound:
                self.kill()
                raise MemoryError
            was_at_bound = is_at_bound
        return receive(self._connection)

    def _is_at_bound(self) -> bool:
        """Whether the process can get no more memory."""
        try:
            (number,) = re.findall(r"(?m)^Pid:\s+(\d+)$", Path(f"/proc/self/fdinfo/{self._process}").read_text())
            taken = int(Path(f"/proc/{number}/statm").read_text().split()[5]) * resource.getpagesize()
            bounds = re.findall(r"(?m)^Max data size\s+(\d+)", Path(f"/proc/{number}/limits").read_text())
        except (OSError, ValueError):  # it has ended
            return False
        return any(taken > int(bound) - _NEARLY for bound in bounds)

    def kill(self) -> None:
        """May be called from any thread. A thread that waits in ``do`` gets an error."""
        with suppress(ProcessLookupError):  # it has ended
            signal.pidfd_send_signal(self._process, signal.SIGKILL)

    def end(self) -> None:
        """Kill it, wait until it is gone, and close the pipe."""
        self.kill()
        ended = select.poll()
        ended.register(self._process, select.POLLIN)
        ended.poll()
        os.close(self._process)
        self._connection.close()


@dataclass(slots=True)
class _Task:
    """A call. One thread makes it, and another may abandon it at any time."""

    call: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
    decide: Callable[[Any], Any] = bool
    """For a generator: asked with what it yields, in a thread. Its answer goes to the generator; None stops it."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _worker: _Worker | None = None
    _is_abandoned: bool = False

    def begin(self, worker: _Worker) -> bool:
        with self._lock:
            self._worker = None if self._is_abandoned else worker
            return not self._is_abandoned

    def end(self) -> bool:
        """Whether it was abandoned, and its worker killed."""
        with self._lock:
            self._worker = None
            return self._is_abandoned

    def abandon(self) -> None:
        with self._lock:
            self._is_abandoned = True
            if self._worker is not None:
                self._worker.kill()


class WorkerPool:
    """``workers`` processes, started when first needed, and places for ``queue`` tasks to wait."""

    def __init__(self, name: str, *, workers: int, queue: int, memory: int, seconds: float) -> None:
        self._name = name
        self._workers = workers
        self._memory = memory
        self._seconds = seconds
        self._places = Places(workers + queue)
        self._idle: deque[_Worker] = deque()
        # Threads wait for the processes: to send and receive much would stall the event loop.
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix=name)
        self._is_closed = False

    def check_room(self) -> None:
        """Busy if the queue is full: a request that will be refused need not read its body."""
        self._places.check()

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of a function of a module, from a worker.

        Busy if the queue is full or the worker dies. DeadlinePassed if it takes too long, queue included. TooLarge if
        it needs more memory than a worker may take.
        """
        result: T = await self._run(_Task((function, args, kwargs)), self._seconds)
        return result

    async def run_within(self, seconds: float, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same with a deadline of its own."""
        result: T = await self._run(_Task((function, args, kwargs)), seconds)
        return result

    def begin(self, function: Callable[P, Generator[F, Any, T]], *args: P.args, **kwargs: P.kwargs) -> Steps[F, T]:
        """Start a generator of a module in a worker. It yields some facts, and returns its result if it may go on."""
        steps: Steps[F, T] = Steps()
        steps.follow(self._run(_Task((function, args, kwargs), steps.ask), self._seconds))
        return steps

    async def _run(self, task: _Task, seconds: float) -> Any:
        with self._places.taken():
            future = asyncio.get_running_loop().run_in_executor(self._threads, self._perform, task)
            try:
                await asyncio.wait({future}, timeout=seconds)
                if not future.done():
                    raise DeadlinePassed(seconds)
                return _outcome(future)
            finally:
                task.abandon()
                future.cancel()
                del task, future  # an exception's frames would keep them

    def close(self) -> None:
        """End every worker, also in the middle of a task."""
        self._is_closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        while self._idle:
            self._idle.pop().end()

    def _perform(self, task: _Task) -> tuple[bool, Any]:
        """In a thread: the outcome of a task. An exception is returned: raised here, it would keep this frame."""
        try:
            worker = self._take()
        except OSError:  # no room for another process, or no folder for temporary files
            return False, Busy()
        if not task.begin(worker):
            self._give_back(worker)
            return False, Busy()
        try:
            outcome = worker.do(*task.call, task.decide)
        except (EOFError, OSError):  # it was killed, perhaps because memory ran out
            outcome = False, Busy()
            task.abandon()
        except MemoryError:
            outcome = False, TooLarge()
            task.abandon()
        if task.end():
            worker.end()
        else:
            self._give_back(worker)
        return outcome

    def _take(self) -> _Worker:
        while self._idle:
            worker = self._idle.pop()
            if worker.is_alive:
                return worker
            worker.end()
        return _Worker(self._name, self._memory)

    def _give_back(self, worker: _Worker) -> None:
        self._idle.append(worker)
        if self._is_closed:
            self.close()


def _outcome(future: "asyncio.Future[tuple[bool, Any]]") -> Any:
    succeeded, value = future.result()
    if succeeded:
        return value
    try:
        raise value
    finally:
        del value, future  # else the exception's frame would keep the exception
