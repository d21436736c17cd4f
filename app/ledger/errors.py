"""Errors of the ledger. After an error nothing was spent, with one exception: if the ledger is unavailable, a commit
may have succeeded although its acknowledgement was lost. Repeat the request with the same idempotency key: it is
answered, and charged at most once.

LedgerError
├── UnknownBudget         no budget has this name
├── BudgetExceeded        the release does not fit the remaining budget
├── DivisionSettled       a change names a mechanism of another proportion after the first charge
├── UnitSettled           a change would protect another privacy unit or period after the first charge
├── ReasonMissing         an existing budget is changed without a reason
├── KeyReused             the idempotency key belongs to another request
├── UnknownRelease        no release has this idempotency key, or not for this client
├── AnswerErased          the answer is erased: its retention period has passed
├── NotOpen               a commit of a release that was not opened for another engine
├── NotOwner              a commit by another client than the one that opened the release
├── AlreadyCommitted      a second commit with another digest
├── TooManyComparisons    the idempotency key came with other requests too often: nothing is compared for some seconds
└── LedgerUnavailable     the database cannot be reached, read or written
    └── WrongLedger       the database answers, but its schema is newer, or its secret is another
"""

from app.ledger.state import Budget
from gsh.accounting.composition import Cost, Release

__all__ = [
    "AlreadyCommitted",
    "AnswerErased",
    "BudgetExceeded",
    "DivisionSettled",
    "KeyReused",
    "LedgerError",
    "LedgerUnavailable",
    "NotOpen",
    "NotOwner",
    "ReasonMissing",
    "TooManyComparisons",
    "UnitSettled",
    "UnknownBudget",
    "UnknownRelease",
    "WrongLedger",
    "reason_of",
]


class LedgerError(Exception):
    """Any error of the ledger. It does not depend on HTTP."""


class UnknownBudget(LedgerError):
    pass


class BudgetExceeded(LedgerError):
    """``budget`` as it is now, the release that was asked for, and its cost."""

    def __init__(self, budget: Budget, asked: Release, cost: Cost) -> None:
        super().__init__(budget.id)
        self.budget = budget
        self.asked = asked
        self.cost = cost


class DivisionSettled(LedgerError):
    pass


class UnitSettled(LedgerError):
    pass


class ReasonMissing(LedgerError):
    pass


class KeyReused(LedgerError):
    """``budget`` is the one that paid for the release with this idempotency key; ``has_answer`` if it has groups."""

    def __init__(self, idempotency_key: str, budget: str, *, has_answer: bool) -> None:
        super().__init__(idempotency_key, budget, has_answer)
        self.idempotency_key = idempotency_key
        self.budget = budget
        self.has_answer = has_answer


class UnknownRelease(LedgerError):
    pass


class AnswerErased(LedgerError):
    """``at`` is when the answer was erased. The charge and the certificate stay."""

    def __init__(self, at: str) -> None:
        super().__init__(at)
        self.at = at


class NotOpen(LedgerError):
    pass


class NotOwner(LedgerError):
    pass


class AlreadyCommitted(LedgerError):
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
