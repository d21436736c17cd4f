"""How often requests are compared with a stored one: five times at once, then once every six seconds.

The answer says whether two requests are the same, so enough guesses would reveal the posted data. An attempt is
counted before its result is sent, in the transaction that compares. Only the client that paid is compared at all, so
other clients learn nothing and cannot lock it out. A refused attempt is not counted, so the wait does not grow.
"""

import math

from app.ledger.connections import Execute
from app.ledger.errors import KeyReused, LedgerError, TooManyComparisons
from app.ledger.statements import Statements

__all__ = ["BURST", "SECONDS", "refusal", "wait_before"]

BURST = 5
SECONDS = 6.0


def wait_before(execute: Execute, sql: Statements, key: str, now: float) -> TooManyComparisons | None:
    """Whether a comparison must wait, without making one. Readers can refuse most of a flood with it."""
    wait = _until(execute, sql, key, now) - now - (BURST - 1) * SECONDS
    return TooManyComparisons(math.ceil(wait)) if wait > 0 else None


def refusal(execute: Execute, sql: Statements, reused: KeyReused, *, is_same: bool, now: float) -> LedgerError | None:
    """Why a request does not get the stored answer, or None. The caller has locked the row of the idempotency key.

    The error is returned and not raised: raised inside the transaction, it would roll back the count.
    """
    key = reused.idempotency_key
    too_many = wait_before(execute, sql, key, now)
    if too_many is not None or is_same:
        return too_many
    execute(sql.set_comparisons, (key, _until(execute, sql, key, now) + SECONDS))
    return reused


def _until(execute: Execute, sql: Statements, key: str, now: float) -> float:
    """When all attempts so far are forgotten: a full burst from now at the latest, even if a clock was set back."""
    rows = execute(sql.comparisons, (key,))
    until = float(rows[0][0]) if rows else now
    return min(max(until, now), now + BURST * SECONDS)
