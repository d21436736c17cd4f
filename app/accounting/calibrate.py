"""POST /calibrate: the smallest noise and threshold, or the largest C_u, for a target."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from pydantic import Field

from app.accounting.schemas.account import FEWER_COLUMNS, FEWER_TABLES
from app.accounting.schemas.calibrate import (
    CALIBRATE_EXAMPLES,
    CalibrateAnswer,
    CalibrateRequest,
    FrontierAnswer,
    FrontierPoint,
    RemainingAnswer,
    RemainingTablesAnswer,
    Solution,
    TablesSolution,
)
from app.errors import LimitExceeded
from app.http.auth import READS_BUDGETS, needs
from app.http.json_route import JsonRoute
from app.http.problems import ACCESS_PROBLEMS, PROBLEMS, SHARE_PROBLEMS
from app.http.services import Services, services_of
from app.http.workload import in_pool
from app.schemas.mechanism import DraftIn, MechanismIn, TableDraftIn, read_table_drafts, tables_out
from app.schemas.survey import AfterSurvey, read_survey_draft, survey_out
from app.workers.work_bounds import (
    AT_ONCE,
    calibration_work,
    caps_of,
    check_work,
    frontier_work,
    is_relative,
    remaining_work,
    solves_sigma,
    surveyed_calibration_work,
    tables_calibration_work,
    tables_comparison_work,
    work_of,
)
from gsh.accounting.accountings import ADD_DELTAS, EXACT, Accounting
from gsh.accounting.budget_limits import Account, Limit
from gsh.accounting.calibration.after_survey import SurveyPlan, calibrate_after, calibrate_one_after
from gsh.accounting.calibration.draft import Draft, Target
from gsh.accounting.calibration.remaining import RemainingCalibration, calibrate_remaining
from gsh.accounting.calibration.remaining_tables import RemainingTables, calibrate_remaining_tables
from gsh.accounting.calibration.shares import CalibratedTables, calibrate_tables
from gsh.accounting.calibration.target import CalibratedMechanism, calibrate
from gsh.accounting.calibration.usual_noise import calibrate_usual, calibrate_usual_tables
from gsh.accounting.composition import NOTHING, Spent
from gsh.errors import InfeasibleTarget, InvalidParameter
from gsh.wire import after_survey_to_json

__all__ = ["router"]

router = APIRouter(tags=["calibrate"], responses=PROBLEMS | ACCESS_PROBLEMS | SHARE_PROBLEMS, route_class=JsonRoute)

_Answer = Annotated[
    CalibrateAnswer | FrontierAnswer | RemainingAnswer | TablesSolution | RemainingTablesAnswer,
    Field(discriminator="kind"),
]


@router.post(
    "/calibrate",
    operation_id="calibrate",
    summary="The smallest noise and threshold for a target",
    dependencies=[needs("account")],
)
async def calibrate_mechanism(
    request: Request, body: Annotated[CalibrateRequest, Body(openapi_examples=CALIBRATE_EXAMPLES)]
) -> _Answer:
    """Solve for the fields that the mechanism omits; the answer can be part of the next request.

    The answer meets the target under the same accounting, and the next double below it does not (above it for the
    largest σ, the next integer above it for C_u). A target that cannot be met is a problem of type
    /problems/infeasible-target, which says what would make it possible.

    With a budget instead of epsilon and delta, one release or several equal releases fit the remaining budget. With
    epsilon, delta and several releases, all of them together fit a new budget with this limit. In both cases σ and
    τ\\* share it: if both are omitted, the answer has the smallest τ\\*. If less than half of a usual release is left
    of the budget, that is 409. The releases fit the ancestors of the budget too.

    With a survey, a noisy histogram over the users is published first, and C_u is chosen from it: `survey` is its
    noise or its share. The answer has in `after_survey` what is fixed before the survey. Post it again with the C_u
    that the survey suggests.

    Several tables in one release share the target, or the remaining budget: each has its share of the noise cost and
    the same share of the threshold cost. Within a target (ε, δ) they have exactly the privacy of one table. Fix all of
    them before anything is published: a table that is chosen after seeing another one is a release of its own.
    """
    services = services_of(request)
    if body.budget is not None:
        await services.authorizer.admit(request.scope, READS_BUDGETS, body.budget)
        name = body.budget
        lineage = await services.ledger_pool.read(lambda ledger: ledger.paying(name))
        if body.most_sigma is None:
            bounds = [budget.most_sigma for budget in lineage if budget.most_sigma is not None]
            body = body.model_copy(update={"most_sigma": min(bounds, default=None)})
        return await _remaining(request, services, body, [budget.account for budget in lineage])
    if body.releases > 1:
        account = Account(NOTHING, Limit(body.target.epsilon, body.target.delta))
        return await _remaining(request, services, body, [account])
    if body.survey is not None:
        return await _surveyed(request, services, body)
    return await _for_target(request, services, body)


async def _for_target(request: Request, services: Services, body: CalibrateRequest) -> _Answer:
    """What meets a target (ε, δ)."""
    schema = body.mechanism
    if body.tables is not None:
        work = tables_calibration_work(body.tables)
        _check_tables(services, work)
        return await services.made(request, work, _solve_tables, body, body.tables, body.target)
    assert schema is not None
    if isinstance(schema.sigma, list):
        return await _frontier(request, services, body, schema.sigma)  # type: ignore[return-value]
    _check(services, calibration_work(schema))
    draft = await services.to_domain(request, schema, work_of(schema), services.accounting)
    # The search for σ may take a hundred evaluations, each with a Σ of its own.
    if work_of(schema) > AT_ONCE or is_relative(schema) or caps_of(schema) or solves_sigma(schema):
        return await in_pool(request, services.accounting, _solve, body, draft, body.target)
    return _solve(body, draft, body.target)


def _check(services: Services, work: float) -> None:
    check_work(services.settings.max_work, "/mechanism/aggregates", work, FEWER_COLUMNS)


def _solve(body: CalibrateRequest, draft: Draft, target: Target) -> CalibrateAnswer:
    accounting, other = _accountings(body)
    found = calibrate(accounting, draft, target)
    return CalibrateAnswer(
        kind="solution",
        solved=list(found.solved),
        comparison=_solution(other, draft, target),
        **_fields(accounting, found),
    )


def _check_tables(services: Services, work: float) -> None:
    check_work(services.settings.max_work, "/tables", work, FEWER_TABLES)


def _solve_tables(body: CalibrateRequest, tables: list[TableDraftIn], target: Target) -> TablesSolution:
    drafts, shares = read_table_drafts(tables)
    return _tables_solution(drafts, calibrate_tables(list(drafts.values()), body.shares or shares, target))


def _tables_solution(names: Iterable[str], found: CalibratedTables, **survey: Any) -> TablesSolution:
    return TablesSolution(
        kind="tables",
        accounting="exact",
        tables=tables_out(names, found.tables),
        shares=[float(share) for share in found.shares],
        **survey,
        **found.point._asdict(),
    )


async def _surveyed(request: Request, services: Services, body: CalibrateRequest) -> CalibrateAnswer | TablesSolution:
    """What follows a survey."""
    if body.tables is not None:
        _check_tables(services, surveyed_calibration_work(body.tables))
        return await in_pool(request, services.accounting, _surveyed_tables, body, body.tables)
    assert body.mechanism is not None
    if isinstance(body.mechanism.sigma, list):
        raise InvalidParameter("sigma", "must be omitted with a survey")
    _check(services, surveyed_calibration_work([body.mechanism]))
    return await in_pool(request, services.accounting, _surveyed_mechanism, body, body.mechanism)


def _surveyed_mechanism(body: CalibrateRequest, schema: DraftIn) -> CalibrateAnswer:
    assert body.survey is not None
    found, plan = calibrate_one_after(
        schema.to_domain(), body.target, read_survey_draft(body.survey, body.after_survey)
    )
    return CalibrateAnswer(
        kind="solution", solved=list(found.solved), comparison=None, **_fields(EXACT, found), **_planned(plan)
    )


def _surveyed_tables(body: CalibrateRequest, tables: list[TableDraftIn]) -> TablesSolution:
    assert body.survey is not None
    drafts, shares = read_table_drafts(tables)
    survey = read_survey_draft(body.survey, body.after_survey)
    found, plan = calibrate_after(list(drafts.values()), body.shares or shares, body.target, survey)
    return _tables_solution(drafts, found, **_planned(plan))


def _planned(plan: SurveyPlan) -> dict[str, Any]:
    """What an answer says of a survey."""
    return {"survey": survey_out(plan.survey), "after_survey": AfterSurvey(**after_survey_to_json(plan))}


async def _remaining(
    request: Request, services: Services, body: CalibrateRequest, accounts: list[Account]
) -> RemainingAnswer | RemainingTablesAnswer:
    """A mechanism for the rest of a budget and its ancestors; or one of several releases that together fit a target."""
    if body.tables is not None:
        _check_tables(services, len(accounts) * tables_comparison_work(body.tables))
        return await in_pool(request, services.accounting, _remaining_tables, body, body.tables, accounts)
    schema = body.mechanism
    assert schema is not None
    if isinstance(schema.sigma, list):
        raise InvalidParameter("sigma", "may not be a list if a budget or several releases are given")
    _check(services, remaining_work(schema))
    draft = await services.to_domain(request, schema, work_of(schema), services.accounting)
    (spent, limit), above = accounts[0], accounts[1:]
    solve: Callable[[Spent, Draft, int, Limit], RemainingCalibration] = calibrate_remaining
    if body.budget is not None:
        solve = partial(calibrate_usual, most_sigma=body.most_sigma, above=above)
    found = await in_pool(request, services.accounting, solve, spent, draft, body.releases, limit)
    return RemainingAnswer(
        kind="remaining",
        accounting="composition",
        budget=body.budget,
        releases=body.releases,
        mechanism=MechanismIn.of(found.mechanism),
        epsilon=limit.epsilon,
        delta=found.delta,
        solved=list(found.solved),
    )


def _remaining_tables(
    body: CalibrateRequest, tables: list[TableDraftIn], accounts: list[Account]
) -> RemainingTablesAnswer:
    drafts, given = read_table_drafts(tables)
    (spent, limit), above = accounts[0], accounts[1:]
    wanted = (spent, list(drafts.values()), body.shares or given, body.releases, limit)
    found: RemainingTables = (
        calibrate_remaining_tables(*wanted)
        if body.budget is None
        else calibrate_usual_tables(*wanted, most_sigma=body.most_sigma, above=above)
    )
    return RemainingTablesAnswer(
        kind="remaining-tables",
        accounting="composition",
        budget=body.budget,
        releases=body.releases,
        tables=tables_out(drafts, found.tables),
        shares=[float(share) for share in found.shares],
        epsilon=limit.epsilon,
        delta=found.delta,
    )


async def _frontier(request: Request, services: Services, body: CalibrateRequest, sigmas: list[float]) -> bytes:
    """A FrontierAnswer, encoded already."""
    schema, most = body.mechanism, services.settings.max_curve_points
    assert schema is not None
    if schema.c_u is None or schema.tau_star is not None:
        raise InvalidParameter("sigma", "may be a list only if tau_star, and nothing else, is omitted")
    if len(sigmas) > most:
        raise LimitExceeded("/mechanism/sigma", f"must have at most {most} items")
    work = frontier_work(schema, len(sigmas))
    advice = "give fewer σ; with a relative covariance, also fewer columns or vectors"
    check_work(services.settings.max_work, "/mechanism/sigma", work, advice)
    return await in_pool(request, services.accounting, _encoded_frontier, body, sigmas, body.target)


def _encoded_frontier(body: CalibrateRequest, sigmas: list[float], target: Target) -> bytes:
    assert body.mechanism is not None
    draft = body.mechanism.to_domain()
    frontier = [_frontier_point(body, sigma, draft, target) for sigma in sigmas]
    answer = FrontierAnswer(kind="frontier", accounting=body.accounting, solved=["tau_star"], frontier=frontier)
    return answer.model_dump_json().encode()


def _frontier_point(body: CalibrateRequest, sigma: float, draft: Draft, target: Target) -> FrontierPoint:
    accounting, other = _accountings(body)
    at_sigma = replace(draft, sigma=sigma)
    return FrontierPoint(
        sigma=sigma,
        solution=_solution(accounting, at_sigma, target),
        comparison=_solution(other, at_sigma, target),
    )


def _solution(accounting: Accounting, draft: Draft, target: Target) -> Solution | None:
    try:
        return Solution(**_fields(accounting, calibrate(accounting, draft, target)))
    except InfeasibleTarget:
        return None


def _fields(accounting: Accounting, found: CalibratedMechanism) -> dict[str, Any]:
    return {
        "accounting": accounting.name,
        "mechanism": MechanismIn.of(found.mechanism),
        "largest_sigma": found.largest_sigma,
        **found.point._asdict(),
    }


def _accountings(body: CalibrateRequest) -> tuple[Accounting, Accounting]:
    """The accounting asked for, and the other."""
    return (EXACT, ADD_DELTAS) if body.accounting == EXACT.name else (ADD_DELTAS, EXACT)
