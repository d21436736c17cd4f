"""The answers that were paid for: a small one is in the row of its charge, a large one in parts of its own.

Parts are written before the charge, each in a short transaction, so that a large answer does not hold up other charges.
They are encrypted with a random key that is stored with the charge. Parts without a charge, after a crash for example,
cannot be read by anyone. They are removed later.
"""

import hashlib
import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from app.ledger.connections import Connections, Execute
from app.ledger.errors import LedgerUnavailable
from app.ledger.statements import Statements

__all__ = [
    "PART_BYTES",
    "SMALL_BYTES",
    "Answer",
    "AnswerPlace",
    "Staged",
    "Staging",
    "expect_staged",
    "part_of",
    "place_of",
    "remove",
    "small",
]

PART_BYTES = 1024**2
SMALL_BYTES = 64 * 1024
_REMOVED_AT_ONCE = 4
_REMOVAL = ("",)
"""In place of the time when an answer was written: its removal has begun."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The media type and the bytes of an answer."""

    media_type: str
    chunks: Callable[[], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class AnswerPlace:
    """Where the parts of a large answer are, and the key that decrypts them. Version 0.1 did not encrypt."""

    answer: str
    key: bytes | None


def place_of(answer: str | None, key: bytes | None) -> AnswerPlace | None:
    """From the columns of a release."""
    return None if answer is None else AnswerPlace(answer, None if key is None else bytes(key))


@dataclass(frozen=True, slots=True)
class Staged:
    """An answer that is ready to be charged: a small one as its bytes, a large one by its place."""

    media_type: str
    sha256: str
    size: int
    content: bytes | None
    place: AnswerPlace | None = None


def small(media_type: str, content: bytes) -> Staged:
    """An answer that is stored in the row of its charge."""
    return Staged(media_type, hashlib.sha256(content).hexdigest(), len(content), content)


class Staging:
    """Writes an answer, part by part. Between two parts other transactions have their turn."""

    def __init__(self, connections: Connections, answer: Answer, at: str) -> None:
        self._connections = connections
        self._media_type = answer.media_type
        self._at = at
        self._parts = _parts(answer.chunks())
        self._place = AnswerPlace(secrets.token_hex(16), secrets.token_bytes(32))
        self._digest = hashlib.sha256()
        self._size = self._written = 0
        self._content: bytes | None = b""

    def step(self) -> bool:
        """Write the next part; False if there is none."""
        part = next(self._parts, None)
        if part is None:
            return False
        self._digest.update(part)
        self._size += len(part)
        if self._size <= SMALL_BYTES:  # the only part
            self._content = part
            return True
        self._content = None
        sql, sealed = self._connections.statements, _sealed(part, self._place, self._written)
        with self._connections.transaction() as execute:
            if self._written == 0:
                execute(sql.stage, (self._place.answer, self._at))
            else:
                expect_staged(execute, sql, self._place)
            execute(sql.add_part, (self._place.answer, self._written, sealed))
        self._written += 1
        return True

    @property
    def is_small(self) -> bool:
        """Whether all that was read so far fits the row of a charge."""
        return self._content is not None

    def finish(self) -> Staged:
        """The answer, after all steps."""
        place = self._place if self._content is None else None
        return Staged(self._media_type, self._digest.hexdigest(), self._size, self._content, place)

    def drop(self) -> bool:
        """Remove some parts: the release was refused, or an earlier one is the answer. False if none is left."""
        if not self._written:
            return False
        with self._connections.transaction() as execute:
            return remove(execute, self._connections.statements, self._place.answer)


def expect_staged(execute: Execute, sql: Statements, place: AnswerPlace) -> None:
    """Lock the row that lists an answer: nobody removes the answer meanwhile. An error if its removal has begun."""
    if execute(sql.staged, (place.answer,)) in ([], [_REMOVAL]):
        raise LedgerUnavailable("the answer was removed before it was charged")


def remove(execute: Execute, sql: Statements, answer: str) -> bool:
    """Remove some parts of an answer, unless it was charged meanwhile; False if there is nothing left to remove.

    A few parts at a time: SQLite overwrites what is deleted, and other transactions wait for that.
    """
    if not execute(sql.staged, (answer,)):
        return False
    execute(sql.abandon, (answer,))
    ((last,),) = execute(sql.last_part, (answer,))
    if last is None:
        execute(sql.unstage, (answer,))
        return False
    execute(sql.erase_parts, (answer, last - _REMOVED_AT_ONCE))
    return True


def part_of(execute: Execute, sql: Statements, place: AnswerPlace, part: int) -> bytes | None:
    """One part of a large answer; None after the last."""
    rows = execute(sql.part, (place.answer, part))
    return _opened(bytes(rows[0][0]), place, part) if rows else None


def _parts(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in parts of PART_BYTES; the last part may be shorter."""
    pending = bytearray()
    for chunk in chunks:
        pending += chunk
        while len(pending) >= PART_BYTES:
            yield bytes(pending[:PART_BYTES])
            del pending[:PART_BYTES]
    if pending:
        yield bytes(pending)


def _sealed(content: bytes, place: AnswerPlace, part: int) -> bytes:
    """The part compressed, with its length in front, and encrypted."""
    compressed = bytes(_codec().compress(content))
    return _exclusive_or(len(content).to_bytes(4, "big") + compressed, place, part)


def _opened(stored: bytes, place: AnswerPlace, part: int) -> bytes:
    if place.key is None:
        return stored
    plain = _exclusive_or(stored, place, part)
    return bytes(_codec().decompress(plain[4:], int.from_bytes(plain[:4], "big")))


def _exclusive_or(content: bytes, place: AnswerPlace, part: int) -> bytes:
    """The content combined with a stream that the key and the number of the part determine: SHAKE-256, used once."""
    assert place.key is not None
    stream = hashlib.shake_256(place.key + part.to_bytes(8, "big")).digest(len(content))
    mixed = int.from_bytes(content, "little") ^ int.from_bytes(stream, "little")
    return mixed.to_bytes(len(content), "little")


@cache
def _codec() -> Any:
    import pyarrow as pa  # noqa: PLC0415 - half a second, which programs that store no large answer do not need

    return pa.Codec("zstd", 1)
