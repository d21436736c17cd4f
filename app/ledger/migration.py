"""Bringing a ledger to the schema of this version: forward only, in one transaction."""

import logging
from contextlib import suppress

from app.ledger.access_keys import seal_all
from app.ledger.connections import Connections, Execute
from app.ledger.errors import WrongLedger
from app.ledger.release_seals import seal_releases
from app.ledger.secret import Secret
from app.ledger.state import UNREADABLE, Entry, ray_and_hull_of, text_of
from app.ledger.statements import Statements

__all__ = ["migrate"]

logger = logging.getLogger("app.ledger")

# The versions in which SQL cannot fill in the new columns: the states of releases, and the rays and hulls of budgets.
_RELEASES, _RAYS = 6, 9
_BEGINNING_OF_A_CHARGE = b'{"budget":'


def migrate(connections: Connections, secret: Secret) -> None:
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
                _tell_charges(execute, sql)
            if number == _RAYS:
                _fill_rays(execute, sql)
        _seal_once(execute, sql, secret, is_new=version == 0)
        execute(sql.set_version, (len(sql.migrations),))
        execute(sql.add_fact, ("secret", secret.mark))
        if execute(sql.fact, ("secret",)) != [(secret.mark,)]:
            raise WrongLedger("the ledger was made with another secret")


def _seal_once(execute: Execute, sql: Statements, secret: Secret, *, is_new: bool) -> None:
    """Seal the access keys and the releases of a ledger that has no seals of them yet.

    The mark of the secret tells that, not the version: anyone who can write to the database could lower the version.
    """
    without_seals, with_sealed_keys, _ = secret.marks
    found = execute(sql.fact, ("secret",))
    if is_new or found == [(without_seals,)]:
        seal_all(execute, sql, secret)
    if found in ([(without_seals,)], [(with_sealed_keys,)]):
        sealed = seal_releases(execute, sql, secret)
        execute(sql.set_fact, ("secret", secret.mark))
        logger.info("sealed %d releases of an earlier version", sealed)


def _fill_rays(execute: Execute, sql: Statements) -> None:
    """Compute the ray and the hull of each budget from its history: earlier versions could divide a budget again.

    A history that cannot be read gets none: verification finds it.
    """
    for (name,) in execute("SELECT id FROM budgets"):
        with suppress(*UNREADABLE):
            found = ray_and_hull_of(Entry(*row) for row in execute(sql.first_charge_and_changes, (name, name)))
            if found is not None:
                texts = (text_of(exact) for caps in found for exact in (caps.mu_squared, caps.hazard))
                execute(sql.set_ray_and_hull, (*texts, name))


def _tell_charges(execute: Execute, sql: Statements) -> None:
    """A charge for a release that was made elsewhere has the answer of a charge, and not of a release."""
    beginning = "SELECT key, substr(content, 1, 10) FROM entries WHERE media_type = 'application/json' AND size < 10000"
    for key, content in execute(beginning):
        if content is not None and bytes(content) == _BEGINNING_OF_A_CHARGE:
            execute(sql.set_state, ("charged", None, key))
