"""POST /calibrate: the smallest noise and threshold, or the largest C_u, for a target."""

from dataclasses import replace
from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, Body, Request
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from app.api.auth import READS_BUDGETS, needs
from app.api.dependencies import AT_ONCE, Services, services_of
from app.api.json_route import JsonRoute
from app.api.problems import ACCESS_PROBLEMS, BUDGET_PROBLEMS, PROBLEMS, LimitExceeded
from app.api.schemas.mechanism import DraftIn, MechanismIn, Strict
from app.api.workload import in_pool
from app.ledger.records import BUDGET_ID
from app.service.work_bounds import calibration_work, check_work, frontier_work, remainder_work
from gsh.accounting.accountings import ADD_DELTAS, EXACT, Accounting, AccountingName
from gsh.accounting.calibration.draft import Draft, Parameter, Target
from gsh.accounting.calibration.remaining import calibrate_remainder
from gsh.accounting.calibration.target import Calibration, calibrate
from gsh.accounting.errors import InfeasibleTarget, InvalidParameter

__all__ = ["router"]

router = APIRouter(
    tags=["calibrate"], responses=PROBLEMS | ACCESS_PROBLEMS | {404: BUDGET_PROBLEMS[404]}, route_class=JsonRoute
)

_SOLVED = {"c_u": 51914, "tau": 1, "tau_star": 13951.051328063842, "sigma": 2228.482632459166}


class CalibrateRequest(Strict):
    """A mechanism with gaps, and the (ε, δ) it shall meet, or the budget it shall fit."""

    mechanism: DraftIn = Field(
        title="Mechanism",
        description="Leave out what is to be solved: sigma and tau_star, one of them, or c_u. A list of sigma, with "
        "tau_star left out, gives a frontier. Noise on columns that shall scale with sigma is relative_covariance.",
        examples=[{"c_u": 51914, "tau": 1}],
    )
    epsilon: Annotated[float, Field(ge=0)] | None = Field(
        default=None, title="ε", description="The ε to meet; left out where a budget is given.", examples=[0.349]
    )
    delta: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        default=None, title="δ", description="The δ to meet; left out where a budget is given.", examples=[1e-5]
    )
    budget: str | None = Field(
        default=None,
        pattern=BUDGET_ID,
        title="Budget",
        description="In place of epsilon and delta: fit what is left of this budget.",
        examples=["web"],
    )
    releases: int = Field(
        default=1,
        ge=1,
        le=10**9,
        title="k",
        description="With a budget: the number of equal releases that shall fit.",
        examples=[4],
    )
    accounting: AccountingName = Field(
        default="exact", title="Accounting", description="How privacy is to be accounted for.", examples=["exact"]
    )

    @model_validator(mode="after")
    def _one_target(self) -> Self:
        given = (self.epsilon is not None, self.delta is not None)
        if given != ((True, True) if self.budget is None else (False, False)):
            raise PydanticCustomError("stated", "", {"stated": "must have epsilon and delta, or a budget instead"})
        if self.budget is None and self.releases != 1:
            raise PydanticCustomError("stated", "", {"stated": "must have a budget where releases is given"})
        return self

    @property
    def target(self) -> Target:
        assert self.epsilon is not None
        assert self.delta is not None
        return Target(self.epsilon, self.delta)


_ACCOUNTING: dict[str, Any] = {
    "title": "Accounting",
    "description": "How privacy was accounted for.",
    "examples": ["exact"],
}


class Solution(Strict):
    """A complete mechanism that meets the target, and the certified (ε, δ) it reaches."""

    accounting: AccountingName = Field(**_ACCOUNTING)
    mechanism: MechanismIn = Field(
        title="Mechanism", description="Complete: ready for the next request.", examples=[_SOLVED]
    )
    epsilon: float = Field(title="ε", description="The ε of the target.", examples=[0.349])
    delta: float = Field(
        title="δ",
        description="The smallest δ at ε, at most the target's; rounded up.",
        examples=[9.999999999999999e-06],
    )
    largest_sigma: float | None = Field(
        title="σ_max",
        description="Where σ alone was solved: the largest that works too. Null where there is no largest.",
        examples=[2380.0745932894934],
    )


_COMPARISON: dict[str, Any] = {
    "title": "Comparison",
    "description": "The same target under the other accounting; null where that cannot be met.",
    "examples": [None],
}


class CalibrateResponse(Solution):
    """The mechanism that was asked for."""

    solved: list[Parameter] = Field(
        title="Solved", description="What was left out, and solved for.", examples=[["sigma", "tau_star"]]
    )
    comparison: Solution | None = Field(**_COMPARISON)


class FrontierPoint(Strict):
    """The smallest τ* at one σ."""

    sigma: float = Field(title="σ", description="As asked.", examples=[2300])
    solution: Solution | None = Field(
        title="Solution", description="Null where no τ* meets the target at this σ.", examples=[None]
    )
    comparison: Solution | None = Field(**_COMPARISON)


class FrontierResponse(Strict):
    """The smallest τ* at each σ of a list, in the order asked."""

    accounting: AccountingName = Field(**_ACCOUNTING)
    solved: list[Literal["tau_star"]] = Field(
        title="Solved", description="What was left out, and solved for.", examples=[["tau_star"]]
    )
    frontier: list[FrontierPoint] = Field(title="Frontier", description="One per σ asked.", examples=[[]])


class RemainderResponse(Strict):
    """The mechanism with which the releases fit what is left of the budget."""

    accounting: Literal["composition"] = Field(
        title="Accounting", description="How privacy was accounted for.", examples=["composition"]
    )
    budget: str = Field(title="Budget", description="The budget that it fits.", examples=["web"])
    releases: int = Field(title="k", description="How many equal releases fit.", examples=[4])
    mechanism: MechanismIn = Field(
        title="Mechanism", description="Complete: ready for the next request.", examples=[_SOLVED]
    )
    epsilon: float = Field(title="ε", description="The ε of the budget.", examples=[1.0])
    delta: float = Field(
        title="δ",
        description="What would be spent at ε after all of them, at most the budget's δ; rounded up.",
        examples=[9.999e-05],
    )
    solved: list[Parameter] = Field(
        title="Solved", description="What was left out, and solved for.", examples=[["sigma", "tau_star"]]
    )


_EXAMPLES: dict[str, Any] = {
    "both": {
        "summary": "The smallest σ, then the smallest τ*",
        "value": {"mechanism": {"c_u": 51914, "tau": 1}, "epsilon": 0.349, "delta": 1e-05},
    },
    "tau_star": {
        "summary": "The smallest τ* at a σ",
        "value": {"mechanism": {"c_u": 51914, "tau": 1, "sigma": 2396}, "epsilon": 0.349, "delta": 1e-05},
    },
    "frontier": {
        "summary": "The frontier over several σ",
        "description": "At the first nothing meets the target; at the others exact accounting needs less.",
        "value": {
            "mechanism": {"c_u": 51914, "tau": 1, "sigma": [2228, 2240, 2300]},
            "epsilon": 0.349,
            "delta": 1e-05,
        },
    },
    "sigma": {
        "summary": "The smallest σ at a τ*",
        "value": {"mechanism": {"c_u": 51914, "tau": 1, "tau_star": 14900}, "epsilon": 0.349, "delta": 1e-05},
    },
    "c_u": {
        "summary": "The largest C_u",
        "value": {"mechanism": {"tau": 1, "tau_star": 15000, "sigma": 2300}, "epsilon": 0.349, "delta": 1e-05},
    },
    "columns": {
        "summary": "With further columns, whose noise scales with σ",
        "value": {
            "mechanism": {
                "c_u": 51914,
                "tau": 1,
                "aggregates": {
                    "names": ["likes", "shares"],
                    "relative_covariance": [[1, 0], [0, 0.25]],
                    "sensitivity": {"kind": "box", "lower": [0, 0], "upper": [1, 1]},
                },
            },
            "epsilon": 0.349,
            "delta": 1e-05,
        },
    },
}


@router.post(
    "/calibrate",
    operation_id="calibrate",
    summary="The smallest noise and threshold for a target",
    dependencies=[needs("account")],
)
async def calibrate_mechanism(
    request: Request, body: Annotated[CalibrateRequest, Body(openapi_examples=_EXAMPLES)]
) -> CalibrateResponse | FrontierResponse | RemainderResponse:
    """Solve for what the mechanism leaves out; the answer pastes into the next request.

    It meets the target under the same accounting, and the next double below it (above it for the largest σ, the next
    integer above it for C_u) does not. A target that cannot be met is a problem of type infeasible-target, which says
    what would make it possible.

    With a budget in place of epsilon and delta it fits what is left of it, in one release or in several equal ones.
    Then σ and τ\\* share what is left: with both left out, σ is taken where τ\\* is smallest.
    """
    services, schema = services_of(request), body.mechanism
    if body.budget is not None:
        await services.authorizer.admit(request.scope, READS_BUDGETS, body.budget)
        return await _remainder(request, services, body, body.budget)
    if isinstance(schema.sigma, list):
        return await _frontier(request, services, body, schema.sigma)  # type: ignore[return-value]
    _check(services, calibration_work(schema.work, **_kind(schema)))
    draft = await services.to_domain(request, schema, services.accounting)
    # Add-the-deltas searches for σ with a hundred evaluations; and every σ that is tried may have a Σ of its own.
    if schema.work > AT_ONCE or schema.is_relative or _solves_sigma(schema):
        return await in_pool(request, services.accounting, _solve, body, draft, body.target)
    return _solve(body, draft, body.target)


def _check(services: Services, work: float) -> None:
    check_work(services.settings.max_work, "/mechanism/aggregates", work, "give fewer columns or vectors, or mu_0")


def _solves_sigma(schema: DraftIn) -> bool:
    """At a given τ*; with τ* open, the smallest σ is found at once."""
    return schema.sigma is None and schema.tau_star is not None


def _kind(schema: DraftIn) -> dict[str, bool]:
    return {"is_relative": schema.is_relative, "solves_sigma": _solves_sigma(schema)}


def _solve(body: CalibrateRequest, draft: Draft, target: Target) -> CalibrateResponse:
    accounting, other = _accountings(body)
    found = calibrate(accounting, draft, target)
    return CalibrateResponse(
        solved=list(found.solved),
        comparison=_solution(body, other, draft, target),
        **_fields(body, accounting, found),
    )


async def _remainder(request: Request, services: Services, body: CalibrateRequest, name: str) -> RemainderResponse:
    schema = body.mechanism
    if isinstance(schema.sigma, list):
        raise InvalidParameter("sigma", "may not be a list where a budget is given")
    _check(services, remainder_work(schema.work, is_relative=schema.is_relative))
    draft = await services.to_domain(request, schema, services.accounting)
    budget = await services.ledger_pool.read(lambda ledger: ledger.standing(name))
    pool = services.accounting
    found = await in_pool(request, pool, calibrate_remainder, budget.spent, draft, body.releases, budget.limit)
    return RemainderResponse(
        accounting="composition",
        budget=name,
        releases=body.releases,
        mechanism=body.mechanism.completed(found.mechanism),
        epsilon=budget.limit.epsilon,
        delta=found.delta,
        solved=list(found.solved),
    )


async def _frontier(request: Request, services: Services, body: CalibrateRequest, sigmas: list[float]) -> bytes:
    """A FrontierResponse, encoded already."""
    schema, most = body.mechanism, services.settings.max_curve_points
    if schema.c_u is None or schema.tau_star is not None:
        raise InvalidParameter("sigma", "may be a list only where tau_star, and nothing else, is left out")
    if len(sigmas) > most:
        raise LimitExceeded("/mechanism/sigma", f"must have at most {most} items")
    work = frontier_work(schema.work, len(sigmas), is_relative=schema.is_relative)
    advice = "give fewer σ; with a relative covariance, also fewer columns or vectors"
    check_work(services.settings.max_work, "/mechanism/sigma", work, advice)
    return await in_pool(request, services.accounting, _encoded_frontier, body, sigmas, body.target)


def _encoded_frontier(body: CalibrateRequest, sigmas: list[float], target: Target) -> bytes:
    draft = body.mechanism.to_domain()
    frontier = [_frontier_point(body, sigma, draft, target) for sigma in sigmas]
    answer = FrontierResponse(accounting=body.accounting, solved=["tau_star"], frontier=frontier)
    return answer.model_dump_json().encode()


def _frontier_point(body: CalibrateRequest, sigma: float, draft: Draft, target: Target) -> FrontierPoint:
    accounting, other = _accountings(body)
    at_sigma = replace(draft, sigma=sigma)
    return FrontierPoint(
        sigma=sigma,
        solution=_solution(body, accounting, at_sigma, target),
        comparison=_solution(body, other, at_sigma, target),
    )


def _solution(body: CalibrateRequest, accounting: Accounting, draft: Draft, target: Target) -> Solution | None:
    try:
        return Solution(**_fields(body, accounting, calibrate(accounting, draft, target)))
    except InfeasibleTarget:
        return None


def _fields(body: CalibrateRequest, accounting: Accounting, found: Calibration) -> dict[str, Any]:
    return {
        "accounting": accounting.name,
        "mechanism": body.mechanism.completed(found.mechanism),
        "epsilon": body.target.epsilon,
        "delta": found.point.delta,
        "largest_sigma": found.largest_sigma,
    }


def _accountings(body: CalibrateRequest) -> tuple[Accounting, Accounting]:
    """The accounting asked for, and the other."""
    return (EXACT, ADD_DELTAS) if body.accounting == EXACT.name else (ADD_DELTAS, EXACT)
