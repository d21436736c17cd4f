"""Open a ledger by its settings: a file for SQLite, or the URL of a PostgreSQL server."""

import logging
import stat
from contextlib import suppress
from pathlib import Path

from app.ledger.connections import Connections
from app.ledger.errors import LedgerUnavailable, WrongLedger, reason_of
from app.ledger.migration import migrate
from app.ledger.secret import Secret, secret_file, stored_secret
from app.ledger.sqlite import SqliteConnections
from app.ledger.store import Ledger

__all__ = ["connections_of", "exists", "is_postgres", "open_existing", "open_ledger"]

logger = logging.getLogger("app.ledger")


def open_ledger(place: str, secret: str, connections: Connections | None = None) -> Ledger:
    """The ledger at a place. It is made if there is none, and migrated to the schema of this version."""
    connections = connections or connections_of(place)
    try:
        ledger = Ledger(connections, _secret(place, secret))
        migrate(connections, ledger.secret)
        if not is_postgres(place):
            _warn_of_readers(Path(place))
    except BaseException:
        connections.close()
        raise
    return ledger


def open_existing(place: str, secret: str) -> Ledger:
    """The ledger at a place as it is: nothing is made and nothing migrated."""
    if not exists(place):
        raise LedgerUnavailable(f"there is no file {place}")
    connections = connections_of(place, make=False)
    try:
        ledger = Ledger(connections, _secret(place, secret, make=False))
        _expect_this_version(connections, ledger.secret)
    except BaseException:
        connections.close()
        raise
    return ledger


def connections_of(place: str, *, make: bool = True) -> Connections:
    if not is_postgres(place):
        return SqliteConnections(Path(place), make=make)
    from app.ledger.postgres import PostgresConnections  # noqa: PLC0415 - the driver loads only if it is needed

    return PostgresConnections(place)


def exists(place: str) -> bool:
    """Whether there is a ledger, without making one. A server is assumed to have one."""
    if is_postgres(place):
        return True
    path = Path(place)
    try:
        path.stat()
        return True
    except FileNotFoundError:
        if path.parent.is_dir():
            return False
        # Perhaps a volume that is not mounted. It must not count as a ledger without access keys.
        raise LedgerUnavailable(f"there is no file {place}, and no folder for it") from None
    except (OSError, ValueError) as error:
        raise LedgerUnavailable(f"unable to open database file: {reason_of(error)}") from error


def is_postgres(place: str) -> bool:
    return place.startswith(("postgresql://", "postgres://"))


def _secret(place: str, given: str, *, make: bool = True) -> Secret:
    if given:
        return Secret(given.encode())
    if is_postgres(place):
        raise WrongLedger("a ledger on a server needs a secret: set GSH_LEDGER_SECRET")
    try:
        return Secret(stored_secret(Path(place), make=make))
    except (OSError, ValueError) as error:
        raise LedgerUnavailable(f"its secret cannot be read or made: {reason_of(error)}") from error


def _warn_of_readers(database: Path) -> None:
    """Existing files keep their mode: it may be intended. New ones are made with 0600."""
    for path in (database, secret_file(database)):
        with suppress(OSError):
            mode = stat.S_IMODE(path.stat().st_mode)
            if mode & 0o077:
                logger.warning("others may open a file of the ledger: %s has mode %04o, and 0600 is enough", path, mode)


def _expect_this_version(connections: Connections, secret: Secret) -> None:
    sql = connections.statements
    with connections.reading() as execute:
        execute(sql.alive)  # a database that does not answer is unavailable, and not a wrong ledger
    try:
        with connections.reading() as execute:
            ((version,),) = execute(sql.version)
            mark = execute(sql.fact, ("secret",))
    except (LedgerUnavailable, ValueError) as error:
        raise WrongLedger(f"there is no ledger in the database ({error})") from error
    if version > len(sql.migrations):
        raise WrongLedger("the ledger was made by a newer version of the service")
    if version < len(sql.migrations):
        raise WrongLedger("the ledger is of an earlier version; the service migrates it when it starts")
    if mark != [(secret.mark,)]:
        raise WrongLedger("the ledger was made with another secret")
