"""One folder for all temporary files of a run of pytest. When the run has ended, nothing of it is left.

The folder becomes ``TMPDIR``. So every process that a test starts has the path of the folder in its environment or in
its command. A small process, the cleaner, waits for the end of the run, however the run ends: a killed process cannot
clean up. The cleaner then ends the processes that name the folder, and removes the folder.

``python tests/run_folder.py PROCESS FOLDER`` is the cleaner.
"""

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

__all__ = ["enter_run_folder", "processes_of"]

PATIENCE = 10
"""Seconds until a process that was asked to end is killed."""
_FOR_EVER = 10**6


def enter_run_folder() -> Path:
    """Make the folder of this run, and start its cleaner."""
    folder = Path(tempfile.mkdtemp(prefix="gsh-run-"))
    folder.chmod(0o711)  # PostgreSQL runs as another user
    os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None  # tempfile has noted the folder before
    subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, str(os.getpid()), folder],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is not for the cleaner
    ).returncode = 0  # nobody waits for it
    return folder


def processes_of(folder: str) -> list[int]:
    """The processes whose command or environment names the folder, but this one."""
    return [pid for name in os.listdir("/proc") if name.isdecimal() and _names(pid := int(name), os.fsencode(folder))]


def _names(process: int, folder: bytes) -> bool:
    with suppress(OSError):  # it has ended, or belongs to another user
        return process != os.getpid() and any(
            folder in Path(f"/proc/{process}/{kind}").read_bytes() for kind in ("cmdline", "environ")
        )
    return False


def _wait(processes: list[int], seconds: float) -> None:
    """Until these processes have ended, but no longer than so many seconds."""
    until = time.monotonic() + seconds
    for process in processes:
        with suppress(ProcessLookupError):
            descriptor = os.pidfd_open(process)
            select.select([descriptor], [], [], max(until - time.monotonic(), 0))
            os.close(descriptor)


def _signal(folder: str, *numbers: signal.Signals) -> None:
    """To the processes that name the folder. By its number alone, a process that began just now could be meant."""
    for process in processes_of(folder):
        with suppress(ProcessLookupError):
            descriptor = os.pidfd_open(process)
            for number in numbers if _names(process, os.fsencode(folder)) else ():
                signal.pidfd_send_signal(descriptor, number)
            os.close(descriptor)


def _clean(run: int, folder: str) -> None:
    _wait([run], _FOR_EVER)
    while processes := processes_of(folder):
        _signal(folder, signal.SIGTERM, signal.SIGCONT)  # a test may have stopped it
        _wait(processes, PATIENCE)
        _signal(folder, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    for each in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):  # the cleaner is the last to end
        signal.signal(each, signal.SIG_IGN)
    _clean(int(sys.argv[1]), sys.argv[2])
