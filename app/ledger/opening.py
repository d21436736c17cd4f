"""From the settings of a ledger to the ledger: a file for SQLite, or the URL of a PostgreSQL server."""

from pathlib import Path

from app.ledger.connections import Connections
from app.ledger.errors import LedgerUnavailable, WrongLedger
from app.ledger.postgres import PostgresConnections
from app.ledger.secret import Secret, kept_beside
from app.ledger.sqlite import SqliteConnections
from app.ledger.store import Ledger

__all__ = ["connections_of", "is_postgres", "open_ledger"]


def open_ledger(place: str, secret: str, connections: Connections | None = None) -> Ledger:
    """The ledger at a place, made if it is not there, and migrated to this version of its schema."""
    connections = connections or connections_of(place)
    try:
        ledger = Ledger(connections, _secret(place, secret))
        ledger.migrate()
    except BaseException:
        connections.close()
        raise
    return ledger


def connections_of(place: str) -> Connections:
    return PostgresConnections(place) if is_postgres(place) else SqliteConnections(Path(place))


def is_postgres(place: str) -> bool:
    return place.startswith(("postgresql://", "postgres://"))


def _secret(place: str, given: str) -> Secret:
    if given:
        return Secret(given.encode())
    if is_postgres(place):
        raise WrongLedger("a secret must be given where the ledger is on a server")
    try:
        return Secret(kept_beside(Path(place)))
    except OSError as error:
        raise LedgerUnavailable from error
