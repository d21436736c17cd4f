"""Make a release, free or charged to a budget, from groups or from a table."""

import mmap
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import IO, NamedTuple, Protocol

import pyarrow as pa

from app.ledger.answers import Answer
from app.ledger.charges import Charge
from app.ledger.releases import Notes
from app.releases.payments import Outcome, Payments, Retry, Terms
from app.releases.rules import ReleaseRules
from gsh.accounting.mechanism import Mechanism

__all__ = ["Decision", "Drawn", "Making", "ReleaseFacts", "Releases", "make_release", "mapped"]


class ReleaseFacts(NamedTuple):
    """What a payment needs to know of a request."""

    budget: str | None
    mechanism: Mechanism
    """Without its columns: μ₀ is all that a cost needs of them."""
    notes: Notes
    is_dry: bool
    """Whether only the checks are asked for."""
    meaning: bytes = b""
    """The digest of what the request means; empty if nothing will be compared with it, or if it is not known yet."""


class Decision(NamedTuple):
    """The ledger's answer to the facts: a release may go on. Without terms it is free."""

    terms: Terms | None


@dataclass(frozen=True, slots=True)
class Drawn:
    """A release that nobody has seen yet."""

    answer: Answer
    release_id: str
    certificate: str
    """JSON, as it is in the answer."""
    meaning: bytes


class Making(Retry, Protocol):
    """One release that is being made."""

    async def draw(self, terms: Terms | None) -> Drawn:
        """Draw noise, and make the answer. Nobody sees it before it is paid for."""

    async def drop(self) -> None:
        """Draw nothing: an earlier request has paid. A worker that waits to draw is then free."""


@dataclass(frozen=True, slots=True)
class Releases:
    """Makes releases by the operator's rules, and charges budgets for them."""

    payments: Payments
    rules: ReleaseRules


async def make_release(
    payments: Payments, charge: Charge | None, making: Making, check_again: Callable[[], Awaitable[None]]
) -> Outcome:
    """The answer of a release, which may now be shown. A charge comes before the answer; None is a free release.

    ``check_again`` raises an error if the client may no longer have it: it began long ago.
    """
    if charge is None:
        drawn = await making.draw(None)
        await check_again()
        return Outcome(drawn.answer)
    payable = await payments.budget_for(charge)
    if payable is None:
        await making.drop()
        await check_again()
        return await payments.recall(charge, making)
    drawn = await making.draw(Terms.of(payable.budget, charge.idempotency_key))
    notes = replace(charge.notes, release_id=drawn.release_id, certificate=drawn.certificate)
    charge = await payments.with_content(replace(charge, notes=notes), drawn.meaning)
    await check_again()
    return await payments.pay(charge, drawn.answer, making.collect, payable.unread)


def mapped(file: IO[bytes]) -> pa.Buffer:
    """The file as memory that the operating system fills as it is read."""
    is_empty = file.seek(0, 2) == 0
    return pa.py_buffer(b"" if is_empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
