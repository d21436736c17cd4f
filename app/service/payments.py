"""Charge releases to budgets: check, make the release unseen, charge and store it in one transaction, then reveal it.

A repeated request gets the stored answer, byte for byte. If two requests with one idempotency key arrive at once, both
may draw noise. One answer is stored and both get it. The other draw is never seen. The same holds for a draw that the
budget can no longer pay for when it is charged.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from app.ledger.answers import Answer
from app.ledger.charges import Charge
from app.ledger.clock import now
from app.ledger.state import Budget
from app.ledger.store import Ledger
from app.service.errors import InvalidRequest, MissingIdempotencyKey
from app.service.ledger_pool import LedgerPool
from gsh.accounting.composition import Release, cost_of

__all__ = ["Collect", "Payment", "Payments", "payment_of"]

Collect = Callable[[str, Iterable[bytes]], Answer]
"""Makes an answer of a media type and stored bytes, in a thread."""


@dataclass(frozen=True, slots=True)
class Payment:
    """The budget that pays, the idempotency key that makes the release exactly-once, and the client who asks."""

    budget: str
    idempotency_key: str
    client: str

    def charge(self, release: Release, request: str = "") -> Charge:
        """The charge for a release. ``request`` is the fingerprint of the request; ``Ledger.check`` needs none."""
        return Charge(self.budget, self.idempotency_key, request, self.client, release, cost_of(release))


def payment_of(budget: str | None, idempotency_key: str | None, client: str) -> Payment | None:
    """A budget and an idempotency key, both or neither: without a budget nothing makes a release exactly-once."""
    if budget is None and idempotency_key is None:
        return None
    if budget is None:
        raise InvalidRequest("/budget", "is required with an Idempotency-Key, which works only with a budget")
    if idempotency_key is None:
        raise MissingIdempotencyKey
    return Payment(budget, idempotency_key, client)


class Payments:
    """The use cases that charge a budget."""

    def __init__(self, ledger_pool: LedgerPool) -> None:
        self._ledger = ledger_pool

    async def fingerprint(self, *request: bytes) -> str:
        """The keyed hash by which a repeated request is recognised."""
        return await self._ledger.fetch(lambda ledger: ledger.secret.fingerprint(*request))

    async def is_answered(self, charge: Charge) -> bool:
        """Whether the idempotency key is used. If it is not, an error unless the budget can pay now."""
        return await self._ledger.decide(lambda ledger: ledger.check(charge, now()))

    async def recall(self, charge: Charge, collect: Collect) -> Answer:
        """The stored answer, if this request is the one that paid for it."""
        stored = await self._ledger.ask(lambda ledger: ledger.recall(charge, now()))
        return await self._ledger.fetch(lambda ledger: collect(stored.media_type, ledger.content(stored)))

    async def pay(self, charge: Charge, answer: Answer, collect: Collect) -> Answer:
        """The answer, charged and stored in one transaction; or the one that another request stored meanwhile."""
        stored = await self._ledger.ask(lambda ledger: ledger.charge(charge, now(), lambda _after, _number: answer))
        if stored.is_new:
            return answer
        return await self._ledger.fetch(lambda ledger: collect(stored.media_type, ledger.content(stored)))

    async def charge(
        self,
        payment: Payment,
        release: Release,
        content: bytes,
        answer: Callable[[Budget, int, str], bytes],
    ) -> bytes:
        """Charge for a release that is made elsewhere.

        ``answer`` makes the JSON answer from the budget after the charge, the number of the entry and its time.
        """
        at = now()

        def made(after: Budget, number: int) -> Answer:
            encoded = answer(after, number, at)
            return Answer("application/json", lambda: [encoded])

        def work(ledger: Ledger) -> bytes:
            fingerprint = ledger.secret.fingerprint(b"charge", payment.budget.encode(), content)
            return b"".join(ledger.content(ledger.charge(payment.charge(release, fingerprint), at, made)))

        return await self._ledger.ask(work)
