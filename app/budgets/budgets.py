"""/budgets: limits, what is spent and what remains."""

from typing import Annotated

from fastapi import APIRouter, Body, Query, Request
from pydantic import Field

from app.budgets.budget_route import BUDGET_NOT_FOUND, READ_PROBLEMS, READS, BudgetInPath, BudgetRoute, posted_release
from app.budgets.schemas.budgets import PUT_EXAMPLES, BudgetIn, BudgetOut, BudgetsOut, BudgetSummary
from app.http.auth import access_of, needs
from app.http.json_route import DeclaredRoute
from app.http.problems import ACCESS_PROBLEMS, DIVISION_PROBLEMS, PROBLEMS, InvalidQuery
from app.http.services import services_of
from app.http.workload import in_slices
from app.ledger.clock import now
from app.ledger.state import Budget
from app.ledger.store import Ledger
from app.schemas.scalars import MOST_COLUMNS
from gsh.accounting.budget_limits import Limit
from gsh.accounting.column_costs import Capped
from gsh.accounting.composition import Cost, Release, cost_of
from gsh.accounting.errors import InvalidParameter
from gsh.accounting.mechanism import MOST_C_U, Mechanism, PlainGaussian

__all__ = ["router"]

CappedText = Annotated[str, Field(pattern=r"^[0-9]{1,19}:[0-9]{1,30}(\.[0-9]{1,60})?([eE][+-]?[0-9]{1,3})?$")]

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
    c_u: Annotated[int | None, Query(title="C_u", ge=1, le=MOST_C_U, description="C_u of a mechanism.")] = None,
    sigma: Annotated[
        float | None, Query(title="σ", gt=0, allow_inf_nan=False, description="σ of the mechanism.")
    ] = None,
    tau: Annotated[
        int | None, Query(title="τ", ge=0, description="τ of the mechanism; omit it with τ* for plain noise.")
    ] = None,
    tau_star: Annotated[
        float | None, Query(title="τ*", gt=1, allow_inf_nan=False, description="τ* of the mechanism.")
    ] = None,
    mu_0: Annotated[float, Query(title="μ₀", ge=0, allow_inf_nan=False, description="μ₀ of the mechanism.")] = 0.0,
    capped: Annotated[
        list[CappedText] | None,
        Query(title="Capped", max_length=MOST_COLUMNS, description="groups:mu_0 of columns with caps."),
    ] = None,
) -> BudgetOut:
    """The limit, the two sums, upper and lower bounds on (ε, δ), and what remains.

    With a mechanism in the query (c_u and sigma; with a threshold also tau and tau_star) the answer also says how many
    more releases of it fit.
    """
    queried = _queried(c_u, sigma, tau, tau_star, mu_0, capped or [])

    def work(ledger: Ledger) -> BudgetOut:
        budget, parts = ledger.budget(id)
        more = None if queried is None else budget.limit.how_many_fit(budget.spent, *queried)
        return BudgetOut.of(budget, parts, more)

    return await services_of(request).ledger_pool.read(work)


router.routes.extend(_bodies.routes)


def _queried(
    c_u: int | None,
    sigma: float | None,
    tau: int | None,
    tau_star: float | None,
    mu_0: float,
    capped: list[str],
) -> tuple[Release, Cost] | None:
    if c_u is None and sigma is None and tau is None and tau_star is None and not capped:
        return None
    if c_u is None:
        raise InvalidQuery(("c_u", "is required with another parameter of a mechanism"))
    if sigma is None:
        raise InvalidQuery(("sigma", "is required with another parameter of a mechanism"))
    if (tau is None) != (tau_star is None):
        raise InvalidQuery(
            ("tau", "is required with tau_star") if tau is None else ("tau_star", "is required with tau")
        )
    parts = tuple(Capped(int(groups), float(cost)) for groups, _, cost in (text.partition(":") for text in capped))
    try:
        if tau is None or tau_star is None:
            release: Release = PlainGaussian(c_u, sigma, mu_0, capped=parts)
        else:
            release = Mechanism(c_u, tau, tau_star, sigma, mu_0, capped=parts)
        return release, cost_of(release)
    except InvalidParameter as error:
        name = "capped" if "capped" in error.pointer else error.pointer.rpartition("/")[2]
        raise InvalidQuery((name, error.detail)) from None
