"""From an outcome without success to its error: the one table from kinds of problem to classes."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from gsh.client import errors
from gsh.client.calls import Answer, Failure
from gsh.client.errors import OF_THE_LIBRARY, ServiceError

__all__ = ["Renames", "error_of", "renamed"]

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
    "too-many-attempts": errors.TooManyAttempts,
    "unit-settled": errors.UnitSettled,
    "unknown-budget": errors.UnknownBudget,
    "unknown-release": errors.UnknownRelease,
    "unsupported-media-type": errors.UnsupportedMediaType,
}


def error_of(outcome: Answer | Failure, renames: Renames = (), retry_after: float | None = None) -> ServiceError:
    """The error that an outcome is, with the names that the call of the client has."""
    if isinstance(outcome, Failure):
        return errors.Unreachable("", f"no answer of the service: {outcome.reason}")
    problem = _problem(outcome)
    if problem is None:
        detail = f"the answer, of status {outcome.status}, is not one of the service: check the URL and the proxies"
        return errors.UnexpectedAnswer("", detail, status=outcome.status, retry_after=retry_after)
    kind = _KINDS.get(str(problem["type"]).removeprefix("/problems/"), ServiceError)
    detail = str(problem.get("detail", ""))
    places = ServiceError("", detail, problem=problem).errors
    pointer = next((place.name for place in places if place.kind == "pointer"), "")
    if kind is errors.InvalidRequest and pointer.startswith(_ABOUT_GROUPS):
        kind = errors.InvalidTable
    # The errors of the library state the bound of one parameter.
    if issubclass(kind, OF_THE_LIBRARY) and places:
        pointer = pointer or _PARAMETERS.get(places[0].name, places[0].name)
        detail = places[0].detail
    return kind(renamed(pointer, renames), detail, status=outcome.status, problem=problem, retry_after=retry_after)


def _problem(answer: Answer) -> dict[str, Any] | None:
    if not answer.headers.get("content-type", "").startswith("application/problem+json"):
        return None
    try:
        problem = json.loads(answer.content.to_pybytes())
    except ValueError:
        return None
    is_one = isinstance(problem, dict) and str(problem.get("type", "")).startswith("/problems/")
    return problem if is_one else None


def renamed(pointer: str, renames: Renames) -> str:
    """A pointer of the HTTP contract, or of the library, as the call of the client names it."""
    for before, after in renames:
        if pointer == before or pointer.startswith(before.rstrip("/") + "/"):
            return after + pointer.removeprefix(before)
    return pointer
