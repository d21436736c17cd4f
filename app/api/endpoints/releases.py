"""/releases: what budgets have paid for, with answers and certificates; and releases that other engines make."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Body, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException

from app.api.accept import preferred
from app.api.answer_formats import MEDIA_TYPES, answer_as
from app.api.auth import access_of, needs
from app.api.budget_route import READ_PROBLEMS, posted_release
from app.api.certificates.page import PAGE_HEADERS, certificate_page
from app.api.certificates.registry import registry_yaml
from app.api.dependencies import services_of
from app.api.idempotency import KEY_HEADER, REPLAYED, REPLAYED_HEADER, idempotency_key
from app.api.json_route import DeclaredRoute, Encoded, JsonRoute
from app.api.meaning import meaning_of
from app.api.problems import (
    ACCESS_PROBLEMS,
    ANSWER_PROBLEMS,
    BUDGET_PROBLEMS,
    CERTIFICATE_PROBLEMS,
    COMMIT_PROBLEMS,
    PROBLEMS,
    InvalidQuery,
    NoCertificate,
)
from app.api.release_route import READS_RELEASES, RELEASE_NOT_FOUND, ReleaseInPath, ReleaseRoute, visible_release
from app.api.schemas.certificate import Certificate
from app.api.schemas.releases import (
    COMMIT_EXAMPLES,
    OPEN_EXAMPLES,
    VERIFY_EXAMPLES,
    CommitIn,
    OpenIn,
    OpenOut,
    ReleaseOut,
    ReleasesOut,
    VerifiedOut,
    record_of,
)
from app.api.schemas.scalars import BudgetName
from app.ledger.clock import now
from app.ledger.errors import UnknownRelease
from app.ledger.releases import Commit, Notes, RecordedRelease
from app.ledger.store import Ledger
from app.service.releases import Terms

__all__ = ["router"]

router = APIRouter(
    prefix="/releases", tags=["releases"], responses=READ_PROBLEMS | ACCESS_PROBLEMS, route_class=DeclaredRoute
)
_bodies = APIRouter(prefix="/releases", tags=["releases"], route_class=JsonRoute, responses=PROBLEMS | ACCESS_PROBLEMS)
_named = APIRouter(
    prefix="/releases", tags=["releases"], route_class=ReleaseRoute, responses=PROBLEMS | ACCESS_PROBLEMS
)

_JSON, _YAML, _HTML = "application/json", "application/yaml", "text/html"
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_TEXT = {"schema": {"type": "string"}}


@router.get("", operation_id="listReleases", summary="Releases, the newest first", dependencies=READS_RELEASES)
async def list_releases(
    request: Request,
    budget: Annotated[
        BudgetName | None, Query(title="Budget", description="Only releases that this budget paid for.")
    ] = None,
    before: Annotated[
        str | None,
        Query(
            title="Before",
            max_length=255,
            description="Only releases before the one with this idempotency key: the member before of the last page.",
        ),
    ] = None,
    limit: Annotated[
        int, Query(title="Limit", ge=1, le=1000, description="The largest number of releases in the answer.")
    ] = 100,
) -> ReleasesOut:
    """Everything that the budgets of the access key have paid for, in pages. Seeds are never listed."""
    access = access_of(request.scope)
    if budget is not None:
        access.check(budget)
    if before is not None and not before.isprintable():
        raise InvalidQuery(("before", "must be the member before of the last page"))
    budgets = sorted(access.budgets) if budget is None else [budget]
    found = await services_of(request).ledger_pool.read(lambda ledger: ledger.releases(budgets, before, limit + 1))
    return ReleasesOut.of(found, limit)


@router.get(
    "/{key}",
    operation_id="getRelease",
    summary="What the ledger says about a release",
    dependencies=READS_RELEASES,
    responses=RELEASE_NOT_FOUND,
)
async def get_release(request: Request, key: ReleaseInPath) -> ReleaseOut:
    """Its state, the budget that paid, the entry of the history, and the size and hash of its answer."""
    return ReleaseOut.of(await visible_release(request, key))


@router.get(
    "/{key}/answer",
    operation_id="getAnswer",
    summary="The answer of a release",
    dependencies=[needs("release")],
    response_class=StreamingResponse,
    responses=RELEASE_NOT_FOUND
    | ANSWER_PROBLEMS
    | {200: {"description": "The kept rows.", "content": dict.fromkeys(MEDIA_TYPES.values(), _BINARY)}},
)
async def get_answer(request: Request, key: ReleaseInPath) -> Response:
    """The stored bytes, or the same rows in the format that `Accept` prefers. It costs nothing.

    After as many days as the service keeps answers, this is 410. The certificate stays.
    """
    release = await visible_release(request, key)
    if not release.has_answer or release.media_type is None:
        raise UnknownRelease
    offered = dict.fromkeys([release.media_type, *MEDIA_TYPES.values()])
    media_type = preferred(request, list(offered))
    if media_type is None:
        raise HTTPException(406)
    return await answer_as(request, release, media_type)


@router.get(
    "/{key}/certificate",
    operation_id="getCertificate",
    summary="The certificate of a release",
    dependencies=READS_RELEASES,
    response_model=Certificate,
    responses=RELEASE_NOT_FOUND
    | CERTIFICATE_PROBLEMS
    | {200: {"description": "The certificate.", "content": {_YAML: _TEXT, _HTML: _TEXT}}},
)
async def get_certificate(request: Request, key: ReleaseInPath) -> Response:
    """JSON, or YAML for the registry of deployments (`Accept: application/yaml`), or a page to print (`text/html`).

    Its `record` names the entry, the head of the history and the hash of the answer.
    """
    certificate = _certificate_of(await visible_release(request, key))
    media_type = preferred(request, (_JSON, _YAML, _HTML))
    if media_type is None:
        raise HTTPException(406)
    headers = {"Vary": "Accept"}
    if media_type == _HTML:
        return Response(certificate_page(certificate), media_type=_HTML, headers=headers | dict(PAGE_HEADERS))
    content = registry_yaml(certificate) if media_type == _YAML else certificate.model_dump_json()
    return Response(content, media_type=media_type, headers=headers)


@_bodies.post(
    "",
    operation_id="openRelease",
    summary="Open a release that another engine makes",
    status_code=201,
    dependencies=[needs("release")],
    responses=BUDGET_PROBLEMS
    | {
        200: {"model": OpenOut, "description": "The release was opened before.", "headers": REPLAYED_HEADER},
    },
    openapi_extra={"parameters": [KEY_HEADER | {"required": True, "example": "web-2026-46"}]},
)
async def open_release(request: Request, body: Annotated[OpenIn, Body(openapi_examples=OPEN_EXAMPLES)]) -> OpenOut:
    """For engines that add the noise themselves, such as Spark: charged once, with a seed that every retry gets again.

    Draw all noise from the seed, publish the output once, and commit its digest. The commit erases the seed. Who has
    the seed can remove the noise: keep it as secret as the raw data, and never log it.
    """
    services, access = services_of(request), access_of(request.scope)
    payment = access.payment(body.budget, idempotency_key(request))
    assert payment is not None
    release = await posted_release(request, services, body.mechanism)
    services.rules.check(release, body.budget, is_exempt=access.is_admin)
    draft = Certificate.draft(body, release, None)
    provenance = body.provenance.model_dump_json()
    notes = Notes(draft.release_id, body.description, tuple(body.labels), provenance=provenance)
    charge = replace(payment.charge(release, notes), state="open")
    meaning = meaning_of("open", body, body.budget)

    def work(ledger: Ledger) -> tuple[RecordedRelease, bytes | None, bool]:
        asked = replace(charge, content=ledger.secret.fingerprint(b"content", meaning))
        budget = ledger.check(asked, now())
        if budget is not None:
            terms = Terms.of(budget, asked.idempotency_key)._asdict()
            certificate = draft.charged_to(**terms).model_dump_json()
            asked = replace(asked, notes=replace(asked.notes, certificate=certificate))
        charged = ledger.charge(asked, now())
        seed = ledger.seed(charged.release)
        # Without a seed it is committed, perhaps since the charge was read.
        shown = charged.release if seed is not None else ledger.release(charged.release.key)
        return shown, seed, charged.is_new

    opened, seed, is_new = await services.ledger_pool.ask(work)
    shown = OpenOut.with_seed(opened, seed).model_dump_json().encode()
    replayed = () if is_new else ((REPLAYED.lower().encode(), b"true"),)
    return Encoded(shown, 201 if is_new else 200, replayed)  # type: ignore[return-value]


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
    """Records the digest of the output, and erases the seed for ever. The same digest again changes nothing."""
    await visible_release(request, key)
    made, by = Commit(body.digest, body.rows, now()), access_of(request.scope).by
    return ReleaseOut.of(await services_of(request).ledger_pool.ask(lambda ledger: ledger.commit(key, made, by)))


@_bodies.post(
    "/verify",
    operation_id="verifyCertificate",
    summary="Did this ledger make this certificate?",
    dependencies=READS_RELEASES,
)
async def verify_certificate(
    request: Request, body: Annotated[Certificate, Body(openapi_examples=VERIFY_EXAMPLES)]
) -> VerifiedOut:
    """Compares a certificate with the recorded one, and says for which bytes it was made.

    A certificate from inside an answer has no `record`; then only the rest is compared.
    """
    release = await services_of(request).ledger_pool.read(lambda ledger: ledger.release_by_id(body.release_id))
    if release is None or not access_of(request.scope).may_see(release.budget):
        return VerifiedOut.model_validate({"made_here": False, "differences": []})
    recorded, given = _certificate_of(release).model_dump(mode="json"), body.model_dump(mode="json")
    if given["record"] is None:
        recorded["record"] = None
    differences = [name for name, value in recorded.items() if given[name] != value]
    return VerifiedOut(
        made_here=not differences,
        key=release.key,
        budget=release.budget,
        entry=release.number,
        answer_sha256=release.answer_sha256 if release.has_answer else None,
        differences=differences,
    )


router.routes.extend([*_bodies.routes, *_named.routes])


def _certificate_of(release: RecordedRelease) -> Certificate:
    """The recorded certificate, with what the ledger says about the release."""
    if not release.notes.certificate:
        raise NoCertificate
    return Certificate.model_validate_json(release.notes.certificate).recorded(record_of(release))
