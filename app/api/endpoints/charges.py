"""/budgets/{id}: previews, charges, the history, and whether the history is intact."""

from typing import Annotated

from fastapi import APIRouter, Body, Query, Request

from app.api.auth import needs
from app.api.budget_route import BUDGET_NOT_FOUND, READ_PROBLEMS, READS, BudgetInPath, BudgetRoute
from app.api.dependencies import AT_ONCE, services_of
from app.api.idempotency import KEY_HEADER, REPLAYED_HEADERS, replayed_headers
from app.api.json_route import DeclaredRoute, Encoded
from app.api.made_elsewhere import made_elsewhere
from app.api.problems import ACCESS_PROBLEMS, BUDGET_PROBLEMS, PROBLEMS
from app.api.schemas.charges import CHARGE_EXAMPLES, PREVIEW_EXAMPLES, ChargeIn, ChargeOut, PreviewIn, PreviewOut
from app.api.schemas.costs import CostOut, RemainingOut
from app.api.schemas.history import HistoryOut, VerificationOut
from app.api.schemas.mechanism import GaussianIn, MechanismIn
from app.api.schemas.shortage import ShortageOut
from app.api.workload import in_pool
from app.ledger.charges import Charged
from app.ledger.state import Budget
from app.ledger.store import Ledger
from gsh.accounting.composition import NOTHING, Cost, Release, cost_of

__all__ = ["router"]

router = APIRouter(
    prefix="/budgets", tags=["budgets"], responses=READ_PROBLEMS | ACCESS_PROBLEMS, route_class=DeclaredRoute
)
_bodies = APIRouter(prefix="/budgets", tags=["budgets"], route_class=BudgetRoute, responses=PROBLEMS | ACCESS_PROBLEMS)


@_bodies.post(
    "/{id}/preview",
    operation_id="previewBudget",
    summary="Would this fit, and what would remain?",
    dependencies=READS,
    responses=BUDGET_NOT_FOUND,
)
async def preview(
    request: Request,
    id: BudgetInPath,  # noqa: A002
    body: Annotated[PreviewIn, Body(openapi_examples=PREVIEW_EXAMPLES)],
) -> PreviewOut:
    """A mechanism, or a list of mechanisms to run in order. Nothing is charged and nothing is recorded."""
    services = services_of(request)
    planned = body.planned(services.settings.max_work)
    if len(planned) == 1 and planned[0].work <= AT_ONCE:
        plan = _plan(body)
    else:
        plan = await in_pool(request, services.accounting, _plan, body)
    return await services.ledger_pool.read(lambda ledger: _preview(ledger.standing(id), plan))


@_bodies.post(
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

    charged, answered = await services_of(request).payments.charge(
        made.charge, made.meaning, made.certificate, _answered, request=request.state.content, answer=answer
    )
    return Encoded(answered, headers=replayed_headers(charged.replayed_at))  # type: ignore[return-value]


@router.get(
    "/{id}/charges",
    operation_id="budgetHistory",
    summary="The history of a budget",
    dependencies=READS,
    responses=BUDGET_NOT_FOUND,
)
async def history(
    request: Request,
    id: BudgetInPath,  # noqa: A002
    before: Annotated[
        int | None, Query(title="Before", ge=1, lt=2**63, description="Only entries before the one with this number.")
    ] = None,
    limit: Annotated[
        int, Query(title="Limit", ge=1, le=1000, description="The largest number of entries in the answer.")
    ] = 100,
) -> HistoryOut:
    """All charges and changes of the limit, the latest first, in pages. A charge names its release."""
    entries = await services_of(request).ledger_pool.read(lambda ledger: ledger.history(id, before, limit))
    return HistoryOut.of(entries)


@router.get(
    "/{id}/verify",
    operation_id="verifyBudget",
    summary="Is the history as recorded?",
    dependencies=READS,
    responses=BUDGET_NOT_FOUND,
)
async def verify(
    request: Request,
    id: BudgetInPath,  # noqa: A002
) -> VerificationOut:
    """Checks the chain of hashes from its beginning, adds up every charge again, and hashes the stored answers."""
    budget, fault = await services_of(request).ledger_pool.audit(lambda ledger: ledger.verify(id))
    return VerificationOut.of(budget, fault)


router.routes.extend(_bodies.routes)


def _answered(ledger: Ledger, charged: Charged) -> bytes:
    return b"".join(ledger.content(charged.release))


def _plan(body: PreviewIn) -> list[tuple[Release, Cost]]:
    return body.each(_costed)


def _costed(planned: MechanismIn | GaussianIn) -> tuple[Release, Cost]:
    release: Release = planned.to_domain().bare
    return release, cost_of(release)


def _preview(budget: Budget, plan: list[tuple[Release, Cost]]) -> PreviewOut:
    alone, after, fitting, all_fit = NOTHING, budget.spent, 0, True
    limit = budget.limit.settled_by(plan[0][1])
    for release, cost in plan:
        alone, after = alone.plus(release, cost), after.plus(release, cost)
        all_fit = all_fit and limit.admits(after)
        fitting += all_fit
    return PreviewOut(
        fits=all_fit,
        fitting=fitting,
        more=budget.limit.how_many_fit(budget.spent, *plan[0]),
        asked=CostOut.of(alone, limit),
        after=CostOut.of(after, limit),
        used=limit.used(after),
        remaining=RemainingOut.of(after, limit) if all_fit else None,
        shortage=None if all_fit else ShortageOut.of(budget, limit, after),
    )
