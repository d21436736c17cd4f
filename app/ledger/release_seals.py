"""Who may have a release again, sealed with the ledger's secret.

A repeated request is recognised by columns of the database: the client, the hash of the request and the hash of its
content. Who can write to the database without the secret could name another client there. So the service compares
these columns with their seal before it gives a stored answer or a seed, and before it commits a release.
"""

from app.ledger.connections import Execute
from app.ledger.errors import LedgerUnavailable
from app.ledger.secret import Secret
from app.ledger.statements import Statements

__all__ = ["check_seal", "release_seal", "seal_releases"]

_PAGE = 1000

Identity = tuple[str, str, int, int, str | None, str, str | None]
"""The idempotency key, the budget, the number of the entry, the version, the client, the request and the content."""


def release_seal(secret: Secret, identity: Identity) -> str:
    """A missing value has another seal than an empty one."""
    return secret.fingerprint(b"release", *(b"" if each is None else b"=" + str(each).encode() for each in identity))


def check_seal(secret: Secret, identity: Identity, seal: str | None) -> None:
    """An error if the columns were changed by someone without the secret."""
    if seal != release_seal(secret, identity):
        raise LedgerUnavailable("a release is not as it was sealed, and its client cannot be known: run gsh verify")


def seal_releases(execute: Execute, sql: Statements, secret: Secret) -> int:
    """Seal all releases as they are now, and say how many."""
    sealed, last = 0, ""
    while rows := execute(sql.identities, (last, _PAGE)):
        for row in rows:
            execute(sql.set_seal, (release_seal(secret, tuple(row)), row[0]))
        sealed, last = sealed + len(rows), rows[-1][0]
    return sealed
