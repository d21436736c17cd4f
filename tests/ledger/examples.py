"""Releases, requests and answers to fill ledgers with."""

from app.ledger.answers import Answer
from app.ledger.charges import Charge
from app.ledger.store import Ledger
from gsh.accounting.case_study import PRINTED
from gsh.accounting.composition import Release, cost_of
from gsh.accounting.mechanism import Mechanism, PlainGaussian

__all__ = ["AT", "GAUSSIAN", "SMALL", "URLS", "answer", "charge", "paid"]

AT = "2026-11-16T12:00:00Z"
URLS = PRINTED
SMALL = Mechanism(3, 1, 120.0, 20.0, 0.01)
GAUSSIAN = PlainGaussian(1, 50.0)


def paid(
    budget: str = "web", key: str = "first", request: str = "r1", release: Release = URLS, client: str = "owner"
) -> Charge:
    return Charge(budget, key, request, client, release, cost_of(release))


def answer(content: bytes = b"42") -> Answer:
    return Answer("application/json", lambda: [content])


def charge(ledger: Ledger, asked: Charge, content: bytes = b"42", at: str = AT) -> bytes:
    """The bytes that a client would get."""
    return b"".join(ledger.content(ledger.charge(asked, at, lambda _budget, _number: answer(content))))
