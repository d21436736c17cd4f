"""Errors of the client: a class for each kind of problem that the service answers with. All are ``gsh.Error``.

ServiceError                      the service refused the request, or gave no answer
├── Unreachable                   no answer: the connection could not be made, broke, or was too slow
├── UnexpectedAnswer              an answer that is not of this service: perhaps of a proxy
├── InvalidRequest                a value is out of bounds; also a gsh.InvalidParameter
├── InvalidTable                  groups or columns that cannot be released; also a gsh.InvalidGroups
├── Infeasible                    nothing meets the target; also a gsh.InfeasibleTarget
├── ContentTooLarge               too many bytes or groups; also a gsh.TooManyGroups
├── LimitExceeded                 more work than the service allows, or less noise
├── BudgetExceeded                the release does not fit: budget, limit, spent, asked
├── TooLittleLeft                 less than half of a usual release is left of the budget
├── IdempotencyKeyMissing         a budget is named, and once= is not given
├── IdempotencyKeyReused          once= belongs to a release with other content: release
├── AnswerErased                  the answer is erased; charge and certificate stay
├── DivisionSettled               the first charge fixed how noise and thresholds share the budget
├── UnitSettled                   the first charge fixed the privacy unit and the period
├── ParentSettled                 the first charge fixed the parent of the budget
├── PeriodClosed                  the period of the budget has ended, and is closed for charges
├── AccessKeyEnded                the access key is not active, or was replaced before
├── AwaitsApproval                nothing is done yet: another access key must approve it: approval
├── ApprovalRefused               another access key refused the release
├── AlreadyDecided                the request for an approval is decided already
├── OutdatedRequest               the budget has changed since somebody asked for the change
├── NotOpen                       only an open release can be committed or surveyed
├── AlreadySurveyed               the release has other bounds, from another survey
├── AlreadyCommitted              the release was committed with another digest
├── Missing                       also a LookupError
│   ├── UnknownBudget
│   ├── UnknownAccessKey          no such access key, or not one that you may see
│   ├── UnknownApproval           no such request for an approval, or not one that you may see
│   ├── UnknownRelease            no such release, or not one that you may see, or it has no answer
│   ├── NoCertificate             version 0.1 made the release
│   └── NotFound                  no such path: perhaps the URL is not that of the service
├── AccessDenied
│   ├── AccessKeyRequired         no access key, or one that is unknown, revoked or expired
│   ├── NoSecondKey               another access key must decide than the one that asked
│   └── NotAllowed                the access key lacks the scope or the budget
├── TooManyAttempts               too many wrong access keys, or too much other content under one idempotency key
├── Unavailable                   try again later
│   ├── Busy
│   ├── LedgerUnavailable
│   └── DeadlinePassed
├── InternalError                 a bug of the service
└── ProtocolError                 a bug of the client, or of a proxy
    ├── InvalidJson
    ├── InvalidMultipart
    ├── InvalidEncoding
    ├── InvalidHttp
    ├── MethodNotAllowed
    ├── NotAcceptable
    ├── RequestTimeout
    ├── UnsupportedMediaType
    └── HeadersTooLarge
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from gsh.client.records import Cost, Limit
from gsh.documents import parsed
from gsh.errors import Error, InfeasibleTarget, InvalidGroups, InvalidParameter, TooManyGroups, visible
from gsh.errors import TooLittleLeft as NotEnoughLeft

__all__ = [
    "AccessDenied",
    "AccessKeyEnded",
    "AccessKeyRequired",
    "AlreadyCommitted",
    "AlreadyDecided",
    "AlreadySurveyed",
    "AnswerErased",
    "ApprovalRefused",
    "AwaitsApproval",
    "BudgetExceeded",
    "Busy",
    "ContentTooLarge",
    "DeadlinePassed",
    "DivisionSettled",
    "HeadersTooLarge",
    "IdempotencyKeyMissing",
    "IdempotencyKeyReused",
    "Infeasible",
    "InternalError",
    "InvalidEncoding",
    "InvalidHttp",
    "InvalidJson",
    "InvalidMultipart",
    "InvalidRequest",
    "InvalidTable",
    "LedgerUnavailable",
    "LimitExceeded",
    "MethodNotAllowed",
    "Missing",
    "NoCertificate",
    "NoSecondKey",
    "NotAcceptable",
    "NotAllowed",
    "NotFound",
    "NotOpen",
    "OutdatedRequest",
    "ParentSettled",
    "PeriodClosed",
    "Place",
    "ProtocolError",
    "RequestTimeout",
    "ServiceError",
    "TooLittleLeft",
    "TooManyAttempts",
    "Unavailable",
    "UnexpectedAnswer",
    "UnitSettled",
    "UnknownAccessKey",
    "UnknownApproval",
    "UnknownBudget",
    "UnknownRelease",
    "Unreachable",
    "UnsupportedMediaType",
]

OF_THE_LIBRARY = (InvalidParameter, InvalidGroups, InfeasibleTarget, NotEnoughLeft, TooManyGroups)
"""What a wrong argument raises, whether the library or the service finds it."""


@dataclass(frozen=True, slots=True)
class Place:
    """One fault of a request: a pointer into the body, the name of a header, or of a parameter of the URL."""

    kind: str
    name: str
    detail: str


class ServiceError(Error):
    """The service refused the request, or gave no answer. It contains no data and no access key.

    ``pointer`` names the parameter of the call, if one is at fault, and ``errors`` has all faults.
    """

    further: ClassVar[frozenset[str]] = frozenset()
    """The members that only problems of this kind have."""
    problem_kind: ClassVar[str | None] = None
    """The name of the kind of problem, if it is not that of the class."""
    advice: ClassVar[str] = ""
    """What to do in Python, in a sentence."""

    def __init__(
        self,
        pointer: str,
        detail: str,
        *,
        status: int | None = None,
        problem: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(pointer, detail, self.advice)
        self.status = status
        """The HTTP status; None without an answer."""
        self.problem = dict(problem or {})
        """The problem document of the service."""
        self.retry_after = retry_after
        """The seconds that the service asks to wait."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.args, vars(self)

    def __str__(self) -> str:
        is_of_the_library = isinstance(self, OF_THE_LIBRARY) and self.pointer
        text = f"{self.pointer.removeprefix('/')}: {self.detail}" if is_of_the_library else self.detail
        text += self.hint and f" {self.hint}"
        return visible(text if self.request_id is None else f"{text} (request {self.request_id})")

    @property
    def request_id(self) -> str | None:
        """By this the operator finds the request in the log."""
        return self.problem.get("request_id")

    @property
    def errors(self) -> tuple[Place, ...]:
        faults: Iterable[Mapping[str, str]] = self.problem.get("errors") or ()
        return tuple(
            Place(kind, fault[kind], fault.get("detail", ""))
            for fault in faults
            for kind in ("pointer", "header", "parameter")
            if kind in fault
        )


class Unreachable(ServiceError):
    """No answer. A release with ``once=`` may be sent again: it is charged once."""


class UnexpectedAnswer(ServiceError):
    """An answer that is not of this service: perhaps a proxy gave it, or the URL is that of something else."""


class InvalidRequest(ServiceError, InvalidParameter):
    """A value is out of bounds."""


class InvalidTable(ServiceError, InvalidGroups):
    """Groups or columns that cannot be released."""


class Infeasible(ServiceError, InfeasibleTarget):
    """Nothing meets the target. The detail says what would make it possible."""

    problem_kind = "infeasible-target"


class ContentTooLarge(ServiceError, TooManyGroups):
    """More bytes, or more groups, than the service accepts."""


class LimitExceeded(ServiceError):
    """More points, evaluations or work than the service allows, or less noise."""


class BudgetExceeded(ServiceError):
    """The release does not fit the remaining budget. Nothing was released and nothing was charged."""

    advice = "With releases=1, gsh.publish and client.budgets.calibrate take what is left, with more noise."
    further = frozenset({"budget", "limit", "spent", "asked"})

    @property
    def budget(self) -> str:
        """The budget that is short: the one of the request, or one of its ancestors."""
        return str(self.problem["budget"])

    @property
    def limit(self) -> Limit:
        """What the budget allows."""
        return parsed(Limit, self.problem["limit"])

    @property
    def spent(self) -> Cost:
        """What is spent already."""
        return parsed(Cost, self.problem["spent"])

    @property
    def asked(self) -> Cost:
        """What the release would have cost."""
        return parsed(Cost, self.problem["asked"])


class TooLittleLeft(ServiceError, NotEnoughLeft):
    """Less than half of a usual release is left of the budget. Nothing was charged, and the name is not used."""


class IdempotencyKeyMissing(ServiceError):
    """A release with a budget needs ``once=``."""

    advice = "Give once=, a name for this release: it is made and charged once."


class IdempotencyKeyReused(ServiceError):
    """``once=`` belongs to a release with other content. Nothing was released and nothing was charged."""

    advice = "Give another once=, or take that release: client.releases.load(once)."
    problem_kind = "key-reused"

    @property
    def release(self) -> str | None:
        """The idempotency key of that release, if you may see it: ``client.releases[…]`` has its table."""
        path = self.problem.get("release")
        return None if path is None else str(path).removeprefix("/releases/")


class AnswerErased(ServiceError):
    """The answer was kept for some days. The charge and the certificate stay."""


class DivisionSettled(ServiceError):
    """The first charge fixed how noise and thresholds share the budget."""


class UnitSettled(ServiceError):
    """The first charge fixed the privacy unit and the period of the budget."""


class ParentSettled(ServiceError):
    """The first charge fixed the parent of the budget."""


class PeriodClosed(ServiceError):
    """The period of the budget has ended, and is closed for charges. Nothing was released and nothing was charged."""


class AccessKeyEnded(ServiceError):
    """The access key is not active, or was replaced before: it cannot be rotated."""


class AwaitsApproval(ServiceError):
    """Nothing is done yet: another access key must approve it. Then send a release again, unchanged."""

    @property
    def approval(self) -> str:
        """The id of the request: ``client.approvals[…]``."""
        return str(self.problem.get("id"))


class ApprovalRefused(ServiceError):
    """Another access key refused the release. Nothing was released and nothing was charged."""


class AlreadyDecided(ServiceError):
    """The request for an approval is decided already."""


class OutdatedRequest(ServiceError):
    """The budget has changed since somebody asked for the change: refuse it, and ask again."""


class NotOpen(ServiceError):
    """Only a release that was opened can be committed or surveyed."""


class AlreadySurveyed(ServiceError):
    """The release has other bounds, from another survey. Draw nothing with these."""


class AlreadyCommitted(ServiceError):
    """The release was committed with another digest. Do not publish the second output."""


class Missing(ServiceError, LookupError):
    """There is nothing of this name."""


class UnknownBudget(Missing):
    """There is no such budget."""

    advice = "client.budgets.put(id, epsilon=…, delta=…) makes one, and client.budgets lists them."


class UnknownAccessKey(Missing):
    """There is no such access key, or not one that you may see."""

    advice = "client.access_keys lists those that you may see."


class UnknownApproval(Missing):
    """There is no such request for an approval, or not one that you may see."""

    advice = "client.approvals lists those that you may see."


class UnknownRelease(Missing):
    """There is no such release, or not one that you may see, or it has no answer."""

    advice = "client.releases lists those that you may see."


class NoCertificate(Missing):
    """Version 0.1 made the release: its certificate is in the metadata of its table."""


class NotFound(Missing):
    """There is no such path."""


class AccessDenied(ServiceError):
    """The access key does not open this."""


class AccessKeyRequired(AccessDenied):
    """No access key was sent, or one that is unknown, revoked or expired."""

    advice = "Give key=, or set GSH_KEY."
    problem_kind = "key-required"


class NoSecondKey(AccessDenied):
    """Another access key must decide than the one that asked."""


class NotAllowed(AccessDenied):
    """The access key lacks the scope or the budget."""


class TooManyAttempts(ServiceError):
    """Too many wrong access keys, or too much other content under one idempotency key."""


class Unavailable(ServiceError):
    """The service cannot answer now. The retries of the client are used up."""


class Busy(Unavailable):
    """No free worker, memory or disk."""


class LedgerUnavailable(Unavailable):
    """The ledger cannot be read or written. Nothing was released."""


class DeadlinePassed(Unavailable):
    """The request took longer than the service allows."""


class InternalError(ServiceError):
    """A bug of the service."""


class ProtocolError(ServiceError):
    """The service could not read the request: a bug of the client, or of a proxy."""


class InvalidJson(ProtocolError):
    """The body was not JSON."""


class InvalidMultipart(ProtocolError):
    """The form was damaged or incomplete."""


class InvalidEncoding(ProtocolError):
    """The compressed body was damaged."""


class InvalidHttp(ProtocolError):
    """The bytes were not HTTP."""


class MethodNotAllowed(ProtocolError):
    """The path does not allow the method: perhaps the service is older than the client."""


class NotAcceptable(ProtocolError):
    """The service does not have the format."""


class RequestTimeout(ProtocolError):
    """The request did not arrive in time."""


class UnsupportedMediaType(ProtocolError):
    """The service does not read the format."""


class HeadersTooLarge(ProtocolError):
    """The URL and the headers were too long."""
