"""One worker process, as the service sees it. It does one task at a time.

At its bound on memory a process may stop for ever instead of ending: a library that cannot report its own failure
without memory waits for a lock that it holds. So the service looks at a worker that has not answered, and kills one at
its bound.
"""

import os
import re
import resource
import select
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from app.workers.fork_server import FORK_SERVER
from app.workers.pipe import receive, send
from app.workers.tasks import RETURNED, YIELDED

__all__ = ["Worker"]

_LOOK_EVERY = 100
"""Milliseconds."""
_NEARLY = 4 * 1024**2
"""A worker with less memory than this below its bound is at its bound."""


class Worker:
    """A process that is started at once and killed to stop it. Only ``kill`` may be called from another thread."""

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
        while not answered.poll(_LOOK_EVERY):
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
