"""POST /intervals: what published numbers mean."""

from collections.abc import Mapping
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Body, Request
from numpy.typing import NDArray
from pydantic import GetPydanticSchema

from app.accounting.published import intervals_of
from app.accounting.schemas.account import FEWER_COLUMNS
from app.accounting.schemas.intervals import INTERVALS_EXAMPLES, IntervalsAnswer, IntervalsRequest, TotalOut, TotalsOut
from app.errors import InvalidRequest
from app.http.auth import needs
from app.http.bodies import BodyLimit
from app.http.json_route import Encoded, JsonRoute, parsed
from app.http.json_text import decoded_size, most_decoded
from app.http.problems import ACCESS_PROBLEMS, PROBLEMS
from app.http.services import services_of
from app.http.workload import in_pool
from app.workers.work_bounds import check_work, work_of
from gsh.accounting.grid import count_grid, value_grids
from gsh.accounting.mechanism import AnyMechanism
from gsh.certificate import bounds_of
from gsh.errors import TooManyGroups, pointer_part

__all__ = ["router"]

Doubles = NDArray[np.float64]


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
    `total`, also the sum over these groups. Dropped groups are not in it. It uses published numbers only, and costs no
    privacy.
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
    counts, values = _checked(body, mechanism)
    found = intervals_of(mechanism, counts, values, body.level)
    total = _totals(mechanism, counts, values, body.level) if body.total else None
    cover: str = bounds_of(mechanism)["intervals_cover"]
    answer = IntervalsAnswer.model_construct(**dict(found), intervals_cover=cover, total=total)
    return answer.model_dump_json().encode()


def _checked(body: IntervalsRequest, mechanism: AnyMechanism) -> tuple[Doubles, dict[str, Doubles]]:
    """The numbers as arrays, if the mechanism can have published them."""
    from gsh.accuracy.intervals import check_counts, check_values  # noqa: PLC0415 - app/accounting/published.py says why

    count_grid(mechanism), value_grids(mechanism)  # refuses noise that is never drawn
    if not body.values.keys() <= {*mechanism.column_names}:
        raise InvalidRequest("/values", "must have columns of aggregates/names only")
    counts = np.array(body.counts, np.float64)
    check_counts(mechanism, counts, "/counts")
    values = {name: np.array(column, np.float64) for name, column in body.values.items()}
    for name, column in values.items():
        check_values(column, len(counts), f"/values/{pointer_part(name)}")
    return counts, values


def _totals(mechanism: AnyMechanism, counts: Doubles, values: Mapping[str, Doubles], level: float) -> TotalsOut:
    from gsh.accuracy.totals import count_total, value_total  # noqa: PLC0415

    places = {name: place for place, name in enumerate(mechanism.column_names)}
    return TotalsOut(
        counts=TotalOut.model_validate(count_total(mechanism, counts, level, "/counts"), from_attributes=True),
        values={
            name: TotalOut.model_validate(
                value_total(mechanism, places[name], column, level, f"/values/{pointer_part(name)}"),
                from_attributes=True,
            )
            for name, column in values.items()
        },
    )
