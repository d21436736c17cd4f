"""SQLite: one file, on a disk of this machine; any number of processes may share it.

WAL with synchronous=FULL: a commit is on the disk when it returns. BEGIN IMMEDIATE: a transaction that reads and then
writes takes its lock at the beginning. SQLite would not wait for a lock that is taken later.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from app.ledger.databases import Execute, Statements, Taken
from app.ledger.databases.statements import SQLITE
from app.ledger.errors import LedgerUnavailable, reason_of

__all__ = ["SqliteConnections"]

_BUSY_SECONDS = 30.0
_PURGE_SECONDS = 0.05  # writers wait meanwhile
_NAP_SECONDS = 0.0005
_making = threading.Lock()


class SqliteConnections:
    """Transactions on a file, with one connection per thread. If ``make``, a missing file is made."""

    statements = Statements(SQLITE)
    # Writers take turns anyway, and SQLite itself would let them sleep longer than needed.
    threads = 1

    def __init__(self, path: Path, *, make: bool = True) -> None:
        self.path = path
        self._make = make
        self._open: dict[int, sqlite3.Connection] = {}
        self._connecting = threading.Lock()
        self._file: tuple[int, int] | None = None
        """The device and the inode of the file that the connections have open."""

    @contextmanager
    def transaction(self, *, migrating: bool = False) -> Iterator[Execute]:  # noqa: ARG002
        """Everything that is executed inside, or nothing.

        An error after the commit if the file is not at its path any more: what was written is not in the ledger.
        """
        try:
            connection = self._connection()
            _begin_writing(connection)
            try:
                yield lambda statement, values=(): connection.execute(statement, values).fetchall()
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # some errors have rolled back already
                    connection.execute("ROLLBACK")
                raise
        except sqlite3.IntegrityError as error:
            raise Taken from error
        except sqlite3.Error as error:
            raise LedgerUnavailable(str(error)) from error
        self._expect_file()

    def execute_alone(self, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """SQLite writes nothing before the commit."""
        with self.transaction() as execute:
            return execute(statement, values)

    @contextmanager
    def reading(self) -> Iterator[Execute]:
        """One state of the ledger, without waiting for writers."""
        try:
            connection = self._connection()
            connection.execute("BEGIN")
            try:
                yield lambda statement, values=(): connection.execute(statement, values).fetchall()
            finally:
                with suppress(sqlite3.Error):
                    connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise LedgerUnavailable(str(error)) from error

    def purge(self) -> bool:
        """Empty the write-ahead log, which still has deleted rows. A reader is in the way until it ends."""
        with suppress(sqlite3.Error, LedgerUnavailable):
            with _waiting(self._connection(), _PURGE_SECONDS) as connection:
                ((busy, _, _),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            return bool(busy == 0)
        return False

    def close(self) -> None:
        """All connections, once no thread uses one."""
        while self._open:
            self._open.popitem()[1].close()
        self._file = None

    def _connection(self) -> sqlite3.Connection:
        """The connection of this thread, to the file that is at the path."""
        connection = self._open.get(threading.get_ident())
        if connection is None:
            with self._connecting:
                connection = self._connected()
        self._expect_file()
        return connection

    def _expect_file(self) -> None:
        """SQLite goes on with a file that was deleted or replaced. Charges to such a file would be lost."""
        found = _identity(self.path)
        if found != self._file:
            there = "there is no file" if found is None else "there is another file"
            raise LedgerUnavailable(
                f"{there} at {self.path}, in place of the ledger that was opened: put the ledger back, or restart the "
                "service"
            )

    def _connected(self) -> sqlite3.Connection:
        if self._file is not None:
            self._expect_file()
        address = _address(self.path, make=self._make and self._file is None)
        before = _identity(self.path)
        connection = sqlite3.connect(
            address,
            uri=True,
            timeout=_BUSY_SECONDS,
            isolation_level=None,
            cached_statements=64,
            check_same_thread=False,
        )
        try:
            if self._make:
                _write_ahead(connection)
            for pragma in ("synchronous = FULL", "foreign_keys = ON", "secure_delete = ON"):
                connection.execute(f"PRAGMA {pragma}")
            self._file = self._file or before
            self._expect_file()
        except (sqlite3.Error, LedgerUnavailable):
            connection.close()
            raise
        self._open[threading.get_ident()] = connection
        return connection


@contextmanager
def _waiting(connection: sqlite3.Connection, seconds: float) -> Iterator[sqlite3.Connection]:
    """The connection, which waits this long for locks."""
    connection.execute(f"PRAGMA busy_timeout = {1000 * seconds:.0f}")
    try:
        yield connection
    finally:
        connection.execute(f"PRAGMA busy_timeout = {1000 * _BUSY_SECONDS:.0f}")


def _begin_writing(connection: sqlite3.Connection) -> None:
    """Wait for the write lock in short sleeps. SQLite's own grow to 100 ms: a busier writer would always be first."""
    end = time.monotonic() + _BUSY_SECONDS
    with _waiting(connection, 0):
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
                time.sleep(_NAP_SECONDS)


def _address(path: Path, *, make: bool) -> str:
    """The URI of a file, made with mode 0600 for any umask: SQLite gives its other files the same mode."""
    try:
        if make:
            _make(path)
        return f"{path.absolute().as_uri()}?mode=rw"
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL
        raise LedgerUnavailable(f"unable to open database file: {reason_of(error)}") from error


def _identity(path: Path) -> tuple[int, int] | None:
    """The device and the inode of a file; None if there is none.

    By its path: a file that is opened here would have to be closed again, which ends SQLite's locks on it.
    """
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _make(path: Path) -> None:
    """Make the file if it is missing. An existing file is never opened here.

    To close any descriptor of a file ends all locks of the process on it: SQLite's own would be lost.
    """
    with _making, suppress(FileExistsError):
        os.close(os.open(os.path.realpath(path), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Turn to WAL, once for a file. SQLite does not wait for other processes there, so we wait for a lock ourselves."""
    end = time.monotonic() + _BUSY_SECONDS
    while connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("COMMIT")
