"""From an outcome without success to its error: the one table from kinds of problem to classes."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from gsh.client import errors
from gsh.client.calls import Answer, Failure
from gsh.client.decoding import decoded, unexpected
from gsh.client.errors import OF_THE_LIBRARY, ServiceError
from gsh.errors import renamed_pointer
from gsh.wire import Json

__all__ = ["Renames", "error_of"]

Renames: TypeAlias = Sequence[tuple[str, str]]
"""Starts of pointers of the HTTP contract, and what the call of the client has in their place."""

_ABOUT_GROUPS = ("/groups", "/table", "/key_columns", "/count_column")
_PARAMETERS = {"Idempotency-Key": "once"}
_KINDS: Mapping[str, type[ServiceError]] = {
    "already-committed": errors.AlreadyCommitted,
    "answer-erased": errors.AnswerErased,
    "budget-exceeded": errors.BudgetExceeded,
    "busy": errors.Busy,
    "content-too-large": errors.ContentTooLarge,
    "deadline-passed": errors.DeadlinePassed,
    "division-settled": errors.DivisionSettled,
    "headers-too-large": errors.HeadersTooLarge,
    "idempotency-key-missing": errors.IdempotencyKeyMissing,
    "infeasible-target": errors.Infeasible,
    "internal-error": errors.InternalError,
    "invalid-encoding": errors.InvalidEncoding,
    "invalid-http": errors.InvalidHttp,
    "invalid-json": errors.InvalidJson,
    "invalid-multipart": errors.InvalidMultipart,
    "invalid-request": errors.InvalidRequest,
    "key-required": errors.AccessKeyRequired,
    "key-reused": errors.IdempotencyKeyReused,
    "ledger-unavailable": errors.LedgerUnavailable,
    "limit-exceeded": errors.LimitExceeded,
    "method-not-allowed": errors.MethodNotAllowed,
    "no-certificate": errors.NoCertificate,
    "not-acceptable": errors.NotAcceptable,
    "not-allowed": errors.NotAllowed,
    "not-found": errors.NotFound,
    "not-open": errors.NotOpen,
    "request-timeout": errors.RequestTimeout,
    "too-little-left": errors.TooLittleLeft,
    "too-many-attempts": errors.TooManyAttempts,
    "unit-settled": errors.UnitSettled,
    "unknown-budget": errors.UnknownBudget,
    "unknown-release": errors.UnknownRelease,
    "unsupported-media-type": errors.UnsupportedMediaType,
}


def error_of(outcome: Answer | Failure, renames: Renames = (), retry_after: float | None = None) -> ServiceError:
    """The error that an outcome is, with the names that the call of the client has."""
    if isinstance(outcome, Failure) and outcome.is_answered:
        return errors.UnexpectedAnswer("", f"the answer is not one of the service: {outcome.reason}")
    if isinstance(outcome, Failure):
        return errors.Unreachable("", f"no answer of the service: {outcome.reason}")
    if not outcome.headers.get("content-type", "").startswith("application/problem+json"):
        return unexpected(outcome, retry_after=retry_after)
    try:
        return decoded(outcome, lambda problem: _error(outcome, problem, renames, retry_after))
    except errors.UnexpectedAnswer as error:
        error.retry_after = retry_after
        return error


def _error(outcome: Answer, problem: Json, renames: Renames, retry_after: float | None) -> ServiceError:
    """The error of a problem document. An error of Python if the document is not as the contract has it."""
    if not str(problem["type"]).startswith("/problems/"):
        raise ValueError
    kind = _KINDS.get(str(problem["type"]).removeprefix("/problems/"), ServiceError)
    detail = problem.get("detail", "")
    places = ServiceError("", detail, problem=problem).errors
    texts = [text for place in places for text in (place.name, place.detail)]
    if not all(isinstance(text, str) for text in (detail, problem.get("request_id") or "", *texts)):
        raise TypeError
    pointer = next((place.name for place in places if place.kind == "pointer"), "")
    if kind is errors.InvalidRequest and pointer.startswith(_ABOUT_GROUPS):
        kind = errors.InvalidTable
    # The errors of the library state the bound of one parameter.
    if issubclass(kind, OF_THE_LIBRARY) and places:
        pointer = pointer or _PARAMETERS.get(places[0].name, places[0].name)
        detail = places[0].detail
    error = kind(
        renamed_pointer(pointer, *renames), detail, status=outcome.status, problem=problem, retry_after=retry_after
    )
    for name in error.further & problem.keys():
        getattr(error, name)  # of the type that it must have
    return error
