"""Compare each entry of a history with the columns of its row, and with its answer.

The chain of hashes protects the recorded payload. The columns are copies that the database can search, and answers are
too large for the chain. A change of one of these changes what clients get, although the chain is intact.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from app.ledger.connections import Execute
from app.ledger.state import UNREADABLE, Entry, HistoryFault
from app.ledger.statements import Statements

__all__ = ["Audit", "answer_digest"]

_PAGE = 1000
_COLUMNS = {
    "s": "mu_squared",
    "d": "hazard",
    "key": "idempotency key",
    "request": "hash of the request",
    "client": "hash of the client",
    "media_type": "media type of the answer",
    "size": "size of the answer",
}
"""The stored name of each column, and its name for people."""


class Audit:
    """Readings of the database that only an audit needs."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    def names(self, execute: Execute) -> list[str]:
        """All budgets, and all histories whose budget is gone."""
        return [name for (name,) in execute(self._sql.all_names)]

    def entries(self, execute: Execute, budget: str) -> Iterator[Entry]:
        """A history from its beginning."""
        return (entry for entry, _ in self._rows(execute, budget))

    def faults(
        self, execute: Execute, budget: str, content: Callable[[str], Iterable[bytes]]
    ) -> Iterator[HistoryFault]:
        """Entries whose columns or answer differ from what was recorded, in a history whose chain is intact."""
        for entry, columns in self._rows(execute, budget):
            try:
                wrong = _wrong(entry, columns, content)
            except UNREADABLE:
                wrong = "cannot be read"
            if wrong is not None:
                yield HistoryFault(entry.number, wrong)

    def _rows(self, execute: Execute, budget: str) -> Iterator[tuple[Entry, dict[str, Any]]]:
        """Each entry, and the columns of its row."""
        after = 0
        while rows := execute(self._sql.audited, (budget, after, _PAGE)):
            for row in rows:
                yield Entry(*row[: -len(_COLUMNS)]), dict(zip(_COLUMNS, row[-len(_COLUMNS) :], strict=True))
            after = rows[-1][1]


def answer_digest(chunks: Iterable[bytes]) -> tuple[str, int]:
    """The SHA-256 of an answer, and its size."""
    digest, size = hashlib.sha256(), 0
    for chunk in chunks:
        digest.update(chunk)
        size += len(chunk)
    return digest.hexdigest(), size


def _wrong(entry: Entry, columns: dict[str, Any], content: Callable[[str], Iterable[bytes]]) -> str | None:
    if entry.kind != "charge":
        return None if set(columns.values()) == {None} else "has the cost or the answer of a charge, but is no charge"
    details = entry.details
    for name, value in columns.items():
        # Entries of earlier versions record only the cost and the idempotency key.
        if name in details and details[name] != value:
            return f"has another {_COLUMNS[name]} in its row of the database than in the record that is hashed"
    if answer_digest(content(details["key"])) != (details["answer"], columns["size"]):
        return "has another answer than the one that was paid for"
    return None
