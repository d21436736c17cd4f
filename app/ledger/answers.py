"""The answers that were paid for: a small one is in the row of its charge, a large one in parts of its own."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from app.ledger.connections import Execute
from app.ledger.statements import Statements

__all__ = ["PART_BYTES", "SMALL_BYTES", "Answer", "Stored", "add_parts", "content_of", "part_of"]

PART_BYTES = 4 * 1024**2
SMALL_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    """The media type and the bytes of an answer. ``chunks`` may be called twice."""

    media_type: str
    chunks: Callable[[], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class Stored:
    """An answer in the ledger. Its content is read part by part."""

    idempotency_key: str
    media_type: str
    size: int
    is_new: bool = False
    """True if it was paid for just now, False if an earlier request paid for it."""

    @property
    def parts(self) -> int:
        """How many parts it has; a small one has none."""
        return 0 if self.size <= SMALL_BYTES else -(-self.size // PART_BYTES)


def add_parts(execute: Execute, sql: Statements, idempotency_key: str, chunks: Iterable[bytes]) -> None:
    for place, part in enumerate(_parts(chunks)):
        execute(sql.add_part, (idempotency_key, place, part))


def content_of(execute: Execute, sql: Statements, idempotency_key: str) -> Iterator[bytes]:
    """The whole answer, within one transaction."""
    rows = execute(sql.content, (idempotency_key,))
    if rows and rows[0][0] is not None:
        yield bytes(rows[0][0])
        return
    part = 0
    while rows := execute(sql.part, (idempotency_key, part)):
        yield bytes(rows[0][0])
        part += 1


def part_of(execute: Execute, sql: Statements, idempotency_key: str, part: int) -> bytes:
    ((content,),) = execute(sql.part, (idempotency_key, part))
    return bytes(content)


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
