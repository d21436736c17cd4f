"""/budgets: limits, what is spent and what remains."""

from typing import Annotated

from fastapi import APIRouter, Body, Request

from app.budgets.budget_route import BUDGET_NOT_FOUND, READ_PROBLEMS, READS, BudgetInPath, BudgetRoute, posted_release
from app.budgets.schemas.budgets import PUT_EXAMPLES, BudgetIn, BudgetOut, BudgetsOut, BudgetSummary
from app.http.auth import access_of, needs
from app.http.json_route import DeclaredRoute
from app.http.problems import ACCESS_PROBLEMS, DIVISION_PROBLEMS, PROBLEMS
from app.http.services import services_of
from app.http.workload import in_slices
from app.ledger.clock import now
from app.ledger.state import Budget
from app.ledger.store import Ledger
from gsh.accounting.budget_limits import Limit
from gsh.accounting.composition import cost_of

__all__ = ["router"]

router = APIRouter(
    prefix="/budgets", tags=["budgets"], responses=READ_PROBLEMS | ACCESS_PROBLEMS, route_class=DeclaredRoute
)
_bodies = APIRouter(prefix="/budgets", tags=["budgets"], route_class=BudgetRoute, responses=PROBLEMS | ACCESS_PROBLEMS)


@_bodies.put(
    "/{id}",
    operation_id="putBudget",
    summary="Make a budget, or change its limit",
    dependencies=[needs("admin", budget="id")],
    responses=BUDGET_NOT_FOUND | DIVISION_PROBLEMS,
)
async def put_budget(
    request: Request,
    id: BudgetInPath,  # noqa: A002
    body: Annotated[BudgetIn, Body(openapi_examples=PUT_EXAMPLES)],
) -> BudgetOut:
    """The history records every change, with its reason and the access key. The same limit again changes nothing.

    The first charge settles how noise and thresholds share the budget. After it, a change that would divide the budget
    in another way is 409, and so is another privacy unit or period.
    """
    services = services_of(request)
    typical = None if body.mechanism is None else cost_of(await posted_release(request, services, body.mechanism))
    limit = Limit(body.epsilon, body.delta, typical)

    by = access_of(request.scope).by

    def put(ledger: Ledger) -> Budget:
        return ledger.put_budget(id, limit, body.description, now(), unit=body.unit, reason=body.reason, by=by)

    await services.ledger_pool.ask(put)
    return await services.ledger_pool.read(lambda ledger: BudgetOut.of(*ledger.budget(id)))


@router.get("", operation_id="listBudgets", summary="All budgets", dependencies=[needs("release", "admin")])
async def list_budgets(request: Request) -> BudgetsOut:
    """All budgets, or those that the access key is bound to: the limit, what is spent and what remains."""
    budgets = await services_of(request).ledger_pool.read(lambda ledger: ledger.budgets())
    access = access_of(request.scope)
    shown = (BudgetSummary.summary(budget) for budget in budgets if access.may_see(budget.id))
    return BudgetsOut(budgets=await in_slices(request, shown, services_of(request).settings.heavy_seconds))


@router.get(
    "/{id}",
    operation_id="getBudget",
    summary="What is spent of a budget, and what remains",
    dependencies=READS,
    responses=BUDGET_NOT_FOUND,
)
async def get_budget(
    request: Request,
    id: BudgetInPath,  # noqa: A002
) -> BudgetOut:
    """The limit, the two sums, upper and lower bounds on (ε, δ), and what remains."""
    return await services_of(request).ledger_pool.read(lambda ledger: BudgetOut.of(*ledger.budget(id)))


router.routes.extend(_bodies.routes)
