"""Services and commands that start at once: each is forked from a process that has imported everything.

A new interpreter spends more than a second on its imports, and the tests start two hundred. What differs from
``python -m app`` is only what comes before ``main``. Tests of that start a new interpreter.

``python -m tests.app.warm DESCRIPTOR`` is the process that forks. It takes a program, an environment and two outputs
for each process through a socket, answers with its number, and later with its exit code. It ends with the socket.
"""

import atexit
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping
from typing import Any, NoReturn

__all__ = ["WarmProcess", "run_warm"]

_MESSAGE_BYTES = 1 << 20


def run_warm(*program: str, patience: float, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run ``python -m`` a module with arguments to its end."""
    process = WarmProcess(environment, *program)
    errors: list[str] = []
    reader = threading.Thread(target=lambda: errors.append(process.stderr.read()), daemon=True)
    reader.start()
    try:
        with process.stdout, process.stderr:
            output = process.stdout.read()
            reader.join(patience)
        code = process.wait(patience)
    finally:
        process.kill()
    return subprocess.CompletedProcess(program, code, output, "".join(errors))


class WarmProcess:
    """A service, or another module with arguments, with the part of ``subprocess.Popen`` that tests use."""

    def __init__(self, environment: Mapping[str, str], *program: str) -> None:
        outputs, inputs = zip(os.pipe(), os.pipe(), strict=True)
        self._parent = _parent()
        self.pid = self._parent.fork(program or ("app",), environment, inputs)
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

    def fork(self, program: tuple[str, ...], environment: Mapping[str, str], outputs: tuple[int, ...]) -> int:
        with self._lock:
            socket.send_fds(self._socket, [json.dumps([program, dict(environment)]).encode()], outputs)
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
                _become([control.fileno(), *children], outputs, *json.loads(request))
            children[os.pidfd_open(pid)] = pid
            control.send(json.dumps([pid, None]).encode())
            for each in outputs:
                os.close(each)


def _become(others: list[int], outputs: list[int], program: list[str], environment: dict[str, str]) -> NoReturn:
    code: Any = 1
    try:
        for each in others:
            os.close(each)
        for number, descriptor in zip((1, 2), outputs, strict=True):
            os.dup2(descriptor, number)
            os.close(descriptor)
        # The streams of the parent remember whether its outputs could seek.
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
        os.environ.clear()
        os.environ.update(environment)
        module, *sys.argv[1:] = program
        if module == "app":
            from app.__main__ import main  # noqa: PLC0415 - imported before

            code = main()
        else:
            del sys.modules[module]  # a new interpreter has it only as __main__
            runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as exit_:
        code = exit_.code
    except BaseException:
        traceback.print_exc()
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    import importlib

    from app.main import WORKER_MODULES

    for module in (*WORKER_MODULES, "app.keys", "app.verify"):
        importlib.import_module(module)
    _serve(socket.socket(fileno=int(sys.argv[1])))
