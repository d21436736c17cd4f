"""Make a release, free or charged to a budget, from groups or from a table."""

import mmap
from collections.abc import Awaitable, Callable
from typing import IO

import pyarrow as pa

from app.ledger.answers import Answer
from app.ledger.charges import Charge
from app.service.payments import Collect, Payments
from app.service.spool import SharedFile
from gsh.histogram.entropy import operating_system
from gsh.histogram.errors import TooManyGroups
from gsh.histogram.noise import Noise
from gsh.histogram.tables import Format, Limits, Roles, read_table, release_table, write_table

__all__ = ["make_release", "release_file"]


async def make_release(
    payments: Payments,
    charge: Charge | None,
    draw: Callable[[], Awaitable[Answer]],
    drop: Callable[[], Awaitable[None]],
    collect: Collect,
) -> Answer:
    """The answer of a release, which may now be shown.

    ``draw`` makes a new answer. ``drop`` is called instead if an earlier request has paid, before the stored answer is
    read: a worker that waits to draw is then free.
    """
    if charge is None:
        return await draw()
    if await payments.is_answered(charge):
        await drop()
        return await payments.recall(charge, collect)
    return await payments.pay(charge, await draw(), collect)


def release_file(
    noise: Noise, roles: Roles, limits: Limits, certificate: str, table: SharedFile, answer: SharedFile
) -> Format:
    """In a worker: from a table in one file to the kept rows in another, of the same format."""
    with table as source, answer as sink:
        try:
            kind: Format | None
            kind, read = read_table(_mapped(source), limits)
            write_table(kind, release_table(noise, read, roles, operating_system), certificate, sink)
        except MemoryError:
            kind = None
    if kind is None:  # outside of the handler, whose exception would keep the memory
        raise TooManyGroups("/table", "must be smaller: the service has no memory for it")
    return kind


def _mapped(file: IO[bytes]) -> pa.Buffer:
    """The file as memory that the operating system fills as it is read."""
    is_empty = file.seek(0, 2) == 0
    return pa.py_buffer(b"" if is_empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
