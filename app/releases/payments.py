"""Charge releases to budgets: check, draw the answer, charge and store it, and only then send it.

A repeated request gets the stored answer. If two requests with one idempotency key arrive at once, both may draw noise.
One answer is stored and both get it. The other draw is never seen. The same holds for a draw that the budget can no
longer pay for when it is charged.

The key of an answer is stored after its charge. If it is not there, another process stores it in a moment, or has
ended: then the answer is drawn again.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from app.errors import Busy
from app.ledger.answers import Answer, Staged, Staging, without_noise
from app.ledger.charges import Charge, Charged, CheckedBudget
from app.ledger.clock import now
from app.ledger.errors import ApprovalRefused, AwaitsApproval, LedgerError, LedgerUnavailable
from app.ledger.lineage import Lineage, Use
from app.ledger.pool import LedgerPool
from app.ledger.releases import RecordedRelease
from app.ledger.store import Ledger
from app.releases.asked import AfterCharge, BudgetTerms, Client, Collect, Outcome, Posted
from gsh.accounting.budget_limits import Limit
from gsh.accounting.composition import Spent
from gsh.histogram.file_formats import JSON

__all__ = ["Payments", "Rehearsal"]


class Rehearsal(NamedTuple):
    """The budget and its ancestors, what it would have spent within which limit, and what would be replayed."""

    lineage: Lineage
    spent: Spent
    limit: Limit
    earlier: RecordedRelease | None = None


class Payments:
    """The use cases that charge a budget."""

    def __init__(self, ledger_pool: LedgerPool) -> None:
        self._ledger = ledger_pool

    async def exactly_once(self, charge: Charge, posted: Posted, client: Client) -> Outcome:
        """The answer that the budget pays for: drawn, charged and stored now, or by an earlier request."""
        outcome = await self._paid(charge, posted, client)
        return replace(outcome, use=await self._use(charge, outcome.earlier))

    async def _paid(self, charge: Charge, posted: Posted, client: Client) -> Outcome:
        payable = await self._payable(charge, posted)
        if payable is None:
            await posted.stop()
            await client.check_again(charge.budget)
            return await self._collected(await self._recorded(charge, posted), posted.collect, client)
        if payable.needs_approval:
            payable = await self._approved(charge, posted, client)
        charge = replace(charge, budget=payable.budget.id)  # the period is the one that the certificate says
        drawn = await posted.draw(BudgetTerms.of(payable.lineage, charge.idempotency_key))
        notes = replace(charge.notes, release_id=drawn.release_id)
        notes = replace(notes, certificate=drawn.certificate, contents=drawn.contents)
        paid = replace(charge, notes=notes)
        hashed = partial(_hashed, charge=paid, sent=await posted.sent(), meaning=drawn.meaning)
        if not isinstance(drawn.answer, Answer):
            await client.check_again(charge.budget)
            return await self._pay_without_noise(hashed, drawn.answer, posted.collect, client)
        paid = await self._ledger.fetch(hashed)  # a whole body may be hashed: before the last check of access
        await client.check_again(charge.budget)
        return await self._pay(paid, drawn.answer, posted.collect, client, payable.unread)

    async def _approved(self, charge: Charge, posted: Posted, client: Client) -> CheckedBudget:
        """The budget that pays for what another client has approved; an error until then. Nothing is drawn before."""
        meaning = await posted.meaning()
        await client.check_again(charge.budget)
        asked = await self._ledger.ask(
            lambda ledger: ledger.request_release(_hashed(ledger, charge, (), meaning), now())
        )
        if asked.decided is not None and asked.state == "refused":
            raise ApprovalRefused(asked.id, asked.decided.details["reason"])
        if asked.state == "waiting":
            raise AwaitsApproval(asked)
        approved = replace(charge, budget=asked.budget)  # the period that was approved
        return await self._ledger.decide(lambda ledger: ledger.check_fit(approved, now()))

    async def rehearse(self, charge: Charge, posted: Posted) -> Rehearsal:
        """What ``exactly_once`` would do; an error if it would refuse.

        An idempotency key that is used is compared and counted as for the release itself, so that a dry run is no way
        to guess a posted table.
        """
        payable = await self._payable(charge, posted)
        if payable is not None and payable.unread is None:
            budget, cost = payable.budget, charge.cost
            return Rehearsal(payable.lineage, budget.spent.plus(charge.release, cost), budget.limit.settled_by(cost))
        # It is charged already. If nobody has read the answer, it would be drawn again, and not charged again.
        earlier = await self._recorded(charge, posted)
        lineage = await self._ledger.decide(lambda ledger: ledger.lineage(earlier.budget))
        budget = lineage[0]
        return Rehearsal(lineage, budget.spent, budget.limit, None if earlier.is_unread else earlier)

    async def _use(self, charge: Charge, earlier: RecordedRelease | None) -> Use | None:
        """What the release used of its budget; None if the ledger cannot say it now. It is charged in any case."""

        def work(ledger: Ledger) -> Use:
            lineage = ledger.paying(charge.budget) if earlier is None else ledger.lineage(earlier.budget)
            return Use.of_release(lineage, charge.cost)

        with suppress(LedgerError, Busy):
            return await self._ledger.read(work)
        return None

    async def _payable(self, charge: Charge, posted: Posted) -> CheckedBudget | None:
        """Asked before a table is read, so that a refused one is not read, and again after it: that may take hours."""
        payable = await self._checked(charge)
        return await self._checked(charge) if await posted.receive() else payable

    async def _checked(self, charge: Charge) -> CheckedBudget | None:
        """The budget, if it can pay now, else an error; None if the idempotency key is used.

        A dry run may have an empty idempotency key: then only the budget is asked.
        """
        if not charge.idempotency_key:
            return await self._ledger.decide(lambda ledger: ledger.check_fit(charge, now()))
        payable = await self._ledger.decide(lambda ledger: ledger.check(charge, now()))
        if payable is None or payable.unread is None:
            return payable
        release = await self._once_stored(charge.idempotency_key)
        return payable if release.is_unread else None

    async def _recorded(self, charge: Charge, posted: Posted) -> RecordedRelease:
        """The release that this request has paid for: it has the same bytes, or the same content.

        A comparison with other content counts, and is an error (``app/ledger/repeats.py``).
        """
        sent, release = await posted.sent(), None
        if sent:
            charge = await self._ledger.fetch(partial(_hashed, charge=charge, sent=sent))
            release = await self._ledger.ask(lambda ledger: ledger.recall_same_bytes(charge, now()))
        if release is None:
            meaning = await posted.meaning()
            release = await self._ledger.ask(lambda ledger: ledger.recall(_hashed(ledger, charge, (), meaning), now()))
        return release

    async def _pay(
        self, charge: Charge, answer: Answer, collect: Collect, client: Client, unread: str | None = None
    ) -> Outcome:
        """The answer, charged and stored; or the one that another request stored meanwhile.

        ``unread`` is the id of a draw that is charged already, and that nobody can have read: this one replaces it.
        """
        charged = await self._stored(charge, answer, unread)
        return Outcome(answer) if charged.is_new else await self._collected(charged.release, collect, client)

    async def _pay_without_noise(
        self, hashed: Callable[[Ledger], Charge], answer: AfterCharge | None, collect: Collect, client: Client
    ) -> Outcome:
        """The same in one visit to the ledger, for a release that another engine makes: no answer is hidden before."""
        at = now()

        def work(ledger: Ledger) -> Outcome:
            charged = ledger.charge(hashed(ledger), at, None if answer is None else partial(_small, answer, at))
            if not charged.is_new:
                _record_reading(ledger, charged.release, client)
            return Outcome(collect(ledger, charged.release), None if charged.is_new else charged.release)

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

    async def _collected(self, release: RecordedRelease, collect: Collect, client: Client) -> Outcome:
        if client.by is not None:
            await self._ledger.ask(lambda ledger: _record_reading(ledger, release, client))
        return Outcome(await self._ledger.fetch(lambda ledger: collect(ledger, release)), release)


# The key of an answer is stored milliseconds after its charge. A worker that waits to draw does not wait much longer.
_KEY_SECONDS, _POLL_SECONDS = 2.0, 0.02


def _hashed(ledger: Ledger, charge: Charge, sent: tuple[bytes, ...], meaning: bytes = b"") -> Charge:
    """The charge with keyed hashes of the bytes of the request, and of what it means."""
    request = ledger.secret.fingerprint(*sent) if sent else charge.request
    content = ledger.secret.fingerprint(b"content", meaning) if meaning else charge.content
    return replace(charge, request=request, content=content)


def _record_reading(ledger: Ledger, release: RecordedRelease, client: Client) -> None:
    """Before an answer goes again to an access key."""
    if client.by is not None:
        ledger.keys.record_reading(release.key, release.budget, now(), client.by)


def _small(answer: AfterCharge, at: str, after: Lineage, number: int) -> Staged:
    return without_noise(JSON, answer(after, number, at))


def _charge(ledger: Ledger, charge: Charge, staging: Staging, unread: str | None) -> Charged:
    staged = staging.finish()
    return ledger.charge(charge, now(), lambda _after, _number: staged, unread=unread)
