"""One worker process, as the service sees it. It does one task at a time."""

import os
import select
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from app.service.nursery import NURSERY
from app.service.pipe import receive, send
from app.service.worker_tasks import RETURNED, YIELDED

__all__ = ["Worker"]


class Worker:
    """A process that is started at once and killed to stop it. Only ``kill`` may be called from another thread."""

    def __init__(self, name: str, memory: int) -> None:
        self._connection, self._process = NURSERY.fork_worker(name, memory)

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

        If the function is a generator, ``decide`` gets what it yields. The generator goes on with the decision, or is
        stopped if that is None.
        """
        send(self._connection, function, kwargs, *args)
        kind, value = receive(self._connection)
        while kind == YIELDED:
            send(self._connection, decide(value))
            kind, value = receive(self._connection)
        return kind == RETURNED, value

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
