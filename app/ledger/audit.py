"""What stands beside a history, compared with it: costs, keys, requests and answers, which have columns of their own.

The chain of hashes protects what is recorded. Columns are copies for the database to search by, and answers are too
large for it; whoever changes one of these changes what clients get, though the chain still holds.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from app.ledger.connections import Execute
from app.ledger.state import UNREADABLE, Entry, Fault
from app.ledger.statements import Statements

__all__ = ["Audit", "digest_of"]

_PAGE = 1000
_BESIDE = ("s", "d", "key", "request", "client", "media_type", "size")


class Audit:
    """The questions that only an audit asks of a database."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    def names(self, execute: Execute) -> list[str]:
        """All budgets, and all that have a history without being there."""
        return [name for (name,) in execute(self._sql.all_names)]

    def entries(self, execute: Execute, budget: str) -> Iterator[Entry]:
        """A history from its beginning."""
        return (entry for entry, _ in self._rows(execute, budget))

    def faults(self, execute: Execute, budget: str, content: Callable[[str], Iterable[bytes]]) -> Iterator[Fault]:
        """Entries of a history, intact itself, with something else beside them than was recorded."""
        for entry, beside in self._rows(execute, budget):
            try:
                wrong = _wrong(entry, beside, content)
            except UNREADABLE:
                wrong = "cannot be read"
            if wrong is not None:
                yield Fault(entry.number, wrong)

    def _rows(self, execute: Execute, budget: str) -> Iterator[tuple[Entry, dict[str, Any]]]:
        """Each entry, and what stands beside it."""
        after = 0
        while rows := execute(self._sql.audited, (budget, after, _PAGE)):
            for row in rows:
                yield Entry(*row[: -len(_BESIDE)]), dict(zip(_BESIDE, row[-len(_BESIDE) :], strict=True))
            after = rows[-1][1]


def digest_of(chunks: Iterable[bytes]) -> tuple[str, int]:
    """The SHA-256 of an answer, and its size."""
    digest, size = hashlib.sha256(), 0
    for chunk in chunks:
        digest.update(chunk)
        size += len(chunk)
    return digest.hexdigest(), size


def _wrong(entry: Entry, beside: dict[str, Any], content: Callable[[str], Iterable[bytes]]) -> str | None:
    if entry.kind != "charge":
        return None if set(beside.values()) == {None} else "has the cost or the answer of a charge, and is none"
    details = entry.details
    for name, value in beside.items():
        # Entries of earlier versions record the cost and the key alone.
        if name in details and details[name] != value:
            return f"has another {name} beside it than was recorded"
    if digest_of(content(details["key"])) != (details["answer"], beside["size"]):
        return "has another answer than the one that was paid for"
    return None
