"""POST /budgets/{id}/charges: charges for releases that another engine makes, from noise of its own."""

from typing import Annotated

from fastapi import APIRouter, Body, Request

from app.budgets.budget_route import BudgetInPath, BudgetRoute
from app.http.auth import needs
from app.http.idempotency import KEY_HEADER, REPLAYED_HEADERS, replayed_headers
from app.http.json_route import Encoded
from app.http.problems import ACCESS_PROBLEMS, BUDGET_PROBLEMS, PROBLEMS
from app.ledger.charges import Charged
from app.ledger.state import Budget
from app.ledger.store import Ledger
from app.releases.made_elsewhere import made_elsewhere
from app.releases.release_route import releases_of
from app.releases.schemas.charges import CHARGE_EXAMPLES, ChargeIn, ChargeOut
from app.schemas.costs import CostOut

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
    made = await made_elsewhere(request, id, body, "charged")
    cost = made.charge.cost

    def answer(after: Budget, number: int, at: str) -> bytes:
        spent = CostOut.of(after.spent, after.limit)
        shown = ChargeOut(budget=id, number=number, at=at, mu_squared=cost.mu_squared, hazard=cost.hazard, spent=spent)
        return shown.model_dump_json().encode()

    charged, answered = await releases_of(request).payments.charge(
        made.charge, made.meaning, made.certificate, _answered, request=request.state.content, answer=answer
    )
    return Encoded(answered, headers=replayed_headers(charged.replayed_at))  # type: ignore[return-value]


def _answered(ledger: Ledger, charged: Charged) -> bytes:
    return b"".join(ledger.content(charged.release))
