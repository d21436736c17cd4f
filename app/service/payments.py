"""Charge releases to budgets: check, make the release unseen, charge and store it, then reveal it.

A repeated request gets the stored answer. If two requests with one idempotency key arrive at once, both may draw noise.
One answer is stored and both get it. The other draw is never seen. The same holds for a draw that the budget can no
longer pay for when it is charged.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

from app.ledger.answers import Answer, Staging, small
from app.ledger.charges import Charge, Charged
from app.ledger.clock import now
from app.ledger.errors import LedgerUnavailable
from app.ledger.releases import Notes, RecordedRelease
from app.ledger.state import Budget, By
from app.ledger.store import Ledger
from app.service.errors import Busy, InvalidRequest, MissingIdempotencyKey
from app.service.ledger_pool import LedgerPool
from gsh.accounting.composition import Release, cost_of

__all__ = ["Collect", "Outcome", "Payment", "Payments", "Retry", "payment_of"]

Collect = Callable[[str, Iterable[bytes]], Answer]
"""Makes an answer of a media type and stored bytes, in a thread."""


@dataclass(frozen=True, slots=True)
class Payment:
    """The budget that pays, the idempotency key that makes the release exactly-once, and the client who asks."""

    budget: str
    idempotency_key: str
    client: str
    by: By | None = None
    """The access key, for the history; None without access keys."""

    def charge(self, release: Release, notes: Notes, request: str = "") -> Charge:
        """The charge for a release. ``request`` is the fingerprint of the bytes; ``Ledger.check`` needs none."""
        notes, cost = replace(notes, by=self.by), cost_of(release)
        return Charge(self.budget, self.idempotency_key, request, self.client, release, cost, notes=notes)


def payment_of(budget: str | None, idempotency_key: str | None, client: str, by: By | None = None) -> Payment | None:
    """A budget and an idempotency key, both or neither: without a budget nothing makes a release exactly-once."""
    if budget is None and idempotency_key is None:
        return None
    if budget is None:
        raise InvalidRequest("/budget", "is required with an Idempotency-Key, which works only with a budget")
    if idempotency_key is None:
        raise MissingIdempotencyKey
    return Payment(budget, idempotency_key, client, by)


@dataclass(frozen=True, slots=True)
class Outcome:
    """An answer that may be shown. ``is_replayed`` if an earlier request has paid for it."""

    answer: Answer
    is_replayed: bool = False


class Retry(Protocol):
    """A request that may have come before."""

    async def meaning(self) -> bytes:
        """The digest of what the request means, in whatever form it came."""

    def collect(self, media_type: str, content: Iterable[bytes]) -> Answer:
        """An answer with these stored bytes, in place of what was drawn. Runs in a thread."""


class Payments:
    """The use cases that charge a budget."""

    def __init__(self, ledger_pool: LedgerPool) -> None:
        self._ledger = ledger_pool

    async def fingerprint(self, *request: bytes) -> str:
        """The keyed hash by which a repeated request is recognised."""
        return await self._ledger.fetch(lambda ledger: ledger.secret.fingerprint(*request))

    async def budget_for(self, charge: Charge) -> Budget | None:
        """The budget, if it can pay now, else an error; None if the idempotency key is used."""
        return await self._ledger.decide(lambda ledger: ledger.check(charge, now()))

    async def would_pay(self, charge: Charge) -> Budget:
        """The budget, if it could pay for a release with an idempotency key that is not used."""
        return await self._ledger.decide(lambda ledger: ledger.check_fit(charge))

    async def recall(self, charge: Charge, retry: Retry) -> Outcome:
        """The stored answer, if this request is the one that paid for it: the same bytes, or the same content."""
        release = await self._ledger.fetch(lambda ledger: ledger.recall_same_bytes(charge, now()))
        if release is None:
            compared = await self.with_content(charge, await retry.meaning())
            release = await self._ledger.ask(lambda ledger: ledger.recall(compared, now()))
        return await self._collected(release, retry.collect)

    async def pay(self, charge: Charge, answer: Answer, collect: Collect) -> Outcome:
        """The answer, charged and stored; or the one that another request stored meanwhile."""
        charged = await self._stored(charge, answer)
        return Outcome(answer) if charged.is_new else await self._collected(charged.release, collect)

    async def with_content(self, charge: Charge, meaning: bytes) -> Charge:
        """The charge with the keyed hash of what the request means."""
        return replace(charge, content=await self.fingerprint(b"content", meaning))

    async def charge(
        self, charge: Charge, meaning: bytes, content: bytes, answer: Callable[[Budget, int, str], bytes]
    ) -> tuple[bytes, bool]:
        """Charge for a release that is made elsewhere: the answer, and whether an earlier request has paid for it.

        ``answer`` makes the JSON answer from the budget after the charge, the number of the entry and its time.
        """
        at = now()

        def work(ledger: Ledger) -> tuple[bytes, bool]:
            secret = ledger.secret
            asked = replace(
                charge,
                request=secret.fingerprint(b"charge", charge.budget.encode(), content),
                content=secret.fingerprint(b"content", meaning),
            )
            charged = ledger.charge(asked, at, lambda after, number: small(_JSON, answer(after, number, at)))
            return b"".join(ledger.content(charged.release)), not charged.is_new

        return await self._ledger.ask(work)

    async def _stored(self, charge: Charge, answer: Answer) -> Charged:
        """A small answer is one transaction. Between the parts of a large one, other requests have their turn."""
        at = now()

        def begin(ledger: Ledger) -> Staging | Charged:
            staging = ledger.staging(answer, at)
            if staging.step() and not staging.is_small:
                return staging
            return _charge(ledger, charge, staging)

        begun = await self._ledger.ask(begin)
        if isinstance(begun, Charged):
            return begun
        try:
            while await self._ledger.ask(lambda _ledger: begun.step()):
                pass
            charged = await self._ledger.ask(lambda ledger: _charge(ledger, charge, begun))
        except BaseException:
            await self._drop(begun)
            raise
        if not charged.is_new:
            await self._drop(begun)
        return charged

    async def _drop(self, staging: Staging) -> None:
        """Remove an answer that is not charged. If that fails now, it is removed later: nobody can read it."""
        with suppress(LedgerUnavailable, Busy):
            await asyncio.shield(self._ledger.ask(lambda _ledger: staging.drop()))

    async def _collected(self, release: RecordedRelease, collect: Collect) -> Outcome:
        answer = await self._ledger.fetch(lambda ledger: collect(release.media_type or _JSON, ledger.content(release)))
        return Outcome(answer, is_replayed=True)


_JSON = "application/json"


def _charge(ledger: Ledger, charge: Charge, staging: Staging) -> Charged:
    staged = staging.finish()
    return ledger.charge(charge, now(), lambda _after, _number: staged)
