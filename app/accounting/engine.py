"""POST /account/engine: the privacy of a sparse histogram that another engine makes."""

import math
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Body, Request

from app.accounting.schemas.engine import ENGINE_EXAMPLES, ClaimOut, EngineAnswer, EngineRequest
from app.http.auth import needs
from app.http.json_route import JsonRoute
from app.http.problems import ACCESS_PROBLEMS, PROBLEMS
from app.http.services import services_of
from app.schemas.mechanism import MechanismIn
from app.workers.work_bounds import check_work, engine_work
from gsh.accounting.engines.presets import PRESETS
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
    tool = None if body.preset is None else PRESETS[body.preset]
    kind = body.noise.kind if body.noise is not None else None
    if kind is None:
        kind = "laplace" if tool is None or tool.noise is None else tool.noise
    is_chosen = tool is not None and tool.chosen is not None
    work = engine_work(kind, body.c_u, needs_search=body.delta is not None and not is_chosen)
    check_work(services.settings.max_work, "/c_u", work, "ask for δ at an ε, or give a smaller c_u")
    return await services.made(request, work, _answered, body)


_PLACES = (
    ("noise", "/noise/kind"),
    ("scale", "/noise/scale"),
    *(
        (name, f"/{name}")
        for name in ("preset", "c_u", "tau", "threshold", "keeps", "l_inf", "l1", "l2", "seed", "epsilon", "delta")
    ),
)


def _answered(body: EngineRequest) -> EngineAnswer:
    with renamed(*_PLACES):
        found = engine(
            preset=body.preset,
            noise=None if body.noise is None else body.noise.kind,
            scale=None if body.noise is None else body.noise.scale,
            c_u=body.c_u,
            tau=body.tau,
            threshold=body.threshold,
            keeps=body.keeps,
            l_inf=body.l_inf,
            l1=body.l1,
            l2=body.l2,
            seed=body.seed,
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
        noise=found.noise,
        scale=found.scale,
        threshold=found.threshold,
        keeps=found.keeps,
        charge_refusal=found.charge_refusal,
        claims=[ClaimOut(**asdict(each)) for each in found.claims],
    )
