"""/releases: what budgets have paid for, with answers and certificates."""

from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException

from app.budgets.budget_route import BUDGET_NOT_FOUND
from app.errors import Busy
from app.http.auth import Access, access_of, needs
from app.http.headers import USED_HEADER, content_disposition, preferred, used_header
from app.http.json_route import DeclaredRoute, JsonRoute
from app.http.problems import ACCESS_PROBLEMS, ANSWER_PROBLEMS, CERTIFICATE_PROBLEMS, PROBLEMS, READ_PROBLEMS
from app.http.problems.errors import InvalidQuery, NoCertificate
from app.http.services import services_of
from app.ledger.access.patterns import names_in
from app.ledger.clock import now
from app.ledger.errors import LedgerError, UnknownRelease
from app.ledger.lineage import Use
from app.ledger.releases import RecordedRelease
from app.ledger.store import Ledger
from app.releases.answer_formats import DIGEST_HEADER, answer_of, table_names, with_certificate, without_answer
from app.releases.asked import encoded
from app.releases.certificates.page import PAGE_HEADERS, certificate_page
from app.releases.certificates.registry import registry_yaml
from app.releases.recorded import certificate_of, shown
from app.releases.release_route import READS_RELEASES, RELEASE_NOT_FOUND, ReleaseInPath, visible_release
from app.releases.schemas.certificate import AnyCertificate
from app.releases.schemas.release import ReleaseAnswer, TableAnswer, TableName, TablesAnswer
from app.releases.schemas.releases import (
    VERIFY_EXAMPLES,
    ReleaseOut,
    ReleasesOut,
    VerifiedOut,
)
from app.schemas.scalars import BudgetName
from gsh.histogram.file_formats import JSON, MEDIA_TYPES, ZIP
from gsh.proof.envelopes import statement_of

__all__ = ["router"]

router = APIRouter(
    prefix="/releases", tags=["releases"], responses=READ_PROBLEMS | ACCESS_PROBLEMS, route_class=DeclaredRoute
)
_bodies = APIRouter(prefix="/releases", tags=["releases"], route_class=JsonRoute, responses=PROBLEMS | ACCESS_PROBLEMS)

_YAML, _HTML = "application/yaml", "text/html"
_ENDINGS = {JSON: "certificate.json", _YAML: "registry.yaml", _HTML: "certificate.html"}
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_TEXT = {"schema": {"type": "string"}}
_ANSWERS: dict[str, Any] = {
    "description": "The kept rows.",
    "model": ReleaseAnswer | TablesAnswer | TableAnswer,
    "content": dict.fromkeys([*MEDIA_TYPES.values(), ZIP], _BINARY) | {JSON: {}},
    "headers": DIGEST_HEADER,
}


@router.get(
    "",
    operation_id="listReleases",
    summary="Releases, the newest first",
    dependencies=READS_RELEASES,
    responses=BUDGET_NOT_FOUND,
)
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

    def work(ledger: Ledger) -> list[RecordedRelease]:
        if budget is not None:
            ledger.standing(budget)
        named = [budget] if budget is not None else _bound_to(ledger, access)
        if before is not None and not access.may_see(ledger.release(before).budget):
            raise UnknownRelease
        return [] if named == [] else ledger.releases(named or [], before, limit + 1)

    try:
        found = await services_of(request).ledger_pool.read(work)
        before = found[limit - 1].key if len(found) > limit else None
        return ReleasesOut(releases=list(map(shown, found[:limit])), before=before)
    except UnknownRelease:
        pass
    raise InvalidQuery(("before", "must be the value of before in the previous answer"))


@router.get(
    "/{key}",
    operation_id="getRelease",
    summary="What the ledger says about a release",
    dependencies=READS_RELEASES,
    responses=RELEASE_NOT_FOUND | {200: {"headers": USED_HEADER}},
)
async def get_release(request: Request, response: Response, key: ReleaseInPath) -> ReleaseOut:
    """Its state, the budget that paid, the entry of the history, and the size and hash of its answer."""
    release = await visible_release(request, key)
    pool = services_of(request).ledger_pool
    with suppress(LedgerError, Busy):
        use = await pool.read(lambda ledger: Use.of_release(ledger.lineage(release.budget), release.cost))
        response.headers.update(used_header(use))
    return shown(release)


@router.get(
    "/{key}/answer",
    operation_id="getAnswer",
    summary="The answer of a release",
    dependencies=[needs("release", "audit")],
    response_class=StreamingResponse,
    responses=RELEASE_NOT_FOUND | ANSWER_PROBLEMS | {200: _ANSWERS},
)
async def get_answer(
    request: Request,
    key: ReleaseInPath,
    table: Annotated[
        TableName | None,
        Query(title="Table", description="Of a release of several tables: only the one with this name."),
    ] = None,
) -> Response:
    """The stored bytes, or the same rows in the format that `Accept` prefers. It costs nothing.

    Several tables are a zip archive or JSON. With `table`, one of them comes in any format; its JSON has its `name`.

    After as many days as the service keeps answers, this is 410. The certificate stays.
    """
    release = await visible_release(request, key)
    if not release.has_answer or release.media_type is None:
        raise UnknownRelease
    if table is not None and table not in await table_names(request, release):
        raise InvalidQuery(("table", "must be the name of a table of this release"))
    await _record_reading(request, release)
    return await answer_of(request, release, table)


@router.get(
    "/{key}/certificate",
    operation_id="getCertificate",
    summary="The certificate of a release",
    dependencies=READS_RELEASES,
    response_model=AnyCertificate,
    responses=RELEASE_NOT_FOUND
    | CERTIFICATE_PROBLEMS
    | {200: {"description": "The certificate.", "content": {_YAML: _TEXT, _HTML: _TEXT}}},
)
async def get_certificate(
    request: Request,
    key: ReleaseInPath,
    signed: Annotated[
        bool, Query(title="Signed", description="The certificate in a signed envelope (DSSE, in-toto), as JSON.")
    ] = False,
) -> Response:
    """JSON, or YAML for the registry of deployments (`Accept: application/yaml`), or a page to print (`text/html`).

    Its `record` names the entry, the head of the history and the hash of the answer. With `signed` it is the predicate
    of an in-toto statement in a DSSE envelope, whose subjects are the digests of the rows and of the answer.
    """
    release = await visible_release(request, key)
    _check_certificate(release)
    if signed:
        statement = await with_certificate(request, release, _statement, without_answer(release))
        envelope = await services_of(request).signer.sealed(statement)
        if envelope is None:
            raise InvalidQuery(("signed", "must be omitted: this service has no signing key (GSH_SIGNING_KEY_FILE)"))
        return Response(envelope, media_type=JSON, headers=content_disposition(release.key, "sig.json", "inline"))
    media_type = preferred(request, (JSON, _YAML, _HTML))
    if media_type is None:
        raise HTTPException(406)
    headers = {"Vary": "Accept"} | content_disposition(release.key, _ENDINGS[media_type], "inline")
    if media_type == _HTML:
        headers |= PAGE_HEADERS
    content = await with_certificate(request, release, _certificate_as, media_type, without_answer(release))
    return Response(content, media_type=media_type, headers=headers)


@_bodies.post(
    "/verify",
    operation_id="verifyCertificate",
    summary="Did this ledger make this certificate?",
    dependencies=READS_RELEASES,
)
async def verify_certificate(
    request: Request, body: Annotated[AnyCertificate, Body(openapi_examples=VERIFY_EXAMPLES)]
) -> VerifiedOut:
    """Compares a certificate with the recorded one, and says for which bytes it was made.

    A certificate from inside an answer has no `record`; then only the rest is compared.
    """
    release = await services_of(request).ledger_pool.read(lambda ledger: ledger.release_by_id(body.root.release_id))
    if release is None or not access_of(request.scope).may_see(release.budget):
        return VerifiedOut.model_validate({"made_here": False, "differences": []})
    _check_certificate(release)
    differences = await with_certificate(request, release, _differences, without_answer(release), body)
    return VerifiedOut(
        made_here=not differences,
        key=release.key,
        budget=release.budget,
        entry=release.number,
        answer_sha256=release.answer_sha256 if release.has_answer else None,
        committed_digest=None if release.committed is None else release.committed.sha256,
        differences=differences,
    )


router.routes.extend(_bodies.routes)


async def _record_reading(request: Request, release: RecordedRelease) -> None:
    """Before the answer goes to an access key."""
    by, at = access_of(request.scope).by, now()
    if by is not None:
        pool = services_of(request).ledger_pool
        await pool.ask(lambda ledger: ledger.keys.record_reading(release.key, release.budget, at, by))


def _bound_to(ledger: Ledger, access: Access) -> list[str] | None:
    """The budgets that an access key is bound to; None if it may use all."""
    if not access.budgets:
        return None
    return names_in(access.budgets, (each.id for each in ledger.budgets()))


def _check_certificate(release: RecordedRelease) -> None:
    if not release.notes.certificate:
        raise NoCertificate


def _statement(release: RecordedRelease) -> bytes:
    return statement_of(certificate_of(release))


def _certificate_as(media_type: str, release: RecordedRelease) -> str:
    certificate = certificate_of(release)
    if media_type == _HTML:
        return certificate_page(certificate)
    return registry_yaml(certificate) if media_type == _YAML else encoded(certificate)


def _differences(release: RecordedRelease, body: AnyCertificate) -> list[str]:
    """The members of a certificate that are not as recorded."""
    kept = AnyCertificate.model_validate_json(encoded(certificate_of(release)))
    recorded, given = kept.model_dump(mode="json"), body.model_dump(mode="json")
    if given["record"] is None:
        recorded["record"] = None
    # Optional fields are absent if they have no value, so each side may have names that the other lacks.
    return [name for name in recorded | given if recorded.get(name) != given.get(name)]
