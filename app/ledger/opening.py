"""Open a ledger by its settings, and bring it to the schema of this version.

Migrations run forward only, in one transaction.
"""

import logging
import stat
from contextlib import suppress
from pathlib import Path

from app.ledger.access.access_keys import begin_history, seal_all
from app.ledger.clock import now
from app.ledger.databases import Connections, Execute, Statements
from app.ledger.databases.sqlite import SqliteConnections
from app.ledger.errors import LedgerUnavailable, WrongLedger, reason_of
from app.ledger.releases import seal_releases
from app.ledger.secret import Secret, secret_file, stored_secret
from app.ledger.state import UNREADABLE, Entry, ray_and_hull_of, text_of
from app.ledger.store import Ledger

__all__ = ["connections_of", "exists", "is_postgres", "open_existing", "open_ledger"]

logger = logging.getLogger("app.ledger")


def open_ledger(place: str, secret: str, connections: Connections | None = None) -> Ledger:
    """The ledger at a place. It is made if there is none, and migrated to the schema of this version."""
    connections = connections or connections_of(place)
    try:
        ledger = Ledger(connections, _secret(place, secret))
        _migrate(connections, ledger.secret)
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
    from app.ledger.databases.postgres import PostgresConnections  # noqa: PLC0415 - the driver loads only if it is needed

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


# The versions in which SQL cannot fill in the new columns: the states of releases, and the rays and hulls of budgets.
_RELEASES, _RAYS = 6, 9
_BEGINNING_OF_A_CHARGE = b'{"budget":'


def _migrate(connections: Connections, secret: Secret) -> None:
    """Make the missing tables and columns, and check that the secret is the one of this ledger."""
    sql = connections.statements
    with connections.transaction(migrating=True) as execute:
        execute(sql.make_version)
        found = execute(sql.version)
        if not found:
            execute(sql.first_version, (0,))
        version: int = found[0][0] if found else 0
        if version > len(sql.migrations):
            raise WrongLedger("the ledger was made by a newer version of the service")
        for number, statements in enumerate(sql.migrations[version:], version + 1):
            for statement in statements:
                execute(statement)
            if number == _RELEASES:
                _backfill_states(execute, sql)
            if number == _RAYS:
                _backfill_rays(execute, sql)
        _seal_once(execute, sql, secret, is_new=version == 0)
        execute(sql.set_version, (len(sql.migrations),))
        execute(sql.add_fact, ("secret", secret.mark))
        if execute(sql.fact, ("secret",)) != [(secret.mark,)]:
            raise WrongLedger("the ledger was made with another secret")


def _seal_once(execute: Execute, sql: Statements, secret: Secret, *, is_new: bool) -> None:
    """Seal the access keys and the releases, and begin the history of access, of a ledger that lacks them.

    The mark of the secret decides, not the version: anyone who can write to the database could lower the version.
    """
    without_seals, with_sealed_keys, with_sealed_releases, _ = secret.marks
    found = execute(sql.fact, ("secret",))
    if is_new or found == [(without_seals,)]:
        seal_all(execute, sql, secret)
    if found in ([(without_seals,)], [(with_sealed_keys,)]):
        sealed = seal_releases(execute, sql, secret)
        logger.info("sealed %d releases of an earlier version", sealed)
    is_earlier = found in ([(without_seals,)], [(with_sealed_keys,)], [(with_sealed_releases,)])
    if is_new or is_earlier:
        begin_history(execute, sql, secret, now())
    if is_earlier:
        execute(sql.set_fact, ("secret", secret.mark))


def _backfill_rays(execute: Execute, sql: Statements) -> None:
    """Compute the ray and the hull of each budget from its history: earlier versions could divide a budget again.

    A history that cannot be read gets none: verification finds it.
    """
    for (name,) in execute("SELECT id FROM budgets"):
        with suppress(*UNREADABLE):
            found = ray_and_hull_of(Entry(*row) for row in execute(sql.first_charge_and_changes, (name, name)))
            if found is not None:
                texts = (text_of(exact) for caps in found for exact in (caps.mu_squared, caps.hazard))
                execute(sql.set_ray_and_hull, (*texts, name))


def _backfill_states(execute: Execute, sql: Statements) -> None:
    """A charge for a release that was made elsewhere has the answer of a charge, and not of a release."""
    beginning = "SELECT key, substr(content, 1, 10) FROM entries WHERE media_type = 'application/json' AND size < 10000"
    for key, content in execute(beginning):
        if content is not None and bytes(content) == _BEGINNING_OF_A_CHARGE:
            execute(sql.set_state, ("charged", None, key))
