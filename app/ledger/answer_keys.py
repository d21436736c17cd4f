"""The key of each stored answer: how it encrypts the answer, and when it is stored.

An answer is encrypted part by part, with a random key that belongs to one draw:

    stored = AES-256-GCM(key, nonce = number of the part, associated data = id of the answer and number of the part)

Each part is encrypted once, so no nonce is used twice. A part is compressed first and then padded, so the stored length
of an answer that nobody may read says little about it. Version 0.2 combined large answers with a stream of SHAKE-256.
Version 0.1 did not encrypt. Both are still read.

The transaction of a charge stores the answer encrypted, and a mark in place of its key. The next transaction replaces
the mark with the key. Only then is the answer sent. A transaction that fails leaves its bytes in the files of the
database. So the first one has nothing that can be read, and the second one writes the key of an answer that is charged.

If the mark is still there when the request comes again, nobody has read the answer: it is drawn again, with another
key, and not charged again. Only the ledger's secret can make the mark. So a writer to the database
without the secret cannot ask for a second draw by removing a key.

With the hash of an answer, a guess could be checked. So the charge records a keyed hash of it,

    answer_seal = HMAC(salt, SHA-256 of the answer ‖ size),    salt = HMAC(key, "answer seal")

and the hash, the size and the salt are stored together with the key. They stay when the key is erased. For the same
reason the digests of the released rows are encrypted with a key that follows from the salt.

All values have a fixed size. So SQLite replaces the mark within one page, which it writes at once.
"""

import base64
import hashlib
import hmac
from functools import cache
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from app.ledger.databases import Connections, Execute, Statements
from app.ledger.secret import Secret

__all__ = [
    "KEY_BYTES",
    "Facts",
    "add_mark",
    "erase_key",
    "facts_of",
    "opened",
    "opened_contents",
    "opened_of_version_0_2",
    "renew_marks",
    "replace_mark",
    "sealed",
    "sealed_contents",
    "store_key",
    "unread_mark",
]

KEY_BYTES = 32
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
        return _hmac(self.salt, self._hash_and_size).hex()

    @property
    def stored(self) -> bytes:
        return self.salt + self._hash_and_size

    @property
    def _hash_and_size(self) -> bytes:
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
    """Replace the marks of unread answers, after a change of the secret."""
    for (answer,) in execute(sql.unread_answers, (_NO_FACTS, _NO_KEY)):
        execute(sql.set_mark, (unread_mark(secret, answer), answer))


def _hmac(key: bytes, content: bytes) -> bytes:
    return hmac.new(key, content, hashlib.sha256).digest()


_LENGTH = 4  # bytes of a length
_LEAST, _STEP = 1024, 64 * 1024


def sealed(content: bytes, key: bytes, answer: str, part: int) -> bytes:
    """The part, compressed, padded and encrypted. Call it once for each part of an answer."""
    compressed = bytes(_codec().compress(content))
    plain = b"".join(len(each).to_bytes(_LENGTH, "big") for each in (content, compressed)) + compressed
    return AESGCM(key).encrypt(_nonce(part), plain.ljust(_padded(len(plain)), b"\0"), _context(answer, part))


def opened(stored: bytes, key: bytes, answer: str, part: int) -> bytes:
    """The part as it was. ValueError if it was changed."""
    try:
        plain = AESGCM(key).decrypt(_nonce(part), stored, _context(answer, part))
    except InvalidTag:
        raise ValueError("a part of an answer was changed") from None
    size, compressed = (int.from_bytes(plain[at : at + _LENGTH], "big") for at in (0, _LENGTH))
    return bytes(_codec().decompress(plain[2 * _LENGTH : 2 * _LENGTH + compressed], size))


def sealed_contents(contents: str, facts: Facts, answer: str) -> str:
    """The digests of the rows of an answer as text that can be read when its facts are stored, and ever after."""
    return base64.b64encode(sealed(contents.encode(), _key_of_contents(facts), answer, 0)).decode()


def opened_contents(stored: str, facts: Facts, answer: str) -> str:
    """The digests as they were. ValueError if they were changed."""
    return opened(base64.b64decode(stored), _key_of_contents(facts), answer, 0).decode()


def _key_of_contents(facts: Facts) -> bytes:
    return _hmac(facts.salt, b"contents")


def opened_of_version_0_2(stored: bytes, key: bytes, part: int) -> bytes:
    """A part that was combined with a stream that the key and the number of the part determine."""
    stream = hashlib.shake_256(key + part.to_bytes(8, "big")).digest(len(stored))
    mixed = int.from_bytes(stored, "little") ^ int.from_bytes(stream, "little")
    plain = mixed.to_bytes(len(stored), "little")
    return bytes(_codec().decompress(plain[_LENGTH:], int.from_bytes(plain[:_LENGTH], "big")))


def _padded(size: int) -> int:
    """The next power of two; from 64 KiB on the next multiple of 64 KiB."""
    step = min(max(1 << (size - 1).bit_length(), _LEAST), _STEP)
    return -(-size // step) * step


def _nonce(part: int) -> bytes:
    return part.to_bytes(12, "big")


def _context(answer: str, part: int) -> bytes:
    return f"{answer} {part}".encode()


@cache
def _codec() -> Any:
    import pyarrow as pa  # noqa: PLC0415 - half a second, which programs that read no answer do not need

    return pa.Codec("zstd", 1)
