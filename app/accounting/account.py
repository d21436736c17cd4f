"""POST /account/exact and POST /account/add-deltas: the privacy of a mechanism, or of several tables in one release."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from pydantic_core import to_json

from app.accounting.posted import check_columns, naming, posted_release, tables_without_columns, without_columns
from app.accounting.schemas.account import (
    ACCOUNT_EXAMPLES,
    EXACT_EXAMPLES,
    AccountAnswer,
    AccountRequest,
    ExactRequest,
    PointOut,
    TablesTermOut,
    TablesTheoremOut,
    TermOut,
    TheoremOut,
)
from app.errors import LimitExceeded
from app.http.auth import needs
from app.http.json_route import JsonRoute, slimmed
from app.http.problems import ACCESS_PROBLEMS, PROBLEMS
from app.http.services import Services, services_of
from app.http.workload import in_pool, in_slices
from app.schemas.survey import read_survey
from app.workers.work_bounds import (
    check_work,
    cuts_of,
    needs_search,
    points_work,
    surveyed_points_work,
    take_long,
    theorem_work,
)
from gsh.accounting.accountings import ADD_DELTAS, EXACT, Accounting, AccountingName, Point, at_epsilon
from gsh.accounting.curve_cache import Variable, evaluate
from gsh.accounting.frontier import number_of_splits
from gsh.accounting.mechanism import (
    AnyMechanism,
    FixedTables,
    Joint,
    Mechanism,
    Release,
    Surveyed,
    mechanisms_of,
    surveyed,
)
from gsh.wire import capped_to_json, priced_tables_to_json

__all__ = ["router"]

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
    with naming(body.tables):
        tables = (await posted_release(request, services, body.mechanism, body.tables)).without_columns
        if body.theorem:
            _check_evaluations(services, body, tables)
        points = await _points(request, services, EXACT, surveyed(read_survey(body.survey), tables), body)
        if body.theorem:
            as_tables = body.tables is not None or not isinstance(tables, Mechanism)
            shown = await in_pool(request, services.accounting, _with_theorem, tables, points, as_tables)
            return AccountAnswer(accounting="exact", points=shown, **_shown(body, tables, points[0].mu))
        return await _encoded(request, services, "exact", body, tables, points)  # type: ignore[return-value]


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
    with naming(body.tables):
        tables = (await posted_release(request, services, body.mechanism, body.tables)).without_columns
        points = await _points(request, services, ADD_DELTAS, surveyed(read_survey(body.survey), tables), body)
        return await _encoded(request, services, "add-deltas", body, tables, points)  # type: ignore[return-value]


@slimmed.register
def _(body: AccountRequest, most_work: int) -> AccountRequest:
    check_columns(most_work, body.mechanism, body.tables)
    if body.tables is None:
        assert body.mechanism is not None
        return body.model_copy(update={"mechanism": without_columns(body.mechanism)})
    return body.model_copy(update={"tables": tables_without_columns(body.tables)})


async def _points(
    request: Request, services: Services, accounting: Accounting, release: Release, body: AccountRequest
) -> list[Point]:
    variable, values = body.query()
    if len(values) > services.settings.max_curve_points:
        raise LimitExceeded(f"/{variable}", f"must have at most {services.settings.max_curve_points} items")
    cuts = cuts_of(release)
    if accounting is EXACT and isinstance(release, Surveyed):
        work = surveyed_points_work(release, len(values), by_delta=variable == "delta")
        check_work(services.settings.max_work, f"/{variable}", work, "give fewer points, or fewer tables")
        return await in_pool(request, services.accounting, _searched_points, True, release, variable, values)
    is_searched = needs_search(values[0], None) if variable == "delta" else needs_search(None, min(values))
    if take_long(cuts, needs_search=is_searched):
        work = points_work(cuts, len(values), needs_search=is_searched)
        check_work(services.settings.max_work, f"/{variable}", work, "give fewer points, or fewer tables or caps")
        return await in_pool(
            request, services.accounting, _searched_points, accounting is EXACT, release, variable, values
        )
    point = services.cache.point
    series = (point(accounting, release, variable, value) for value in values)
    return await in_slices(request, series, services.settings.heavy_seconds)


def _searched_points(is_exact: bool, release: Release, variable: Variable, values: list[float]) -> list[Point]:
    """Points that may take a search each: too long for the event loop."""
    accounting = EXACT if is_exact else ADD_DELTAS
    return [evaluate(accounting, release, variable, value) for value in values]


def _check_evaluations(services: Services, body: AccountRequest, release: Release) -> None:
    most, points = services.settings.max_theorem_evaluations, len(body.query()[1])
    splits = number_of_splits(release)
    if splits * points > most:
        each = "c_u" if body.tables is None else "the product of all c_u + 1"
        raise LimitExceeded("/theorem", f"needs {each} times the number of points to be at most {most}")
    work = theorem_work(splits, points, [len(table.caps) for table in mechanisms_of(release)])
    check_work(services.settings.max_work, "/theorem", work, "give fewer points, or a smaller c_u")


def _with_theorem(release: FixedTables, points: list[Point], as_tables: bool) -> list[PointOut]:
    return [_point_with_theorem(release, point, as_tables) for point in points]


def _point_with_theorem(release: FixedTables, point: Point, as_tables: bool) -> PointOut:
    if point.epsilon is None or point.delta_gaussian is None:
        return PointOut.model_validate(point)
    from gsh.accounting import theorem  # noqa: PLC0415 - only workers need SciPy, which takes a fifth of a second to load

    closed_form = at_epsilon(EXACT, release, point.epsilon).delta
    shown: TheoremOut | TablesTheoremOut
    if as_tables:
        splits = theorem.evaluate_tables(Joint(mechanisms_of(release)), point.epsilon)
        added, removed = (
            TablesTermOut(value=term.value, a_equal=list(term.a_equal)) for term in (splits.added, splits.removed)
        )
        agrees = splits.delta == closed_form
        shown = TablesTheoremOut(added=added, removed=removed, delta=splits.delta, agrees=agrees)
    else:
        assert isinstance(release, Mechanism)
        terms = theorem.evaluate(release, point.epsilon)
        t1, t2, t3 = (TermOut.model_validate(term) for term in (terms.t1, terms.t2, terms.t3))
        shown = TheoremOut(t1=t1, t2=t2, t3=t3, delta=terms.delta, agrees=terms.delta == closed_form)
    return PointOut.model_validate(point).model_copy(update={"theorem": shown})


async def _encoded(
    request: Request,
    services: Services,
    accounting: AccountingName,
    body: AccountRequest,
    release: FixedTables,
    points: list[Point],
) -> bytes:
    """AccountAnswer as JSON, encoded in slices: ten thousand points at once would delay other requests.

    The numbers are certified, so no model checks them again: that takes a fifth of the time of a request.
    """
    encoded = await in_slices(request, map(_encoded_point, points), services.settings.heavy_seconds)
    head = to_json({"accounting": accounting, **_shown(body, release, points[0].mu)})
    return b'%b,"points":[%b]}' % (head[:-1], b",".join(encoded))


def _encoded_point(point: Point) -> bytes:
    """PointOut without the theorem."""
    shown = point._asdict()
    del shown["mu"]
    return to_json(shown)


def _shown(body: AccountRequest, release: FixedTables, mu: float) -> dict[str, Any]:
    """What an AccountAnswer says of the request."""
    survey = {} if body.survey is None else {"survey": body.survey}
    if body.tables is None:
        assert not isinstance(release, Joint)
        return {"mechanism": _mechanism_out(release, mu), **survey}
    names = (table.name for table in body.tables)
    return survey | {"tables": priced_tables_to_json(dict(zip(names, mechanisms_of(release), strict=True))), "mu": mu}


def _mechanism_out(mechanism: AnyMechanism, mu: float) -> dict[str, Any]:
    """The fields of MechanismOut."""
    shown: dict[str, Any] = {"c_u": mechanism.c_u}
    if isinstance(mechanism, Mechanism):
        shown |= {"tau": mechanism.tau, "tau_star": mechanism.tau_star}
    shown["sigma"] = mechanism.sigma
    if isinstance(mechanism, Mechanism):
        shown["tau_gap"] = mechanism.tau_gap
    capped = capped_to_json(mechanism.costs.capped)
    return shown | {"mu_0": mechanism.costs.mu_0} | ({"capped": capped} if capped else {}) | {"mu": mu}
