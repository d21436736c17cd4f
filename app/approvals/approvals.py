"""/approvals: list what waits for a second access key, approve or refuse it."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query, Request
from pydantic import Field, TypeAdapter
from typing_extensions import TypeAliasType

from app.http.auth import access_of, needs
from app.http.json_route import DeclaredRoute, PathRoute
from app.http.problems import ACCESS_PROBLEMS, APPROVAL_PROBLEMS, PROBLEMS, READ_PROBLEMS
from app.http.services import services_of
from app.ledger.access.scopes import READERS
from app.ledger.approvals import Approval
from app.ledger.clock import now
from app.ledger.errors import UnknownApproval
from app.ledger.store import Ledger
from app.schemas.approvals import ApprovalOut, ApprovalState
from app.schemas.strict import Strict

__all__ = ["router"]

_NOT_FOUND: dict[int | str, dict[str, Any]] = {404: APPROVAL_PROBLEMS[404]}
_READS = [needs(*READERS)]
_EXAMPLES: dict[str, Any] = {
    "planned": {"summary": "As planned", "value": {"reason": "as planned for this year"}},
    "asked": {"summary": "After a question", "value": {"reason": "the team has shown the plan of releases"}},
}

ApprovalId = TypeAliasType(
    "ApprovalId", Annotated[str, Field(pattern="^[0-9a-f]{16}$", description="The id of a request for an approval.")]
)
ApprovalInPath = Annotated[
    ApprovalId,
    Path(
        title="Request",
        description="The id of the request, as GET /approvals lists it.",
        openapi_examples={"9c2f0a7be1d44c50": {"value": "9c2f0a7be1d44c50"}},
    ),
]


class DecisionIn(Strict):
    """Why a request is approved or refused."""

    reason: str = Field(
        min_length=1,
        max_length=1000,
        pattern=r"^[^\x00]*$",
        title="Reason",
        description="A text for people; the history records it.",
        examples=["as planned for this year"],
    )


class ApprovalsOut(Strict):
    """The requests that the access key may see."""

    approvals: list[ApprovalOut] = Field(title="Requests", description="The newest first.", examples=[[]])


class _ApprovalRoute(PathRoute):
    """A JSON body, and the id of a request in the path."""

    parameter = "id"
    parameter_type = TypeAdapter(ApprovalId)


router = APIRouter(
    prefix="/approvals", tags=["approvals"], responses=READ_PROBLEMS | ACCESS_PROBLEMS, route_class=DeclaredRoute
)
_decided = APIRouter(
    prefix="/approvals",
    tags=["approvals"],
    responses=PROBLEMS | ACCESS_PROBLEMS | APPROVAL_PROBLEMS,
    route_class=_ApprovalRoute,
)


@router.get("", operation_id="listApprovals", summary="What waits for a second access key", dependencies=_READS)
async def list_approvals(
    request: Request,
    state: Annotated[
        ApprovalState | None, Query(title="State", description="Only requests in this state, such as waiting.")
    ] = None,
) -> ApprovalsOut:
    """Requests for changes and releases, the newest first, with what each would do, and who decided it."""
    access = access_of(request.scope)
    found = await services_of(request).ledger_pool.read(lambda ledger: ledger.approvals())
    visible = (each for each in found if access.may_see(each.budget) and state in {None, each.state})
    return ApprovalsOut(approvals=[ApprovalOut.of(each) for each in visible])


@router.get("/{id}", operation_id="getApproval", summary="One request", dependencies=_READS, responses=_NOT_FOUND)
async def get_approval(
    request: Request,
    id: ApprovalInPath,  # noqa: A002
) -> ApprovalOut:
    """What it would do, whether it is decided, and why."""
    return ApprovalOut.of(await services_of(request).ledger_pool.read(lambda ledger: _visible(ledger, request, id)))


@_decided.post("/{id}/approve", operation_id="approve", summary="Approve a request", dependencies=[needs("admin")])
async def approve(
    request: Request,
    id: ApprovalInPath,  # noqa: A002
    body: Annotated[DecisionIn, Body(openapi_examples=_EXAMPLES)],
) -> ApprovalOut:
    """By another client than the one that asked. A change is made now.

    A release is made when its request comes again with the same idempotency key and the same content.
    """
    return await _decide(request, id, body.reason, is_approved=True)


@_decided.post("/{id}/refuse", operation_id="refuse", summary="Refuse a request", dependencies=[needs("admin")])
async def refuse(
    request: Request,
    id: ApprovalInPath,  # noqa: A002
    body: Annotated[DecisionIn, Body(openapi_examples=_EXAMPLES)],
) -> ApprovalOut:
    """By another client than the one that asked. A refused request stays refused."""
    return await _decide(request, id, body.reason, is_approved=False)


router.routes.extend(_decided.routes)


async def _decide(request: Request, name: str, reason: str, *, is_approved: bool) -> ApprovalOut:
    access = access_of(request.scope)

    def work(ledger: Ledger) -> Approval:
        _visible(ledger, request, name)
        return ledger.decide(name, now(), by=access.by, client=access.client, reason=reason, is_approved=is_approved)

    return ApprovalOut.of(await services_of(request).ledger_pool.ask(work))


def _visible(ledger: Ledger, request: Request, name: str) -> Approval:
    found = ledger.approval(name)
    if not access_of(request.scope).may_see(found.budget):
        raise UnknownApproval
    return found
