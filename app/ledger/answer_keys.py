"""The key of each stored answer, which is stored after the charge, in a transaction of its own.

The transaction of a charge stores the answer encrypted, and a mark in place of its key. The next transaction replaces
the mark with the key. Only then is the answer sent. A transaction that fails leaves its bytes in the files of the
database. So the first one has nothing that can be read, and the second one writes the key of an answer that is charged.

If the mark is still there when the request comes again, nobody has read the answer: it is drawn again, with another
key, and not charged again. Only the ledger's secret can make the mark. So who can only write to the database cannot
ask for a second draw by removing a key.

The hash of an answer would tell guesses about it apart. So the charge records a keyed hash of it,

    answer_seal = HMAC(salt, SHA-256 of the answer ‖ size),    salt = HMAC(key, "answer seal")

and the hash, the size and the salt are stored together with the key. They stay when the key is erased.

All values have a fixed size. So SQLite replaces the mark within one page, which it writes at once.
"""

import hashlib
import hmac
from typing import NamedTuple

from app.ledger.connections import Connections, Execute
from app.ledger.part_cipher import KEY_BYTES
from app.ledger.secret import Secret
from app.ledger.statements import Statements

__all__ = ["Facts", "add_mark", "erase_key", "facts_of", "renew_marks", "replace_mark", "store_key", "unread_mark"]

_SHA256_BYTES, _SIZE_BYTES = 32, 8
_NO_FACTS = bytes(2 * _SHA256_BYTES + _SIZE_BYTES)
_NO_KEY = bytes(KEY_BYTES)


class Facts(NamedTuple):
    """What is known about an answer from the moment when its key is stored."""

    salt: bytes
    sha256: str
    size: int

    @classmethod
    def of(cls, key: bytes, sha256: str, size: int) -> "Facts":
        return cls(_hmac(key, b"answer seal"), sha256, size)

    @property
    def seal(self) -> str:
        """What the charge records. Without the salt it says nothing about the answer."""
        return _hmac(self.salt, self._said).hex()

    @property
    def stored(self) -> bytes:
        return self.salt + self._said

    @property
    def _said(self) -> bytes:
        return bytes.fromhex(self.sha256) + self.size.to_bytes(_SIZE_BYTES, "big")


def facts_of(stored: bytes) -> Facts | None:
    """None while the key is not stored."""
    if stored == _NO_FACTS:
        return None
    salt, digest, size = stored[:_SHA256_BYTES], stored[_SHA256_BYTES:-_SIZE_BYTES], stored[-_SIZE_BYTES:]
    return Facts(salt, digest.hex(), int.from_bytes(size, "big"))


def unread_mark(secret: Secret, answer: str) -> bytes:
    """In place of a key that is not stored yet."""
    return secret.derived(b"unread answer", answer.encode())


def add_mark(execute: Execute, sql: Statements, secret: Secret, answer: str) -> None:
    """In the transaction that charges."""
    execute(sql.add_answer_key, (answer, unread_mark(secret, answer), _NO_FACTS))


def store_key(connections: Connections, secret: Secret, answer: str, key: bytes, facts: Facts) -> bool:
    """Replace the mark of an answer with its key; False if the mark is not there any more."""
    values = (key, facts.stored, answer, unread_mark(secret, answer), _NO_FACTS)
    return bool(connections.execute_alone(connections.statements.store_answer_key, values))


def replace_mark(execute: Execute, sql: Statements, secret: Secret, before: str, answer: str) -> bool:
    """Let another draw take the place of one that nobody has read; False if its key was stored meanwhile."""
    if not execute(sql.drop_mark, (before, unread_mark(secret, before), _NO_FACTS)):
        return False
    add_mark(execute, sql, secret, answer)
    return True


def erase_key(execute: Execute, sql: Statements, answer: str) -> None:
    """With its key an answer is lost. Its hash stays."""
    execute(sql.erase_answer_key, (_NO_KEY, answer))


def renew_marks(execute: Execute, sql: Statements, secret: Secret) -> None:
    """Make the marks of unread answers anew, after a change of the secret."""
    for (answer,) in execute(sql.unread_answers, (_NO_FACTS, _NO_KEY)):
        execute(sql.set_mark, (unread_mark(secret, answer), answer))


def _hmac(key: bytes, content: bytes) -> bytes:
    return hmac.new(key, content, hashlib.sha256).digest()
