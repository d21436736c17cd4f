"""POST /release/table: the mechanism applied to an Arrow IPC stream or a Parquet file.

The upload is spooled, and another process makes the answer from it: sorting holds nobody up, and a table that is
damaged on purpose damages only that process.
"""

import hashlib
import mmap
from collections.abc import AsyncIterator, Iterable, Iterator
from functools import partial
from typing import IO, Annotated

import pyarrow as pa
from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from pydantic import Field

from app.api.auth import access_of, needs
from app.api.bodies import BodyLimit
from app.api.dependencies import Services, services_of
from app.api.json_route import DeclaredRoute, parsed_body, received
from app.api.problems import ACCESS_PROBLEMS, BUDGET_PROBLEMS, PROBLEMS, Busy
from app.api.schemas.certificate import CASE_STUDY, Certificate
from app.api.schemas.mechanism import MOST_COLUMNS, Name
from app.api.spending import KEY_HEADER, Payable, idempotency_key, pay, paying
from app.api.uploads import SharedFile, Upload, in_file_thread, receive_upload, spool, write_all
from app.api.workload import in_pool
from app.ledger.store import Answer
from gsh.release.entropy import operating_system
from gsh.release.errors import TooManyGroups
from gsh.release.noise import Noise
from gsh.release.tables import Format, Limits, Roles, read_table, release_table, write_table

__all__ = ["router"]


class _TableRoute(DeclaredRoute):
    """Its bodies are spooled to the disk."""

    body_limit = BodyLimit("max_table_bytes", at_once=2)


router = APIRouter(tags=["release"], responses=PROBLEMS | BUDGET_PROBLEMS | ACCESS_PROBLEMS, route_class=_TableRoute)

_CHUNK_BYTES = 256 * 1024
_MEDIA_TYPES: dict[Format, str] = {
    "arrow": "application/vnd.apache.arrow.stream",
    "parquet": "application/vnd.apache.parquet",
}


class TableRequest(Payable):
    """A mechanism, and which columns of the table are what. Those of aggregates/names are the further columns."""

    count_column: Name = Field(
        title="Count column", description="The column with the true numbers of users; integers.", examples=["users"]
    )
    key_columns: Annotated[list[Name], Field(min_length=1, max_length=MOST_COLUMNS)] = Field(
        title="Key columns",
        description="The columns that together identify a group, in the order to sort by; of any scalar type.",
        examples=[["url", "country"]],
    )


_EXAMPLE = {"mechanism": CASE_STUDY, "epsilon": 0.349, "count_column": "users", "key_columns": ["url", "country"]}
_BINARY = {"schema": {"type": "string", "format": "binary"}}
# What it refers to is in the document already, because /release refers to it too.
_REQUEST = TableRequest.model_json_schema(ref_template="#/components/schemas/{model}")
del _REQUEST["$defs"]
_REQUEST["examples"] = [_EXAMPLE]  # else Swagger would fill in both ε and δ


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

    The answer has the format of the table. Key columns keep their types, in one canonical form, and may have nulls.
    Rows are sorted by them. Numbers come back as float64, or as int64 where the grid is 1. The certificate is in the
    metadata of the schema. A request comes again if its Idempotency-Key and both parts are the same.
    """
    services, key = services_of(request), idempotency_key(request)
    services.releases.check_room()  # before a table is taken in, for which there is none
    upload = await receive_upload(request.scope, received(request.receive), services.settings.max_body_bytes)
    with upload.table:
        answer = spool()
        try:
            media_type = await _answer_into(answer, request, services, upload, key)
        except OSError:  # no room for the answer, most likely
            media_type = None
        except BaseException:
            answer.file.close()
            raise
    if media_type is None:
        answer.file.close()
        raise Busy
    size = answer.file.seek(0, 2)
    return StreamingResponse(_chunks(answer.file), media_type=media_type, headers={"Content-Length": str(size)})


async def _answer_into(
    answer: SharedFile, request: Request, services: Services, upload: Upload, key: str | None
) -> str:
    """The media type of the answer, which is written to a file: made now, or paid for before."""
    body = await parsed_body(request, TableRequest, upload.request, services.releases)
    access = access_of(request.scope)
    access.check(body.budget)
    limits = Limits(services.settings.max_table_groups, services.settings.max_table_bytes)

    async def make() -> Answer:
        kind = await in_pool(request, services.releases, _release_table, body, limits, upload.table, answer)
        return Answer(_MEDIA_TYPES[kind], lambda: _read(answer.file))

    payment = paying(body.budget, key, access.client)
    if payment is None:
        return (await make()).media_type
    mechanism = await services.to_domain(request, body.mechanism, services.releases)
    digest = await in_file_thread(partial(_digest, upload.table.file))
    parts = (b"release/table", upload.request, digest)
    stored, made = await pay(services, payment, mechanism.bare, parts, make)
    if made is None:  # what was drawn beside it, if anything, is forgotten
        await services.ledger_pool.fetch(lambda ledger: _overwrite(answer.file, ledger.content(stored)))
    return stored.media_type


def _release_table(body: TableRequest, limits: Limits, upload: SharedFile, answer: SharedFile) -> Format:
    """In another process: from the one file to the other."""
    with upload as source, answer as sink:
        mechanism = body.mechanism.to_domain()
        noise = Noise(mechanism)
        certificate = Certificate.of(body, mechanism, noise).model_dump_json()
        names = mechanism.aggregates.names if mechanism.aggregates is not None else ()
        roles = Roles(tuple(body.key_columns), body.count_column, names)
        try:
            kind: Format | None
            kind, table = read_table(_mapped(source), limits)
            write_table(kind, release_table(noise, table, roles, operating_system), certificate, sink)
        except MemoryError:
            kind = None
    if kind is None:
        raise TooManyGroups("/table", "must be smaller: the service has no memory for it")
    return kind


def _mapped(file: IO[bytes]) -> pa.Buffer:
    """The file as memory that the operating system fills as it is read."""
    is_empty = file.seek(0, 2) == 0
    return pa.py_buffer(b"" if is_empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _digest(file: IO[bytes]) -> bytes:
    digest = hashlib.sha256()
    for chunk in _read(file):
        digest.update(chunk)
    return digest.digest()


def _overwrite(file: IO[bytes], content: Iterable[bytes]) -> None:
    file.seek(0)
    file.truncate()
    for part in content:
        write_all(file, part)


def _read(file: IO[bytes]) -> Iterator[bytes]:
    file.seek(0)
    while chunk := file.read(_CHUNK_BYTES):
        yield chunk


async def _chunks(file: IO[bytes]) -> AsyncIterator[bytes]:
    with file:
        for chunk in _read(file):
            yield chunk
