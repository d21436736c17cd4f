"""Turns between the processes of a parallel run: a test marked ``alone`` runs with no other test.

There are two file locks. Every test waits for the lock ``entry``, takes the lock ``running``, and releases ``entry``.
Ordinary tests share ``running``; a test that is alone takes it exclusively. It keeps ``entry`` while it waits, so later
tests wait behind it. The locks are on existing files. The kernel releases the locks of a process that ends.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["turn"]

_ENTRY = Path(__file__)
_RUNNING = Path(__file__).parent / "conftest.py"


@contextmanager
def turn(alone: bool, entry: Path = _ENTRY, running: Path = _RUNNING) -> Iterator[None]:
    """Run one test inside: after all tests that wait already, and with no other test if ``alone``."""
    with running.open() as held:
        with entry.open() as passed:
            fcntl.flock(passed, fcntl.LOCK_EX)
            fcntl.flock(held, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
            fcntl.flock(passed, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(held, fcntl.LOCK_UN)  # explicitly, because a process that the test forked has the file open too
