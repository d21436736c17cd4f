"""POST /release: the mechanism applied to posted groups.

A small release is made at once. A large one is made by another process, from its bytes to the bytes of its answer, so
that neither decoding nor sorting holds others up. Where a budget pays, either is charged for before it is shown.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
from fastapi import APIRouter, Body, Request
from numpy.typing import NDArray
from pydantic import Field, WithJsonSchema

from app.api.auth import access_of, needs
from app.api.bodies import BodyLimit
from app.api.dependencies import AT_ONCE, Services, services_of
from app.api.json_route import JsonRoute, parsed
from app.api.problems import ACCESS_PROBLEMS, BUDGET_PROBLEMS, PROBLEMS
from app.api.schemas.certificate import CASE_STUDY, Certificate
from app.api.schemas.mechanism import MOST_COLUMNS, MuZeroIn, Strict
from app.api.spending import KEY_HEADER, Payable, Payment, idempotency_key, pay, paying
from app.api.workload import in_pool
from app.ledger.store import Answer
from gsh.accounting.mechanism import Mechanism
from gsh.release.apply import MOST_COUNT, apply_mechanism
from gsh.release.entropy import operating_system
from gsh.release.errors import InvalidGroups, TooManyGroups
from gsh.release.keys.json_keys import columns_of, written
from gsh.release.keys.order import unique_order
from gsh.release.noise import Noise
from gsh.release.numbers import checked_counts, checked_values

__all__ = ["router"]

# What is decoded and released in a few milliseconds.
_SMALL_BYTES = 16 * 1024

_PART = {"anyOf": [{"type": "string"}, {"type": "number"}]}
_KEY = {"anyOf": [*_PART["anyOf"], {"type": "array", "items": _PART, "minItems": 1, "maxItems": 100}]}
_KEYS = [["a.org", "US"], ["b.org", "FR"]]
_GROUPS = {"keys": _KEYS, "counts": [48211, 3]}


class GroupsIn(Strict):
    """A table of groups, by columns of equal length."""

    # Their types are checked when they are made into columns; as a union they would take longer than all the rest.
    keys: Annotated[list[Any], WithJsonSchema({"type": "array", "items": _KEY})] = Field(
        title="Keys",
        description="What identifies each group: a string, a number or a list of these; unique.",
        examples=[_KEYS],
    )
    counts: list[Annotated[int, Field(ge=0, le=MOST_COUNT)]] = Field(
        fail_fast=True, title="C", description="The true number of users of each group.", examples=[[48211, 3]]
    )
    values: dict[str, Annotated[list[float], Field(fail_fast=True)]] = Field(
        default={},
        max_length=MOST_COLUMNS,
        title="Values",
        description="For each of aggregates/names its column of true values; absent for counts only.",
        examples=[{"likes": [812, 1], "shares": [40, 0]}],
    )


class ReleaseRequest(Payable):
    """A mechanism, and the groups to run it on."""

    groups: GroupsIn = Field(
        title="Groups", description="One row per group that has at least one user.", examples=[_GROUPS]
    )


class GroupsOut(Strict):
    """The groups that were kept, sorted by key, in the shape in which groups are posted."""

    keys: Annotated[list[Any], WithJsonSchema({"type": "array", "items": _KEY})] = Field(
        title="Keys", description="The keys of the groups kept, sorted.", examples=[[["a.org", "US"]]]
    )
    counts: list[int | float] = Field(
        title="C + v", description="Their noisy numbers of users.", examples=[[50173.984375]]
    )
    values: dict[str, list[int | float]] = Field(
        title="Noisy values",
        description="Their noisy values, a column per name.",
        examples=[{"likes": [790.5], "shares": [46]}],
    )


class ReleaseAnswer(Strict):
    """What may be published, and what it costs."""

    groups: GroupsOut = Field(
        title="Groups",
        description="What was kept. Of what was dropped, nothing is said.",
        examples=[{"keys": [["a.org", "US"]], "counts": [50173.984375], "values": {}}],
    )
    certificate: Certificate = Field(
        title="What it costs",
        description="The certified privacy of this release. It does not depend on the data.",
        examples=[
            {
                "release_id": "5f0c66f2-1d5c-4d5e-9a6b-3b1f0c8f7a10",
                "released_at": "2026-11-16T12:00:00Z",
                "service_version": "0.1.0",
                "accounting": "exact",
                "mechanism": CASE_STUDY,
                "mu_0": 0.0,
                "mu": 0.10224286368,
                "delta_infinite": 9.999999999999999e-06,
                "epsilon": 0.349,
                "delta": 9.999999999999999e-06,
                "grid": {"count": 0.001953125, "values": {}},
            }
        ],
    )


class _ReleaseRoute(JsonRoute):
    body_limit = BodyLimit("max_release_bytes", at_once=2, advice="; larger tables go to /release/table")

    async def answer(self, request: Request, content: bytes) -> bytes:
        services, key = services_of(request), idempotency_key(request)
        most_groups = services.settings.max_release_groups
        pool = services.releases
        access = access_of(request.scope)
        if len(content) > _SMALL_BYTES:
            if key is None:
                access.check(None)
                return await in_pool(request, pool, _large_answer, content, most_groups, is_paid=False)
            budget, mechanism = await in_pool(request, pool, _payment, content)
            access.check(budget)

            async def make() -> bytes:
                return await in_pool(request, pool, _large_answer, content, most_groups, is_paid=True)
        else:
            body = parsed(ReleaseRequest, content)
            budget = body.budget

            async def make() -> bytes:
                answer: ReleaseAnswer = await self.endpoint(request, body)
                return answer.model_dump_json().encode()

            access.check(budget)
            if paying(budget, key, access.client) is None:
                return await make()
            mechanism = await services.to_domain(request, body.mechanism, services.releases)
        payment = paying(budget, key, access.client)
        assert payment is not None
        return await _paid_answer(services, payment, mechanism, content, make)


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
        "value": {"mechanism": CASE_STUDY, "epsilon": 0.349, "groups": _GROUPS},
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


@router.post(
    "/release",
    operation_id="release",
    summary="Private groups from true ones",
    dependencies=[needs("release")],
    openapi_extra={"parameters": [KEY_HEADER]},
)
async def release_groups(
    request: Request, body: Annotated[ReleaseRequest, Body(openapi_examples=_EXAMPLES)]
) -> ReleaseAnswer:
    """Groups with fewer than τ users are dropped, Gaussian noise is added, and groups below τ\\* are dropped.

    The numbers are the ideal real-valued mechanism's, rounded to a grid that depends on σ and Σ alone. Each call draws
    new noise, and spends privacy again, unless a budget pays for it: then the same Idempotency-Key and body get the
    same answer for ever, and are charged once. For larger tables there is /release/table.
    """
    services = services_of(request)
    if body.mechanism.work > AT_ONCE:
        return await in_pool(request, services.releases, _released, body, services.settings.max_release_groups)
    return _released(body, services.settings.max_release_groups)


def _large_answer(content: bytes, most_groups: int, is_paid: bool) -> bytes:
    body = parsed(ReleaseRequest, content)
    if not is_paid:
        paying(body.budget, None, "")
    return _released(body, most_groups).model_dump_json().encode()


def _payment(content: bytes) -> tuple[str | None, Mechanism]:
    body = parsed(ReleaseRequest, content)
    return body.budget, body.mechanism.to_domain().bare


async def _paid_answer(
    services: Services,
    payment: Payment,
    mechanism: Mechanism,
    content: bytes,
    make: Callable[[], Awaitable[bytes]],
) -> bytes:
    """Byte for byte what is, or was, charged for."""

    async def answer() -> Answer:
        made = await make()
        return Answer("application/json", lambda: [made])

    stored, made = await pay(services, payment, mechanism, (b"release", content), answer)
    if made is None:
        return b"".join(await services.ledger_pool.fetch(lambda ledger: list(ledger.content(stored))))
    return b"".join(made.chunks())


def _released(body: ReleaseRequest, most_groups: int) -> ReleaseAnswer:
    keys = body.groups.keys
    if len(keys) > most_groups:
        raise TooManyGroups("/groups", f"must be at most {most_groups} groups; larger tables go to /release/table")
    mechanism = body.mechanism.to_domain()
    noise = Noise(mechanism)
    certificate = Certificate.of(body, mechanism, noise)
    counts = checked_counts(pa.array(body.groups.counts, pa.int64()), "/groups/counts")
    names = mechanism.aggregates.names if mechanism.aggregates is not None else ()
    values = _values(body, names, noise)
    if any(len(column) != len(keys) for column in (counts, *values)):
        raise InvalidGroups("/groups", "must have columns of equal length")
    order = unique_order(columns_of(keys, "/groups/keys"), len(keys), "/groups/keys")
    released = apply_mechanism(noise, counts, values, order, operating_system)
    groups = GroupsOut(
        keys=[written(keys[row]) for row in released.rows],
        counts=released.counts.tolist(),
        values={name: column.tolist() for name, column in zip(names, released.values, strict=True)},
    )
    return ReleaseAnswer(groups=groups, certificate=certificate)


def _values(body: ReleaseRequest, names: tuple[str, ...], noise: Noise) -> list[NDArray[np.float64]]:
    posted = body.groups.values
    if posted and isinstance(body.mechanism.aggregates, MuZeroIn):
        raise InvalidGroups("/mechanism/aggregates", "must have a covariance: mu_0 alone is not enough to draw noise")
    if posted.keys() != set(names):
        raise InvalidGroups("/groups/values", "must have a column for each of aggregates/names, and no others")
    grids = zip(names, noise.value_grids, strict=True)
    return [checked_values(pa.array(posted[name], pa.float64()), grid, "/groups/values") for name, grid in grids]
