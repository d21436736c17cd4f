"""Turns between the processes of a parallel run: ordinary tests share the machine, one that is ``alone`` has it all.

An ordinary test holds the room with others. A test that is alone first closes the gate, so that nobody new comes in,
and then waits until the room is empty. Both are locks on files that are there anyway; a process that ends lets go.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["turn"]

_GATE = Path(__file__)
_ROOM = Path(__file__).parent / "conftest.py"


@contextmanager
def turn(alone: bool, gate: Path = _GATE, room: Path = _ROOM) -> Iterator[None]:
    """The time of one test: after those that wait already, and with no other if it is to be alone."""
    with room.open() as held:
        with gate.open() as passed:
            fcntl.flock(passed, fcntl.LOCK_EX)
            fcntl.flock(held, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
            fcntl.flock(passed, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(held, fcntl.LOCK_UN)  # said aloud: a process that was forked meanwhile has the file open too
