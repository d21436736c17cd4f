"""Make a release, free or charged to a budget, from groups or from a table."""

import mmap
from collections.abc import Iterable
from typing import IO, Protocol

import pyarrow as pa

from app.ledger.answers import Answer
from app.ledger.charges import Charge
from app.service.payments import Payments
from app.service.spool import SharedFile
from gsh.accounting.mechanism import Mechanism
from gsh.histogram.entropy import operating_system
from gsh.histogram.errors import TooManyGroups
from gsh.histogram.noise import Noise
from gsh.histogram.tables import Format, Limits, Roles, read_table, release_table, write_table

__all__ = ["Making", "ReleaseFacts", "make_release", "release_file"]

ReleaseFacts = tuple[str | None, Mechanism]
"""The budget, and the mechanism without its columns: μ₀ is all that a cost needs of them."""


class Making(Protocol):
    """One release that is being made."""

    async def draw(self) -> Answer:
        """Draw noise, and make the answer. Nobody sees it before it is paid for."""

    async def drop(self) -> None:
        """Draw nothing: an earlier request has paid. A worker that waits to draw is then free."""

    def collect(self, media_type: str, content: Iterable[bytes]) -> Answer:
        """An answer with these stored bytes, in place of what was drawn. Runs in a thread."""


async def make_release(payments: Payments, charge: Charge | None, making: Making) -> Answer:
    """The answer of a release, which may now be shown. A charge comes before the answer; None is a free release."""
    if charge is None:
        return await making.draw()
    if await payments.is_answered(charge):
        await making.drop()
        return await payments.recall(charge, making.collect)
    return await payments.pay(charge, await making.draw(), making.collect)


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
