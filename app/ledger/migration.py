"""Bringing a ledger to the schema of this version: forward only, in one transaction."""

from collections.abc import Callable, Mapping
from contextlib import suppress

from app.ledger.connections import Connections, Execute
from app.ledger.errors import WrongLedger
from app.ledger.keys import seal_all
from app.ledger.secret import Secret
from app.ledger.state import UNREADABLE, Entry, hull_of, text_of
from app.ledger.statements import Statements

__all__ = ["migrate"]


def migrate(connections: Connections, secret: Secret) -> None:
    """Make what is missing, and check that the secret is the one of this ledger."""
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
            if number in _FILLED:
                _FILLED[number](execute, sql, secret)
        execute(sql.set_version, (len(sql.migrations),))
        execute(sql.add_fact, ("secret", secret.mark))
        if execute(sql.fact, ("secret",)) != [(secret.mark,)]:
            raise WrongLedger("the ledger was made with another secret")


def _hulls(execute: Execute, sql: Statements, _secret: Secret) -> None:
    """The hull of each budget by its history, which an earlier version may have divided anew.

    A history that cannot be read gets none: verification finds it.
    """
    for (name,) in execute("SELECT id FROM budgets"):
        with suppress(*UNREADABLE):
            hull = hull_of(Entry(*row) for row in execute(sql.first_charge_and_changes, (name, name)))
            if hull is not None:
                execute(sql.set_hull, (text_of(hull.s), text_of(hull.d), name))


_FILLED: Mapping[int, Callable[[Execute, Statements, Secret], None]] = {4: _hulls, 6: seal_all}
"""What SQL cannot fill in, by the version that the statements before it make."""
