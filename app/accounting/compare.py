"""POST /compare: the noise and the threshold that each accounting needs for the same target."""

import math
from typing import Annotated

from fastapi import APIRouter, Body, Request

from app.accounting.schemas.account import FEWER_COLUMNS, FEWER_TABLES
from app.accounting.schemas.compare import (
    COMPARE_EXAMPLES,
    EXPLANATIONS,
    WAY_EXPLANATIONS,
    ColumnNoise,
    CompareAnswer,
    ComparedOut,
    CompareRequest,
    PriceOut,
    TablesPriceOut,
    WayOut,
    WithoutCaps,
)
from app.http.auth import needs
from app.http.json_route import JsonRoute
from app.http.problems import ACCESS_PROBLEMS, PROBLEMS
from app.http.services import services_of
from app.http.workload import in_pool
from app.schemas.mechanism import MechanismIn, TableDraftIn, read_table_drafts, tables_out
from app.workers.work_bounds import check_work, comparison_work, tables_comparison_work
from gsh.accounting.calibration.compared_tables import PricedTables, compare_tables
from gsh.accounting.calibration.comparison import PricedMechanism, compare, price_without_caps
from gsh.accounting.calibration.draft import Draft, Target
from gsh.accounting.mechanism import Mechanism

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
    threshold; their answer is the pair with the smallest τ\\* at any σ. If columns have caps
    of their own, so is the answer of exact accounting. Then the answer also says how much noise the caps save.

    For several tables the answer compares one release by shares with composition, with zCDP and with a certificate for
    each table, all with the same shares.
    """
    services, target = services_of(request), Target(body.epsilon, body.delta)
    most = services.settings.max_work
    if body.tables is not None:
        check_work(most, "/tables", tables_comparison_work(body.tables), FEWER_TABLES)
        return await in_pool(request, services.accounting, _compared_tables, body, body.tables, target)
    assert body.mechanism is not None
    check_work(most, "/mechanism/aggregates", comparison_work(body.mechanism), FEWER_COLUMNS)
    return await in_pool(request, services.accounting, _compared, body, target)


def _compared_tables(body: CompareRequest, tables: list[TableDraftIn], target: Target) -> CompareAnswer:
    drafts, shares = read_table_drafts(tables)
    prices = compare_tables(list(drafts.values()), body.shares or shares, target)

    def shown(price: PricedTables) -> TablesPriceOut:
        return TablesPriceOut(
            tables=tables_out(drafts, price.tables),
            delta=price.delta,
            sigma_ratios=list(price.sigma_ratios),
            tau_star_ratios=list(price.tau_star_ratios),
        )

    ways = [
        WayOut(way=way, explanation=WAY_EXPLANATIONS[way], price=None if price is None else shown(price))
        for way, price in prices.items()
    ]
    return CompareAnswer(epsilon=body.epsilon, delta=body.delta, accountings=None, ways=ways)


def _compared(body: CompareRequest, target: Target) -> CompareAnswer:
    assert body.mechanism is not None
    draft = body.mechanism.to_domain()
    prices = compare(draft, target)
    priced = [
        ComparedOut(accounting=name, explanation=EXPLANATIONS[name], price=None if price is None else _price(price))
        for name, price in prices.items()
    ]
    exact = prices["exact"]
    assert exact is not None  # compare raises if exact accounting cannot meet the target
    without = _without_caps(draft, target, exact.mechanism) if exact.mechanism.costs.capped else None
    return CompareAnswer(epsilon=body.epsilon, delta=body.delta, accountings=priced, ways=None, without_caps=without)


def _without_caps(draft: Draft, target: Target, capped: Mechanism) -> WithoutCaps:
    """What the caps save: the noise of every column, with and without them."""
    price = price_without_caps(draft, target, capped)
    rows = () if capped.aggregates is None else capped.aggregates.covariance
    noise = [math.sqrt(row[j]) for j, row in enumerate(rows)]
    ratios: tuple[float | None, ...] = (None,) * len(noise) if price is None else price.column_ratios
    columns = [
        ColumnNoise(name=name, noise=least, noise_without_caps=None if ratio is None else least * ratio, ratio=ratio)
        for name, least, ratio in zip(capped.column_names, noise, ratios, strict=True)
    ]
    return WithoutCaps(price=None if price is None else _price(price), columns=columns)


def _price(price: PricedMechanism) -> PriceOut:
    return PriceOut(
        mechanism=MechanismIn.of(price.mechanism),
        least_sigma=price.least_sigma,
        sigma_ratio=price.sigma_ratio,
        tau_star_ratio=price.tau_star_ratio,
        **price.point._asdict(),
    )
