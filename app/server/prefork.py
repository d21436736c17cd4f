"""All processes of the service from one: it imports everything, and the others are forked from it.

uvicorn starts each web worker in a new interpreter, which imports everything again: a second of processor time and some
65 MB for each. Forked, they start at once and share that memory.
"""

import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import ForkProcess

from app.http.uvicorn_internals import start_workers_as
from app.workers.fork_server import FORK_SERVER

__all__ = ["STOP_SIGNALS", "load_everything", "stop_signals_held"]

STOP_SIGNALS = {signal.SIGINT, signal.SIGTERM}
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


@contextmanager
def stop_signals_held() -> Iterator[None]:
    """A stop signal that comes inside the block waits for its end."""
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


def load_everything() -> None:
    """Import everything, and start the fork server. From now on uvicorn forks its workers. No thread may exist yet."""
    from app.main import WORKER_MODULES  # noqa: PLC0415 - metrics look at the environment when they are imported

    FORK_SERVER.start_by_fork(WORKER_MODULES)
    start_workers_as(_WebWorker)


class _WebWorker(ForkProcess):
    """A signal that comes between the fork and uvicorn's own handlers ends it. The parent's handlers would lose it."""

    def start(self) -> None:
        self._parent = os.getpid()
        with stop_signals_held():
            super().start()

    def run(self) -> None:
        for each in STOP_SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        # Without the parent nobody would stop it, and it would keep the port.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() == self._parent:
            super().run()
