"""POST /budgets/{id}/charges: charges for releases that another engine makes, from noise of its own."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Body, Request

from app.budgets.budget_route import BudgetInPath, BudgetRoute, posted_release
from app.http.auth import needs
from app.http.idempotency import KEY_HEADER, REPLAYED_HEADERS, replayed_headers
from app.http.json_route import Encoded
from app.http.problems import ACCESS_PROBLEMS, BUDGET_PROBLEMS, PROBLEMS
from app.http.services import services_of
from app.releases.made_elsewhere import ChargedRelease
from app.releases.release_route import RequestClient, releases_of
from app.releases.schemas.charges import CHARGE_EXAMPLES, ChargeIn, ChargeOut

__all__ = ["router"]

router = APIRouter(prefix="/budgets", tags=["budgets"], route_class=BudgetRoute, responses=PROBLEMS | ACCESS_PROBLEMS)


@router.post(
    "/{id}/charges",
    operation_id="chargeBudget",
    summary="Charge a budget for a release that is made elsewhere",
    dependencies=[needs("release", budget="id")],
    responses=BUDGET_PROBLEMS | {200: {"headers": REPLAYED_HEADERS}},
    openapi_extra={"parameters": [KEY_HEADER | {"required": True, "example": "weekly-2026-46"}]},
)
async def charge(
    request: Request,
    id: BudgetInPath,  # noqa: A002
    body: Annotated[ChargeIn, Body(openapi_examples=CHARGE_EXAMPLES)],
) -> ChargeOut:
    """For platforms that add the noise in their own engine: charge first, and release only after the charge.

    The same idempotency key and content get the same answer, and are charged once. An engine that retries its tasks
    opens a release instead: POST /releases.
    """
    mechanism = partial(posted_release, request, services_of(request), body.mechanism)
    posted = ChargedRelease(id, body, mechanism, request.state.content)
    outcome = await releases_of(request).make(posted, RequestClient(request), budget=id)
    content = b"".join(outcome.answer.chunks())
    return Encoded(content, headers=replayed_headers(outcome.replayed_at))  # type: ignore[return-value]
