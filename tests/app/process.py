"""The service as a real process, followed by its own log lines instead of by waiting."""

import json
import os
import queue
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from tests.app.client import Json
from tests.app.warm import WarmProcess, run_warm
from tests.surroundings import PATIENCE

__all__ = [
    "NEW",
    "PATIENCE",
    "ROOT",
    "Service",
    "environment",
    "family",
    "fork_server_of",
    "held_by",
    "proportional_memory",
    "run_command",
    "stopped",
    "wait_for_end",
    "worker_of",
]

ROOT = Path(__file__).parents[2]
NEW = ("-m", "app")
"""A new interpreter with the service."""


def environment(**settings: str) -> dict[str, str]:
    """The environment of this process, with these settings of the service and no others."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GSH_", "PROMETHEUS_"))}
    return inherited | {f"GSH_{name.upper()}": value for name, value in settings.items()}


def run_command(module: str, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """``python -m`` a module of the service to its end, with these settings: a process, but no new interpreter."""
    return run_warm(module, *arguments, patience=PATIENCE, environment=environment(**settings))


@contextmanager
def stopped(process: int) -> Iterator[None]:
    """A process that is stopped: the kernel still accepts its connections."""
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def fork_server_of(service: int) -> int:
    """The process that a service forks its workers from."""
    return _named("gsh-fork-server", _children(service))


def worker_of(service: int, pool: str = "releases") -> int:
    """The first worker process of one of the service's pools."""
    return _named(f"gsh-{pool}", _children(fork_server_of(service)))


def _named(name: str, processes: list[int]) -> int:
    return next(pid for pid in processes if Path(f"/proc/{pid}/comm").read_text().strip() == name)


def _children(process: int) -> list[int]:
    with suppress(OSError):  # threads and processes may end at any time
        threads = Path(f"/proc/{process}/task").iterdir()
        return [int(pid) for thread in threads for pid in (thread / "children").read_text().split()]
    return []


def family(process: int) -> list[int]:
    """A process and all that it started, directly or not."""
    return [process, *(each for child in _children(process) for each in family(child))]


def proportional_memory(process: int) -> int:
    """The bytes of a process; what it shares with others counts in parts."""
    (kilobytes,) = re.findall(r"(?m)^Pss:\s+(\d+) kB", Path(f"/proc/{process}/smaps_rollup").read_text())
    return int(kilobytes) * 1024


def held_by(process: int) -> list[str]:
    """The files without a name that a process has open or mapped, except its output."""
    entries = [entry for entry in Path(f"/proc/{process}/fd").iterdir() if int(entry.name) > 2]
    opened = [os.readlink(entry) for entry in entries if os.path.lexists(entry)]
    mapped = Path(f"/proc/{process}/maps").read_text().splitlines()
    return [line for line in [*opened, *mapped] if "(deleted)" in line]


def wait_for_end(process: int) -> None:
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        return
    assert select.select([descriptor], [], [], PATIENCE)[0]
    os.close(descriptor)


class Service:
    """A running service on a free port, which it logs. Every line that it logs must be a JSON object.

    With arguments, such as ``*NEW``, a new interpreter runs it. Otherwise it is forked from a process that has imported
    everything: several web workers need a new one, because the metrics of several processes begin with an import.
    """

    def __init__(self, *arguments: str, temporary: Path, tmpdir: str | None = None, **settings: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="gsh-")
        folder = Path(self._folder.name)
        # By a short name, however long the names of tests are: a service does not start with a long one.
        (folder / "temporary").symlink_to(temporary)
        own = {"port": "0", "ledger": str(folder / "ledger.sqlite3")}
        variables = environment(**(own | settings)) | {"TMPDIR": tmpdir or str(folder / "temporary")}
        self._process: subprocess.Popen[str] | WarmProcess
        if arguments or "workers" in settings:
            self._process = subprocess.Popen(
                [sys.executable, *(arguments or NEW)],
                cwd=ROOT,
                env=variables,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        else:
            self._process = WarmProcess(variables)
        self.output = ""
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        running = self.wait_for(lambda line: "running on" in line["message"])
        self.url = re.findall(r"http://[\w.]+:\d+", running["message"])[0]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process.poll() is None:
            self.stop()
        self._folder.cleanup()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self.output += line
            self._lines.put(line)
        self._lines.put("")

    def wait_for(self, wanted: Callable[[Json], bool]) -> Json:
        """The next log line that is wanted."""
        while True:
            text = self._lines.get(timeout=PATIENCE)
            assert text, "the service has ended"
            line: Json = json.loads(text)
            if wanted(line):
                return line

    def wait_for_message(self, *parts: str) -> Json:
        return self.wait_for(lambda line: all(part in line["message"] for part in parts))

    def post(self, path: str, body: Json) -> httpx.Response:
        """Over a connection of its own."""
        return httpx.post(self.url + path, json=body, timeout=PATIENCE, verify=False)

    def get(self, path: str) -> httpx.Response:
        return httpx.get(self.url + path, timeout=PATIENCE, verify=False)

    def terminate(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def stop(self) -> int:
        """The exit code after SIGTERM."""
        self.terminate()
        return self.wait()

    def wait(self) -> int:
        try:
            code = self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise
        self._reader.join(PATIENCE)
        assert self._process.stdout
        assert self._process.stderr
        self.errors = self._process.stderr.read()
        self._process.stdout.close()
        self._process.stderr.close()
        return code

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> list[Json]:
        return [json.loads(line) for line in self.output.splitlines()]
