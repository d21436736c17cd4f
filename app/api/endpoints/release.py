"""POST /release: the mechanism applied to posted groups."""

from collections.abc import Generator, Iterable
from typing import Annotated, Any

import pyarrow as pa
from fastapi import APIRouter, Body, Request
from pydantic import GetPydanticSchema

from app.api.auth import access_of, needs
from app.api.bodies import BodyLimit
from app.api.dependencies import AT_ONCE, services_of
from app.api.idempotency import KEY_HEADER, idempotency_key
from app.api.json_route import SHORT_BYTES, JsonRoute, parsed
from app.api.problems import ACCESS_PROBLEMS, BUDGET_PROBLEMS, PROBLEMS
from app.api.schemas.certificate import CASE_STUDY, Certificate
from app.api.schemas.release import GroupsOut, ReleaseAnswer, ReleaseRequest
from app.api.workload import StepsInPool
from app.ledger.answers import Answer
from app.service.releases import ReleaseFacts, make_release
from app.service.steps import StepsHere
from gsh.histogram.entropy import operating_system
from gsh.histogram.errors import TooManyGroups
from gsh.histogram.groups import release_groups
from gsh.histogram.keys.json_keys import normalised
from gsh.histogram.noise import Noise

__all__ = ["router"]

_Steps = StepsHere[ReleaseFacts, bytes] | StepsInPool[ReleaseFacts, bytes]


class _ReleaseRoute(JsonRoute):
    body_limit = BodyLimit("max_release_bytes", at_once=2, advice="; larger tables go to /release/table")

    async def answer(self, request: Request, content: bytes) -> bytes:
        """A worker reads a large body, so the endpoint gets the bytes."""
        answer: bytes = await self.endpoint(request, content)
        return answer


router = APIRouter(tags=["release"], responses=PROBLEMS | BUDGET_PROBLEMS | ACCESS_PROBLEMS, route_class=_ReleaseRoute)

_COLUMNS = {
    "names": ["likes", "shares"],
    "covariance": [[400, 0], [0, 100]],
    "sensitivity": {"kind": "box", "lower": [0, 0], "upper": [1, 1]},
}
_EXAMPLES: dict[str, Any] = {
    "counts": {
        "summary": "Counts by URL and country",
        "description": "The mechanism that /calibrate gives for the paper's case study. The second group is dropped.",
        "value": {
            "mechanism": CASE_STUDY,
            "epsilon": 0.349,
            "groups": {"keys": [["a.org", "US"], ["b.org", "FR"]], "counts": [48211, 3]},
        },
    },
    "columns": {
        "summary": "With further columns",
        "value": {
            "mechanism": {"c_u": 3, "tau": 1, "tau_star": 120, "sigma": 20, "aggregates": _COLUMNS},
            "epsilon": 1,
            "groups": {
                "keys": ["news", "sport", "weather"],
                "counts": [812, 3, 440],
                "values": {"likes": [300, 1, 77], "shares": [40, 0, 12]},
            },
        },
    },
    "by_delta": {
        "summary": "A certificate of ε at δ",
        "value": {"mechanism": CASE_STUDY, "delta": 1e-05, "groups": {"keys": [17, 4], "counts": [61000, 70000]}},
    },
    "nothing": {
        "summary": "No groups: a valid release of nothing",
        "value": {"mechanism": CASE_STUDY, "groups": {"keys": [], "counts": []}},
    },
}
_Content = Annotated[
    bytes, GetPydanticSchema(lambda _bytes, handler: handler(ReleaseRequest)), Body(openapi_examples=_EXAMPLES)
]
"""The bytes of a body, with the schema of what is in them."""


@router.post(
    "/release",
    operation_id="release",
    summary="Private groups from true ones",
    dependencies=[needs("release")],
    response_model=ReleaseAnswer,
    openapi_extra={"parameters": [KEY_HEADER]},
)
async def post_release(request: Request, body: _Content) -> bytes:
    """Groups with fewer than τ users are dropped, Gaussian noise is added, and groups below τ\\* are dropped.

    The numbers are the ideal real-valued mechanism's, rounded to a grid that depends on σ and Σ alone. Each call draws
    new noise, and spends privacy again, unless a budget pays for it: then the same Idempotency-Key and body get the
    same answer for ever, and are charged once. For larger tables there is /release/table.
    """
    services, access, key = services_of(request), access_of(request.scope), idempotency_key(request)
    if key is None:
        access.check(None)  # before a worker reads the body of a client that must name a budget
    # Before a worker begins: it would wait for this.
    fingerprint = "" if key is None else await services.payments.fingerprint(b"release", body)
    steps = _steps(request, body)
    try:
        budget, mechanism = await steps.facts()
        payment = access.payment(budget, key)
        charge = None if payment is None else payment.charge(mechanism, fingerprint)
        answer = await make_release(services.payments, charge, _InMemory(steps))
    finally:
        await steps.stop()
    return b"".join(answer.chunks())


class _InMemory:
    """A release whose answer is kept in memory."""

    def __init__(self, steps: _Steps) -> None:
        self._steps = steps
        self.drop = steps.stop

    async def draw(self) -> Answer:
        return self.collect("application/json", [await self._steps.finish()])

    def collect(self, media_type: str, content: Iterable[bytes]) -> Answer:
        joined = b"".join(content)
        return Answer(media_type, lambda: [joined])


def _steps(request: Request, content: bytes) -> _Steps:
    """The release, on the event loop if it is small, else in a worker."""
    services = services_of(request)
    most_groups = services.settings.max_release_groups
    if len(content) > SHORT_BYTES:
        return StepsInPool(request, services.releases, _release_content, content, most_groups)
    body = parsed(ReleaseRequest, content)
    if body.mechanism.work > AT_ONCE:
        return StepsInPool(request, services.releases, _release, body, most_groups)
    return StepsHere(_release(body, most_groups))


def _release_content(content: bytes, most_groups: int) -> Generator[ReleaseFacts, None, bytes]:
    return _release(parsed(ReleaseRequest, content), most_groups)


def _release(body: ReleaseRequest, most_groups: int) -> Generator[ReleaseFacts, None, bytes]:
    """The whole release: first the facts that a payment needs, then, if it may go on, noise and the answer."""
    mechanism = body.mechanism.to_domain()
    yield body.budget, mechanism.bare
    groups = body.groups
    if len(groups.keys) > most_groups:
        raise TooManyGroups("/groups", f"must be at most {most_groups} groups; larger tables go to /release/table")
    noise = Noise(mechanism)
    certificate = Certificate.draft(body, mechanism, noise)
    names = mechanism.column_names
    counts = pa.array(groups.counts, pa.int64())
    values = {name: pa.array(column, pa.float64()) for name, column in groups.values.items()}
    kept = release_groups(noise, names, groups.keys, counts, values, operating_system, at="/groups/")
    released = GroupsOut(
        keys=[normalised(groups.keys[row]) for row in kept.rows],
        counts=kept.counts.tolist(),
        values={name: column.tolist() for name, column in zip(names, kept.values, strict=True)},
    )
    return ReleaseAnswer(groups=released, certificate=certificate).model_dump_json().encode()
