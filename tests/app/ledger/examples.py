"""Releases, requests and answers to fill ledgers with."""

from app.ledger.answers import Answer, Staged
from app.ledger.charges import Charge
from app.ledger.store import Ledger
from gsh.accounting.case_study import PRINTED
from gsh.accounting.composition import Release, cost_of
from gsh.accounting.mechanism import Mechanism, PlainGaussian

__all__ = ["AT", "GAUSSIAN", "SMALL", "URLS", "charge", "paid", "store"]

AT = "2026-11-16T12:00:00Z"
URLS = PRINTED
SMALL = Mechanism(c_u=3, tau=1, tau_star=120.0, sigma=20.0, mu_0=0.01)
GAUSSIAN = PlainGaussian(c_u=1, sigma=50.0)


def paid(
    budget: str = "web", key: str = "first", request: str = "r1", release: Release = URLS, client: str = "owner"
) -> Charge:
    return Charge(budget, key, request, client, release, cost_of(release))


def charge(ledger: Ledger, asked: Charge, content: bytes = b"42", at: str = AT) -> bytes:
    """The bytes that a client would get."""
    staged = store(ledger, content)
    release = ledger.charge(asked, at, lambda _budget, _number: staged).release
    while release.is_unread:  # another client stores its key just now
        release = ledger.release(release.key)
    return b"".join(ledger.content(release))


def store(ledger: Ledger, content: bytes, media_type: str = "application/json", at: str = AT) -> Staged:
    """An answer of any size, written and ready to be charged."""
    staging = ledger.staging(
        Answer(media_type, lambda: [content[: len(content) // 2], content[len(content) // 2 :]]), at
    )
    while staging.step():
        pass
    return staging.finish()
