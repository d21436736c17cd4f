"""The service's secret, with which requests are compared: a reader of the database alone cannot test guesses.

It is never in the database. Where it is not given, a file beside SQLite's has it, readable by the service alone. Only a
new database gets a new one: in place of one that is lost it would make every request that comes again a stranger.
"""

import hashlib
import hmac
import os
from contextlib import suppress
from pathlib import Path

from app.ledger.errors import WrongLedger

__all__ = ["Secret", "beside", "kept_beside"]

_BYTES = 32


class Secret:
    """HMAC-SHA-256 with a key that is not shown."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def fingerprint(self, *parts: bytes) -> str:
        """A keyed hash of the keyed hashes of the parts: ``ab, c`` and ``a, bc`` have different fingerprints."""
        digests = (hmac.new(self._key, part, hashlib.sha256).digest() for part in parts)
        return hmac.new(self._key, b"".join(digests), hashlib.sha256).hexdigest()

    @property
    def earlier_mark(self) -> str:
        """The same in ledgers whose access keys are not sealed yet. Who does not know the secret cannot write it."""
        return self.fingerprint(b"the secret of this ledger")

    @property
    def mark(self) -> str:
        """By which a ledger knows its own secret."""
        return self.fingerprint(b"the secret of this ledger, which seals its access keys")


def beside(database: Path) -> Path:
    """The file that keeps the secret of a database."""
    return database.with_name(database.name + ".secret")


def kept_beside(database: Path, *, make: bool = True) -> bytes:
    """The secret in the file beside the database; made by whoever comes first, where both are new and it may be."""
    path = beside(database)
    # In this order: who makes a database has put its secret there before.
    is_new = not database.exists() or database.stat().st_size == 0
    if make and is_new and not path.exists():
        _make(path)
    try:
        secret = path.read_bytes()
    except FileNotFoundError:
        raise WrongLedger(
            f"the database is there, but its secret is not: put the file {path} back, or give GSH_LEDGER_SECRET"
        ) from None
    if len(secret) < _BYTES:
        raise WrongLedger(f"the secret in {path} has less than {_BYTES} bytes: put back the one that was there")
    return secret


def _make(path: Path) -> None:
    """Complete, or not there at all."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(descriptor, os.urandom(_BYTES).hex().encode())
        os.fsync(descriptor)
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        os.close(descriptor)
        draft.unlink()
