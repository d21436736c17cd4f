"""POST /bound: the SQL query that bounds each user, for the platform's own engine."""

from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter, Body, Request

from app.accounting.schemas.bounding import BOUND_EXAMPLES, BoundAnswer, BoundRequest, EventsIn, SumIn
from app.errors import InvalidRequest
from app.http.auth import needs
from app.http.json_route import JsonRoute
from app.http.problems import ACCESS_PROBLEMS, PROBLEMS
from app.http.services import services_of
from app.http.workload import in_pool
from gsh.accounting.mechanism import Mechanism
from gsh.errors import renamed
from gsh.events.bounding import commented_query, default_kinds
from gsh.events.dialects import DIALECTS
from gsh.events.lots import new_salt
from gsh.events.plan import Plan, make_plan
from gsh.events.terms import terms_for

__all__ = ["router"]

router = APIRouter(tags=["release"], responses=PROBLEMS | ACCESS_PROBLEMS, route_class=JsonRoute)

_IN_MEASURES = {
    "sums": {"sums": "", "units": "/unit", "caps": "/groups"},
    "events": {"events": "/most", "caps": "/groups"},
    "means": {"means": "", "units": "/unit", "caps": "/groups"},
}
"""The parameters of the library that a list of measures has, and where each is in an item."""


@router.post(
    "/bound",
    operation_id="bound",
    summary="The query that bounds each user",
    dependencies=[needs("account")],
)
async def post_bound(
    request: Request, body: Annotated[BoundRequest, Body(openapi_examples=BOUND_EXAMPLES)]
) -> BoundAnswer:
    """The SQL query that turns raw events into groups, and enforces C_u, τ, the ranges and the caps of columns.

    Run it on your own engine, and send its result to `/release/table`. Sums are whole numbers of their unit. The query
    adds no noise, unless there is a `mechanism`: then the engine adds it and drops small groups, and the result is
    private. Charge it first (`/budgets/{id}/charges`). The service never sees the events.
    """
    return await in_pool(request, services_of(request).accounting, _answer, body)


def _answer(body: BoundRequest) -> BoundAnswer:
    plan = _plan(body)
    kinds = default_kinds(plan)
    needed: list[tuple[str, str, float | None]] = [
        ("user", plan.user, None),
        *(("key", name, None) for name in plan.by),
    ]
    needed += [("sum", name, each.scale) for each, name in plan.sources]
    with renamed(*_places(body)):
        noise = None if body.mechanism is None else terms_for(plan, mechanism=body.mechanism.to_domain()).only
        assert noise is None or isinstance(noise, Mechanism)
        query = commented_query(plan, body.dialect, body.source, noise)
    return BoundAnswer.model_validate(
        {
            "dialect": body.dialect,
            "is_executed": DIALECTS[body.dialect].is_executed,
            "query": query,
            "columns": [{"name": name, "role": role, "type": kinds[name], "unit": unit} for role, name, unit in needed],
            "salt": plan.salt,
            "plan_digest": plan.digest,
        }
    )


def _plan(body: BoundRequest) -> Plan:
    measures: list[SumIn | EventsIn] = [*body.sums, *body.events, *body.means]
    for field in _IN_MEASURES:
        names = [each.name for each in getattr(body, field)]
        if len(set(names)) != len(names):
            raise InvalidRequest(f"/{field}", "must have unique names")
    with renamed(*_places(body)):
        return make_plan(
            user=body.user,
            by=body.by,
            sums={each.name: (each.lower, each.upper) for each in body.sums},
            events={each.name: each.most for each in body.events},
            means={each.name: (each.lower, each.upper) for each in body.means},
            units={each.name: each.unit for each in (*body.sums, *body.means) if each.unit is not None},
            caps={each.name: each.groups for each in measures if each.groups is not None},
            c_u=body.c_u,
            tau=body.tau,
            salt=new_salt() if body.salt is None else body.salt,
            types=body.types,
        )


def _places(body: BoundRequest) -> Iterator[tuple[str, str]]:
    """The library names a measure; the body has it at a place. Other parameters have the same names in both."""
    for listed, parameters in _IN_MEASURES.items():
        for place, each in enumerate(getattr(body, listed)):
            for parameter, field in parameters.items():
                yield f"{parameter}/{each.name}", f"/{listed}/{place}{field}"
    yield from ((f"types/{name}", "/types") for name in body.types or ())
    yield from ((name, f"/{name}") for name in BoundRequest.model_fields)
