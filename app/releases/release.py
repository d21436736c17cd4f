"""POST /release: the mechanism applied to posted groups."""

from collections.abc import Generator, Iterable
from functools import partial
from io import BytesIO
from typing import Annotated, Any, NamedTuple

import pyarrow as pa
from fastapi import APIRouter, Body, Request
from pydantic import GetPydanticSchema
from pydantic_core import to_json

from app.accounting.published import intervals_of_released
from app.http.auth import access_of, needs
from app.http.bodies import BodyLimit
from app.http.idempotency import KEY_HEADER, REPLAYED_HEADERS, idempotency_key, replayed_headers
from app.http.json_route import SHORT_BYTES, Encoded, JsonRoute, parsed
from app.http.json_text import decoded_size, most_decoded
from app.http.problems import ACCESS_PROBLEMS, BUDGET_PROBLEMS, PROBLEMS
from app.http.services import AT_ONCE, services_of
from app.http.workload import StepsInPool
from app.ledger.answers import Answer
from app.releases.dry_run import dry_run
from app.releases.making import Decision, Drawn, ReleaseFacts, make_release
from app.releases.meaning import meaning_of
from app.releases.payments import Terms, payment_of
from app.releases.release_route import releases_of
from app.releases.schemas.certificate import Certificate
from app.releases.schemas.release import DryRunAnswer, ReleaseAnswer, ReleaseRequest
from app.schemas.case_study import CASE_STUDY
from app.workers.steps import StepsHere
from gsh.accounting.mechanism import Mechanism
from gsh.histogram.entropy import operating_system
from gsh.histogram.errors import TooManyGroups
from gsh.histogram.groups import CheckedGroups, check_groups
from gsh.histogram.interval_columns import check_interval_columns
from gsh.histogram.noise import Noise

__all__ = ["router"]


class _Released(NamedTuple):
    """The second step of a release: its answer, which is empty for a dry run, and its certificate as JSON."""

    answer: bytes
    release_id: str
    certificate: str


_Steps = StepsHere[ReleaseFacts, _Released] | StepsInPool[ReleaseFacts, _Released]


class _ReleaseRoute(JsonRoute):
    body_limit = BodyLimit("max_release_bytes", at_once=2, advice="; larger tables go to /release/table")

    async def answer(self, request: Request, content: bytes) -> bytes | Encoded:
        """A worker reads a large body, so the endpoint gets the bytes."""
        answer: Encoded = await self.endpoint(request, content)
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
    "intervals": {
        "summary": "With intervals for the true numbers",
        "value": {
            "mechanism": CASE_STUDY,
            "epsilon": 0.349,
            "intervals": 0.95,
            "groups": {"keys": ["a.org", "b.org"], "counts": [48211, 3]},
        },
    },
    "dry": {
        "summary": "A dry run: the checks and the certificate, without noise",
        "value": {
            "mechanism": CASE_STUDY,
            "epsilon": 0.349,
            "dry_run": True,
            "groups": {"keys": [["a.org", "US"], ["b.org", None]], "counts": [48211, 3]},
        },
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
    response_model=ReleaseAnswer | DryRunAnswer,
    responses={200: {"headers": REPLAYED_HEADERS}},
    openapi_extra={"parameters": [KEY_HEADER]},
)
async def post_release(request: Request, body: _Content) -> Encoded:
    """Groups with fewer than τ users are dropped, Gaussian noise is added, and groups below τ\\* are dropped.

    The numbers are the ideal real-valued mechanism's, rounded to a grid that depends on σ and Σ alone. Each call draws
    new noise, and spends privacy again, unless a budget pays for it: then the same request with the same
    Idempotency-Key gets the same answer, and is charged once. GET /releases/{key}/answer gives it again. With `dry_run`
    everything is checked, and nothing is drawn, charged or stored. For larger tables there is /release/table.
    """
    services, releases = services_of(request), releases_of(request)
    access, key = access_of(request.scope), idempotency_key(request)
    # Before a worker begins: it would wait for this.
    fingerprint = "" if key is None else await releases.payments.fingerprint(b"release", body)
    steps = _steps(request, body, is_paid=key is not None)
    try:
        facts = await steps.facts()
        check_again = partial(services.authorizer.check_again, request.scope, facts.budget)
        releases.rules.check(facts.mechanism, facts.budget, is_exempt=access.is_admin)
        making = _InMemory(steps, facts.meaning)
        if facts.is_dry:
            dry = await dry_run(releases.payments, access, facts, key, making.meaning)
            released = await steps.finish(Decision(dry.terms))
            await check_again()
            return Encoded(dry.encoded(released.certificate))
        payment = payment_of(access, facts.budget, key)
        charge = None if payment is None else payment.charge(facts.mechanism, facts.notes, fingerprint)
        outcome = await make_release(releases.payments, charge, making, check_again)
    finally:
        await steps.stop()
    return Encoded(b"".join(outcome.answer.chunks()), headers=replayed_headers(outcome.replayed_at))


class _InMemory:
    """A release whose answer is kept in memory."""

    def __init__(self, steps: _Steps, meaning: bytes) -> None:
        self._steps = steps
        self._meaning = meaning
        self.drop = steps.stop

    async def meaning(self) -> bytes:
        return self._meaning

    async def draw(self, terms: Terms | None) -> Drawn:
        released = await self._steps.finish(Decision(terms))
        answer = self.collect("application/json", [released.answer])
        return Drawn(answer, released.release_id, released.certificate, self._meaning)

    def collect(self, media_type: str, content: Iterable[bytes]) -> Answer:
        joined = b"".join(content)
        return Answer(media_type, lambda: [joined])


def _steps(request: Request, content: bytes, *, is_paid: bool) -> _Steps:
    """The release, on the event loop if it is small, else in a worker."""
    services = services_of(request)
    most_groups = services.settings.max_release_groups
    if len(content) > SHORT_BYTES:
        most = most_decoded(services.settings.max_release_bytes)
        return StepsInPool(request, services.releases, _release_content, content, most, most_groups, is_paid)
    body = parsed(ReleaseRequest, content)
    if body.mechanism.work > AT_ONCE or body.intervals is not None:
        return StepsInPool(request, services.releases, _release, body, most_groups, is_paid)
    return StepsHere(_release(body, most_groups, is_paid))


def _release_content(
    content: bytes, most_bytes: int, most_groups: int, is_paid: bool
) -> Generator[ReleaseFacts, Decision, _Released]:
    if decoded_size(content) > most_bytes:
        raise TooManyGroups("/groups", "must have fewer groups or columns; larger tables go to /release/table")
    return _release(parsed(ReleaseRequest, content), most_groups, is_paid)


def _release(body: ReleaseRequest, most_groups: int, is_paid: bool) -> Generator[ReleaseFacts, Decision, _Released]:
    """The whole release: first all checks and the facts that a payment needs, then noise and the answer."""
    mechanism = body.mechanism.to_domain()
    noise = Noise(mechanism)
    draft, checked = Certificate.draft(body, mechanism, noise), _checked(body, mechanism, noise, most_groups)
    meaning = meaning_of("release", body, body.budget, checked.digest(), **body.asked_intervals) if is_paid else b""
    decision = yield ReleaseFacts(body.budget, mechanism.bare, body.notes(), body.dry_run, meaning)
    certificate = draft if decision.terms is None else draft.charged_to(**decision.terms._asdict())
    encoded = certificate.model_dump_json()
    if body.dry_run:
        return _Released(b"", certificate.release_id, encoded)
    kept = checked.release(operating_system)
    further = ""
    if body.intervals is not None:
        further = f',"intervals":{intervals_of_released(mechanism, kept, body.intervals).model_dump_json()}'
    answer = BytesIO()
    answer.write(b'{"groups":')
    checked.write(kept, answer, to_json)
    answer.write(f'{further},"certificate":{encoded}}}'.encode())
    return _Released(answer.getvalue(), certificate.release_id, encoded)


def _checked(body: ReleaseRequest, mechanism: Mechanism, noise: Noise, most_groups: int) -> CheckedGroups:
    groups = body.groups
    if body.intervals is not None:
        check_interval_columns(("count", *mechanism.column_names))  # GET /releases/{key}/answer can give a table
    if len(groups.keys) > most_groups:
        raise TooManyGroups("/groups", f"must be at most {most_groups} groups; larger tables go to /release/table")
    counts = pa.array(groups.counts, pa.int64())
    values = {name: pa.array(column, pa.float64()) for name, column in groups.values.items()}
    return check_groups(noise, mechanism.column_names, groups.keys, counts, values, at="/groups/")
