"""In a worker process: tasks, one after the other, and the messages between the service and a worker.

No data of a task is kept afterwards, and no large memory.
"""

import gc
import os
import pickle
import select
import signal
import threading
from collections.abc import Generator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

from app.workers.memory import bound_memory, give_memory_back, resident

__all__ = ["RETURNED", "YIELDED", "receive", "send", "serve_tasks"]

RETURNED, RAISED, YIELDED = "returned", "raised", "yielded"

# What a worker may keep of the memory of a task: to give it back and to ask for it again takes time.
_KEPT = 32 * 1024**2
_LONG = 64 * 1024


def serve_tasks(connection: Connection, name: str, memory: int) -> NoReturn:
    """Tasks, until the service closes the pipe or ends."""
    Path("/proc/self/comm").write_text(name)  # for ps and top
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # for the service, which ends its workers
    bound_memory(memory)
    threading.Thread(target=_end_with_service, args=(connection,), daemon=True).start()
    usual = resident()
    gc.disable()  # while a task runs: to look at the keys of a large body again and again takes longer than to read it
    while True:
        try:
            _serve_one(connection)
        except (EOFError, OSError):
            os._exit(0)
        # Frames of an exception, and cycles, would keep files open and memory in use until the next task.
        gc.collect()
        if resident() > usual + _KEPT:
            give_memory_back()


def _serve_one(connection: Connection) -> None:
    function, kwargs, *args = receive(connection)
    try:
        result = function(*args, **kwargs)
        reply = RETURNED, _last_step(connection, result) if isinstance(result, Generator) else result
    except Exception as error:
        reply = RAISED, _without_traceback(error)
    try:
        send(connection, *reply)
    except (pickle.PicklingError, TypeError, AttributeError):
        send(connection, RAISED, RuntimeError("the result cannot be sent"))


def _last_step(connection: Connection, steps: Generator[Any, Any, Any]) -> Any:
    """What a generator returns, or None if it is stopped at a step."""
    decision = None
    try:
        while True:
            send(connection, YIELDED, steps.send(decision))
            (decision,) = receive(connection)
            if decision is None:
                steps.close()
                return None
    except StopIteration as stop:
        return stop.value


def _without_traceback(error: Exception) -> Exception:
    """The exception without its traceback and causes, if it can be pickled."""
    error.__traceback__ = error.__context__ = error.__cause__ = None
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - made here
    except Exception:
        return RuntimeError(type(error).__qualname__)
    return error


def _end_with_service(connection: Connection) -> None:
    """Without this the process would outlive a service that is killed while a task runs."""
    hung_up = select.poll()
    hung_up.register(connection.fileno(), 0)  # only that the other end is closed, not that something can be read
    hung_up.poll()
    os._exit(1)


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
