"""Errors of the ledger. Whatever is raised, nothing was spent, with one exception: where the ledger is unavailable, a
commit may have been made whose acknowledgement was lost. The same request with the same key tells, and costs no more.

LedgerError
├── UnknownBudget         no budget of that name
├── BudgetExceeded        what is asked does not fit what is left
├── DivisionSettled       a change of the limit would divide the budget anew after its first charge
├── KeyReused             the idempotency key belongs to another request
├── TooManyComparisons    it was sent with other requests too often: nothing is compared for some seconds
└── LedgerUnavailable     the database cannot be reached, read or written
    └── WrongLedger       it can, but not by this service: a newer schema, or another secret
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
    """Knows nothing of HTTP."""


class UnknownBudget(LedgerError):
    pass


class BudgetExceeded(LedgerError):
    """``budget`` as it stands, and what was asked of it."""

    def __init__(self, budget: Budget, asked: Release) -> None:
        super().__init__(budget.id)
        self.budget = budget
        self.asked = asked


class DivisionSettled(LedgerError):
    """``names_mechanism``: whether a mechanism of another proportion is the reason, or else the limit itself."""

    def __init__(self, *, names_mechanism: bool) -> None:
        super().__init__(names_mechanism)
        self.names_mechanism = names_mechanism


class KeyReused(LedgerError):
    pass


class TooManyComparisons(LedgerError):
    """``seconds`` is how long to wait before the same request is compared."""

    def __init__(self, seconds: int) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class LedgerUnavailable(LedgerError):
    """Its text is the reason, for operators: it is logged, without any secret or password, and not shown to clients."""


class WrongLedger(LedgerUnavailable):
    pass


def reason_of(error: OSError | ValueError) -> str:
    """Why the operating system, or Python before it, does not take a path."""
    return (isinstance(error, OSError) and error.strerror) or "the path is not valid"
