"""POST /release/table: the mechanism applied to an Arrow IPC stream or a Parquet file.

The upload goes to a file, and a worker makes the answer from it. Sorting stalls nobody, and a table that is damaged on
purpose damages only that worker.
"""

from collections.abc import Iterable
from dataclasses import replace

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse

from app.api.auth import access_of, needs
from app.api.bodies import BodyLimit
from app.api.dependencies import AT_ONCE, Services, services_of
from app.api.idempotency import KEY_HEADER, idempotency_key
from app.api.json_route import SHORT_BYTES, DeclaredRoute, parsed, received
from app.api.problems import ACCESS_PROBLEMS, BUDGET_PROBLEMS, PROBLEMS
from app.api.schemas.certificate import CASE_STUDY, Certificate
from app.api.schemas.release import TableRequest
from app.api.uploads import Upload, receive_upload
from app.api.workload import in_pool
from app.ledger.answers import Answer
from app.ledger.charges import Charge
from app.service.errors import Busy
from app.service.releases import ReleaseFacts, make_release, release_file
from app.service.spool import SharedFile, chunks_of, digest_of, in_file_thread, overwrite, read_file, spool
from gsh.histogram.noise import Noise
from gsh.histogram.tables import Format, Limits, Roles

__all__ = ["router"]


class _TableRoute(DeclaredRoute):
    """Its bodies are spooled to the disk."""

    body_limit = BodyLimit("max_table_bytes", at_once=2)


router = APIRouter(tags=["release"], responses=PROBLEMS | BUDGET_PROBLEMS | ACCESS_PROBLEMS, route_class=_TableRoute)

_MEDIA_TYPES: dict[Format, str] = {
    "arrow": "application/vnd.apache.arrow.stream",
    "parquet": "application/vnd.apache.parquet",
}
_EXAMPLE = {"mechanism": CASE_STUDY, "epsilon": 0.349, "count_column": "users", "key_columns": ["url", "country"]}
_BINARY = {"schema": {"type": "string", "format": "binary"}}
# The schemas that it refers to are in the document already: /release refers to them too.
_REQUEST = TableRequest.model_json_schema(ref_template="#/components/schemas/{model}")
del _REQUEST["$defs"]
_REQUEST["examples"] = [_EXAMPLE]  # without it Swagger fills in both ε and δ


@router.post(
    "/release/table",
    operation_id="releaseTable",
    summary="A private table from a true one",
    dependencies=[needs("release")],
    response_class=StreamingResponse,
    responses={200: {"description": "The kept rows.", "content": dict.fromkeys(_MEDIA_TYPES.values(), _BINARY)}},
    openapi_extra={
        "parameters": [KEY_HEADER],
        "requestBody": {
            "required": True,
            "content": {
                "multipart/form-data": {
                    "schema": {
                        "type": "object",
                        "required": ["request", "table"],
                        "properties": {
                            "request": _REQUEST,
                            "table": {
                                "type": "string",
                                "format": "binary",
                                "title": "Table",
                                "description": "An Arrow IPC stream or a Parquet file.",
                            },
                        },
                    },
                    "encoding": {"request": {"contentType": "application/json"}},
                    "example": {"request": _EXAMPLE},
                }
            },
        },
    },
)
async def release_uploaded_table(request: Request) -> StreamingResponse:
    """The same for an Arrow IPC stream or a Parquet file, in the part `table` of a form; the part `request` is JSON.

    The part `request` comes first: permission and budget are checked before the table is read. The answer has the
    format of the table. Key columns keep their types, in one canonical form, and may have nulls. Rows are sorted by
    them. Numbers come back as float64, or as int64 if the grid is 1. The certificate is in the metadata of the schema.
    A retry has the same Idempotency-Key and the same two parts.
    """
    services, access, key = services_of(request), access_of(request.scope), idempotency_key(request)
    services.releases.check_room()  # before a table is read that no worker has room for

    async def check(content: bytes) -> Charge | None:
        """Before the table is read. ``make_release`` asks the ledger again: an upload may take hours."""
        budget, mechanism = await _facts(services, content)
        payment = access.payment(budget, key)
        charge = None if payment is None else payment.charge(mechanism)
        if charge is not None:
            await services.payments.is_answered(charge)
        return charge

    upload = await receive_upload(request.scope, received(request.receive), services.settings.max_body_bytes, check)
    try:
        answer = spool()
        try:
            media_type = await _answer_into(answer, request, upload)
            size = await in_file_thread(answer.file.seek, 0, 2)
        except BaseException:
            await answer.close()
            raise
    finally:
        await upload.table.close()
    return StreamingResponse(chunks_of(answer), media_type=media_type, headers={"Content-Length": str(size)})


async def _answer_into(answer: SharedFile, request: Request, upload: Upload[Charge | None]) -> str:
    """The media type of the answer, which is written to a file: drawn now, or stored before."""
    services, charge = services_of(request), upload.checked
    try:
        if charge is not None:
            digest = await in_file_thread(digest_of, upload.table.file)
            fingerprint = await services.payments.fingerprint(b"release/table", upload.request, digest)
            charge = replace(charge, request=fingerprint)
        making = _InFile(request, upload, answer)
        return (await make_release(services.payments, charge, making)).media_type
    except OSError:  # most likely the disk has no room for the answer
        pass
    raise Busy  # outside of the handler, whose exception would keep the answer


class _InFile:
    """A release from one file to another."""

    def __init__(self, request: Request, upload: Upload[Charge | None], answer: SharedFile) -> None:
        self._request = request
        self._upload = upload
        self._answer = answer

    async def draw(self) -> Answer:
        services = services_of(self._request)
        limits = Limits(services.settings.max_table_groups, services.settings.max_table_bytes)
        content, files = self._upload.request, (self._upload.table, self._answer)
        kind = await in_pool(self._request, services.releases, _drawn, content, limits, *files)
        return Answer(_MEDIA_TYPES[kind], lambda: read_file(self._answer.file))

    async def drop(self) -> None:
        """No worker waits: the upload may take hours."""

    def collect(self, media_type: str, content: Iterable[bytes]) -> Answer:
        overwrite(self._answer.file, content)  # what was drawn, if anything, is forgotten
        return Answer(media_type, lambda: read_file(self._answer.file))


async def _facts(services: Services, content: bytes) -> ReleaseFacts:
    """Only these are kept while the table arrives: a parsed request can take many times the memory of its bytes."""
    pool, seconds = services.releases, services.settings.heavy_seconds
    if len(content) > SHORT_BYTES:
        return await pool.run_within(seconds, _facts_of_content, content)
    body = parsed(TableRequest, content)
    return await pool.run_within(seconds, _facts_of, body) if body.mechanism.work > AT_ONCE else _facts_of(body)


def _facts_of_content(content: bytes) -> ReleaseFacts:
    return _facts_of(parsed(TableRequest, content))


def _facts_of(body: TableRequest) -> ReleaseFacts:
    return body.budget, body.mechanism.to_domain().bare


def _drawn(content: bytes, limits: Limits, table: SharedFile, answer: SharedFile) -> Format:
    """In a worker: the kept rows, written to a file."""
    body = parsed(TableRequest, content)
    mechanism = body.mechanism.to_domain()
    noise = Noise(mechanism)
    certificate = Certificate.draft(body, mechanism, noise).model_dump_json()
    roles = Roles(tuple(body.key_columns), body.count_column, mechanism.column_names)
    return release_file(noise, roles, limits, certificate, table, answer)
