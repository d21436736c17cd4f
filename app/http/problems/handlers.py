"""The one table from exceptions to problem documents. An answer never repeats what was posted."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from app.errors import Busy, DeadlinePassed, InvalidRequest, LimitExceeded, MissingIdempotencyKey, TooLarge
from app.http.problems import BudgetProblem, ReusedProblem, kinds, problem_response
from app.http.problems.errors import (
    ContentTooLarge,
    Fault,
    InvalidBody,
    InvalidEncoding,
    InvalidHeader,
    InvalidMultipart,
    InvalidQuery,
    NoCertificate,
    NotAcceptable,
    NotAdmitted,
    RequestFault,
    UnsupportedEncoding,
    parameter_faults,
)
from app.http.problems.kinds import Kind
from app.ledger.errors import (
    AccessKeyEnded,
    AlreadyCommitted,
    AlreadyDecided,
    AlreadySurveyed,
    AnswerErased,
    ApprovalRefused,
    AwaitsApproval,
    BudgetExceeded,
    DivisionSettled,
    InvalidSetting,
    KeyReused,
    LedgerUnavailable,
    NoSecondKey,
    NotOpen,
    NotOwner,
    OutdatedRequest,
    ParentSettled,
    PeriodClosed,
    ReasonMissing,
    TooManyComparisons,
    UnitSettled,
    UnknownAccessKey,
    UnknownApproval,
    UnknownBudget,
    UnknownPeriod,
    UnknownRelease,
)
from app.ledger.figures import cost_figures, limit_figures, shortage_figures
from app.schemas.approvals import ApprovalOut
from app.schemas.costs import CostOut, LimitOut
from gsh.accounting.budget_limits import Limit
from gsh.accounting.composition import NOTHING
from gsh.accounting.mechanism import Joint
from gsh.accounting.shortage import Binding
from gsh.errors import (
    AccountingError,
    InfeasibleTarget,
    InvalidGroups,
    InvalidParameter,
    ReleaseError,
    TooLittleLeft,
    TooManyGroups,
    renamed_pointer,
)
from gsh.wire import places_in_request

__all__ = ["answer_to", "install"]

logger = logging.getLogger("app.ledger")

_PLACES = places_in_request()

_TABLE: Mapping[type[Exception], Kind] = {
    Exception: kinds.INTERNAL_ERROR,
    InvalidParameter: kinds.INVALID_REQUEST,
    InfeasibleTarget: kinds.INFEASIBLE_TARGET,
    TooLittleLeft: kinds.TOO_LITTLE_LEFT,
    InvalidGroups: kinds.INVALID_REQUEST,
    TooManyGroups: kinds.CONTENT_TOO_LARGE,
    UnknownBudget: kinds.UNKNOWN_BUDGET,
    DivisionSettled: kinds.DIVISION_SETTLED,
    UnitSettled: kinds.UNIT_SETTLED,
    ParentSettled: kinds.PARENT_SETTLED,
    PeriodClosed: kinds.PERIOD_CLOSED,
    InvalidSetting: kinds.INVALID_REQUEST,
    ReasonMissing: kinds.INVALID_REQUEST,
    UnknownRelease: kinds.UNKNOWN_RELEASE,
    UnknownAccessKey: kinds.UNKNOWN_ACCESS_KEY,
    AccessKeyEnded: kinds.ACCESS_KEY_ENDED,
    UnknownApproval: kinds.UNKNOWN_APPROVAL,
    ApprovalRefused: kinds.APPROVAL_REFUSED,
    AlreadyDecided: kinds.ALREADY_DECIDED,
    OutdatedRequest: kinds.OUTDATED_REQUEST,
    NoSecondKey: kinds.NO_SECOND_KEY,
    AnswerErased: kinds.ANSWER_ERASED,
    NotOpen: kinds.NOT_OPEN,
    NotOwner: kinds.NOT_ALLOWED,
    AlreadyCommitted: kinds.ALREADY_COMMITTED,
    AlreadySurveyed: kinds.ALREADY_SURVEYED,
    NoCertificate: kinds.NO_CERTIFICATE,
    NotAcceptable: kinds.NOT_ACCEPTABLE,
    LedgerUnavailable: kinds.LEDGER_UNAVAILABLE,
    Busy: kinds.BUSY,
    DeadlinePassed: kinds.DEADLINE_PASSED,
    InvalidRequest: kinds.INVALID_REQUEST,
    LimitExceeded: kinds.LIMIT_EXCEEDED,
    TooLarge: kinds.CONTENT_TOO_LARGE,
    MissingIdempotencyKey: kinds.KEY_MISSING,
    InvalidBody: kinds.INVALID_REQUEST,
    InvalidHeader: kinds.INVALID_REQUEST,
    InvalidQuery: kinds.INVALID_REQUEST,
    RequestValidationError: kinds.INVALID_REQUEST,
    InvalidMultipart: kinds.INVALID_MULTIPART,
    InvalidEncoding: kinds.INVALID_ENCODING,
    UnsupportedEncoding: kinds.UNSUPPORTED_MEDIA_TYPE,
    ContentTooLarge: kinds.CONTENT_TOO_LARGE,
}
_NOT_LOCAL = {
    "no-keys": "the request came from another address",
    "host": "the Host header must be a local name, such as localhost",
    "origin": "the Origin header names another host than the Host header",
    "site": "the Sec-Fetch-Site header says that a page of another site asks",
}
_FIRST_KEY = "The first access key is not made over HTTP: run gsh keys create at the ledger, or set GSH_ADMIN_KEY."

_FIXED: Mapping[type[Exception], Fault] = {
    MissingIdempotencyKey: Fault("header", "Idempotency-Key", "is required with a budget: a name for this release"),
    ReasonMissing: Fault("pointer", "/reason", "is required to change a budget: say why"),
    TooLarge: Fault("pointer", "", "must be smaller: a worker process has no memory for it"),
}
_OTHER_PROPORTION = (
    "must have the proportion of mu_squared to hazard that the budget was divided by before its first charge: omit it; "
    "another division needs another budget, for releases about other users"
)


def install(app: FastAPI) -> None:
    """Answer every error of every route with a problem document.

    Starlette calls a plain function in a thread, which takes longer than to make a document. Only the handler that
    searches for a limit is one.
    """
    for error, handler in _HANDLERS.items():
        app.add_exception_handler(error, handler if handler is _on_budget_exceeded else _on_the_loop)


def answer_to(request: Request, error: Exception) -> Response:
    """The problem document of an error."""
    return next(_HANDLERS[each] for each in type(error).__mro__ if each in _HANDLERS)(request, error)


async def _on_the_loop(request: Request, error: Exception) -> Response:
    return answer_to(request, error)


def _answer(_request: Request, error: Exception) -> Response:
    kind = next(_TABLE[each] for each in type(error).__mro__ if each in _TABLE)
    count = None
    match error:
        case InvalidBody(is_json=False):
            kind = kinds.INVALID_JSON
        case InvalidBody():
            count = error.count
        case DeadlinePassed(seconds=seconds):
            kind = kind._replace(
                detail=f"The request took longer than {seconds:g} seconds and was stopped. Ask for fewer points, "
                "columns or groups, or try again when the service is less busy."
            )
        case ApprovalRefused(reason=reason):
            kind = kind._replace(detail=f"{kind.detail.removesuffix('.')}: {reason}")
        case AlreadyDecided(state=state):
            kind = kind._replace(detail=f"The request is {state} already.")
        case UnknownPeriod(detail=detail):
            kind = kind._replace(detail=f"{kind.detail} What follows the @ {detail}.")
        case LedgerUnavailable():
            logger.warning("the ledger is unavailable: %s", error)  # the reason is for the log alone
    headers = {"Retry-After": "1"} if kind.status == 503 else None
    if isinstance(error, UnsupportedEncoding):
        headers = {"Accept-Encoding": "gzip, zstd, identity"}
    return problem_response(kind.status, kind, _faults(error), headers, count)


def _faults(error: Exception) -> Sequence[Fault]:
    match error:
        case RequestFault():
            return error.faults
        case MissingIdempotencyKey() | ReasonMissing() | TooLarge():
            return [_FIXED[type(error)]]
        case RequestValidationError():
            return list(parameter_faults(error.errors()))
        case InvalidSetting(field=field, detail=detail):
            return [Fault("pointer", f"/{field}", detail)]
        case AccountingError() | ReleaseError() | InvalidRequest() | LimitExceeded() | DivisionSettled():
            return [Fault("pointer", *_pointed(error))]
    return []


def _pointed(
    error: AccountingError | ReleaseError | InvalidRequest | LimitExceeded | DivisionSettled,
) -> tuple[str, str]:
    """The pointer and the detail. The core names parameters of the mechanism, and ε and δ next to it.

    An endpoint that has them elsewhere gives the whole pointer.
    """
    match error:
        case DivisionSettled():
            return "/mechanism", _OTHER_PROPORTION
        case AccountingError() if not error.pointer.startswith("/"):
            return renamed_pointer(error.pointer, *_PLACES), error.detail
    return error.pointer, error.detail


def _on_budget_exceeded(_request: Request, error: Exception) -> Response:
    assert isinstance(error, BudgetExceeded)
    budget, kind = error.budget, kinds.BUDGET_EXCEEDED
    limit = budget.limit.settled_by(error.cost)
    found = shortage_figures(budget, limit, budget.spent.plus(error.asked, error.cost))
    assert found is not None
    sentence = found["detail"]
    faults = [Fault("pointer", *each) for each in _shortages(error, limit, found["binding"])]
    faults[0] = Fault("pointer", faults[0].name, f"{faults[0].detail}; {sentence}")
    level = f" of its ancestor {budget.id}" if error.is_ancestor else ""
    return BudgetProblem.of(
        kind,
        f"{kind.detail.removesuffix('.')}{level}: {sentence}.",
        faults,
        budget=budget.id,
        limit=LimitOut(**limit_figures(budget.limit)),
        spent=CostOut(**cost_figures(budget.spent, budget.limit)),
        asked=CostOut(**cost_figures(NOTHING.plus(error.asked, error.cost), budget.limit)),
    ).response()


def _shortages(error: BudgetExceeded, limit: Limit, binding: Binding) -> Iterator[tuple[str, str]]:
    """The field that would lower the cost, and by how much each cap is short. The binding one comes first."""
    cost, is_joint = error.cost, isinstance(error.asked, Joint)
    caps, spent, after = limit.caps, error.budget.spent, error.budget.spent.plus(error.asked, cost)
    sides = [
        ("sigma", "mu_squared", "more noise costs less"),
        ("tau_star", "hazard", "a higher threshold costs less"),
    ]
    # A cap is short by the sums. A release without a threshold costs no hazard, and still does not fit a cap of hazard
    # that was lowered below what is spent.
    short = [side for side in sides if getattr(after, side[1]) > getattr(caps, side[1])]
    for field, name, advice in reversed(short) if binding == "threshold" else short:
        asked, cap, used = getattr(cost, name), getattr(caps, name), getattr(spent, name)
        if asked:
            room, pointer = getattr(limit.remaining(spent), name), "/tables" if is_joint else f"/mechanism/{field}"
            yield pointer, f"costs {asked:.6g} of {name}, and {room:.6g} remain: {asked - room:.3g} too much; {advice}"
        else:
            numbers = f"{float(used):.6g} is spent already, and the limit allows {float(cap):.6g}"
            yield "/tables" if is_joint else "/mechanism", f"costs no {name}, but {numbers}"


def _how_to_fetch(path: str, has_answer: bool) -> str:
    return f"GET {path}/answer gives its answer." if has_answer else f"GET {path} says what is known about it."


def _on_key_reused(request: Request, error: Exception) -> Response:
    """Names the release, if the client may use its budget: its answer may be all that the client needs."""
    assert isinstance(error, KeyReused)
    kind, access = kinds.KEY_REUSED, request.scope.get("access")
    may_see = access is not None and access.may_see(error.budget)
    path = f"/releases/{error.idempotency_key}" if may_see and error.approval is None else None
    detail = kind.detail if path is None else f"{kind.detail} {_how_to_fetch(path, error.has_answer)}"
    fault = Fault("header", "Idempotency-Key", "belongs to a request with other content")
    return ReusedProblem.of(kind, detail, [fault], release=path).response()


def _on_awaiting(_request: Request, error: Exception) -> Response:
    """No problem: the request is stored, and another client must approve it."""
    assert isinstance(error, AwaitsApproval)
    shown, headers = ApprovalOut.of(error.approval), {"Location": f"/approvals/{error.approval.id}"}
    return Response(shown.model_dump_json(), 202, headers, media_type="application/json")


def _on_http_exception(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problem_response(error.status_code, headers=error.headers)


def _on_too_many_comparisons(request: Request, error: Exception) -> Response:
    assert isinstance(error, TooManyComparisons)
    return _on_not_admitted(request, NotAdmitted(429, "reuse", retry_after=error.seconds))


def _on_not_admitted(request: Request, error: Exception) -> Response:
    """Every refusal is counted here, whichever part of the service made it."""
    assert isinstance(error, NotAdmitted)
    request.app.state.services.metrics.refuse(error.reason)
    kind = None
    if error.reason in _NOT_LOCAL:
        kind = kinds.NOT_ALLOWED._replace(
            detail=f"While there is no access key, only this machine is served: {_NOT_LOCAL[error.reason]}."
        )
    if error.reason == "first-key":
        kind = kinds.NOT_ALLOWED._replace(detail=_FIRST_KEY)
    headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else {}
    if error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    return problem_response(error.status, kind, headers=headers)


_HANDLERS: Mapping[type[Exception], Callable[[Request, Exception], Response]] = {
    **dict.fromkeys(_TABLE, _answer),
    BudgetExceeded: _on_budget_exceeded,
    KeyReused: _on_key_reused,
    AwaitsApproval: _on_awaiting,
    NotAdmitted: _on_not_admitted,
    TooManyComparisons: _on_too_many_comparisons,
    HTTPException: _on_http_exception,
}
