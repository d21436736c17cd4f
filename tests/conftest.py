"""What tests of every room share: a place for ledgers, and a PostgreSQL server for those that need one."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres import Postgres, postgres_server

# Services that are made without a word about their ledger get one that is gone afterwards.
_FOLDER = tempfile.TemporaryDirectory(prefix="gsh-ledger-")
os.environ["GSH_LEDGER"] = str(Path(_FOLDER.name) / "ledger.sqlite3")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with postgres_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where to keep a new ledger: the same tests run on both databases."""
    if request.param == "sqlite":
        return str(tmp_path / "ledger.sqlite3")
    server: Postgres = request.getfixturevalue("postgres")
    return server.make_database()
