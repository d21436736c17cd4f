"""Errors of the ledger. After an error nothing was spent, with one exception: if the ledger is unavailable, a commit
may have succeeded although its acknowledgement was lost. Repeat the request with the same idempotency key: it is
answered, and charged at most once.
"""

from typing import TYPE_CHECKING

from app.ledger.state import Budget
from gsh.accounting.composition import Cost, Release

if TYPE_CHECKING:
    from app.ledger.approvals import Approval

__all__ = [
    "AccessKeyEnded",
    "AlreadyCommitted",
    "AlreadyDecided",
    "AnswerErased",
    "ApprovalRefused",
    "AwaitsApproval",
    "BrokenLineage",
    "BudgetExceeded",
    "DivisionSettled",
    "InvalidParent",
    "InvalidSetting",
    "KeyReused",
    "LedgerError",
    "LedgerUnavailable",
    "NoSecondKey",
    "NotOpen",
    "NotOwner",
    "OutdatedRequest",
    "ParentSettled",
    "PeriodClosed",
    "ReasonMissing",
    "TooManyComparisons",
    "UnitSettled",
    "UnknownAccessKey",
    "UnknownApproval",
    "UnknownBudget",
    "UnknownPeriod",
    "UnknownRelease",
    "WrongLedger",
    "reason_of",
]


class LedgerError(Exception):
    """Any error of the ledger. It does not depend on HTTP."""


class UnknownBudget(LedgerError):
    """No budget has this name."""


class BudgetExceeded(LedgerError):
    """The release does not fit ``budget``: the charged one or an ancestor, as it is now. And what was asked for."""

    def __init__(self, budget: Budget, asked: Release, cost: Cost, *, is_ancestor: bool = False) -> None:
        super().__init__(budget.id)
        self.budget = budget
        self.is_ancestor = is_ancestor
        self.asked = asked
        self.cost = cost


class DivisionSettled(LedgerError):
    """A change names a mechanism of another proportion after the first charge."""


class UnitSettled(LedgerError):
    """A change would protect another privacy unit or period after the first charge."""


class ParentSettled(LedgerError):
    """A change of the parent after the first charge: the charges before it are not in the new parent."""


class InvalidSetting(LedgerError):
    """A setting that a budget cannot have: ``field``, and why."""

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(field, detail)
        self.field = field
        self.detail = detail


class InvalidParent(InvalidSetting):
    """A parent that is no budget, that is below its own child, or that makes a tree of too many levels."""

    def __init__(self, detail: str) -> None:
        super().__init__("parent", detail)


class UnknownPeriod(UnknownBudget):
    """A renewed budget has no such period, or not yet."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class PeriodClosed(LedgerError):
    """A charge to a period that ended so long ago that its budget is closed."""


class ReasonMissing(LedgerError):
    """An existing budget is changed without a reason."""


class KeyReused(LedgerError):
    """The idempotency key belongs to another request, which ``budget`` paid for; ``has_answer`` if it has groups.

    ``approval`` is the id of the request, if it waits for an approval.
    """

    def __init__(self, idempotency_key: str, budget: str, *, has_answer: bool, approval: str | None = None) -> None:
        super().__init__(idempotency_key, budget, has_answer, approval)
        self.approval = approval
        self.idempotency_key = idempotency_key
        self.budget = budget
        self.has_answer = has_answer


class UnknownRelease(LedgerError):
    """No release has this idempotency key, or not for this client."""


class AnswerErased(LedgerError):
    """The answer was erased at ``at``: its retention period has passed. The charge and the certificate stay."""

    def __init__(self, at: str) -> None:
        super().__init__(at)
        self.at = at


class UnknownAccessKey(LedgerError):
    """No access key has this id, or none that the client may see."""


class AccessKeyEnded(LedgerError):
    """A rotation of an access key that is not active, or was replaced before."""


class UnknownApproval(LedgerError):
    """No request has this id, or none that the client may see."""


class AwaitsApproval(LedgerError):
    """Nothing is done yet: another client must approve the request."""

    def __init__(self, approval: "Approval") -> None:
        super().__init__(approval.id)
        self.approval = approval


class ApprovalRefused(LedgerError):
    """The release was refused, for a reason."""

    def __init__(self, approval: str, reason: str) -> None:
        super().__init__(approval, reason)
        self.approval = approval
        self.reason = reason


class AlreadyDecided(LedgerError):
    """The request is not waiting: it is in ``state``."""

    def __init__(self, state: str) -> None:
        super().__init__(state)
        self.state = state


class NoSecondKey(LedgerError):
    """The client that asks cannot decide, nor can one without an access key."""


class OutdatedRequest(LedgerError):
    """The budget has changed since somebody asked for a change of it."""


class NotOpen(LedgerError):
    """A commit or a survey of a release that was not opened for another engine."""


class AlreadySurveyed(LedgerError):
    """A second survey of an open release, with another digest or other bounds."""


class NotOwner(LedgerError):
    """A commit or a survey by another client than the one that opened the release."""


class AlreadyCommitted(LedgerError):
    """A second commit with another digest."""


class TooManyComparisons(LedgerError):
    """The idempotency key came with other requests too often: nothing is compared for ``seconds``."""

    def __init__(self, seconds: int) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class LedgerUnavailable(LedgerError):
    """The database cannot be reached, read or written.

    Its text is the reason, for operators. It is logged, without secret or password, and never sent to clients.
    """


class BrokenLineage(LedgerUnavailable):
    """The ancestors of a budget are not as recorded."""


class WrongLedger(LedgerUnavailable):
    """The database answers, but its schema is newer, or its secret is another."""


def reason_of(error: OSError | ValueError) -> str:
    """Why the operating system, or Python, refuses a path."""
    return (isinstance(error, OSError) and error.strerror) or "the path is not valid"
