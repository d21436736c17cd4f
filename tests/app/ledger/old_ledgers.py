"""Ledgers that earlier versions made on SQLite, copied to the place of a test, on either database."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from app.ledger.databases.statements import POSTGRES
from app.ledger.opening import connections_of, is_postgres

__all__ = ["FIXTURES", "copy_ledger"]

FIXTURES = Path(__file__).parent / "fixtures"


def copy_ledger(old: Path, secret: str, place: str) -> str:
    """The place, with a copy of the old ledger. On PostgreSQL it has the tables that the old version made there."""
    if not is_postgres(place):
        shutil.copy(old, place)
        kept = Path(f"{place}.secret")
        kept.write_text(secret)
        kept.chmod(0o600)
        return place
    connections = connections_of(place)
    with (
        closing(connections),
        connections.transaction() as execute,
        closing(sqlite3.connect(f"file:{old}?immutable=1", uri=True)) as source,
    ):
        ((version,),) = source.execute("SELECT version FROM schema_version").fetchall()
        execute(connections.statements.make_version)
        for statement in (statement for each in connections.statements.migrations[:version] for statement in each):
            execute(statement)
        for (table,) in source.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid").fetchall():
            rows = source.execute(f"SELECT * FROM {table}")
            names = [column[0] for column in rows.description]
            places = ", ".join(["%s"] * len(names))
            for row in rows:
                execute(POSTGRES.adapt(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({places})"), row)
    return place
