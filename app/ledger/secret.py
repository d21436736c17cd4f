"""The secret of a ledger. Requests are compared by keyed hashes, so a reader of the database cannot test guesses.

The secret is never in the database. If none is set, it is in a file next to SQLite's, which only the service can read.
Only a new database gets a new secret: with another secret, repeated requests would no longer be recognised.
"""

import hashlib
import hmac
import os
from contextlib import suppress
from pathlib import Path

from app.ledger.errors import WrongLedger

__all__ = ["Secret", "secret_file", "stored_secret"]

_BYTES = 32


class Secret:
    """HMAC-SHA-256 with a key that is not shown."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def derived(self, *parts: bytes) -> bytes:
        """A keyed hash of the keyed hashes of the parts: ``ab, c`` and ``a, bc`` have different ones."""
        digests = (hmac.new(self._key, part, hashlib.sha256).digest() for part in parts)
        return hmac.new(self._key, b"".join(digests), hashlib.sha256).digest()

    def fingerprint(self, *parts: bytes) -> str:
        """The same as text."""
        return self.derived(*parts).hex()

    @property
    def marks(self) -> tuple[str, str, str, str]:
        """The marks of ledgers without seals, with sealed access keys, with sealed releases too, and with all of these
        and a history of access.

        Nobody can write one without the secret, unless it was in this ledger before.
        """
        text = b"the secret of this ledger"
        keys = text + b", which seals its access keys"
        releases = keys + b" and its releases"
        return tuple(map(self.fingerprint, (text, keys, releases, releases + b", and has a history of access")))  # type: ignore[return-value]

    @property
    def mark(self) -> str:
        """Stored in the ledger, to recognise its own secret."""
        return self.marks[-1]


def secret_file(database: Path) -> Path:
    """The file that keeps the secret of a database."""
    return database.with_name(database.name + ".secret")


def stored_secret(database: Path, *, make: bool = True) -> bytes:
    """The secret in its file. If ``make``, the first process makes one for a new database."""
    path = secret_file(database)
    # In this order: a process makes the secret before it makes the database.
    is_new = not database.exists() or database.stat().st_size == 0
    if make and is_new and not path.exists():
        _make(path)
    try:
        secret = path.read_bytes()
    except FileNotFoundError:
        raise WrongLedger(
            f"the database is there, but its secret is not: put the file {path} back, or set GSH_LEDGER_SECRET"
        ) from None
    if len(secret) < _BYTES:
        raise WrongLedger(f"the secret in {path} has less than {_BYTES} bytes: put back the one that was there")
    return secret


def _make(path: Path) -> None:
    """Create the file atomically."""
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
