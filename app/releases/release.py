"""POST /release: the mechanism applied to posted groups."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from pydantic import GetPydanticSchema

from app.http.auth import needs
from app.http.bodies import BodyLimit
from app.http.headers import KEY_HEADER, PAID_HEADERS, paid_headers
from app.http.json_route import Encoded, JsonRoute
from app.http.problems import ACCESS_PROBLEMS, BUDGET_PROBLEMS, PROBLEMS
from app.http.services import services_of
from app.http.workload import RequestWorkers
from app.releases.groups import PostedGroups
from app.releases.release_route import RELEASED, RequestClient, bounds_of, releases_of
from app.releases.schemas.release import DryRunAnswer, ReleaseAnswer, ReleaseRequest, TablesAnswer
from app.schemas.case_study import CASE_STUDY

__all__ = ["router"]


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
        "summary": "Counts by URL and country, paid by a budget",
        "description": "The mechanism that /calibrate gives for the paper's case study. The second group is dropped.",
        "value": {
            "mechanism": CASE_STUDY,
            "epsilon": 0.349,
            "groups": {"keys": [["a.org", "US"], ["b.org", "FR"]], "counts": [48211, 3]},
            "budget": "web",
        },
    },
    "columns": {
        "summary": "With further columns, and no budget: leave the Idempotency-Key out",
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
    "public": {
        "summary": "Public groups: all listed ones are published, zeros included",
        "value": {
            "mechanism": {"c_u": 1, "sigma": 50},
            "public_keys": ["DE", "FR", "US"],
            "groups": {"keys": ["US", "FR"], "counts": [48211, 3]},
        },
    },
    "tables": {
        "summary": "Several tables in one release, with one certificate",
        "value": {
            "epsilon": 0.349,
            "tables": [
                {
                    "name": "by_url",
                    "mechanism": CASE_STUDY,
                    "groups": {"keys": ["a.org", "b.org"], "counts": [48211, 3]},
                },
                {
                    "name": "by_country",
                    "mechanism": {"c_u": 1, "sigma": 50},
                    "public_keys": ["DE", "FR", "US"],
                    "groups": {"keys": ["US", "FR"], "counts": [48211, 3]},
                },
            ],
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
    response_model=ReleaseAnswer | TablesAnswer | DryRunAnswer,
    responses={200: {"headers": PAID_HEADERS}},
    openapi_extra={"parameters": [KEY_HEADER | {"example": RELEASED}]},
)
async def post_release(request: Request, body: _Content) -> Encoded:
    """Groups with fewer than τ users are dropped, Gaussian noise is added, and groups below τ\\* are dropped.

    The numbers are the ideal real-valued mechanism's, rounded to a grid that depends on σ and Σ alone. Each call draws
    new noise, and spends privacy again, unless a budget pays for it: then the same request with the same
    Idempotency-Key gets the same answer, and is charged once. GET /releases/{key}/answer gives it again. With `dry_run`
    everything is checked, and nothing is drawn, charged or stored. For larger tables there is /release/table.

    Without thresholds (no `tau`, no `tau_star`) the groups are public: `public_keys` lists them, and all of them are
    published, those without users too. Several tables in `tables` are one release: all of them are checked before any
    noise is drawn, they are charged once, and have one certificate.
    """
    services, client = services_of(request), RequestClient(request)
    workers = RequestWorkers(request, services.release_workers)
    posted = PostedGroups(
        body,
        workers,
        bounds_of(request, client),
        services.signer.sealed,
        most_bytes=services.settings.max_release_bytes,
        most_groups=services.settings.max_release_groups,
        is_paid=client.idempotency_key is not None,
    )
    outcome = await releases_of(request).make(posted, client)
    return Encoded(b"".join(outcome.answer.chunks()), headers=paid_headers(outcome.replayed_at, outcome.use))
