"""The fork server: a process that has imported everything, has no threads, and forks worker processes when asked.

So a worker is ready in some 20 ms, and shares most of its memory with the fork server and the other workers. The
program ``python -m app`` forks the fork server from itself while it starts, before it has threads, an event loop or
connections. So all processes share memory, and one fork server serves them all. Elsewhere, or if the fork server has
died, the first worker waits for a new interpreter.

To ask for a worker is to send the name and the memory of the worker, and one end of its pipe, through a socket without
a name. The fork server ends when the last process that holds the other end of this socket has ended.
"""

import atexit
import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import NoReturn

from app.workers.tasks import serve_tasks

__all__ = ["FORK_SERVER", "main"]

_MESSAGE_BYTES = 1024
_MOST_DESCRIPTORS = 1 << 20


class _ForkServer:
    """The fork server of this process and of those that are forked from it."""

    def __init__(self) -> None:
        self._modules: tuple[str, ...] = ()
        self._asking = threading.Lock()
        self._socket: socket.socket | None = None

    def preload(self, modules: Sequence[str]) -> None:
        """Name the modules that the fork server imports, if it is started later."""
        self._modules = tuple(modules)

    def start_by_fork(self, modules: Sequence[str]) -> None:
        """Fork the fork server from this process, which has no threads yet, and has imported nearly everything."""
        gc.collect()
        gc.freeze()  # the collector would write to every object, and memory that is written to is not shared
        self._socket, theirs = _sockets()
        if os.fork() == 0:
            try:
                _serve(theirs.detach(), modules)
            finally:
                os._exit(1)  # never back to the program
        theirs.close()

    def fork_worker(self, name: str, memory: int) -> tuple[Connection, int]:
        """A new worker: the pipe to it, and a descriptor of its process. OSError if it cannot be made."""
        request = json.dumps([name, memory]).encode()
        with self._asking:
            ours, theirs = Pipe()
            try:
                with theirs:
                    try:
                        socket.send_fds(self._socket or self._start(), [request], [theirs.fileno()])
                    except OSError:  # it has died
                        socket.send_fds(self._start(), [request], [theirs.fileno()])
                return ours, _process_descriptor(ours)
            except OSError:
                ours.close()
                raise

    def _start(self) -> socket.socket:
        """Start the fork server in a new interpreter."""
        if self._socket is not None:
            self._socket.close()
        self._socket, theirs = _sockets()
        with theirs:
            number = theirs.fileno()
            process = subprocess.Popen(  # noqa: S603 - this program
                [sys.executable, "-c", "from app.workers.fork_server import main; main()", str(number), *self._modules],
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                pass_fds=[number],
            )
        atexit.register(_end, process)
        return self._socket


FORK_SERVER = _ForkServer()


def main() -> None:
    """In a new interpreter: a socket, and the modules to import."""
    number, *modules = sys.argv[1:]
    _serve(int(number), modules)


def _serve(descriptor: int, modules: Sequence[str]) -> NoReturn:
    """In the fork server: fork a worker for each request, until no process is left that could ask."""
    Path("/proc/self/comm").write_text("gsh-fork-server")  # for ps and top
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # for the service
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # a worker that ends needs nobody to wait for it
    os.closerange(3, descriptor)  # files of the program that this process was forked from
    os.closerange(descriptor + 1, _MOST_DESCRIPTORS)
    for module in modules:
        importlib.import_module(module)
    # All objects made so far live as long as the process. The collector need not visit them after every task.
    gc.collect()
    gc.freeze()
    control = socket.socket(fileno=descriptor)
    while True:
        request, descriptors, _, _ = socket.recv_fds(control, _MESSAGE_BYTES, 1)
        if not request:
            os._exit(0)
        with suppress(OSError):  # no room for another process: the service finds the pipe closed
            if os.fork() == 0:
                control.close()
                _become_worker(descriptors[0], *json.loads(request))
        os.close(descriptors[0])


def _become_worker(descriptor: int, name: str, memory: int) -> NoReturn:
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        process = os.pidfd_open(os.getpid())
        with socket.socket(fileno=os.dup(descriptor)) as pipe:
            socket.send_fds(pipe, [b"\0"], [process])
        os.close(process)
        serve_tasks(Connection(descriptor), name, memory)
    finally:
        os._exit(1)  # never back to the loop of the fork server


def _process_descriptor(connection: Connection) -> int:
    """The descriptor that a new worker sends first: its number alone might be another process by then."""
    with socket.socket(fileno=os.dup(connection.fileno())) as pipe:
        _, descriptors, _, _ = socket.recv_fds(pipe, 1, 1)
    if not descriptors:
        raise OSError("the process that workers are forked from has made none")
    return descriptors[0]


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()


def _sockets() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
