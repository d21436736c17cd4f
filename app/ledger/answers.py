"""The answers that were paid for: a small one is in the row of its charge, a large one in parts of its own.

Parts are written before the charge, each in a short transaction, so that a large answer does not hold up other charges.
All answers with noise are encrypted, and their key is stored after the charge (answer_keys.py). Parts without a charge,
after a crash for example, cannot be read by anyone. They are removed later.

An answer whose retention period has passed is erased. Its charge and its certificate stay for ever.
"""

import hashlib
import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from app.ledger.answer_keys import KEY_BYTES, Facts, erase_key, opened, opened_of_version_0_2, sealed
from app.ledger.databases import Connections, Execute, Statements
from app.ledger.errors import LedgerUnavailable
from app.ledger.secret import Secret
from app.ledger.state import UNREADABLE

__all__ = [
    "ENCRYPTED",
    "PART_BYTES",
    "SMALL_BYTES",
    "Answer",
    "AnswerPlace",
    "Staged",
    "Staging",
    "erase_answers",
    "erasure_seal",
    "expect_staged",
    "part_of",
    "readable_part",
    "remove",
    "remove_abandoned",
    "seal_erasures",
    "whole_answer",
    "without_noise",
]

ENCRYPTED = 2
"""The version of releases whose answers are encrypted by answer_keys.py. Those before have version 1."""
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
    """The id of a draw, and the key that decrypts it; None if it is not stored yet, or erased, or of version 0.1."""

    answer: str
    key: bytes | None
    version: int = ENCRYPTED

    def opened(self, stored: bytes, part: int) -> bytes | None:
        """The part as it was. ValueError if it was changed; None if nobody can read it."""
        if self.version < ENCRYPTED:  # version 0.1 did not encrypt
            return stored if self.key is None else opened_of_version_0_2(stored, self.key, part)
        return None if self.key is None else opened(stored, self.key, self.answer, part)


@dataclass(frozen=True, slots=True)
class Staged:
    """An answer that is ready to be charged. ``content`` is that of a small one, as it will be stored."""

    media_type: str
    sha256: str
    size: int
    content: bytes | None
    place: AnswerPlace | None = None
    """None for an answer without noise, which is not encrypted."""

    @property
    def facts(self) -> Facts | None:
        """What is recorded and stored of an encrypted answer."""
        return (
            None if self.place is None or self.place.key is None else Facts.of(self.place.key, self.sha256, self.size)
        )


def without_noise(media_type: str, content: bytes) -> Staged:
    """A small answer that says only what a budget has spent: it is stored as it is."""
    return Staged(media_type, hashlib.sha256(content).hexdigest(), len(content), content)


class Staging:
    """Writes an answer, part by part. Between two parts other transactions have their turn."""

    def __init__(self, connections: Connections, answer: Answer, at: str) -> None:
        self._connections = connections
        self._media_type = answer.media_type
        self._at = at
        self._parts = _parts(answer.chunks())
        # A key for this draw alone: whatever fails, no other bytes are ever encrypted with it.
        self._key = secrets.token_bytes(KEY_BYTES)
        self._place = AnswerPlace(secrets.token_hex(16), self._key)
        self._digest = hashlib.sha256()
        self._size = self._written = 0
        self._next: bytes | None = None
        """A part that is encrypted, and not known to be written: a step that failed is repeated with the same bytes."""
        self._content: bytes | None = None
        self._is_small = True

    def step(self) -> bool:
        """Write the next part; False if there is none."""
        if self._next is None:
            part = next(self._parts, None)
            if part is None:
                return False
            self._digest.update(part)
            self._size += len(part)
            self._next = sealed(part, self._key, self._place.answer, self._written)
        if self._size <= SMALL_BYTES:  # the only part
            self._content, self._next = self._next, None
            return True
        self._is_small = False
        sql = self._connections.statements
        with self._connections.transaction() as execute:
            if self._written == 0:
                execute(sql.stage, (self._place.answer, self._at))
            else:
                expect_staged(execute, sql, self._place)
            execute(sql.add_part, (self._place.answer, self._written, self._next))
        self._written, self._next = self._written + 1, None
        return True

    @property
    def is_small(self) -> bool:
        """Whether all that was read so far fits the row of a charge."""
        return self._is_small

    def finish(self) -> Staged:
        """The answer, after all steps."""
        if self._size == 0 and self._content is None:  # no part at all
            self._content = sealed(b"", self._key, self._place.answer, 0)
        return Staged(self._media_type, self._digest.hexdigest(), self._size, self._content, self._place)

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


def readable_part(execute: Execute, sql: Statements, key: str, place: AnswerPlace | None, number: int) -> bytes | None:
    """A part of an answer. An error if it was changed in the database."""
    try:
        return _part(execute, sql, key, place, number)
    except UNREADABLE:
        pass
    # Outside of the handler: the error of a reader holds what it could not read.
    raise LedgerUnavailable("an answer is not as it was stored: run gsh ledger verify")


def whole_answer(execute: Execute, sql: Statements, key: str, place: AnswerPlace | None) -> Iterator[bytes]:
    """A whole answer, within one transaction."""
    number = 0
    while (part := _part(execute, sql, key, place, number)) is not None:
        yield part
        number += 1


def _part(execute: Execute, sql: Statements, key: str, place: AnswerPlace | None, number: int) -> bytes | None:
    """A part of an answer; a small answer is one part. None after the last."""
    if number == 0 and (place is None or place.version >= ENCRYPTED):
        rows = execute(sql.content, (key,))
        content = bytes(rows[0][0]) if rows and rows[0][0] is not None else None
        if place is None or content is not None:
            return content if place is None or content is None else place.opened(content, 0)
    return None if place is None else part_of(execute, sql, place, number)


def part_of(execute: Execute, sql: Statements, place: AnswerPlace, part: int) -> bytes | None:
    """One part of a large answer; None after the last."""
    rows = execute(sql.part, (place.answer, part))
    return place.opened(bytes(rows[0][0]), part) if rows else None


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


def erase_answers(execute: Execute, sql: Statements, secret: Secret, before: str, at: str) -> int:
    """Erase some answers of releases before a time, and return how many; 0 if there are none.

    With its key, an answer is lost at once. The parts of a large one are listed for removal.
    """
    outdated = execute(sql.outdated, (before,))
    for key, answer in outdated:
        if answer is not None:
            execute(sql.stage, (answer, ""))
            erase_key(execute, sql, answer)
        execute(sql.erase_content, (key,))
        execute(sql.set_erased, (at, erasure_seal(secret, key, at), key))
    return len(outdated)


def erasure_seal(secret: Secret, key: str, at: str) -> str:
    """Proves that the service erased an answer: nobody can write it without the secret."""
    return secret.fingerprint(b"erased answer", key.encode(), at.encode())


def remove_abandoned(execute: Execute, sql: Statements, before: str) -> bool:
    """Remove some parts that were written before a time and never charged, or are erased; False if there are none."""
    abandoned = execute(sql.abandoned, (before,))
    for (answer,) in abandoned:
        remove(execute, sql, answer)
    return bool(abandoned)


def seal_erasures(execute: Execute, sql: Statements, secret: Secret) -> None:
    """Seal all erased answers again."""
    for key, at in execute(sql.erased):
        execute(sql.set_erasure, (erasure_seal(secret, key, at), key))
