"""Errors on the wire are problem documents (RFC 9457): their schemas, and the responses that operations declare.

Only this package knows the HTTP statuses of errors.
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Literal, Self

from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field

from app.http.problems import kinds
from app.http.problems.errors import MOST_FAULTS, Fault
from app.http.problems.kinds import BY_STATUS, Kind
from app.http.request_ids import request_id
from app.schemas.approvals import WAITING_RESPONSE
from app.schemas.costs import CostOut, LimitOut
from app.schemas.strict import OrAbsent

__all__ = [
    "ACCESS_KEY_PROBLEMS",
    "ACCESS_PROBLEMS",
    "ANSWER_PROBLEMS",
    "APPROVAL_PROBLEMS",
    "BUDGET_PROBLEMS",
    "CERTIFICATE_PROBLEMS",
    "COMMIT_PROBLEMS",
    "DIVISION_PROBLEMS",
    "KEY_NOT_FOUND",
    "MEDIA_TYPE",
    "PROBLEMS",
    "READ_PROBLEMS",
    "SHARE_PROBLEMS",
    "BudgetProblem",
    "Problem",
    "ProblemError",
    "ReusedProblem",
    "problem_response",
]

MEDIA_TYPE = "application/problem+json"

_Responses = dict[int | str, dict[str, Any]]


class ProblemError(BaseModel):
    """One fault of the request. Exactly one of pointer, header and parameter is present, and says where it is."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 2, "maxProperties": 2})

    pointer: OrAbsent[str] = Field(
        title="JSON Pointer",
        description="The place in the body of this request, as a JSON Pointer; empty for the body itself. In a form, "
        "the place in its part request, or the name of a part.",
        examples=["/mechanism/sigma"],
    )
    header: OrAbsent[str] = Field(
        title="Header", description="The name of the request header.", examples=["Idempotency-Key"]
    )
    parameter: OrAbsent[str] = Field(
        title="Parameter",
        description="The name of the path or query parameter; empty for the query itself.",
        examples=["tau_star"],
    )
    detail: str = Field(
        title="Detail", description="What is wrong there, with the bound.", examples=["must be greater than 0"]
    )

    @classmethod
    def of(cls, fault: Fault) -> "ProblemError":
        return cls.model_validate({fault.place: fault.name, "detail": fault.detail})


class Problem(BaseModel):
    """An error, as RFC 9457 defines it. It never contains a posted value."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    type: str = Field(
        title="Type",
        description="The kind of problem, for programs. It is also the path of a page of this service that says what "
        "happened and what to do; a path prefix of the service is not part of it.",
        examples=["/problems/invalid-request"],
    )
    title: str = Field(title="Title", description="The kind of problem, for people.", examples=["Invalid request"])
    status: int = Field(title="Status", description="The HTTP status of the response.", examples=[422])
    detail: str = Field(
        title="Detail", description="What happened.", examples=["/mechanism/sigma must be greater than 0"]
    )
    errors: list[ProblemError] = Field(
        title="Errors",
        description="Each fault of the request, at most 50.",
        examples=[[{"pointer": "/mechanism/sigma", "detail": "must be greater than 0"}]],
    )
    request_id: str = Field(
        default_factory=request_id,
        title="Request id",
        description="The id of this request, as in the header X-Request-Id: the log of the service has it too.",
        examples=["0a6c3f0e5f5b4d9f8a3d1c2b7e9f4a61"],
    )

    @classmethod
    def of(cls, kind: Kind, detail: str, faults: Sequence[Fault], **further: Any) -> Self:
        errors = [ProblemError.of(fault) for fault in faults[:MOST_FAULTS]]
        return cls(type=kind.type, title=kind.title, status=kind.status, detail=detail, errors=errors, **further)

    def response(self, headers: Mapping[str, str] | None = None) -> Response:
        return Response(self.model_dump_json(), self.status, headers, media_type=MEDIA_TYPE)


class BudgetProblem(Problem):
    """A release that does not fit the remaining part of a budget. Nothing was charged, and no noise was drawn."""

    type: Literal["/problems/budget-exceeded"] = Field(
        title="Type",
        description="The kind of problem, for programs.",
        examples=["/problems/budget-exceeded"],
    )
    budget: str = Field(
        title="Budget",
        description="The budget that is short: the one that the request names, or one of its ancestors.",
        examples=["web"],
    )
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


class ReusedProblem(Problem):
    """An idempotency key that belongs to another request. Nothing was charged."""

    type: Literal["/problems/key-reused"] = Field(
        title="Type", description="The kind of problem, for programs.", examples=["/problems/key-reused"]
    )
    release: OrAbsent[str] = Field(
        title="Release",
        description="The path of the release that has this idempotency key; its answer is at /answer below it. Absent "
        "if the client may not use its budget.",
        examples=["/releases/web-2026-46"],
    )


def _declared(*declared: Kind) -> _Responses:
    return {kind.status: {"model": Problem, "description": kind.detail} for kind in declared}


PROBLEMS: _Responses = _declared(
    kinds.INVALID_JSON,
    kinds.CONTENT_TOO_LARGE,
    kinds.UNSUPPORTED_MEDIA_TYPE,
    kinds.INVALID_REQUEST,
    kinds.INTERNAL_ERROR,
    kinds.BUSY,
)
"""The error responses of an operation with a body."""

READ_PROBLEMS: _Responses = {status: PROBLEMS[status] for status in (422, 500, 503)}
"""The error responses of an operation without a body."""

ACCESS_PROBLEMS: _Responses = _declared(kinds.KEY_REQUIRED, kinds.NOT_ALLOWED, kinds.TOO_MANY_ATTEMPTS)
"""The further error responses of an operation that may need an access key."""

BUDGET_PROBLEMS: _Responses = _declared(kinds.UNKNOWN_BUDGET) | {
    # The narrower schema first: a client that tries them in order finds the numbers.
    409: {
        "model": BudgetProblem | Problem,
        "description": kinds.BUDGET_EXCEEDED.detail,
    },
    **WAITING_RESPONSE,
    422: {
        "model": ReusedProblem | Problem,
        "description": f"{kinds.INVALID_REQUEST.detail} Or: {kinds.KEY_REUSED.detail}",
    },
}
"""The further error responses of an operation that may charge a budget."""

SHARE_PROBLEMS: _Responses = _declared(kinds.UNKNOWN_BUDGET, kinds.TOO_LITTLE_LEFT)
"""The further error responses of an operation that calibrates to what remains of a budget."""

DIVISION_PROBLEMS: _Responses = _declared(kinds.DIVISION_SETTLED)
"""The further error response of an operation that may change a limit."""

KEY_NOT_FOUND: _Responses = _declared(kinds.UNKNOWN_RELEASE)
"""The further error response of an operation on a release."""

ANSWER_PROBLEMS: _Responses = _declared(kinds.NOT_ACCEPTABLE, kinds.ANSWER_ERASED)
"""The further error responses of the answer of a release."""

CERTIFICATE_PROBLEMS: _Responses = _declared(kinds.NOT_ACCEPTABLE)
"""The further error response of the certificate of a release."""

ACCESS_KEY_PROBLEMS: _Responses = _declared(kinds.UNKNOWN_ACCESS_KEY, kinds.ACCESS_KEY_ENDED)
"""The further error responses of an operation that replaces an access key."""

SURVEY_PROBLEMS: _Responses = _declared(kinds.ALREADY_SURVEYED)
"""The further error response of the survey of an open release."""

APPROVAL_PROBLEMS: _Responses = _declared(kinds.UNKNOWN_APPROVAL, kinds.ALREADY_DECIDED)
"""The further error responses of a decision about a request."""

COMMIT_PROBLEMS: _Responses = _declared(kinds.ALREADY_COMMITTED)
"""The further error response of a commit."""


def problem_response(
    status: int,
    kind: Kind | None = None,
    faults: Sequence[Fault] = (),
    headers: Mapping[str, str] | None = None,
    count: int | None = None,
) -> Response:
    """The problem document of a status. Its detail is the first of ``count`` faults, if there are any."""
    kind = kind or BY_STATUS.get(status)
    if kind is None:  # RFC 9457: the status says everything
        phrase = HTTPStatus(status).phrase
        return Problem(type="about:blank", title=phrase, status=status, detail=phrase, errors=[]).response(headers)
    detail = kind.detail
    if faults:
        count = count or len(faults)
        detail = str(faults[0]) if count == 1 else f"{count} errors; the first: {faults[0]}"
    return Problem.of(kind, detail, faults).response(headers)
