"""POST /utility: what a mechanism would publish of groups of given sizes."""

from typing import TYPE_CHECKING, Annotated

import numpy as np
from fastapi import APIRouter, Body, Request

from app.accounting.schemas.account import FEWER_COLUMNS
from app.accounting.schemas.utility import (
    UTILITY_EXAMPLES,
    ColumnNoiseOut,
    FalseGroups,
    PublishedGroups,
    PublishedVolume,
    RelativeError,
    SizeOut,
    TargetIn,
    UtilityAnswer,
    UtilityRequest,
)
from app.errors import InvalidRequest, LimitExceeded
from app.http.auth import needs
from app.http.json_route import JsonRoute
from app.http.problems import ACCESS_PROBLEMS, PROBLEMS
from app.http.services import Services, services_of
from app.http.workload import in_pool
from app.schemas.mechanism import MechanismIn
from app.workers.work_bounds import calibration_work, check_work, utility_work, work_of
from gsh.accounting.accountings import ADD_DELTAS, EXACT
from gsh.accounting.calibration.target import calibrate
from gsh.accounting.mechanism import Mechanism
from gsh.errors import renamed
from gsh.wire import places_in_request

if TYPE_CHECKING:
    from gsh.accuracy.utility import Utility

__all__ = ["router"]

router = APIRouter(tags=["accuracy"], responses=PROBLEMS | ACCESS_PROBLEMS, route_class=JsonRoute)


@router.post(
    "/utility",
    operation_id="utility",
    summary="What a mechanism would publish",
    dependencies=[needs("account")],
)
async def post_utility(
    request: Request, body: Annotated[UtilityRequest, Body(openapi_examples=UTILITY_EXAMPLES)]
) -> UtilityAnswer:
    """The expected groups and users that a mechanism publishes, how many groups are false, and how large errors are.

    The service draws no noise and keeps nothing. The answer depends on the sizes exactly: send public or made-up sizes,
    because an answer about true sizes is not private.
    """
    services = services_of(request)
    _check(services, body)
    return await _encoded(request, services, body)  # type: ignore[return-value]


def _check(services: Services, body: UtilityRequest) -> None:
    most, settings = services.settings.max_sizes, services.settings
    for name, numbers in (("sizes", body.sizes), ("times", body.times or [])):
        if len(numbers) > most:
            raise LimitExceeded(f"/{name}", f"must have at most {most} items")
    work = utility_work(len(body.sizes), len(body.quantiles))
    check_work(settings.max_work, "/sizes", work, "give fewer sizes or quantiles")
    if body.mechanism is not None:
        check_work(settings.max_work, "/mechanism/aggregates", work_of(body.mechanism), FEWER_COLUMNS)
    if body.target is not None:
        draft = body.target.mechanism
        if isinstance(draft.sigma, list):
            raise InvalidRequest("/target/mechanism/sigma", "must be one number")
        check_work(settings.max_work, "/target/mechanism/aggregates", calibration_work(draft), FEWER_COLUMNS)


async def _encoded(request: Request, services: Services, body: UtilityRequest) -> bytes:
    """A UtilityAnswer, encoded already."""
    return await in_pool(request, services.accounting, _told, body)


def _told(body: UtilityRequest) -> bytes:
    from gsh.accuracy.utility import utility  # noqa: PLC0415 - only workers need SciPy

    if body.mechanism is not None:
        mechanism = body.mechanism.to_domain()
    else:
        assert body.target is not None
        mechanism = _calibrated(body.target)
    times = None if body.times is None else np.array(body.times)
    with renamed(*((name, f"/{name}") for name in ("sizes", "times", "below", "quantiles"))):
        found = utility(mechanism, np.array(body.sizes), times, body.below, body.quantiles)
    return _answer(mechanism, found).model_dump_json().encode()


def _calibrated(target: TargetIn) -> Mechanism:
    accounting = EXACT if target.accounting == EXACT.name else ADD_DELTAS
    with renamed(*places_in_request("/target")):
        return calibrate(accounting, target.mechanism.to_domain(), target.target).mechanism


def _answer(mechanism: Mechanism, found: "Utility") -> UtilityAnswer:
    errors = found.relative_errors or [None] * len(found.quantiles)
    rows = zip(found.sizes.tolist(), found.times.tolist(), found.probabilities.tolist(), strict=True)
    return UtilityAnswer(
        mechanism=MechanismIn.of(mechanism),
        groups=PublishedGroups(
            total=found.all_groups,
            expected=found.groups,
            share=found.groups_share,
            standard_deviation=found.groups_deviation,
        ),
        volume=PublishedVolume(total=found.all_volume, expected=found.volume, share=found.volume_share),
        false_groups=FalseGroups(below=found.below, expected=found.false_groups, share=found.false_share),
        relative_errors=[
            RelativeError(quantile=quantile, error=error)
            for quantile, error in zip(found.quantiles, errors, strict=True)
        ],
        columns=[
            ColumnNoiseOut(
                name=each.name,
                standard_deviation=each.deviation,
                total_standard_deviation=each.total_deviation,
            )
            for each in found.columns
        ],
        sizes=[SizeOut(size=size, times=times, probability=probability) for size, times, probability in rows],
    )
