"""One worker process. It does one task at a time, and keeps no data of it afterwards."""

import gc
import logging
import multiprocessing
import multiprocessing.connection
import os
import pickle
import resource
import signal
import threading
from collections.abc import Callable, Generator, Mapping
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from app.service.pipe import receive, send

__all__ = ["Worker"]

_FORKSERVER, _SPAWN = multiprocessing.get_context("forkserver"), multiprocessing.get_context("spawn")

_RETURNED, _RAISED, _YIELDED = "returned", "raised", "yielded"

logger = logging.getLogger("app.workers")


class Worker:
    """A process that is started at once and killed to stop it. Only ``kill`` may be called from another thread."""

    def __init__(self, name: str, memory: int) -> None:
        self._connection, theirs = multiprocessing.Pipe()
        call: dict[str, Any] = {"target": _serve, "args": (theirs, name, memory), "daemon": True}
        self._process: BaseProcess = _FORKSERVER.Process(**call)
        try:
            self._process.start()
        except OSError as error:  # its socket in the folder for temporary files is gone, or has too long a path
            logger.warning("the process that workers are forked from cannot be asked (%s): starting one slowly", error)
            self._process = _SPAWN.Process(**call)
            self._process.start()
        theirs.close()

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
        while kind == _YIELDED:
            send(self._connection, decide(value))
            kind, value = receive(self._connection)
        return kind == _RETURNED, value

    def kill(self) -> None:
        """May be called from any thread. A thread that waits in ``do`` gets an error."""
        self._process.kill()

    def end(self) -> None:
        """Kill it, wait until it is gone, and close the pipe."""
        self._process.kill()
        self._process.join()
        self._process.close()
        self._connection.close()


def _serve(connection: Connection, name: str, memory: int) -> None:
    """In the new process: tasks, one after the other, until the service closes the pipe or ends."""
    Path("/proc/self/comm").write_text(name)  # for ps and top
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # for the service, which ends its workers
    _bound_memory(memory)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    gc.disable()  # while a task runs: to look at the keys of a large body again and again takes longer than to read it
    while True:
        try:
            _serve_one(connection)
        except (EOFError, OSError):
            os._exit(0)
        # Frames of an exception, and cycles, would keep files open and memory in use until the next task.
        gc.collect()


def _serve_one(connection: Connection) -> None:
    function, kwargs, *args = receive(connection)
    try:
        result = function(*args, **kwargs)
        reply = _RETURNED, _last_step(connection, result) if isinstance(result, Generator) else result
    except Exception as error:
        reply = _RAISED, _bare(error)
    try:
        send(connection, *reply)
    except (pickle.PicklingError, TypeError, AttributeError):
        send(connection, _RAISED, RuntimeError("the result cannot be sent"))


def _last_step(connection: Connection, steps: Generator[Any, Any, Any]) -> Any:
    """What a generator returns, or None if it is stopped at a step."""
    decision = None
    try:
        while True:
            send(connection, _YIELDED, steps.send(decision))
            (decision,) = receive(connection)
            if decision is None:
                steps.close()
                return None
    except StopIteration as stop:
        return stop.value


def _bare(error: Exception) -> Exception:
    """The exception without its traceback and causes, if it can be pickled."""
    error.__traceback__ = error.__context__ = error.__cause__ = None
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - made here
    except Exception:
        return RuntimeError(type(error).__qualname__)
    return error


def _bound_memory(memory: int) -> None:
    """Let the process take this much more memory. A small compressed table could unpack to more than there is."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    bound = pages * resource.getpagesize() + memory
    resource.setrlimit(resource.RLIMIT_AS, (bound, bound))


def _end_with_parent() -> None:
    """Without this the process would outlive a service that is killed while a task runs."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)
