"""POST /compare: what each way of accounting asks for the same target."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from pydantic import Field

from app.api.auth import needs
from app.api.dependencies import services_of
from app.api.json_route import JsonRoute
from app.api.problems import ACCESS_PROBLEMS, PROBLEMS
from app.api.schemas.mechanism import MechanismIn, OutlineIn, Strict
from app.api.workload import in_pool
from app.service.work_bounds import check_work, comparison_work
from gsh.accounting.calibration.comparison import ComparedName, Price, compare
from gsh.accounting.calibration.draft import Target

__all__ = ["router"]

router = APIRouter(tags=["calibrate"], responses=PROBLEMS | ACCESS_PROBLEMS, route_class=JsonRoute)

_SENTENCES: dict[ComparedName, str] = {
    "exact": "δ = max(δ_infinite, δ_gaussian): the smallest σ and the smallest τ*, both at once.",
    "add-deltas": "δ = δ_infinite + δ_gaussian, shared so that τ* is the smallest at any σ.",
    "half-split": "δ/2 for the noise and δ/2 for the threshold: the smallest σ and τ* for each half.",
    "zcdp": "δ = δ_infinite + the δ that zCDP has for the noise, shared so that τ* is the smallest at any σ.",
}


class CompareRequest(Strict):
    """A mechanism without noise and threshold, and the (ε, δ) it shall meet."""

    mechanism: OutlineIn = Field(
        title="Mechanism",
        description="What does not depend on the accounting: sigma and tau_star are solved for, by each route.",
        examples=[{"c_u": 51914, "tau": 1}],
    )
    epsilon: float = Field(ge=0, title="ε", description="The ε to meet.", examples=[0.349])
    delta: float = Field(gt=0, lt=1, title="δ", description="The δ to meet.", examples=[1e-5])


class Ask(Strict):
    """What a route asks: certified by its own account, and beside what exact accounting asks."""

    mechanism: MechanismIn = Field(
        title="Mechanism",
        description="Complete, with the route's sigma and tau_star; the next double below that tau_star fails.",
        examples=[{"c_u": 51914, "tau": 1, "tau_star": 14866.52624169108, "sigma": 2334.737917977292}],
    )
    delta: float = Field(
        title="δ",
        description="What the route charges at ε, at most the target's δ; rounded up.",
        examples=[9.999999999999977e-06],
    )
    delta_gaussian: float = Field(
        title="δ_gaussian", description="The part of it that the noise takes; rounded up.", examples=[5e-06]
    )
    delta_infinite: float = Field(
        title="δ_infinite", description="The part of it that the threshold takes; rounded up.", examples=[5e-06]
    )
    least_sigma: float = Field(
        title="σ_min",
        description="The smallest σ whose noise alone fits; with less, no threshold helps on this route.",
        examples=[2334.737917977292],
    )
    sigma_ratio: float = Field(
        title="σ/σ_exact", description="How many times the noise of exact accounting.", examples=[1.0476805]
    )
    tau_star_ratio: float = Field(
        title="τ*/τ*_exact", description="How many times the threshold of exact accounting.", examples=[1.0656205]
    )


class RouteOut(Strict):
    """One way of accounting, and what it asks."""

    route: ComparedName = Field(title="Route", description="The way of accounting.", examples=["half-split"])
    sentence: str = Field(
        title="Sentence",
        description="How the route makes δ of its two parts, and what is smallest in its answer.",
        examples=[_SENTENCES["half-split"]],
    )
    ask: Ask | None = Field(
        title="Ask", description="Null where the route cannot meet the target at all.", examples=[None]
    )


class CompareResponse(Strict):
    """The routes, with exact accounting first."""

    epsilon: float = Field(title="ε", description="The ε of the target.", examples=[0.349])
    delta: float = Field(title="δ", description="The δ of the target.", examples=[1e-5])
    routes: list[RouteOut] = Field(title="Routes", description="One per way of accounting.", examples=[[]])


_EXAMPLES: dict[str, Any] = {
    "case study": {
        "summary": "The URL case study of the paper",
        "value": {"mechanism": {"c_u": 51914, "tau": 1}, "epsilon": 0.349, "delta": 1e-05},
    },
    "small app": {
        "summary": "A user is in one group only",
        "value": {"mechanism": {"c_u": 1, "tau": 1}, "epsilon": 1, "delta": 1e-06},
    },
    "columns": {
        "summary": "With further columns, whose noise scales with σ",
        "value": {
            "mechanism": {
                "c_u": 50,
                "tau": 10,
                "aggregates": {
                    "names": ["likes", "shares"],
                    "relative_covariance": [[1, 0], [0, 0.25]],
                    "sensitivity": {"kind": "box", "lower": [0, 0], "upper": [1, 1]},
                },
            },
            "epsilon": 1,
            "delta": 1e-06,
        },
    },
    "fixed": {
        "summary": "With columns whose noise is given, and leaves little",
        "description": "Two of the routes cannot meet the target at all: the columns' noise alone exceeds their share.",
        "value": {"mechanism": {"c_u": 100, "tau": 1, "aggregates": {"mu_0": 0.0236}}, "epsilon": 1, "delta": 1e-06},
    },
}


@router.post(
    "/compare",
    operation_id="compare",
    summary="What other accountings would ask",
    dependencies=[needs("account")],
)
async def compare_routes(
    request: Request, body: Annotated[CompareRequest, Body(openapi_examples=_EXAMPLES)]
) -> CompareResponse:
    """The noise and the threshold that each way of accounting asks for one target, each certified.

    Exact accounting and the half-and-half split have a smallest σ and τ\\*. The others share δ between noise and
    threshold; their answer is the pair with the smallest τ\\* at any σ.
    """
    services, draft = services_of(request), body.mechanism.draft
    work = comparison_work(draft.work, is_relative=draft.is_relative)
    check_work(services.settings.max_work, "/mechanism/aggregates", work, "give fewer columns or vectors, or mu_0")
    return await in_pool(request, services.accounting, _asked, body, Target(body.epsilon, body.delta))


def _asked(body: CompareRequest, target: Target) -> CompareResponse:
    prices = compare(body.mechanism.draft.to_domain(), target)
    exact = prices["exact"]
    assert exact is not None
    routes = [
        RouteOut(route=route, sentence=_SENTENCES[route], ask=None if price is None else _ask(body, price, exact))
        for route, price in prices.items()
    ]
    return CompareResponse(epsilon=body.epsilon, delta=body.delta, routes=routes)


def _ask(body: CompareRequest, price: Price, exact: Price) -> Ask:
    assert price.point.delta_gaussian is not None
    return Ask(
        mechanism=body.mechanism.draft.completed(price.mechanism),
        delta=price.point.delta,
        delta_gaussian=price.point.delta_gaussian,
        delta_infinite=price.point.delta_infinite,
        least_sigma=price.least_sigma,
        sigma_ratio=price.mechanism.sigma / exact.mechanism.sigma,
        tau_star_ratio=price.mechanism.tau_star / exact.mechanism.tau_star,
    )
