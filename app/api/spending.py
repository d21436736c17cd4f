"""Releases that a budget pays for: checked, made unseen, charged and stored together, and only then revealed.

A request that comes again gets what is stored, byte for byte. If two come at once, both may draw, but one is stored and
both get that one; what the other drew is forgotten unseen, as it is where another request spends what was left.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from fastapi import Request
from pydantic import Field

from app.api.dependencies import Services
from app.api.problems import InvalidHeader
from app.api.schemas.certificate import Certified
from app.ledger.records import BUDGET_ID, now
from app.ledger.state import Budget
from app.ledger.store import Answer, Ledger, Paid, Stored
from app.service.errors import MissingIdempotencyKey
from gsh.accounting.composition import Release, cost_of
from gsh.release.errors import InvalidGroups

__all__ = ["KEY_HEADER", "Payable", "Payment", "charged", "idempotency_key", "pay", "paying"]

_MOST_KEY = 255
KEY_HEADER = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "1 to 255 visible ASCII characters, required with a budget: the same key and request get the same "
    "stored answer and are charged once; the same key with another request is 409.",
    "schema": {"type": "string", "minLength": 1, "maxLength": _MOST_KEY, "pattern": "^[!-~]+$"},
}


class Payable(Certified):
    """The same, and the budget that pays for it."""

    budget: str | None = Field(
        default=None,
        pattern=BUDGET_ID,
        exclude_if=lambda value: value is None,
        title="Budget",
        description="The budget to charge; needs an Idempotency-Key. Without it nothing is charged.",
        examples=["web"],
    )


def idempotency_key(request: Request) -> str | None:
    """The key of a request, if it has one."""
    keys = request.headers.getlist("idempotency-key")
    if not keys:
        return None
    (key,) = keys if len(keys) == 1 else ("",)
    if not (0 < len(key) <= _MOST_KEY and all("!" <= character <= "~" for character in key)):
        raise InvalidHeader("Idempotency-Key", "must be given once, as 1 to 255 visible ASCII characters")
    return key


@dataclass(frozen=True, slots=True)
class Payment:
    """The budget that pays, the key that makes it once, and the client, as the gate calls it."""

    budget: str
    key: str
    client: str


def paying(budget: str | None, key: str | None, client: str) -> Payment | None:
    """A budget and a key, both or neither: a key without a budget would promise what is not kept."""
    if budget is None and key is None:
        return None
    if budget is None:
        raise InvalidGroups("/budget", "is required with an Idempotency-Key: nothing else is answered once only")
    if key is None:
        raise MissingIdempotencyKey
    return Payment(budget, key, client)


async def pay(
    services: Services,
    payment: Payment,
    release: Release,
    request: tuple[bytes, ...],
    make: Callable[[], Awaitable[Answer]],
) -> tuple[Stored, Answer | None]:
    """What is stored for a request, and the answer itself where it was made now.

    ``request`` are the parts by which it is recognised; ``make`` draws, and is not called where nothing fits.
    """
    cost = cost_of(release)

    fingerprint = await services.ledger_pool.fetch(lambda ledger: ledger.secret.fingerprint(*request))
    asked = Paid(payment.budget, payment.key, fingerprint, payment.client, release, cost)
    if await services.ledger_pool.read(lambda ledger: ledger.check(asked, now())):
        return await services.ledger_pool.ask(lambda ledger: ledger.recall(asked, now())), None
    answer = await make()
    stored = await services.ledger_pool.ask(lambda ledger: ledger.charge(asked, now(), lambda _budget, _number: answer))
    return stored, answer if stored.is_new else None


async def charged(
    services: Services,
    payment: Payment,
    release: Release,
    content: bytes,
    answer: Callable[[Budget, int, str], bytes],
) -> bytes:
    """The answer to a charge without a release; it is made from the budget as it stands after it."""
    at, cost = now(), cost_of(release)

    def made(after: Budget, number: int) -> Answer:
        encoded = answer(after, number, at)
        return Answer("application/json", lambda: [encoded])

    def work(ledger: Ledger) -> bytes:
        fingerprint = ledger.secret.fingerprint(b"charge", payment.budget.encode(), content)
        asked = Paid(payment.budget, payment.key, fingerprint, payment.client, release, cost)
        stored = ledger.charge(asked, at, made)
        return b"".join(ledger.content(stored))

    return await services.ledger_pool.ask(work)
