"""PostgreSQL, for several instances of the service: a connection per thread, made anew where it was lost."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

from app.ledger.connections import Execute, Taken
from app.ledger.errors import LedgerUnavailable
from app.ledger.statements import POSTGRES, Statements

__all__ = ["PostgresConnections"]

# Nobody waits longer than this for a server that does not answer, or for a lock.
_OPTIONS = "-c statement_timeout=30000 -c lock_timeout=30000 -c idle_in_transaction_session_timeout=60000"
_CONNECT_SECONDS = 5
_MIGRATION_LOCK = 0x6773682D6C6564  # a number of our own, for those who migrate at the same time


class PostgresConnections:
    """Transactions on a server given by its URL."""

    statements = Statements(POSTGRES)
    threads = 4

    def __init__(self, url: str) -> None:
        self._url = url
        self._open: dict[int, psycopg.Connection] = {}

    @contextmanager
    def transaction(self, *, migrating: bool = False) -> Iterator[Execute]:
        """All that is executed inside, or nothing of it. Budgets are locked row by row."""
        try:
            connection = self._begun("BEGIN")
            try:
                if migrating:
                    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATION_LOCK,))
                # The server may be set up not to wait for the disk; the ledger must.
                connection.execute("SET LOCAL synchronous_commit = on")
                yield _executor(connection)
                connection.execute("COMMIT")
            except BaseException:
                with suppress(psycopg.Error):
                    connection.execute("ROLLBACK")
                raise
        except psycopg.IntegrityError as error:
            raise Taken from error
        except psycopg.Error as error:
            self._drop()
            raise LedgerUnavailable from error

    @contextmanager
    def reading(self) -> Iterator[Execute]:
        """One state of the ledger."""
        try:
            connection = self._begun("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                yield _executor(connection)
            finally:
                with suppress(psycopg.Error):
                    connection.execute("COMMIT")
        except psycopg.Error as error:
            self._drop()
            raise LedgerUnavailable from error

    def close(self) -> None:
        """All connections, once no thread uses one."""
        while self._open:
            self._open.popitem()[1].close()

    def _begun(self, begin: str) -> psycopg.Connection:
        """A connection with a transaction begun; one that broke since it was last used is replaced."""
        connection = self._open.get(threading.get_ident())
        if connection is not None:
            try:
                connection.execute(begin)
                return connection
            except psycopg.Error:
                self._drop()
        connection = psycopg.connect(
            self._url, autocommit=True, connect_timeout=_CONNECT_SECONDS, options=_OPTIONS, application_name="gsh"
        )
        self._open[threading.get_ident()] = connection
        connection.execute(begin)
        return connection

    def _drop(self) -> None:
        """Forget a connection that failed, whatever state it is in; another is made when it is needed."""
        connection = self._open.pop(threading.get_ident(), None)
        if connection is not None:
            connection.close()


def _executor(connection: psycopg.Connection) -> Execute:
    def execute(statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        cursor = connection.execute(statement.encode(), values)
        return cursor.fetchall() if cursor.description else []

    return execute
