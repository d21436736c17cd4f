"""POST /compare: the noise and the threshold that each accounting needs for the same target."""

from typing import Annotated

from fastapi import APIRouter, Body, Request

from app.api.auth import needs
from app.api.dependencies import services_of
from app.api.json_route import JsonRoute
from app.api.problems import ACCESS_PROBLEMS, PROBLEMS
from app.api.schemas.account import FEWER_COLUMNS
from app.api.schemas.compare import COMPARE_EXAMPLES, EXPLANATIONS, CompareAnswer, ComparedOut, CompareRequest, PriceOut
from app.api.workload import in_pool
from app.service.work_bounds import check_work, comparison_work
from gsh.accounting.calibration.comparison import Price, compare
from gsh.accounting.calibration.draft import Target

__all__ = ["router"]

router = APIRouter(tags=["calibrate"], responses=PROBLEMS | ACCESS_PROBLEMS, route_class=JsonRoute)


@router.post(
    "/compare",
    operation_id="compare",
    summary="What other accountings need",
    dependencies=[needs("account")],
)
async def compare_accountings(
    request: Request, body: Annotated[CompareRequest, Body(openapi_examples=COMPARE_EXAMPLES)]
) -> CompareAnswer:
    """The noise and the threshold that each accounting needs for one target, each certified.

    Exact accounting and the half-and-half split have a smallest σ and τ\\*. The others share δ between noise and
    threshold; their answer is the pair with the smallest τ\\* at any σ.
    """
    services, draft = services_of(request), body.mechanism.draft
    work = comparison_work(draft.work, is_relative=draft.is_relative)
    check_work(services.settings.max_work, "/mechanism/aggregates", work, FEWER_COLUMNS)
    return await in_pool(request, services.accounting, _compared, body, Target(body.epsilon, body.delta))


def _compared(body: CompareRequest, target: Target) -> CompareAnswer:
    prices = compare(body.mechanism.draft.to_domain(), target)
    priced = [
        ComparedOut(
            accounting=name, explanation=EXPLANATIONS[name], price=None if price is None else _price(body, price)
        )
        for name, price in prices.items()
    ]
    return CompareAnswer(epsilon=body.epsilon, delta=body.delta, accountings=priced)


def _price(body: CompareRequest, price: Price) -> PriceOut:
    assert price.point.delta_gaussian is not None
    return PriceOut(
        mechanism=body.mechanism.draft.completed(price.mechanism),
        delta=price.point.delta,
        delta_gaussian=price.point.delta_gaussian,
        delta_infinite=price.point.delta_infinite,
        least_sigma=price.least_sigma,
        sigma_ratio=price.sigma_ratio,
        tau_star_ratio=price.tau_star_ratio,
    )
