"""What the ledger asks of a database: transactions, and the statements in its words."""

from contextlib import AbstractContextManager
from typing import Any, Protocol

from app.ledger.statements import Statements

__all__ = ["Connections", "Execute", "Taken"]


class Execute(Protocol):
    """Runs a statement with its values, and gives the rows."""

    def __call__(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]: ...


class Taken(Exception):
    """Another transaction has put in a row with the same key first."""


class Connections(Protocol):
    """A database: SQLite or PostgreSQL. Whatever fails in it is ``LedgerUnavailable``, which says why."""

    statements: Statements
    threads: int

    def transaction(self, *, migrating: bool = False) -> AbstractContextManager[Execute]:
        """All that is executed inside, or nothing of it; durable when the context ends."""
        ...

    def reading(self) -> AbstractContextManager[Execute]:
        """Rows of one moment."""
        ...

    def close(self) -> None:
        """All connections, once no thread uses one."""
        ...
