"""POST /account/exact and POST /account/add-deltas: the privacy of a mechanism."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from pydantic_core import to_json

from app.accounting.schemas.account import (
    ACCOUNT_EXAMPLES,
    EXACT_EXAMPLES,
    FEWER_COLUMNS,
    AccountAnswer,
    AccountRequest,
    ExactRequest,
    PointOut,
    TermOut,
    TheoremOut,
)
from app.errors import LimitExceeded
from app.http.auth import needs
from app.http.json_route import JsonRoute, slimmed
from app.http.problems import ACCESS_PROBLEMS, PROBLEMS
from app.http.services import Services, services_of
from app.http.workload import in_pool, in_slices
from app.schemas.aggregates import ColumnsIn
from app.schemas.mechanism import MechanismOut, PostedMechanism
from app.workers.work_bounds import caps_of, check_work, points_work, theorem_work, work_of
from gsh.accounting.accountings import ADD_DELTAS, EXACT, Accounting, AccountingName, Point, at_epsilon
from gsh.accounting.curve_cache import Variable, evaluate
from gsh.accounting.frontier import ENOUGH_EPSILON
from gsh.accounting.mechanism import Mechanism
from gsh.wire import capped_to_json, mechanism_to_json

__all__ = ["router", "without_columns"]

_CAPS_AT_ONCE = 10

router = APIRouter(prefix="/account", tags=["account"], responses=PROBLEMS | ACCESS_PROBLEMS, route_class=JsonRoute)


@router.post(
    "/exact",
    operation_id="accountExact",
    summary="Exact (ε, δ) of a mechanism",
    dependencies=[needs("account")],
)
async def account_exact(
    request: Request, body: Annotated[ExactRequest, Body(openapi_examples=EXACT_EXAMPLES)]
) -> AccountAnswer:
    """The smallest δ at ε, or the smallest ε at δ, of a Gaussian sparse histogram: exact, and rounded up."""
    services = services_of(request)
    if body.theorem:
        _check_evaluations(services, body)
    mechanism = await _mechanism(request, services, body)
    points = await _points(request, services, EXACT, mechanism, body)
    if body.theorem:
        shown = await in_pool(request, services.accounting, _with_theorem, mechanism, points)
        return _answer("exact", mechanism, points[0].mu, shown)
    return await _encoded(request, services, "exact", mechanism, points)  # type: ignore[return-value]


@router.post(
    "/add-deltas",
    operation_id="accountAddDeltas",
    summary="(ε, δ) by adding the deltas",
    dependencies=[needs("account")],
)
async def account_add_deltas(
    request: Request, body: Annotated[AccountRequest, Body(openapi_examples=ACCOUNT_EXAMPLES)]
) -> AccountAnswer:
    """The over-estimate of earlier work, for comparison: δ_infinite + δ_gaussian."""
    services = services_of(request)
    mechanism = await _mechanism(request, services, body)
    points = await _points(request, services, ADD_DELTAS, mechanism, body)
    return await _encoded(request, services, "add-deltas", mechanism, points)  # type: ignore[return-value]


@slimmed.register
def _(body: AccountRequest, most_work: int) -> AccountRequest:
    check_work(most_work, "/mechanism/aggregates", work_of(body.mechanism), FEWER_COLUMNS)
    return body.model_copy(update={"mechanism": without_columns(body.mechanism)})


def without_columns(mechanism: PostedMechanism) -> PostedMechanism:
    """The same privacy with μ₀ in place of the columns: little to send to another process."""
    if not isinstance(mechanism.aggregates, ColumnsIn):
        return mechanism
    return type(mechanism).model_validate(mechanism_to_json(mechanism.to_domain().without_columns))


async def _mechanism(request: Request, services: Services, body: AccountRequest) -> Mechanism:
    work = work_of(body.mechanism)
    check_work(services.settings.max_work, "/mechanism/aggregates", work, FEWER_COLUMNS)
    return (await services.to_domain(request, body.mechanism, work, services.accounting)).without_columns


async def _points(
    request: Request, services: Services, accounting: Accounting, mechanism: Mechanism, body: AccountRequest
) -> list[Point]:
    variable, values = body.query()
    if len(values) > services.settings.max_curve_points:
        raise LimitExceeded(f"/{variable}", f"must have at most {services.settings.max_curve_points} items")
    if mechanism.caps and (variable == "delta" or min(values) < ENOUGH_EPSILON or len(mechanism.caps) > _CAPS_AT_ONCE):
        work = points_work(len(mechanism.caps), len(values))
        check_work(services.settings.max_work, f"/{variable}", work, "give fewer points, or fewer caps")
        return await in_pool(
            request, services.accounting, _capped_points, accounting is EXACT, mechanism, variable, values
        )
    point = services.cache.point
    series = (point(accounting, mechanism, variable, value) for value in values)
    return await in_slices(request, series, services.settings.heavy_seconds)


def _capped_points(is_exact: bool, mechanism: Mechanism, variable: Variable, values: list[float]) -> list[Point]:
    """Points that may take a search each: too long for the event loop."""
    accounting = EXACT if is_exact else ADD_DELTAS
    return [evaluate(accounting, mechanism, variable, value) for value in values]


def _check_evaluations(services: Services, body: AccountRequest) -> None:
    most, c_u, points = services.settings.max_theorem_evaluations, body.mechanism.c_u, len(body.query()[1])
    if c_u * points > most:
        raise LimitExceeded("/theorem", f"needs c_u times the number of points to be at most {most}")
    check_work(
        services.settings.max_work,
        "/theorem",
        theorem_work(c_u, points, caps_of(body.mechanism)),
        "give fewer points, or a smaller c_u",
    )


def _with_theorem(mechanism: Mechanism, points: list[Point]) -> list[PointOut]:
    return [_point_with_theorem(mechanism, point) for point in points]


def _point_with_theorem(mechanism: Mechanism, point: Point) -> PointOut:
    if point.epsilon is None or point.delta_gaussian is None:
        return PointOut.model_validate(point)
    from gsh.accounting import theorem  # noqa: PLC0415 - only workers need SciPy, which takes a fifth of a second to load

    terms = theorem.evaluate(mechanism, point.epsilon)
    closed_form = at_epsilon(EXACT, mechanism, point.epsilon).delta
    t1, t2, t3 = (TermOut.model_validate(term) for term in (terms.t1, terms.t2, terms.t3))
    shown = TheoremOut(t1=t1, t2=t2, t3=t3, delta=terms.delta, agrees=terms.delta == closed_form)
    return PointOut.model_validate(point).model_copy(update={"theorem": shown})


async def _encoded(
    request: Request, services: Services, accounting: AccountingName, mechanism: Mechanism, points: list[Point]
) -> bytes:
    """AccountAnswer as JSON, encoded in slices: ten thousand points at once would delay other requests.

    The numbers are certified, so no model checks them again: that takes a fifth of the time of a request.
    """
    encoded = await in_slices(request, map(_encoded_point, points), services.settings.heavy_seconds)
    head = to_json({"accounting": accounting, "mechanism": _shown(mechanism, points[0].mu)})
    return b'%b,"points":[%b]}' % (head[:-1], b",".join(encoded))


def _encoded_point(point: Point) -> bytes:
    """PointOut without the theorem."""
    shown = point._asdict()
    del shown["mu"]
    return to_json(shown)


def _answer(accounting: AccountingName, mechanism: Mechanism, mu: float, points: list[PointOut]) -> AccountAnswer:
    return AccountAnswer(accounting=accounting, mechanism=MechanismOut(**_shown(mechanism, mu)), points=points)


def _shown(mechanism: Mechanism, mu: float) -> dict[str, Any]:
    """The fields of MechanismOut."""
    shown = {
        "c_u": mechanism.c_u,
        "tau": mechanism.tau,
        "tau_star": mechanism.tau_star,
        "sigma": mechanism.sigma,
        "tau_gap": mechanism.tau_gap,
        "mu_0": mechanism.costs.mu_0,
    }
    capped = capped_to_json(mechanism.costs.capped)
    return shown | ({"capped": capped} if capped else {}) | {"mu": mu}
