"""How often requests are compared with a stored one: five times at once, then once every six seconds.

The answer tells whether two requests are the same, and enough guesses would tell what was posted. So an attempt is
counted before its result is told, in the transaction that compares. The client that paid has a count of its own: others
cannot keep it out. Refusals count nothing, so the wait does not grow.
"""

import math

from app.ledger.connections import Execute
from app.ledger.errors import KeyReused, LedgerError, TooManyComparisons
from app.ledger.statements import Statements

__all__ = ["BURST", "SECONDS", "refusal"]

BURST = 5
SECONDS = 6.0


def refusal(
    execute: Execute, sql: Statements, key: str, *, is_same: bool, by_owner: bool, now: float
) -> LedgerError | None:
    """Why a request does not get what is stored for its key, or None. The caller has locked the row of the key.

    The error is returned, not raised: raised inside the transaction it would take the count back.
    """
    rows = execute(sql.comparisons, (key,))
    owner, others = rows[0] if rows else (now, now)
    until = _started(owner if by_owner else others, now)
    wait = until - now - (BURST - 1) * SECONDS
    if wait > 0:
        return TooManyComparisons(math.ceil(wait))
    if is_same:
        return None
    until += SECONDS
    execute(sql.set_comparisons, (key, until if by_owner else owner, others if by_owner else until))
    return KeyReused()


def _started(until: float, now: float) -> float:
    """When all attempts so far are forgiven: a full burst from now at the latest, also if a clock was set back."""
    return min(max(until, now), now + BURST * SECONDS)
