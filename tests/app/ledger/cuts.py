"""Connections that break at a chosen moment of a charge, and the raw bytes that a database then has."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

from app.ledger.databases import Connections, Execute
from app.ledger.databases.postgres import PostgresConnections
from app.ledger.databases.sqlite import SqliteConnections
from app.ledger.errors import LedgerUnavailable
from app.ledger.opening import is_postgres

__all__ = ["BEFORE_COMMIT", "BEFORE_KEY", "cut_connections", "raw_bytes"]

BEFORE_COMMIT, BEFORE_KEY = "before the commit of the charge", "between the charge and the key"

_UNUSED = bytes(8192)
"""A page that was never written: there are many, and looking through them takes long."""


class _Cut:
    """A charge breaks off once, as if the process were killed there: nothing is rolled back by a statement."""

    at: str | None = None
    _open: dict[int, Any]

    @contextmanager
    def transaction(self, **options: Any) -> Iterator[Execute]:
        with super().transaction(**options) as execute:  # type: ignore[misc]
            yield execute
            if self.at == BEFORE_COMMIT:
                self._break()

    def execute_alone(self, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        if self.at == BEFORE_KEY:
            self._break()
        rows: list[tuple[Any, ...]] = super().execute_alone(statement, values)  # type: ignore[misc]
        return rows

    def _break(self) -> None:
        self.at = None
        self._open.pop(threading.get_ident()).close()
        raise LedgerUnavailable("cut")


class _CutSqlite(_Cut, SqliteConnections):
    pass


class _CutPostgres(_Cut, PostgresConnections):
    pass


def cut_connections(place: str) -> Any:
    """Connections whose next charge breaks off where ``at`` says."""
    cut: Connections = _CutPostgres(place) if is_postgres(place) else _CutSqlite(Path(place))
    return cut


def raw_bytes(place: str) -> bytes:
    """Every byte of a database's files, and of the logs that were written since it was made.

    PostgreSQL writes its pages first. Its older logs are those of other databases.
    """
    if not is_postgres(place):
        path = Path(place)
        return b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*") if file.suffix != ".secret")
    with psycopg.connect(place, autocommit=True) as server:
        server.execute("CHECKPOINT")
        row = server.execute(
            "SELECT current_setting('data_directory'), oid::text FROM pg_database WHERE datname = current_database()"
        ).fetchone()
    assert row is not None
    data = Path(row[0])
    own = data / "base" / row[1]
    made = (own / "PG_VERSION").stat().st_mtime_ns
    content = []
    for file in (*own.iterdir(), *(data / "pg_wal").glob("0*"), data.parent / "log"):
        with suppress(FileNotFoundError):  # the server may remove it meanwhile
            if file.stat().st_mtime_ns >= made:
                content.append(file.read_bytes().replace(_UNUSED, b""))
    return b"".join(content)
