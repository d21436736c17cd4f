"""Charge releases to budgets: check, make the release unseen, charge and store it, then reveal it.

A repeated request gets the stored answer. If two requests with one idempotency key arrive at once, both may draw noise.
One answer is stored and both get it. The other draw is never seen. The same holds for a draw that the budget can no
longer pay for when it is charged.

The key of an answer is stored after its charge. If it is not there, another process stores it in a moment, or has
ended: then the answer is drawn again.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

from app.errors import Busy, InvalidRequest, MissingIdempotencyKey
from app.ledger.answers import Answer, Staged, Staging, without_noise
from app.ledger.charges import Charge, Charged, CheckedBudget
from app.ledger.clock import now
from app.ledger.errors import LedgerUnavailable
from app.ledger.pool import LedgerPool
from app.ledger.releases import Notes, RecordedRelease
from app.ledger.state import Budget, By
from app.ledger.store import Ledger
from gsh.accounting.composition import Release, cost_of

__all__ = ["Collect", "Outcome", "Payment", "Payments", "Retry", "Terms", "payment_of"]

T = TypeVar("T")

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


class Client(Protocol):
    """Who asks for a release."""

    @property
    def client(self) -> str: ...
    @property
    def by(self) -> By | None: ...
    def check(self, budget: str | None) -> None: ...


def payment_of(client: Client, budget: str | None, idempotency_key: str | None) -> Payment | None:
    """The payment that this client may make for a release; None if no budget pays for it.

    A budget and an idempotency key, both or neither: without a budget nothing makes a release exactly-once.
    """
    client.check(budget)
    if budget is None and idempotency_key is None:
        return None
    if budget is None:
        raise InvalidRequest("/budget", "is required with an Idempotency-Key, which works only with a budget")
    if idempotency_key is None:
        raise MissingIdempotencyKey
    return Payment(budget, idempotency_key, client.client, client.by)


class Terms(NamedTuple):
    """What a certificate says of the budget that pays."""

    budget: str
    epsilon: float
    delta: float
    promised_delta: float
    """The promise that the charge keeps. Before the first one it is the limit, whichever release comes first."""
    privacy_unit: str
    period: str | None
    idempotency_key: str | None

    @classmethod
    def of(cls, budget: Budget, idempotency_key: str | None) -> "Terms":
        limit, promise = budget.limit, budget.promise
        promised_delta = limit.delta if promise is None else promise
        point = (limit.epsilon, limit.delta, promised_delta)
        return cls(budget.id, *point, budget.privacy_unit, budget.period, idempotency_key)


@dataclass(frozen=True, slots=True)
class Outcome:
    """An answer that may be shown."""

    answer: Answer
    replayed_at: str | None = None
    """When the release was made, if an earlier request has paid for it; None if it is new."""


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

    async def budget_for(self, charge: Charge) -> CheckedBudget | None:
        """The budget, if it can pay now, else an error; None if the idempotency key is used."""
        payable = await self._ledger.decide(lambda ledger: ledger.check(charge, now()))
        if payable is None or payable.unread is None:
            return payable
        release = await self._once_stored(charge.idempotency_key)
        return payable if release.is_unread else None

    async def would_pay(self, charge: Charge) -> CheckedBudget | None:
        """The same for a dry run, whose idempotency key may be empty: then only the budget is asked."""
        if charge.idempotency_key:
            return await self.budget_for(charge)
        return CheckedBudget(await self._ledger.decide(lambda ledger: ledger.check_fit(charge)))

    async def recall(self, charge: Charge, retry: Retry) -> Outcome:
        """The stored answer, if this request is the one that paid for it."""
        return await self._collected(await self.recorded(charge, retry.meaning), retry.collect)

    async def recorded(self, charge: Charge, meaning: Callable[[], Awaitable[bytes]]) -> RecordedRelease:
        """The release that this request has paid for: it has the same bytes, or the same content.

        A comparison with other content counts, and is an error (``app/ledger/comparison_limit.py``).
        """
        release = await self._ledger.ask(lambda ledger: ledger.recall_same_bytes(charge, now()))
        if release is None:
            compared = await self.with_content(charge, await meaning())
            release = await self._ledger.ask(lambda ledger: ledger.recall(compared, now()))
        return release

    async def standing(self, budget: str) -> Budget:
        """The budget as it is now."""
        return await self._ledger.decide(lambda ledger: ledger.standing(budget))

    async def pay(self, charge: Charge, answer: Answer, collect: Collect, unread: str | None = None) -> Outcome:
        """The answer, charged and stored; or the one that another request stored meanwhile.

        ``unread`` is the id of a draw that is charged already, and that nobody can have read: this one replaces it.
        """
        charged = await self._stored(charge, answer, unread)
        return Outcome(answer) if charged.is_new else await self._collected(charged.release, collect)

    async def with_content(self, charge: Charge, meaning: bytes) -> Charge:
        """The charge with the keyed hash of what the request means."""
        return replace(charge, content=await self.fingerprint(b"content", meaning))

    async def charge(
        self,
        charge: Charge,
        meaning: bytes,
        certify: Callable[[Terms], str],
        then: Callable[[Ledger, Charged], T],
        *,
        request: bytes = b"",
        answer: Callable[[Budget, int, str], bytes] | None = None,
    ) -> tuple[Charged, T]:
        """Charge for a release that another engine makes, and read ``then`` from the ledger.

        ``certify`` makes the certificate. ``answer`` makes a JSON answer from the budget after the charge, the number
        of the entry and its time. ``request`` is the body: version 0.1 recognised charges by it.
        """
        at = now()

        def work(ledger: Ledger) -> tuple[Charged, T]:
            asked = replace(charge, content=ledger.secret.fingerprint(b"content", meaning))
            if request:
                by_bytes = ledger.secret.fingerprint(b"charge", charge.budget.encode(), request)
                asked = replace(asked, request=by_bytes)
            payable = ledger.check(asked, at)
            if payable is not None:
                certificate = certify(Terms.of(payable.budget, charge.idempotency_key))
                asked = replace(asked, notes=replace(asked.notes, certificate=certificate))
            make = None if answer is None else partial(_small, answer, at)
            charged = ledger.charge(asked, at, make)
            return charged, then(ledger, charged)

        return await self._ledger.ask(work)

    async def _stored(self, charge: Charge, answer: Answer, unread: str | None) -> Charged:
        """A small answer is stored at once. Between the parts of a large one, other requests have their turn."""
        at = now()

        def begin(ledger: Ledger) -> tuple[Staging, Charged | None]:
            staging = ledger.staging(answer, at)
            if staging.step() and not staging.is_small:
                return staging, None
            return staging, _charge(ledger, charge, staging, unread)

        staging, charged = await self._ledger.ask(begin)
        try:
            while charged is None and await self._ledger.ask(lambda _ledger: staging.step()):
                pass
            while charged is None or charged.release.is_unread:
                if charged is not None:
                    release = await self._once_stored(charge.idempotency_key)
                    if not release.is_unread or release.place is None:
                        charged = Charged(release, is_new=False)
                        break
                    unread = release.place.answer
                charged = await self._ledger.ask(partial(_charge, charge=charge, staging=staging, unread=unread))
        except BaseException:
            await self._drop(staging)
            raise
        if not charged.is_new:
            await self._drop(staging)
        return charged

    async def _once_stored(self, idempotency_key: str) -> RecordedRelease:
        """A release whose answer was charged and whose key may come in a moment, if its process has not ended."""
        end = time.monotonic() + _KEY_SECONDS
        while True:
            release = await self._ledger.read(lambda ledger: ledger.release(idempotency_key))
            if not release.is_unread or time.monotonic() > end:
                return release
            await asyncio.sleep(_POLL_SECONDS)

    async def _drop(self, staging: Staging) -> None:
        """Remove an answer that is not charged. If that fails now, it is removed later: nobody can read it."""
        with suppress(LedgerUnavailable, Busy):
            while await asyncio.shield(self._ledger.ask(lambda _ledger: staging.drop())):
                pass

    async def _collected(self, release: RecordedRelease, collect: Collect) -> Outcome:
        answer = await self._ledger.fetch(lambda ledger: collect(release.media_type or _JSON, ledger.content(release)))
        return Outcome(answer, release.at)


_JSON = "application/json"
# The key of an answer is stored milliseconds after its charge. A worker that waits to draw does not wait much longer.
_KEY_SECONDS, _POLL_SECONDS = 2.0, 0.02


def _small(answer: Callable[[Budget, int, str], bytes], at: str, after: Budget, number: int) -> Staged:
    return without_noise(_JSON, answer(after, number, at))


def _charge(ledger: Ledger, charge: Charge, staging: Staging, unread: str | None) -> Charged:
    staged = staging.finish()
    return ledger.charge(charge, now(), lambda _after, _number: staged, unread=unread)
