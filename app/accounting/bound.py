"""POST /bound: the SQL query that bounds each user, for the platform's own engine."""

from typing import Annotated

from fastapi import APIRouter, Body, Request

from app.accounting.schemas.bounding import BOUND_EXAMPLES, BoundAnswer, BoundRequest, SumIn
from app.errors import InvalidRequest
from app.http.auth import needs
from app.http.json_route import JsonRoute
from app.http.problems import ACCESS_PROBLEMS, PROBLEMS
from app.http.services import services_of
from app.http.workload import in_pool
from gsh.accounting.errors import InvalidParameter
from gsh.events.dialects import DIALECTS
from gsh.events.lots import new_salt
from gsh.events.plan import Plan, make_plan
from gsh.events.query_text import commented_query, default_kinds

__all__ = ["router"]

router = APIRouter(tags=["release"], responses=PROBLEMS | ACCESS_PROBLEMS, route_class=JsonRoute)

_IN_A_SUM = {"sums": "", "units": "/unit", "caps": "/groups"}


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
    adds no noise. The service never sees the events.
    """
    return await in_pool(request, services_of(request).accounting, _answer, body)


def _answer(body: BoundRequest) -> BoundAnswer:
    plan = _plan(body)
    kinds = default_kinds(plan)
    needed: list[tuple[str, str, float | None]] = [
        ("user", plan.user, None),
        *(("key", name, None) for name in plan.by),
    ]
    needed += [("sum", column.name, column.scale) for column in plan.sums]
    try:
        query = commented_query(plan, body.dialect, body.source)
    except InvalidParameter as error:
        raise _pointed(error, body.sums) from None
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
    if len({each.name for each in body.sums}) != len(body.sums):
        raise InvalidRequest("/sums", "must have unique names")
    try:
        return make_plan(
            user=body.user,
            by=body.by,
            sums={each.name: (each.lower, each.upper) for each in body.sums},
            units={each.name: each.unit for each in body.sums if each.unit is not None},
            caps={each.name: each.groups for each in body.sums if each.groups is not None},
            c_u=body.c_u,
            tau=body.tau,
            salt=new_salt() if body.salt is None else body.salt,
            types=body.types,
        )
    except InvalidParameter as error:
        raise _pointed(error, body.sums) from None


def _pointed(error: InvalidParameter, sums: list[SumIn]) -> InvalidRequest:
    """The library names a sum; the body has it at a place. Other parameters have the same names in both."""
    parameter, _, name = error.pointer.partition("/")
    places = [place for place, each in enumerate(sums) if each.name == name]
    if parameter in _IN_A_SUM and places:
        return InvalidRequest(f"/sums/{places[0]}{_IN_A_SUM[parameter]}", error.detail)
    if parameter == "by" and name:
        return InvalidRequest(f"/by/{name}", error.detail)
    return InvalidRequest(f"/{parameter}", error.detail)
