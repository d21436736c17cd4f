"""The stored answer of a release, as it is or as the same rows in another format."""

import base64
import json
from contextlib import ExitStack
from typing import Any

import pyarrow as pa
from fastapi import Request
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from app.errors import Busy
from app.http.headers import content_disposition
from app.http.services import services_of
from app.http.workload import in_pool
from app.ledger.releases import RecordedRelease
from app.releases.schemas.release import TableRequest
from app.releases.spool import SharedFile, chunks_of, digest_of, in_file_thread, mapped, overwrite, spool
from gsh.histogram.conversion import convert
from gsh.histogram.file_formats import MEDIA_TYPES, AnswerFormat
from gsh.histogram.formats import ANY_SIZE, CERTIFICATE, read_table
from gsh.histogram.tables import Roles

__all__ = ["DIGEST_HEADER", "answer_as", "converted", "file_named", "is_csv", "layout_of", "streamed"]

DIGEST = "Repr-Digest"
DIGEST_HEADER = {
    DIGEST: {
        "description": "The SHA-256 of the bytes of this answer (RFC 9530), in Base64.",
        "schema": {"type": "string", "examples": ["sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"]},
    }
}
"""The response header as the OpenAPI document describes it."""
_FORMATS = {media_type: kind for kind, media_type in MEDIA_TYPES.items()}


class _FileResponse(StreamingResponse):
    """A response from a file. When it ends, however it ends, the file is closed and ``held`` is over."""

    def __init__(
        self, answer: SharedFile, size: int, media_type: str, headers: dict[str, str], held: ExitStack | None
    ) -> None:
        super().__init__(chunks_of(answer), media_type=media_type, headers=headers | {"Content-Length": str(size)})
        self._answer, self._held = answer, held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            if self._held is not None:
                self._held.close()
            await self._answer.close()


async def answer_as(request: Request, release: RecordedRelease, media_type: str) -> StreamingResponse:
    """The answer in the format of a media type."""
    held = ExitStack()
    held.enter_context(services_of(request).downloads.taken())
    try:
        stored = await _stored(request, release, media_type)
        headers = {"Vary": "Accept"} | file_named(release.key, media_type)
        return await streamed(stored, media_type, headers, held)
    except BaseException:
        held.close()
        raise


async def _stored(request: Request, release: RecordedRelease, media_type: str) -> SharedFile:
    """The stored answer in a file."""
    stored = spool()
    try:
        pool = services_of(request).ledger_pool
        await pool.fetch(lambda ledger: overwrite(stored.file, ledger.content(release)))
        return stored if media_type == release.media_type else await converted(request, stored, release, media_type)
    except OSError:  # most likely the disk has no room for the answer
        await stored.close()
    except BaseException:
        await stored.close()
        raise
    raise Busy  # outside of the handler, whose exception would keep the answer


async def streamed(
    answer: SharedFile, media_type: str, headers: dict[str, str], held: ExitStack | None = None
) -> StreamingResponse:
    """A response from a file, with the SHA-256 of its bytes, by which a client finds what was damaged on the way."""
    digest = base64.b64encode(await in_file_thread(digest_of, answer.file)).decode()
    size = await in_file_thread(answer.file.seek, 0, 2)
    return _FileResponse(answer, size, media_type, headers | {DIGEST: f"sha-256=:{digest}:"}, held)


async def converted(request: Request, stored: SharedFile, release: RecordedRelease, media_type: str) -> SharedFile:
    """The same rows in another file. The stored one is closed."""
    target = spool()
    try:
        kinds = _FORMATS[release.media_type or ""], _FORMATS[media_type]
        notes = release.notes
        await in_pool(
            request, services_of(request).conversions, _convert, *kinds, notes.layout, notes.certificate, stored, target
        )
    except BaseException:
        await target.close()
        raise
    finally:
        await stored.close()
    return target


def layout_of(body: TableRequest) -> str:
    """What a conversion must know of a table, as it is stored with its release."""
    layout = {"key_columns": body.key_columns, "count_column": body.count_column, "csv_types": body.csv_types}
    return json.dumps(layout | body.asked_intervals)


def is_csv(layout: str) -> bool:
    """Whether a request with this layout posts CSV."""
    return json.loads(layout)["csv_types"] is not None


def _convert(
    stored: AnswerFormat, into: AnswerFormat, layout: str, certificate: str, source: SharedFile, target: SharedFile
) -> None:
    """In a worker: from one file to the other."""
    with source as read, target as sink:
        content = mapped(read)
        if stored == "json":
            convert(content, stored, into, sink)
            return
        fields = json.loads(layout) if layout else {}
        roles = _roles(fields, certificate) if fields else _roles_of_version_0_1(content)
        convert(
            content, stored, into, sink, roles, fields.get("csv_types"), certificate or None, fields.get("intervals")
        )


def _roles(fields: dict[str, Any], certificate: str) -> Roles:
    return Roles(tuple(fields["key_columns"]), fields["count_column"], _value_names(certificate))


def _roles_of_version_0_1(content: pa.Buffer) -> Roles:
    """Keys come first, then the count, then the values, which the certificate in the table names."""
    _, table = read_table(content, ANY_SIZE)
    values = _value_names(table.schema.metadata[CERTIFICATE.encode()].decode())
    *keys, count = table.schema.names[: len(table.schema.names) - len(values)]
    return Roles(tuple(keys), count, values)


def _value_names(certificate: str) -> tuple[str, ...]:
    aggregates = json.loads(certificate)["mechanism"].get("aggregates") or {}
    return tuple(aggregates.get("names", ()))


def file_named(key: str | None, media_type: str) -> dict[str, str]:
    """The header that gives an answer a name with the ending of its format."""
    return content_disposition(key, _FORMATS[media_type].replace("arrow_file", "arrow"))
