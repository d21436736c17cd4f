"""Errors of the ledger. After an error nothing was spent, with one exception: if the ledger is unavailable, a commit
may have succeeded although its acknowledgement was lost. Repeat the request with the same idempotency key: it is
answered, and charged at most once.

LedgerError
├── UnknownBudget         no budget has this name
├── BudgetExceeded        the release does not fit the remaining budget
├── DivisionSettled       a change of the limit would divide the budget again after its first charge
├── KeyReused             the idempotency key belongs to another request
├── TooManyComparisons    the idempotency key came with other requests too often: nothing is compared for some seconds
└── LedgerUnavailable     the database cannot be reached, read or written
    └── WrongLedger       the database answers, but its schema is newer, or its secret is another
"""

from app.ledger.state import Budget
from gsh.accounting.composition import Release

__all__ = [
    "BudgetExceeded",
    "DivisionSettled",
    "KeyReused",
    "LedgerError",
    "LedgerUnavailable",
    "TooManyComparisons",
    "UnknownBudget",
    "WrongLedger",
    "reason_of",
]


class LedgerError(Exception):
    """Any error of the ledger. It does not depend on HTTP."""


class UnknownBudget(LedgerError):
    pass


class BudgetExceeded(LedgerError):
    """``budget`` as it is now, and the release that was asked for."""

    def __init__(self, budget: Budget, asked: Release) -> None:
        super().__init__(budget.id)
        self.budget = budget
        self.asked = asked


class DivisionSettled(LedgerError):
    """``names_mechanism``: the reason is a mechanism of another proportion; otherwise it is the limit."""

    def __init__(self, *, names_mechanism: bool) -> None:
        super().__init__(names_mechanism)
        self.names_mechanism = names_mechanism


class KeyReused(LedgerError):
    pass


class TooManyComparisons(LedgerError):
    """``seconds`` is how long to wait until requests are compared again."""

    def __init__(self, seconds: int) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class LedgerUnavailable(LedgerError):
    """Its text is the reason, for operators. It is logged, without secret or password, and never sent to clients."""


class WrongLedger(LedgerUnavailable):
    pass


def reason_of(error: OSError | ValueError) -> str:
    """Why the operating system, or Python, refuses a path."""
    return (isinstance(error, OSError) and error.strerror) or "the path is not valid"
