"""Errors on the wire: RFC 9457 problem documents, the one place where an exception becomes a status.

Nothing posted is ever echoed: details are written here from the kind of error and the bound, never from the input.
"""

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from app.api.schemas.costs import CostOut, LimitOut
from app.api.validation_errors import reworded
from app.ledger.errors import (
    BudgetExceeded,
    DivisionSettled,
    KeyReused,
    LedgerUnavailable,
    TooManyComparisons,
    UnknownBudget,
)
from app.service.errors import Busy, DeadlinePassed, LimitExceeded
from gsh.accounting.errors import AccountingError, InfeasibleTarget
from gsh.release.errors import ReleaseError, TooManyGroups

__all__ = [
    "ACCESS_PROBLEMS",
    "BUDGET_PROBLEMS",
    "CONNECTION_KINDS",
    "DIVISION_PROBLEMS",
    "KINDS",
    "PROBLEMS",
    "Busy",
    "ContentTooLarge",
    "InvalidBody",
    "InvalidMultipart",
    "LimitExceeded",
    "NotAdmitted",
    "Problem",
    "install",
    "problem_response",
]

MEDIA_TYPE = "application/problem+json"

logger = logging.getLogger("app.ledger")

_MOST_ERRORS = 50


class ContentTooLarge(Exception):
    """A body of more bytes than its route takes; ``advice`` says where else it may go."""

    def __init__(self, most: int, advice: str) -> None:
        super().__init__(most, advice)
        self.detail = f"must have at most {most} bytes{advice}"


class InvalidBody(Exception):
    """A body that its schema refuses: what is wrong, by pointer, and nothing of the body itself."""

    def __init__(self, errors: tuple[tuple[str, str], ...], count: int, is_json: bool) -> None:
        super().__init__(errors, count, is_json)
        self.errors = errors
        self.count = count
        self.is_json = is_json

    @classmethod
    def of(cls, found: Sequence[Any]) -> "InvalidBody":
        """From pydantic's errors. Of very many, those that are shown are kept."""
        errors = tuple(dict.fromkeys(reworded(found)))
        return cls(errors[:_MOST_ERRORS], len(errors), all(each["type"] != "json_invalid" for each in found))


class InvalidMultipart(Exception):
    """A body that says it is a form but cannot be read as one, or not to its end."""


class NotAdmitted(Exception):
    """A request without the key it needs; ``reason`` is for the metrics."""

    def __init__(self, status: int, reason: str, retry_after: int | None = None) -> None:
        super().__init__(status, reason)
        self.status = status
        self.reason = reason
        self.retry_after = retry_after


class ProblemError(BaseModel):
    """One thing that is wrong with the request."""

    pointer: str = Field(
        title="JSON Pointer", description="Where in the body; empty for the body itself.", examples=["/mechanism/sigma"]
    )
    detail: str = Field(
        title="Detail", description="What is wrong there, with the bound.", examples=["must be greater than 0"]
    )


class Problem(BaseModel):
    """An error, as RFC 9457 has it. It never contains a posted value."""

    type: str = Field(title="Type", description="What kind of problem, for programs.", examples=["invalid-request"])
    title: str = Field(title="Title", description="The same for people.", examples=["Invalid request"])
    status: int = Field(title="Status", description="The HTTP status, again.", examples=[422])
    detail: str = Field(
        title="Detail", description="What happened.", examples=["/mechanism/sigma must be greater than 0"]
    )
    errors: list[ProblemError] = Field(
        title="Errors",
        description="Each thing that is wrong with the body.",
        examples=[[{"pointer": "/mechanism/sigma", "detail": "must be greater than 0"}]],
    )


class BudgetProblem(Problem):
    """A release that does not fit what is left of a budget. Nothing was charged, and no noise was drawn."""

    limit: LimitOut = Field(
        title="Limit",
        description="What the budget allows.",
        examples=[{"epsilon": 1.0, "delta": 1e-4, "mu_squared": 0.0798, "hazard": 7.69e-05}],
    )
    spent: CostOut = Field(
        title="Spent",
        description="What is spent already.",
        examples=[{"releases": 7, "mu_squared": 0.0732, "hazard": 7e-05, "epsilon": 0.99, "delta": 9.9e-05}],
    )
    asked: CostOut = Field(
        title="Asked",
        description="What the release would cost by itself.",
        examples=[{"releases": 1, "mu_squared": 0.0105, "hazard": 1e-05, "epsilon": 0.31, "delta": 1e-05}],
    )


class _Kind(NamedTuple):
    name: str
    title: str
    detail: str


_KINDS: Mapping[int, _Kind] = {
    400: _Kind("invalid-json", "Invalid JSON", "The body is not JSON."),
    401: _Kind("key-required", "Key required", "A valid key is needed, as Authorization: Bearer."),
    403: _Kind("not-allowed", "Not allowed", "This access key lacks the scope or the budget."),
    404: _Kind("not-found", "Not found", "There is no such resource."),
    405: _Kind("method-not-allowed", "Method not allowed", "The resource does not allow this method."),
    413: _Kind("content-too-large", "Content too large", "The body is larger than the service accepts."),
    415: _Kind(
        "unsupported-media-type",
        "Unsupported media type",
        "The body must be JSON, or a form where there is a table.",
    ),
    422: _Kind("invalid-request", "Invalid request", "The request is JSON but not valid, or cannot be met."),
    429: _Kind("too-many-attempts", "Too many attempts", "Too many wrong keys, or Idempotency-Keys of others; wait."),
    500: _Kind("internal-error", "Internal error", "The service failed; nothing was done. This is a bug."),
    503: _Kind("busy", "Busy", "The service cannot answer now; try again shortly."),
}
CONNECTION_KINDS: Mapping[int, _Kind] = {
    400: _Kind("invalid-http", "Invalid HTTP", "The request is not HTTP that the service can read."),
    408: _Kind("request-timeout", "Request timeout", "The request did not arrive in time."),
    431: _Kind(
        "headers-too-large", "Headers too large", "The URL and the headers are larger than the service accepts."
    ),
}
"""For what is no request yet, so that no route answers it."""
_INFEASIBLE = _Kind("infeasible-target", "Infeasible target", "Nothing meets the target.")
_NO_FORM = _Kind("invalid-multipart", "Invalid multipart", "The body is not complete multipart/form-data.")
_LIMIT = _Kind("limit-exceeded", "Limit exceeded", "The request asks for more than the service is set up to do.")
_UNKNOWN_BUDGET = _Kind("unknown-budget", "Unknown budget", "There is no such budget.")
_EXCEEDED = _Kind("budget-exceeded", "Budget exceeded", "The release does not fit what is left of the budget.")
_REUSED = _Kind("key-reused", "Key reused", "The Idempotency-Key belongs to another request.")
_SETTLED = _Kind(
    "division-settled", "Division settled", "The first charge settled how noise and thresholds share the budget."
)
_LOCAL = {
    reason: _Kind("not-allowed", "Not allowed", f"While there is no key, only this machine is served: {detail}.")
    for reason, detail in {
        "no-keys": "the request came from another address",
        "host": "the Host header must name it, as localhost does",
        "origin": "the Origin header names another host than the Host header",
    }.items()
}
_NO_LEDGER = _Kind(
    "ledger-unavailable", "Ledger unavailable", "The ledger cannot be read or written now; nothing was released."
)
_TOO_SLOW = _Kind("deadline-passed", "Deadline passed", "The request took longer than it may, and was stopped.")
KINDS = (
    *_KINDS.values(),
    *CONNECTION_KINDS.values(),
    _INFEASIBLE,
    _NO_FORM,
    _LIMIT,
    _UNKNOWN_BUDGET,
    _EXCEEDED,
    _REUSED,
    _SETTLED,
    _NO_LEDGER,
    _TOO_SLOW,
)
"""Every type of problem."""

PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": _KINDS[status].detail} for status in (400, 413, 415, 422, 500, 503)
}
"""What an operation with a body declares as its error responses."""

ACCESS_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": _KINDS[status].detail} for status in (401, 403, 429)
}
"""What an operation that may need a key declares besides."""

BUDGET_PROBLEMS: dict[int | str, dict[str, Any]] = {
    404: {"model": Problem, "description": _UNKNOWN_BUDGET.detail},
    409: {"model": Problem | BudgetProblem, "description": f"{_EXCEEDED.detail} Or: {_REUSED.detail}"},
}
"""What an operation that may charge a budget declares besides."""

DIVISION_PROBLEMS: dict[int | str, dict[str, Any]] = {409: {"model": Problem, "description": _SETTLED.detail}}
"""What an operation that may change a limit declares besides."""


def problem_response(
    status: int,
    kind: _Kind | None = None,
    errors: Sequence[ProblemError] = (),
    headers: Mapping[str, str] | None = None,
    count: int | None = None,
) -> Response:
    """The problem document of a status; its detail is that of the first error of ``count``, if there are any."""
    kind = kind or _KINDS.get(status) or _Kind(f"http-{status}", HTTPStatus(status).phrase, HTTPStatus(status).phrase)
    detail = kind.detail
    if errors:
        first = f"{errors[0].pointer or 'The body'} {errors[0].detail}"
        count = count or len(errors)
        detail = first if count == 1 else f"{count} errors; the first: {first}"
    problem = Problem(
        type=kind.name, title=kind.title, status=status, detail=detail, errors=list(errors[:_MOST_ERRORS])
    )
    return Response(problem.model_dump_json(), status, headers, media_type=MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Answer every error of every route with a problem document."""
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(InvalidBody, _on_invalid_body)
    app.add_exception_handler(AccountingError, _on_accounting_error)
    app.add_exception_handler(ReleaseError, _on_release_error)
    app.add_exception_handler(ContentTooLarge, _on_content_too_large)
    app.add_exception_handler(LimitExceeded, _on_limit_exceeded)
    app.add_exception_handler(InvalidMultipart, lambda _request, _error: problem_response(400, _NO_FORM))
    app.add_exception_handler(Busy, lambda _request, _error: problem_response(503, headers={"Retry-After": "1"}))
    app.add_exception_handler(DeadlinePassed, _on_deadline_passed)
    app.add_exception_handler(UnknownBudget, lambda _request, _error: problem_response(404, _UNKNOWN_BUDGET))
    app.add_exception_handler(BudgetExceeded, _on_budget_exceeded)
    app.add_exception_handler(DivisionSettled, _on_division_settled)
    app.add_exception_handler(KeyReused, lambda _request, _error: problem_response(409, _REUSED))
    app.add_exception_handler(LedgerUnavailable, _on_ledger_unavailable)
    app.add_exception_handler(NotAdmitted, _on_not_admitted)
    app.add_exception_handler(TooManyComparisons, _on_too_many_comparisons)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(Exception, lambda _request, _error: problem_response(500))


def _on_http_exception(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problem_response(error.status_code, headers=error.headers)


def _on_content_too_large(_request: Request, error: Exception) -> Response:
    assert isinstance(error, ContentTooLarge)
    return problem_response(413, errors=[ProblemError(pointer="", detail=error.detail)])


def _on_limit_exceeded(_request: Request, error: Exception) -> Response:
    assert isinstance(error, LimitExceeded)
    return problem_response(422, _LIMIT, [ProblemError(pointer=error.pointer, detail=error.detail)])


def _on_deadline_passed(_request: Request, error: Exception) -> Response:
    assert isinstance(error, DeadlinePassed)
    detail = (
        f"The request took longer than {error.seconds:g} seconds and was stopped. Ask for fewer points, columns or "
        "groups, or try again when the service is less busy."
    )
    return problem_response(503, _TOO_SLOW._replace(detail=detail), headers={"Retry-After": "1"})


def _on_release_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, ReleaseError)
    status = 413 if isinstance(error, TooManyGroups) else 422
    return problem_response(status, errors=[ProblemError(pointer=error.pointer, detail=error.detail)])


def _on_budget_exceeded(_request: Request, error: Exception) -> Response:
    assert isinstance(error, BudgetExceeded)
    budget = error.budget
    problem = BudgetProblem(
        type=_EXCEEDED.name,
        title=_EXCEEDED.title,
        status=409,
        detail=_EXCEEDED.detail,
        errors=[],
        limit=LimitOut.of(budget.limit),
        spent=CostOut.of(budget.spent, budget.limit),
        asked=CostOut.of_one(error.asked, budget.limit),
    )
    return Response(problem.model_dump_json(), 409, media_type=MEDIA_TYPE)


def _on_division_settled(_request: Request, error: Exception) -> Response:
    assert isinstance(error, DivisionSettled)
    if error.names_mechanism:
        wrong = ProblemError(
            pointer="/mechanism",
            detail="must have the proportion of S to D that the budget was divided by before its first charge: "
            "omit it; another division needs another budget, for releases about other users",
        )
    else:
        wrong = ProblemError(
            pointer="/delta",
            detail="must not fall while epsilon rises, or rise while epsilon falls: change one of them at a time, "
            "or both in the same direction",
        )
    return problem_response(409, _SETTLED, [wrong])


def _on_too_many_comparisons(request: Request, error: Exception) -> Response:
    assert isinstance(error, TooManyComparisons)
    return _on_not_admitted(request, NotAdmitted(429, "reuse", retry_after=error.seconds))


def _on_not_admitted(request: Request, error: Exception) -> Response:
    """Every refusal is counted here, by whatever part of the service it was made."""
    assert isinstance(error, NotAdmitted)
    request.app.state.services.metrics.refuse(error.reason)
    headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else {}
    if error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    return problem_response(error.status, _LOCAL.get(error.reason), headers=headers)


def _on_ledger_unavailable(_request: Request, error: Exception) -> Response:
    """The reason is for the log alone."""
    assert isinstance(error, LedgerUnavailable)
    logger.warning("the ledger is unavailable: %s", error)
    return problem_response(503, _NO_LEDGER, headers={"Retry-After": "1"})


def _on_accounting_error(_request: Request, error: Exception) -> Response:
    """The core names parameters of the mechanism, and ε and δ, which stand beside it."""
    assert isinstance(error, AccountingError)
    beside = error.pointer in {"epsilon", "delta"}
    pointer = f"/{error.pointer}" if beside else f"/mechanism/{error.pointer}".rstrip("/")
    kind = _INFEASIBLE if isinstance(error, InfeasibleTarget) else None
    return problem_response(422, kind, [ProblemError(pointer=pointer, detail=error.detail)])


def _on_validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return _on_invalid_body(request, InvalidBody.of(error.errors()))


def _on_invalid_body(_request: Request, error: Exception) -> Response:
    assert isinstance(error, InvalidBody)
    if not error.is_json:
        return problem_response(400)
    errors = [ProblemError(pointer=pointer, detail=detail) for pointer, detail in error.errors]
    return problem_response(422, errors=errors, count=error.count)
