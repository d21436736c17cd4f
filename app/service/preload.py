"""Imported once by the process that worker processes are forked from (``multiprocessing.forkserver``).

What takes long to prepare is prepared here.
"""

import atexit
import gc
import os
import socket
from contextlib import suppress
from pathlib import Path

from app.release import quantiles

__all__: list[str] = []


def _remove_own_socket() -> None:
    """Remove the folder with the socket by which the service asks for workers: if it was killed, it cannot."""
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            if os.readlink(entry).startswith("socket:"):
                with socket.socket(fileno=os.dup(int(entry.name))) as found:
                    if found.family == socket.AF_UNIX and found.getsockname():
                        path = Path(found.getsockname())
                        path.unlink()
                        path.parent.rmdir()


quantiles.table()
# Objects made until now live as long as the process. The collector need not visit them after every task.
gc.collect()
gc.freeze()
atexit.register(_remove_own_socket)
