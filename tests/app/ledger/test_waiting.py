"""Waiting for a database: up to a limit, and never for one that has stopped answering."""

import os
import socket
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from app.ledger.databases import sqlite
from app.ledger.databases.postgres import PostgresConnections
from app.ledger.errors import LedgerUnavailable
from app.ledger.opening import open_ledger
from gsh.accounting.budget_limits import Limit
from tests.app.ledger.examples import AT
from tests.app.process import PATIENCE, stopped
from tests.postgres import Postgres


def test_a_new_file_that_another_process_creates_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite refuses at once to change a locked file to WAL. The test releases the lock after that refusal."""
    place, refused = tmp_path / "ledger.sqlite3", threading.Event()

    class Watched(sqlite3.Connection):
        def execute(self, *arguments: Any) -> sqlite3.Cursor:
            try:
                return super().execute(*arguments)
            except sqlite3.OperationalError:
                refused.set()
                raise

    original = sqlite3.connect
    stranger = original(place, isolation_level=None, check_same_thread=False)
    stranger.execute("BEGIN IMMEDIATE")
    stranger.execute("CREATE TABLE theirs (id TEXT)")
    monkeypatch.setattr(sqlite.sqlite3, "connect", lambda *given, **named: original(*given, factory=Watched, **named))
    letting_go = threading.Thread(target=lambda: refused.wait(PATIENCE) and stranger.execute("COMMIT"))
    letting_go.start()

    ledger = open_ledger(str(place), "a secret for tests")

    letting_go.join()
    stranger.close()
    assert ledger.put_budget("web", Limit(1.0, 1e-4), "", AT).entries == 1
    ledger.close()


def test_a_new_file_that_stays_locked_is_unavailable_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_BUSY_SECONDS", 0.0)
    place = tmp_path / "ledger.sqlite3"
    stranger = sqlite3.connect(place, isolation_level=None)
    stranger.execute("BEGIN IMMEDIATE")

    with pytest.raises(LedgerUnavailable, match="database is locked"):
        open_ledger(str(place), "a secret for tests")
    stranger.close()


def test_a_server_process_that_hangs_is_abandoned(postgres: Postgres) -> None:
    connections = PostgresConnections(postgres.make_database(), patience=1.0)

    def stand_still() -> None:
        with connections.transaction() as execute:
            ((process,),) = execute("SELECT pg_backend_pid()")
            with stopped(process):
                execute("SELECT 1")

    with pytest.raises(LedgerUnavailable, match="did not answer in time"):
        stand_still()
    connections.close()


def test_a_connection_whose_server_process_hangs_is_replaced(postgres: Postgres) -> None:
    connections = PostgresConnections(postgres.make_database(), patience=1.0)
    with connections.reading() as execute:
        ((process,),) = execute("SELECT pg_backend_pid()")

    with stopped(process), connections.reading() as execute:
        ((other,),) = execute("SELECT pg_backend_pid()")
    connections.close()

    assert other != process


def test_a_network_that_is_lost_is_noticed_by_the_kernel(postgres: Postgres) -> None:
    connections = PostgresConnections(postgres.make_database())
    with connections.reading():
        (connection,) = connections._open.values()
        with socket.socket(fileno=os.dup(connection.fileno())) as wire:
            found = {
                name: wire.getsockopt(socket.IPPROTO_TCP, getattr(socket, f"TCP_{name}"))
                for name in ("KEEPIDLE", "KEEPINTVL", "KEEPCNT", "USER_TIMEOUT")
            }
    connections.close()

    assert found == {"KEEPIDLE": 5, "KEEPINTVL": 2, "KEEPCNT": 3, "USER_TIMEOUT": 11_000}
