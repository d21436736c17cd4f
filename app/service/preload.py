"""Imported once by the process that worker processes are forked from (``multiprocessing.forkserver``).

It prepares everything that takes long, so that workers start fast.
"""

import atexit
import gc
import os
import socket
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from gsh.histogram import quantiles

__all__: list[str] = []


def _sockets_listened_on() -> list[Path]:
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            if os.readlink(entry).startswith("socket:"):
                with socket.socket(fileno=os.dup(int(entry.name))) as each:
                    if each.family == socket.AF_UNIX and each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                        found.append(Path(each.getsockname()))
    return found


def _remove(path: Path) -> None:
    """Remove the socket by which the service asks for workers, and its folder: a killed service cannot do it."""
    with suppress(OSError):
        path.unlink()
        path.parent.rmdir()


for _path in _sockets_listened_on():
    atexit.register(_remove, _path)
quantiles.table()
pa.array([""])  # loads pandas if it is installed, for half a second
# All objects made so far live as long as the process. The collector need not visit them after every task.
gc.collect()
gc.freeze()
