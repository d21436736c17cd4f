"""The interface of a database to the ledger: transactions, and statements in its dialect."""

from contextlib import AbstractContextManager
from typing import Any, Protocol

from app.ledger.databases.statements import Statements

__all__ = ["Connections", "Execute", "Statements", "Taken"]


class Execute(Protocol):
    """Runs a statement with its values, and gives the rows."""

    def __call__(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]: ...


class Taken(Exception):
    """Another transaction has inserted a row with the same primary key first."""


class Connections(Protocol):
    """A database: SQLite or PostgreSQL. Every failure is a ``LedgerUnavailable`` that says why."""

    statements: Statements
    threads: int

    def transaction(self, *, migrating: bool = False) -> AbstractContextManager[Execute]:
        """Everything that is executed inside, or nothing; durable when the context ends."""
        ...

    def execute_alone(self, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """A transaction of one statement, which the database gets and commits in one step.

        If the connection breaks, the statement may be executed twice.
        """
        ...

    def reading(self) -> AbstractContextManager[Execute]:
        """Everything that is read inside is of one moment."""
        ...

    def purge(self) -> bool:
        """Overwrite what was deleted, as far as the database can. False if others are in the way: try again later."""
        ...

    def close(self) -> None:
        """Close all connections. No thread may use one."""
        ...
