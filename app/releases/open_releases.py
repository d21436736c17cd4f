"""POST /releases and POST /releases/{key}/commit: releases that another engine makes, from a seed."""

from typing import Annotated

from fastapi import APIRouter, Body, Request

from app.http.auth import access_of, needs
from app.http.idempotency import KEY_HEADER, REPLAYED_HEADERS, replayed_headers
from app.http.json_route import Encoded, JsonRoute
from app.http.problems import ACCESS_PROBLEMS, BUDGET_PROBLEMS, COMMIT_PROBLEMS, PROBLEMS
from app.http.services import services_of
from app.ledger.charges import Charged
from app.ledger.clock import now
from app.ledger.releases import Commit, RecordedRelease
from app.ledger.store import Ledger
from app.releases.made_elsewhere import made_elsewhere
from app.releases.release_route import RELEASE_NOT_FOUND, ReleaseInPath, ReleaseRoute, releases_of, visible_release
from app.releases.schemas.releases import COMMIT_EXAMPLES, OPEN_EXAMPLES, CommitIn, OpenIn, OpenOut, ReleaseOut

__all__ = ["router"]

router = APIRouter(prefix="/releases", tags=["releases"], responses=PROBLEMS | ACCESS_PROBLEMS, route_class=JsonRoute)
_named = APIRouter(
    prefix="/releases", tags=["releases"], responses=PROBLEMS | ACCESS_PROBLEMS, route_class=ReleaseRoute
)


@router.post(
    "",
    operation_id="openRelease",
    summary="Open a release that another engine makes",
    status_code=201,
    dependencies=[needs("release")],
    responses=BUDGET_PROBLEMS
    | {200: {"model": OpenOut, "description": "The release was opened before.", "headers": REPLAYED_HEADERS}},
    openapi_extra={"parameters": [KEY_HEADER | {"required": True, "example": "web-2026-46"}]},
)
async def open_release(request: Request, body: Annotated[OpenIn, Body(openapi_examples=OPEN_EXAMPLES)]) -> OpenOut:
    """For engines that add the noise themselves, such as Spark: charged once, with a seed that every retry gets again.

    Draw all noise from the seed, publish the output once, and commit its digest. The commit erases the seed. Who has
    the seed can remove the noise: keep it as secret as the raw data, and never log it.
    """
    made = await made_elsewhere(request, body.budget, body, "open")
    charged, (opened, seed) = await releases_of(request).payments.charge(
        made.charge, made.meaning, made.certificate, _with_seed
    )
    shown = OpenOut.with_seed(opened, seed).model_dump_json().encode()
    status = 201 if charged.is_new else 200
    return Encoded(shown, status, replayed_headers(charged.replayed_at))  # type: ignore[return-value]


@_named.post(
    "/{key}/commit",
    operation_id="commitRelease",
    summary="Commit what another engine has published",
    dependencies=[needs("release")],
    responses=RELEASE_NOT_FOUND | COMMIT_PROBLEMS,
)
async def commit_release(
    request: Request, key: ReleaseInPath, body: Annotated[CommitIn, Body(openapi_examples=COMMIT_EXAMPLES)]
) -> ReleaseOut:
    """Records the digest of the output, and erases the seed for ever. The same digest again changes nothing.

    Only the client that opened the release may commit it, or an access key with the scope admin as well.
    """
    await visible_release(request, key)
    access, made = access_of(request.scope), Commit(body.digest, body.rows, now())
    client = None if access.is_admin else access.client
    pool = services_of(request).ledger_pool
    return ReleaseOut.of(await pool.ask(lambda ledger: ledger.commit(key, made, access.by, client)))


router.routes.extend(_named.routes)


def _with_seed(ledger: Ledger, charged: Charged) -> tuple[RecordedRelease, bytes | None]:
    """The release and its seed as of one moment. Without a seed it is committed, perhaps since the charge was read."""
    seed = ledger.seed(charged.release)
    return charged.release if seed is not None else ledger.release(charged.release.key), seed
