"""PostgreSQL, for several instances of the service: one connection per thread, replaced when it is lost.

A connection pool would not do better. With ``psycopg_pool`` a request waits 5 s for its refusal while the server is
down (here 2 ms), service resumes up to 26 s after a restart (here 30 ms), a transaction takes half as long again, and
its threads log the driver's own messages, which may quote a part of the password.
"""

import re
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from urllib.parse import unquote

import psycopg

from app.ledger.databases import Execute, Statements, Taken
from app.ledger.databases.statements import POSTGRES
from app.ledger.errors import LedgerUnavailable

__all__ = ["PostgresConnections"]

T = TypeVar("T")

# The server ends a statement, or its wait for a lock, after 30 s, and an idle transaction after 60 s.
_TIMEOUTS = "-c statement_timeout=30000 -c lock_timeout=30000 -c idle_in_transaction_session_timeout=60000"
# The server may be set not to wait for the disk, but the ledger must wait.
_OPTIONS = f"{_TIMEOUTS} -c synchronous_commit=on"
# The client gives up after this: the machine of a server may answer although the server itself hangs.
_ANSWER_SECONDS = 35.0
# If the machine does not answer at all, the kernel gives up sooner.
_NETWORK = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3, "tcp_user_timeout": 11_000}
_CONNECT_SECONDS = 5
_MIGRATION_LOCK = 0x6773682D6C6564  # a number of our own: only one instance migrates at a time


class _Impatient(psycopg.Connection[tuple[Any, ...]]):
    """A connection that is closed if a statement is not answered in time."""

    patience = _ANSWER_SECONDS

    def wait(self, gen: Generator[Any, Any, T], *arguments: Any, **options: Any) -> T:
        return super().wait(self._in_time(gen), *arguments, **options)

    def _in_time(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        """The same generator. The time is checked whenever the driver returns from waiting, ten times a second."""
        end = time.monotonic() + self.patience
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and time.monotonic() > end:
                    self.close()
                    raise psycopg.OperationalError("the server did not answer in time")
                wanted = gen.send(ready)
        except StopIteration as stop:
            answer: T = stop.value
            return answer


class PostgresConnections:
    """Transactions on a server. ``patience`` is how many seconds the server has for each statement."""

    statements = Statements(POSTGRES)
    threads = 4

    def __init__(self, url: str, patience: float = _ANSWER_SECONDS) -> None:
        self._url = url
        self._patience = patience
        self._open: dict[int, _Impatient] = {}

    @contextmanager
    def transaction(self, *, migrating: bool = False) -> Iterator[Execute]:
        """Everything that is executed inside, or nothing. Budgets are locked row by row."""
        try:
            connection = self._begun("BEGIN")
            try:
                if migrating:
                    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATION_LOCK,))
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
            raise LedgerUnavailable(self._reason(error)) from error

    def execute_alone(self, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """One message, which the server executes and commits without waiting for the next one.

        Once more if the connection breaks: it may have been broken since its last use.
        """
        try:
            try:
                return _executor(self._connection())(statement, values)
            except psycopg.OperationalError:
                self._drop()
                return _executor(self._connection())(statement, values)
        except psycopg.Error as error:
            self._drop()
            raise LedgerUnavailable(self._reason(error)) from error

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
            raise LedgerUnavailable(self._reason(error)) from error

    def purge(self) -> bool:
        """Rewrite the table of seeds, without the deleted ones. The server's own log may still have them."""
        try:
            connection = self._begun("SET lock_timeout = '50ms'")
            try:
                connection.execute("VACUUM (FULL) seeds")
            finally:
                connection.execute("RESET lock_timeout")
        except psycopg.Error:
            self._drop()
            return False
        return True

    def close(self) -> None:
        """All connections, once no thread uses one."""
        while self._open:
            self._open.popitem()[1].close()

    def _begun(self, begin: str) -> _Impatient:
        """A connection with a transaction begun. A connection that broke since its last use is replaced."""
        if threading.get_ident() in self._open:
            try:
                return self._with(begin)
            except psycopg.Error:
                self._drop()
        return self._with(begin)

    def _with(self, begin: str) -> _Impatient:
        connection = self._connection()
        connection.execute(begin)
        return connection

    def _connection(self) -> _Impatient:
        """The connection of this thread. A missing one is made."""
        connection = self._open.get(threading.get_ident())
        if connection is None:
            settings: dict[str, Any] = {"options": _OPTIONS, "application_name": "gsh", **_NETWORK}
            connection = _Impatient.connect(self._url, autocommit=True, connect_timeout=_CONNECT_SECONDS, **settings)
            connection.patience = self._patience
            self._open[threading.get_ident()] = connection
        return connection

    def _drop(self) -> None:
        """Close a connection that failed. Another is made when it is needed."""
        connection = self._open.pop(threading.get_ident(), None)
        if connection is not None:
            connection.close()

    def _reason(self, error: psycopg.Error) -> str:
        """What went wrong, without the driver's quotations: of a mistyped URL they may be a part of the password."""
        if isinstance(error, psycopg.ProgrammingError) and error.sqlstate is None:
            return "the URL of the ledger cannot be read"
        text = " ".join((error.diag.message_primary or str(error)).split())
        some = ".*" if set("'\"") & set(unquote(self._url)) else ".*?"
        return re.sub(rf"\"{some}\"|'{some}'|(?<=port )\d+", "…", text)


def _executor(connection: _Impatient) -> Execute:
    def execute(statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        cursor = connection.execute(statement.encode(), values)
        return cursor.fetchall() if cursor.description else []

    return execute
