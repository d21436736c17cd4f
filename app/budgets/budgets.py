"""/budgets: limits, what is spent and what remains, previews, and the history of each budget."""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Body, Query, Request
from pydantic import TypeAdapter

from app.accounting.posted import check_columns, naming, posted_release, tables_without_columns, without_columns
from app.accounting.schemas.account import FEWER_TABLES
from app.budgets.budget_route import BUDGET_NOT_FOUND, READS, BudgetInPath, BudgetRoute
from app.budgets.schemas.budgets import PUT_EXAMPLES, BudgetIn, BudgetOut, BudgetsOut, BudgetSummary
from app.budgets.schemas.history import EntryOut, FaultOut, HistoryOut, VerificationOut
from app.budgets.schemas.preview import PREVIEW_EXAMPLES, PreviewIn, PreviewOut
from app.errors import LimitExceeded
from app.http.auth import access_of, needs
from app.http.json_route import DeclaredRoute, slimmed
from app.http.problems import ACCESS_PROBLEMS, DIVISION_PROBLEMS, PROBLEMS, READ_PROBLEMS
from app.http.services import services_of
from app.http.workload import in_slices
from app.ledger.access.scopes import READERS
from app.ledger.clock import now
from app.ledger.errors import LedgerUnavailable
from app.ledger.figures import (
    cost_figures,
    limit_figures,
    next_shortage_figures,
    remaining_figures,
    shortage_figures,
    spent_figures,
)
from app.ledger.lineage import Lineage, ancestors_among, how_many_cost, how_many_fit
from app.ledger.renewing import named_period
from app.ledger.state import UNREADABLE, Budget, Entry
from app.ledger.store import Account, Ledger, Like
from app.schemas.approvals import WAITING_RESPONSE
from app.schemas.costs import CostOut, LimitOut, PromiseOut, RemainingOut, ShortageOut, SpentOut
from app.schemas.mechanism import PostedMechanism, read_release
from app.workers.work_bounds import check_work, work_of
from gsh.accounting.budget_limits import Limit
from gsh.accounting.composition import NOTHING, Cost, Release, cost_of
from gsh.errors import renamed

__all__ = ["entry_shown", "router", "summary_of"]

T = TypeVar("T")

_MOST_PLANNED = 1000
_PER_TABLE = 0.1
_ENTRY: TypeAdapter[EntryOut] = TypeAdapter(EntryOut)

router = APIRouter(
    prefix="/budgets", tags=["budgets"], responses=READ_PROBLEMS | ACCESS_PROBLEMS, route_class=DeclaredRoute
)
_bodies = APIRouter(prefix="/budgets", tags=["budgets"], route_class=BudgetRoute, responses=PROBLEMS | ACCESS_PROBLEMS)


@_bodies.put(
    "/{id}",
    operation_id="putBudget",
    summary="Make a budget, or change its limit",
    dependencies=[needs("admin", budget="id")],
    responses=BUDGET_NOT_FOUND | DIVISION_PROBLEMS | WAITING_RESPONSE,
)
async def put_budget(
    request: Request,
    id: BudgetInPath,  # noqa: A002
    body: Annotated[BudgetIn, Body(openapi_examples=PUT_EXAMPLES)],
) -> BudgetOut:
    """The history records every change, with its reason and the access key. The same limit again changes nothing.

    What the request omits stays as it is. The first charge settles how noise and thresholds share the budget. After it,
    a change that would divide the budget in another way is 409, and so is another privacy unit, period or parent.
    If the budget demands an approval, the change waits for it (202).
    """
    services = services_of(request)
    with naming(body.tables):
        is_given = body.mechanism is not None or body.tables is not None
        typical = cost_of(await posted_release(request, services, body.mechanism, body.tables)) if is_given else None
    limit = Limit(body.epsilon, body.delta, typical)
    access = access_of(request.scope)
    if body.parent is not None:
        access.check(body.parent)  # a child charges its parent

    def put(ledger: Ledger) -> Budget:
        given: Any = {"settings": body.settings, "reason": body.reason, "by": access.by, "client": access.client}
        return ledger.put_budget(id, limit, None, now(), **given)

    await services.ledger_pool.ask(put)
    return await services.ledger_pool.read(lambda ledger: _whole(ledger.budget(id)))


@router.get("", operation_id="listBudgets", summary="All budgets", dependencies=[needs(*READERS)])
async def list_budgets(request: Request) -> BudgetsOut:
    """All budgets, or those that the access key is bound to: the limit, what is spent and what remains."""
    budgets = await services_of(request).ledger_pool.read(lambda ledger: ledger.budgets())
    access = access_of(request.scope)
    by_id = {budget.id: budget for budget in budgets}
    visible = (budget for budget in budgets if access.may_see(budget.id))
    shown = (BudgetSummary(**summary_of((each, *ancestors_among(each, by_id.get)))) for each in visible)
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
    return await services_of(request).ledger_pool.read(lambda ledger: _whole(ledger.budget(id)))


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
    """A mechanism, a list of mechanisms to run in order, or several tables in one release.

    Nothing is charged and nothing is recorded.
    """
    services, budget = services_of(request), named_period(id, body.period)
    work = _check_plan(body, services.settings.max_work)
    with naming(body.tables):
        plan = await services.made(request, work, _plan, body)
    return await services.ledger_pool.read(lambda ledger: _preview(ledger.paying(budget), plan))


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
    last = entries[-1].number if entries else 1
    return HistoryOut(entries=[entry_shown(entry) for entry in entries], before=last if last > 1 else None)


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
    shown = None if fault is None else FaultOut.model_validate(fault, from_attributes=True)
    return VerificationOut(intact=fault is None, entries=budget.entries, head=budget.head, fault=shown)


router.routes.extend(_bodies.routes)


@slimmed.register
def _(body: BudgetIn, most_work: int) -> BudgetIn:
    if body.tables is not None:
        check_columns(most_work, None, body.tables)
        return body.model_copy(update={"tables": tables_without_columns(body.tables)})
    if body.mechanism is None:
        return body
    check_columns(most_work, body.mechanism, None)
    return body.model_copy(update={"mechanism": without_columns(body.mechanism)})


@slimmed.register
def _(body: PreviewIn, most_work: int) -> PreviewIn:
    _check_plan(body, most_work)
    if body.tables is not None:
        return body.model_copy(update={"tables": tables_without_columns(body.tables)})
    slim = _each(body, without_columns)
    return body.model_copy(update={"mechanism": slim if isinstance(body.mechanism, list) else slim[0]})


def _check_plan(body: PreviewIn, most_work: int) -> float:
    """The work of planned releases, after a check of their number. One without columns takes no time."""
    if body.tables is not None:
        work = sum(_PER_TABLE + work_of(table) for table in body.tables)
        check_work(most_work, "/tables", work, FEWER_TABLES)
        return work
    if not isinstance(body.mechanism, list):
        return check_columns(most_work, body.mechanism, None)
    if len(body.mechanism) > _MOST_PLANNED:
        raise LimitExceeded("/mechanism", f"must have at most {_MOST_PLANNED} items")
    work = sum(1 + work_of(each) for each in body.mechanism)
    check_work(most_work, "/mechanism", work, "give fewer mechanisms, or fewer columns, or mu_0")
    return work


def _each(body: PreviewIn, function: Callable[[PostedMechanism], T]) -> list[T]:
    """The function of each planned mechanism. An error names the place in the list."""
    if not isinstance(body.mechanism, list):
        assert body.mechanism is not None
        return [function(body.mechanism)]
    found = []
    for place, planned in enumerate(body.mechanism):
        with renamed(("", str(place))):
            found.append(function(planned))
    return found


def _plan(body: PreviewIn) -> list[tuple[Release, Cost]]:
    if body.tables is not None:
        return [_costed(read_release(None, body.tables))]
    return _each(body, lambda planned: _costed(planned.to_domain()))


def _costed(planned: Release) -> tuple[Release, Cost]:
    release = planned.without_columns
    return release, cost_of(release)


def _preview(lineage: Lineage, plan: list[tuple[Release, Cost]]) -> PreviewOut:
    """What the budget would have spent, and whether the budget and all its ancestors admit the plan."""
    levels, alone, fitting, all_fit = lineage, NOTHING, 0, True
    limits = [budget.limit.settled_by(plan[0][1]) for budget in lineage]
    for release, cost in plan:
        alone = alone.plus(release, cost)
        levels = tuple(replace(budget, spent=budget.spent.plus(release, cost)) for budget in levels)
        all_fit = all_fit and all(limit.admits(after.spent) for limit, after in zip(limits, levels, strict=True))
        fitting += all_fit
    short = (shortage_figures(*each) for each in zip(lineage, limits, (after.spent for after in levels), strict=True))
    shortage = None if all_fit else next(figures for figures in short if figures is not None)
    limit, after = limits[0], levels[0].spent
    settled = tuple(replace(budget, limit=limit) for budget, limit in zip(levels, limits, strict=True))
    return PreviewOut(
        fits=all_fit,
        fitting=fitting,
        more=how_many_fit(lineage, *plan[0]),
        asked=CostOut(**cost_figures(alone, limit)),
        after=CostOut(**cost_figures(after, limit)),
        used=limit.used(after),
        remaining=RemainingOut(**remaining_figures(settled)) if all_fit else None,
        shortage=None if shortage is None else ShortageOut(**shortage),
    )


def entry_shown(entry: Entry) -> EntryOut:
    """An entry of a history, as answers have it."""
    try:
        fields = {"number": entry.number, "kind": entry.kind, "at": entry.at, "hash": entry.hash}
        return _ENTRY.validate_python(fields | {"details": entry.shown})
    except UNREADABLE:
        pass
    # Outside of the handler: the error of a reader holds what it could not read.
    raise LedgerUnavailable(f"entry {entry.number} of the budget {entry.budget} cannot be read")


def _whole(account: Account) -> BudgetOut:
    budget, parts, ancestors, periods, like, paying, left = account
    spent = SpentOut(**spent_figures(budget.spent, parts, budget.limit))
    above = [BudgetSummary(**summary_of(ancestors[place:])) for place in range(len(ancestors))]
    fields = summary_of(account.lineage) | {"spent": spent}
    renewed = [BudgetSummary(**summary_of((each, *ancestors))) for each in periods]
    more, short = _more_of(paying, like)
    shortage = None if short is None else ShortageOut(**short)
    further: dict[str, Any] = {"more": more, "shortage": shortage, "days_left": left}
    return BudgetOut(**fields, ancestors=above, periods=renewed, **further, entries=budget.entries, head=budget.head)


def _more_of(paying: Lineage, like: Like | None) -> tuple[int | None, dict[str, Any] | None]:
    """How many more fit, and what is short if none does. A typical release is known by its cost alone."""
    if like is None:
        return None, None
    if like.release is None:
        return how_many_cost(paying, like.cost), None
    more = how_many_fit(paying, like.release, like.cost)
    return more, None if more else next_shortage_figures(paying, like.release, like.cost)


def summary_of(lineage: Lineage) -> dict[str, Any]:
    """The fields of BudgetSummary, of the first of these budgets."""
    budget = lineage[0]
    limit, spent, promise = budget.limit, budget.spent, budget.promise
    return {
        "id": budget.id,
        "description": budget.description,
        "privacy_unit": budget.privacy_unit,
        "period": budget.period,
        "parent": budget.parent,
        "renews": budget.renews,
        "closes_after": budget.closes_after,
        "period_of": budget.period_of,
        "most_sigma": budget.most_sigma,
        "approval": budget.approval or "none",
        "limit": LimitOut(**limit_figures(limit)),
        "spent": CostOut(**cost_figures(spent, limit)),
        "used": limit.used(spent),
        "remaining": RemainingOut(**remaining_figures(lineage)),
        "promise": None if promise is None else PromiseOut(epsilon=limit.epsilon, delta=promise),
    }
