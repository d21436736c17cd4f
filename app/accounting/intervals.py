"""POST /intervals: what published numbers mean."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from fastapi import APIRouter, Body, Request
from numpy.typing import NDArray
from pydantic import GetPydanticSchema

from app.accounting.published import shown
from app.accounting.schemas.account import FEWER_COLUMNS
from app.accounting.schemas.intervals import (
    INTERVALS_EXAMPLES,
    IntervalsAnswer,
    IntervalsRequest,
    RatioOut,
    TotalOut,
    TotalsOut,
)
from app.errors import InvalidRequest
from app.http.auth import needs
from app.http.bodies import BodyLimit
from app.http.json_route import Encoded, JsonRoute, parsed
from app.http.json_text import decoded_size, most_decoded
from app.http.problems import ACCESS_PROBLEMS, PROBLEMS
from app.http.services import services_of
from app.http.workload import in_pool
from app.workers.work_bounds import check_work, work_of
from gsh.accounting.mechanism import AnyMechanism
from gsh.accuracy.bounds import centred
from gsh.certificate import bounds_of
from gsh.errors import TooManyGroups, renamed
from gsh.wire import places_in_request

if TYPE_CHECKING:
    from gsh.accuracy.intervals import Interval
    from gsh.library.accuracy import Totals

__all__ = ["router"]


class _IntervalsRoute(JsonRoute):
    body_limit = BodyLimit("max_intervals_bytes", at_once=2, advice="; give fewer groups at once")

    async def answer(self, request: Request, content: bytes) -> bytes | Encoded:
        """A worker reads the body, so the endpoint gets the bytes."""
        answer: Encoded = await self.endpoint(request, content)
        return answer


router = APIRouter(tags=["accuracy"], responses=PROBLEMS | ACCESS_PROBLEMS, route_class=_IntervalsRoute)

_Content = Annotated[
    bytes,
    GetPydanticSchema(lambda _bytes, handler: handler(IntervalsRequest)),
    Body(openapi_examples=INTERVALS_EXAMPLES),
]
"""The bytes of a body, with the schema of what is in them."""


@router.post(
    "/intervals",
    operation_id="intervals",
    summary="Intervals for published numbers",
    dependencies=[needs("account")],
    response_model=IntervalsAnswer,
)
async def post_intervals(request: Request, body: _Content) -> Encoded:
    """Where the true numbers of published groups are, at a level of confidence.

    A group is published only if its noisy count reached τ\\*, so near τ\\* published counts are too large. These
    intervals take that into account: they cover the true count of a published group with the stated probability. With
    `total`, also the sum over these groups. Dropped groups are not in it. With `means` and `ratios`, also means per
    user and ratios of columns. It uses published numbers only, and costs no privacy.
    """
    settings = services_of(request).settings
    bounds = most_decoded(settings.max_intervals_bytes), settings.max_release_groups, settings.max_work
    return Encoded(await in_pool(request, services_of(request).accounting, _answer, body, *bounds))


def _answer(content: bytes, most_bytes: int, most_groups: int, most_work: int) -> bytes:
    """In a worker: the whole answer."""
    if decoded_size(content) > most_bytes:
        raise TooManyGroups("", "must have fewer groups or columns")
    body = parsed(IntervalsRequest, content)
    if len(body.counts) > most_groups:
        raise TooManyGroups("/counts", f"must have at most {most_groups} items")
    check_work(most_work, "/mechanism/aggregates", work_of(body.mechanism), FEWER_COLUMNS)
    mechanism = body.mechanism.to_domain()
    _check_names(body, mechanism)
    with renamed(*((name, f"/{name}") for name in IntervalsRequest.model_fields), *places_in_request()):
        return _told(body, mechanism).model_dump_json().encode()


def _check_names(body: IntervalsRequest, mechanism: AnyMechanism) -> None:
    """Unknown names are not repeated: the library would name them."""
    columns = {*mechanism.column_names}
    if not body.values.keys() <= columns:
        raise InvalidRequest("/values", "must have columns of aggregates/names only")
    if not body.units.keys() <= columns:
        raise InvalidRequest("/units", "must have columns of aggregates/names only")
    if not {name if centred(name) not in columns else centred(name) for name in body.means} <= body.values.keys():
        raise InvalidRequest("/means", "must have names of values, or names whose <name>_centred is one of values")
    if not {name for pair in body.ratios.values() for name in pair} <= {*body.values, "count"}:
        raise InvalidRequest("/ratios", "must have columns of values only, and count")


def _told(body: IntervalsRequest, mechanism: AnyMechanism) -> IntervalsAnswer:
    from gsh.library import accuracy  # noqa: PLC0415 - app/accounting/published.py says why
    from gsh.library.means import means, ratios  # noqa: PLC0415

    given: dict[str, Any] = {
        "counts": np.array(body.counts, np.float64),
        "values": {name: np.array(column, np.float64) for name, column in body.values.items()},
        "level": body.level,
        "is_rounded": body.is_rounded,
        "units": body.units,
    }
    found = accuracy.intervals(mechanism, **given)
    totals = accuracy.total(mechanism, **given) if body.total else None
    ranges = {name: (least, most) for name, (least, most) in body.means.items()}
    pairs = {name: (first, second) for name, (first, second) in body.ratios.items()}
    return IntervalsAnswer.model_construct(
        level=body.level,
        counts=shown(found.counts),
        values={name: shown(column) for name, column in found.values.items()},
        intervals_cover=bounds_of(mechanism)["intervals_cover"],
        total=None if totals is None else _totals(totals),
        means=_ratios(means(mechanism, means=ranges, **given) if ranges else None),
        ratios=_ratios(ratios(mechanism, ratios=pairs, **given) if pairs else None),
    )


def _totals(found: "Totals") -> TotalsOut:
    one, *others = (
        TotalOut.model_validate(each, from_attributes=True) for each in (found.counts, *found.values.values())
    )
    return TotalsOut(counts=one, values=dict(zip(found.values, others, strict=True)))


def _ratios(found: "Mapping[str, Interval] | None") -> dict[str, RatioOut] | None:
    if found is None:
        return None
    return {
        name: RatioOut.model_construct(low=_known(each.low), estimate=_known(each.estimate), high=_known(each.high))
        for name, each in found.items()
    }


def _known(numbers: NDArray[np.float64]) -> list[float | None]:
    return [number if math.isfinite(number) else None for number in numbers.tolist()]
