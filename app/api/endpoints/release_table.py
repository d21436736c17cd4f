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
from app.service.parcels import Parcel
from app.service.payments import payment_of
from app.service.releases import make_release, release_file
from app.service.spool import SharedFile, chunks_of, digest_of, in_file_thread, overwrite, read_file, spool
from gsh.accounting.mechanism import Mechanism
from gsh.histogram.noise import Noise
from gsh.histogram.tables import Format, Limits, Roles

__all__ = ["router"]

_Request = Parcel[tuple[TableRequest, Mechanism]]
"""The part ``request``, and its mechanism: built once, for cost and noise."""


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

    Send `request` first: it is then checked, also against the budget, before the table is read. The answer has the
    format of the table. Key columns keep their types, in one canonical form, and may have nulls. Rows are sorted by
    them. Numbers come back as float64, or as int64 where the grid is 1. The certificate is in the metadata of the
    schema. A request comes again if its Idempotency-Key and both parts are the same.
    """
    services, access, key = services_of(request), access_of(request.scope), idempotency_key(request)
    services.releases.check_room()  # before a table is read that no worker has room for

    async def check(content: bytes) -> tuple[_Request, Charge | None]:
        budget, mechanism, read = await _read(services, content)
        access.check(budget)
        payment = payment_of(budget, key, access.client)
        if payment is None:
            return read, None
        charge = payment.charge(mechanism)
        await services.payments.is_answered(charge)
        return read, charge

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


async def _answer_into(answer: SharedFile, request: Request, upload: Upload[tuple[_Request, Charge | None]]) -> str:
    """The media type of the answer, which is written to a file: drawn now, or stored before."""
    services, (read, charge) = services_of(request), upload.checked
    limits = Limits(services.settings.max_table_groups, services.settings.max_table_bytes)

    async def draw() -> Answer:
        kind = await in_pool(request, services.releases, _drawn, read, limits, upload.table, answer)
        return Answer(_MEDIA_TYPES[kind], lambda: read_file(answer.file))

    async def drop() -> None:
        """No worker waits: the upload may take hours."""

    def collect(media_type: str, content: Iterable[bytes]) -> Answer:
        overwrite(answer.file, content)  # what was drawn, if anything, is forgotten
        return Answer(media_type, lambda: read_file(answer.file))

    try:
        if charge is not None:
            digest = await in_file_thread(digest_of, upload.table.file)
            fingerprint = await services.payments.fingerprint(b"release/table", upload.request, digest)
            charge = replace(charge, request=fingerprint)
        return (await make_release(services.payments, charge, draw, drop, collect)).media_type
    except OSError:  # most likely the disk has no room for the answer
        pass
    raise Busy  # outside of the handler, whose exception would keep the answer


async def _read(services: Services, content: bytes) -> tuple[str | None, Mechanism, _Request]:
    """The budget, the mechanism without its columns, and the whole request for the worker that draws.

    Not ``in_pool``: while it waits it reads from the client, and would lose a part of the table.
    """
    if len(content) > SHORT_BYTES:
        return await services.releases.run(_read_content, content)
    body = parsed(TableRequest, content)
    return await services.releases.run(_built, body) if body.mechanism.work > AT_ONCE else _built(body)


def _read_content(content: bytes) -> tuple[str | None, Mechanism, _Request]:
    return _built(parsed(TableRequest, content))


def _built(body: TableRequest) -> tuple[str | None, Mechanism, _Request]:
    mechanism = body.mechanism.to_domain()
    return body.budget, mechanism.bare, Parcel((body, mechanism))


def _drawn(request: _Request, limits: Limits, table: SharedFile, answer: SharedFile) -> Format:
    """In a worker: the kept rows, written to a file."""
    body, mechanism = request.open()
    noise = Noise(mechanism)
    certificate = Certificate.of(body, mechanism, noise).model_dump_json()
    roles = Roles(tuple(body.key_columns), body.count_column, mechanism.column_names)
    return release_file(noise, roles, limits, certificate, table, answer)
