"""POST /account/engine: the privacy of a sparse histogram that another engine makes."""

import math
from typing import Annotated

from fastapi import APIRouter, Body, Request

from app.accounting.schemas.engine import ENGINE_EXAMPLES, EngineAnswer, EngineRequest
from app.http.auth import needs
from app.http.json_route import JsonRoute
from app.http.problems import ACCESS_PROBLEMS, PROBLEMS
from app.http.services import services_of
from app.schemas.mechanism import MechanismIn
from app.workers.work_bounds import check_work, engine_work
from gsh.errors import renamed
from gsh.library.engines import engine

__all__ = ["router"]

router = APIRouter(prefix="/account", tags=["account"], responses=PROBLEMS | ACCESS_PROBLEMS, route_class=JsonRoute)


@router.post(
    "/engine",
    operation_id="accountEngine",
    summary="(ε, δ) of another engine",
    dependencies=[needs("account")],
)
async def account_engine(
    request: Request, body: Annotated[EngineRequest, Body(openapi_examples=ENGINE_EXAMPLES)]
) -> EngineAnswer:
    """The certified δ at ε, or ε at δ, of an engine with other noise or another test: Laplace, geometric, discrete or
    rounded Gaussian; ≥ or >.
    """
    services = services_of(request)
    work = engine_work(body.noise.kind, body.c_u, needs_search=body.delta is not None)
    check_work(services.settings.max_work, "/c_u", work, "ask for δ at an ε, or give a smaller c_u")
    return await services.made(request, work, _answered, body)


_PLACES = (
    ("noise", "/noise/kind"),
    ("scale", "/noise/scale"),
    *((name, f"/{name}") for name in ("c_u", "tau", "threshold", "keeps", "epsilon", "delta")),
)


def _answered(body: EngineRequest) -> EngineAnswer:
    with renamed(*_PLACES):
        found = engine(
            noise=body.noise.kind,
            scale=body.noise.scale,
            c_u=body.c_u,
            tau=body.tau,
            threshold=body.threshold,
            keeps=body.keeps,
            epsilon=body.epsilon,
            delta=body.delta,
        )
    return EngineAnswer(
        epsilon=found.epsilon if math.isfinite(found.epsilon) else None,
        delta=found.delta,
        delta_infinite=found.delta_infinite,
        delta_noise=found.delta_noise,
        groups_at_tau=found.groups_at_tau,
        exact=found.is_exact,
        method=found.method,
        as_mechanism=None if found.mechanism is None else MechanismIn.of(found.mechanism),
    )
