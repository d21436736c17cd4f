"""The service's secret, with which requests are compared: a reader of the database alone cannot test guesses.

It is never in the database. Where it is not given, a file beside SQLite's has it, readable by the service alone.
"""

import hashlib
import hmac
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

__all__ = ["Secret", "kept_beside"]

_BYTES = 32


class Secret:
    """HMAC-SHA-256 with a key that is not shown."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def fingerprint(self, *parts: bytes | Iterable[bytes]) -> str:
        """A keyed hash of some parts, each with its length, so that none runs into the next."""
        outer = hmac.new(self._key, digestmod=hashlib.sha256)
        for part in parts:
            inner = hmac.new(self._key, digestmod=hashlib.sha256)
            for chunk in (part,) if isinstance(part, bytes) else part:
                inner.update(chunk)
            outer.update(inner.digest())
        return outer.hexdigest()


def kept_beside(database: Path) -> bytes:
    """The secret in the file beside the database, made by whoever comes first; complete or not there at all."""
    path = database.with_name(database.name + ".secret")
    if not path.exists():
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
    return path.read_bytes()
