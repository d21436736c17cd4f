"""A server process to measure: started on a free port, watched, and stopped at the end."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from tests.app.process import family, proportional_memory

__all__ = ["Server", "serving"]


@dataclass(frozen=True, slots=True)
class Server:
    port: int
    process: subprocess.Popen[bytes]

    def get(self, path: str) -> str:
        with urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
            body: bytes = answer.read()
        return body.decode()

    def peak_memory(self) -> int:
        """The largest resident sizes, in bytes, that the process and those it started ever had, added up."""
        return sum(_peak(pid) for pid in family(self.process.pid))

    def memory(self) -> int:
        """The bytes of the process and those it started now; what they share counts once."""
        total = 0
        for pid in family(self.process.pid):
            with suppress(OSError):  # it has ended meanwhile
                total += proportional_memory(pid)
        return total


@contextmanager
def serving(module: str, *arguments: str, folder: Path | None = None, **settings: object) -> Iterator[Server]:
    """``python -m module``, in some folder, with settings of the service by name."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    if module == "uvicorn":
        arguments = (*arguments, "--port", str(port))
    environment = {f"GSH_{name.upper()}": str(value) for name, value in (settings | {"port": port}).items()}
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments], cwd=folder, env=os.environ | environment, stdout=subprocess.DEVNULL
    )
    server = Server(port, process)
    try:
        _wait_for(server)
        yield server
    finally:
        process.terminate()
        process.wait(timeout=30)


def _wait_for(server: Server) -> None:
    while server.process.poll() is None:
        try:
            server.get("/openapi.json")
            return
        except OSError:
            continue
    raise RuntimeError("the server did not start")


def _peak(pid: int) -> int:
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(kilobytes) * 1024
