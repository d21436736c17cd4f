"""Services that start at once: each is forked from a process that has imported everything.

A new interpreter spends more than a second on its imports, and the tests start a hundred services. What differs from
``python -m app`` is only what comes before ``main``. Tests of that start a new interpreter.

``python -m tests.app.warm DESCRIPTOR`` is the process that forks. It takes an environment and two descriptors for each
service through a socket, answers with the number of the process, and later with its exit code. It ends with the socket.
"""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any, NoReturn

__all__ = ["WarmProcess"]

_MESSAGE_BYTES = 1 << 20


class WarmProcess:
    """A service, with the part of ``subprocess.Popen`` that tests use."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        outputs, inputs = zip(os.pipe(), os.pipe(), strict=True)
        self._parent = _parent()
        self.pid = self._parent.fork(environment, inputs)
        self.stdout, self.stderr = (os.fdopen(each, encoding="utf-8") for each in outputs)

    def poll(self) -> int | None:
        return self._parent.exit_code(self.pid, 0)

    def wait(self, timeout: float) -> int:
        code = self._parent.exit_code(self.pid, timeout)
        if code is None:
            raise subprocess.TimeoutExpired("app", timeout)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class _Parent:
    """The process that forks, from outside."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        self._codes: dict[int, int] = {}
        with theirs:
            command = [sys.executable, "-m", __name__, str(theirs.fileno())]
            # Without threads of its own it may fork.
            own = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
            self._process = subprocess.Popen(command, env=own, pass_fds=[theirs.fileno()])
        atexit.register(self._end)

    def fork(self, environment: Mapping[str, str], outputs: tuple[int, ...]) -> int:
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(dict(environment)).encode()], outputs)
            for each in outputs:
                os.close(each)
            while True:
                pid, code = self._receive()
                if code is None:
                    return pid
                self._codes[pid] = code

    def exit_code(self, pid: int, seconds: float) -> int | None:
        """None if the service has not ended within so many seconds."""
        with self._lock:
            while pid not in self._codes and select.select([self._socket], [], [], seconds)[0]:
                ended, code = self._receive()
                assert code is not None
                self._codes[ended] = code
            return self._codes.get(pid)

    def _receive(self) -> tuple[int, int | None]:
        pid, code = json.loads(self._socket.recv(_MESSAGE_BYTES))
        return pid, code

    def _end(self) -> None:
        self._socket.close()
        self._process.wait()


_parents: list[_Parent] = []


def _parent() -> _Parent:
    if not _parents:
        _parents.append(_Parent())
    return _parents[0]


def _serve(control: socket.socket) -> NoReturn:
    children: dict[int, int] = {}
    """The descriptor of each service's process, and its number."""
    while True:
        ready, _, _ = select.select([control, *children], [], [])
        for descriptor in ready:
            if descriptor in children:
                pid = children.pop(descriptor)
                os.close(descriptor)
                _, status = os.waitpid(pid, 0)
                control.send(json.dumps([pid, os.waitstatus_to_exitcode(status)]).encode())
        if control in ready:
            request, outputs, _, _ = socket.recv_fds(control, _MESSAGE_BYTES, 2)
            if not request:
                os._exit(0)
            pid = os.fork()
            if pid == 0:
                _become_service([control.fileno(), *children], outputs, json.loads(request))
            children[os.pidfd_open(pid)] = pid
            control.send(json.dumps([pid, None]).encode())
            for each in outputs:
                os.close(each)


def _become_service(others: list[int], outputs: list[int], environment: dict[str, str]) -> NoReturn:
    code: Any = 1
    try:
        for each in others:
            os.close(each)
        for number, descriptor in zip((1, 2), outputs, strict=True):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.environ.clear()
        os.environ.update(environment)
        from app.__main__ import main  # noqa: PLC0415 - imported before

        code = main()
    except SystemExit as exit_:
        code = exit_.code
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    import importlib

    from app.main import WORKER_MODULES

    for module in WORKER_MODULES:
        importlib.import_module(module)
    _serve(socket.socket(fileno=int(sys.argv[1])))
