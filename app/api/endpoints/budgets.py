"""/budgets: limits, what is spent and what remains; previews, charges and histories."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter, ValidationError

from app.api.auth import access_of, needs
from app.api.dependencies import AT_ONCE, Services, services_of
from app.api.idempotency import KEY_HEADER, idempotency_key
from app.api.json_route import DeclaredRoute, JsonRoute, parsed_body
from app.api.problems import ACCESS_PROBLEMS, BUDGET_PROBLEMS, DIVISION_PROBLEMS, PROBLEMS, InvalidQuery
from app.api.schemas.account import FEWER_COLUMNS
from app.api.schemas.budgets import (
    CHARGE_EXAMPLES,
    PREVIEW_EXAMPLES,
    PUT_EXAMPLES,
    BudgetIn,
    BudgetOut,
    BudgetsOut,
    BudgetSummary,
    ChargeIn,
    ChargeOut,
    EntryOut,
    HistoryOut,
    PreviewIn,
    PreviewOut,
    VerificationOut,
)
from app.api.schemas.costs import CostOut, RemainingOut
from app.api.schemas.mechanism import GaussianIn, MechanismIn
from app.api.workload import in_pool, in_slices
from app.ledger.records import BUDGET_ID, now
from app.ledger.state import Budget
from app.ledger.store import Ledger
from app.service.payments import payment_of
from app.service.work_bounds import check_work
from gsh.accounting.budget_limits import Limit
from gsh.accounting.composition import NOTHING, Cost, Release, cost_of
from gsh.accounting.errors import InvalidParameter
from gsh.accounting.mechanism import MOST_C_U, Mechanism, PlainGaussian

__all__ = ["router"]

Name = Annotated[
    str,
    Path(
        pattern=BUDGET_ID,
        title="Budget",
        description="The name of the budget: at most 100 letters, digits, dots, dashes and underscores.",
        openapi_examples={"web": {"value": "web"}},
    ),
]
_NAME: TypeAdapter[str] = TypeAdapter(Annotated[str, Path(pattern=BUDGET_ID)])


class _BudgetRoute(JsonRoute):
    """A JSON body, and the name of a budget in the path."""

    async def answer(self, request: Request, content: bytes) -> bytes:
        try:
            name = _NAME.validate_python(request.path_params["id"])
        except ValidationError as error:
            found = error.errors(include_url=False, include_input=False)
            raise RequestValidationError([each | {"loc": ("path", "id")} for each in found]) from None
        request.state.content = content  # a charge that is sent again is recognised by its bytes
        answer = await self.endpoint(
            request, name, await parsed_body(request, self._model, content, services_of(request).accounting)
        )
        return answer if isinstance(answer, bytes) else answer.model_dump_json().encode()


_NOT_FOUND: dict[int | str, dict[str, Any]] = {404: BUDGET_PROBLEMS[404]}
_READ_PROBLEMS: dict[int | str, dict[str, Any]] = {status: PROBLEMS[status] for status in (422, 500, 503)}

router = APIRouter(
    prefix="/budgets", tags=["budgets"], responses=_READ_PROBLEMS | ACCESS_PROBLEMS, route_class=DeclaredRoute
)
_bodies = APIRouter(prefix="/budgets", tags=["budgets"], route_class=_BudgetRoute, responses=PROBLEMS | ACCESS_PROBLEMS)

_LISTS = [needs("release", "admin")]
_READS = [needs("release", "admin", budget="id")]
_CHARGES = [needs("release", budget="id")]
_SETS = [needs("admin", budget="id")]


@_bodies.put(
    "/{id}",
    operation_id="putBudget",
    summary="Make a budget, or change its limit",
    dependencies=_SETS,
    responses=_NOT_FOUND | DIVISION_PROBLEMS,
)
async def put_budget(
    request: Request,
    id: Name,  # noqa: A002
    body: Annotated[BudgetIn, Body(openapi_examples=PUT_EXAMPLES)],
) -> BudgetOut:
    """The history records every change of a limit. The same limit again changes nothing.

    The first charge settles how noise and thresholds share the budget. After it, a change that would divide the budget
    in another way is 409.
    """
    services = services_of(request)
    typical = None if body.mechanism is None else cost_of(await _release(request, services, body.mechanism))
    limit = Limit(body.epsilon, body.delta, typical)

    await services.ledger_pool.ask(lambda ledger: ledger.put_budget(id, limit, body.description, now()))
    return await services.ledger_pool.read(lambda ledger: BudgetOut.of(*ledger.budget(id)))


@router.get("", operation_id="listBudgets", summary="All budgets", dependencies=_LISTS)
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
    dependencies=_READS,
    responses=_NOT_FOUND,
)
async def get_budget(
    request: Request,
    id: Name,  # noqa: A002
    c_u: Annotated[int | None, Query(ge=1, le=MOST_C_U, description="C_u of a mechanism.")] = None,
    sigma: Annotated[float | None, Query(gt=0, allow_inf_nan=False, description="σ of the mechanism.")] = None,
    tau: Annotated[int | None, Query(ge=0, description="τ of the mechanism; omit it with τ* for plain noise.")] = None,
    tau_star: Annotated[float | None, Query(gt=1, allow_inf_nan=False, description="τ* of the mechanism.")] = None,
    mu_0: Annotated[float, Query(ge=0, allow_inf_nan=False, description="μ₀ of the mechanism.")] = 0.0,
) -> BudgetOut:
    """The limit, the two sums, upper and lower bounds on (ε, δ), and what remains.

    With a mechanism in the query (c_u and sigma; with a threshold also tau and tau_star) the answer also says how many
    more releases of it fit.
    """
    queried = _queried(c_u, sigma, tau, tau_star, mu_0)

    def work(ledger: Ledger) -> BudgetOut:
        budget, parts = ledger.budget(id)
        more = None if queried is None else budget.limit.how_many_fit(budget.spent, *queried)
        return BudgetOut.of(budget, parts, more)

    return await services_of(request).ledger_pool.read(work)


@_bodies.post(
    "/{id}/preview",
    operation_id="previewBudget",
    summary="Would this fit, and what would remain?",
    dependencies=_READS,
    responses=_NOT_FOUND,
)
async def preview(
    request: Request,
    id: Name,  # noqa: A002
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
    dependencies=_CHARGES,
    responses=BUDGET_PROBLEMS,
    openapi_extra={"parameters": [KEY_HEADER | {"required": True, "example": "weekly-2026-46"}]},
)
async def charge(
    request: Request,
    id: Name,  # noqa: A002
    body: Annotated[ChargeIn, Body(openapi_examples=CHARGE_EXAMPLES)],
) -> ChargeOut:
    """For platforms that add the noise in their own engine: charge first, and release only after the charge.

    The same idempotency key and body get the same answer, and are charged once.
    """
    services = services_of(request)
    payment = payment_of(id, idempotency_key(request), access_of(request.scope).client)
    assert payment is not None
    release = await _release(request, services, body.mechanism)
    cost = cost_of(release)

    def answer(after: Budget, number: int, at: str) -> bytes:
        spent = CostOut.of(after.spent, after.limit)
        shown = ChargeOut(budget=id, number=number, at=at, mu_squared=cost.mu_squared, hazard=cost.hazard, spent=spent)
        return shown.model_dump_json().encode()

    return await services.payments.charge(payment, release, request.state.content, answer)  # type: ignore[return-value]


@router.get(
    "/{id}/charges",
    operation_id="budgetHistory",
    summary="The history of a budget",
    dependencies=_READS,
    responses=_NOT_FOUND,
)
async def history(
    request: Request,
    id: Name,  # noqa: A002
    before: Annotated[
        int | None, Query(ge=1, lt=2**63, description="Only entries before the one with this number.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="The largest number of entries in the answer.")] = 100,
) -> HistoryOut:
    """All charges and changes of the limit, the latest first, in pages.

    Only access keys of scope admin see idempotency keys: with one, a client could test guesses of a stored request.
    """
    entries = await services_of(request).ledger_pool.read(lambda ledger: ledger.history(id, before, limit))
    last = entries[-1].number if entries else 1
    shows_keys = "admin" in access_of(request.scope).scopes
    shown = [EntryOut.of(entry, shows_keys=shows_keys) for entry in entries]
    return HistoryOut(entries=shown, before=last if last > 1 else None)


@router.get(
    "/{id}/verify",
    operation_id="verifyBudget",
    summary="Is the history as recorded?",
    dependencies=_READS,
    responses=_NOT_FOUND,
)
async def verify(
    request: Request,
    id: Name,  # noqa: A002
) -> VerificationOut:
    """Checks the chain of hashes from its beginning, adds up every charge again, and hashes the stored answers."""
    budget, fault = await services_of(request).ledger_pool.audit(lambda ledger: ledger.verify(id))
    return VerificationOut.of(budget, fault)


router.routes.extend(_bodies.routes)


async def _release(request: Request, services: Services, schema: MechanismIn | GaussianIn) -> Release:
    check_work(services.settings.max_work, "/mechanism/aggregates", schema.work, FEWER_COLUMNS)
    release: Release = await services.to_domain(request, schema, services.accounting)
    return release


def _plan(body: PreviewIn) -> list[tuple[Release, Cost]]:
    return body.each(_costed)


def _costed(planned: MechanismIn | GaussianIn) -> tuple[Release, Cost]:
    release: Release = planned.to_domain().bare
    return release, cost_of(release)


def _queried(
    c_u: int | None, sigma: float | None, tau: int | None, tau_star: float | None, mu_0: float
) -> tuple[Release, Cost] | None:
    if c_u is None and sigma is None and tau is None and tau_star is None:
        return None
    if c_u is None:
        raise InvalidQuery(("c_u", "is required with another parameter of a mechanism"))
    if sigma is None:
        raise InvalidQuery(("sigma", "is required with another parameter of a mechanism"))
    if (tau is None) != (tau_star is None):
        raise InvalidQuery(
            ("tau", "is required with tau_star") if tau is None else ("tau_star", "is required with tau")
        )
    try:
        if tau is None or tau_star is None:
            release: Release = PlainGaussian(c_u, sigma, mu_0)
        else:
            release = Mechanism(c_u, tau, tau_star, sigma, mu_0)
        return release, cost_of(release)
    except InvalidParameter as error:
        raise InvalidQuery((error.pointer.rpartition("/")[2], error.detail)) from None


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
        asked=CostOut.of(alone, limit),
        after=CostOut.of(after, limit),
        used=limit.used(after),
        remaining=RemainingOut.of(after, limit) if all_fit else None,
    )
