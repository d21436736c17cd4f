"""The stored answer of a release, as it is or as the same rows in another format."""

import base64
import json
import zipfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Literal, ParamSpec, TypeVar

import pyarrow as pa
from fastapi import Request
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from app.errors import Busy
from app.http.headers import content_disposition, preferred
from app.http.problems.errors import NotAcceptable
from app.http.services import services_of
from app.http.workload import RequestWorkers, in_pool
from app.ledger.releases import RecordedRelease
from app.releases.asked import Signed, encoded
from app.releases.recorded import with_contents
from app.releases.schemas.release import TableRequest
from app.releases.spool import SharedFile, chunks_of, digest_of, in_file_thread, mapped, overwrite, spool
from gsh.histogram.archives import formats_of
from gsh.histogram.conversion import Layout, convert, convert_tables
from gsh.histogram.file_formats import JSON, MEDIA_TYPES, ZIP, AnswerFormat, Format
from gsh.histogram.formats import ANY_SIZE, CERTIFICATE, read_table
from gsh.histogram.roles import Roles
from gsh.proof.envelopes import statement_of

__all__ = [
    "DIGEST_HEADER",
    "answer_of",
    "are_tables",
    "converted",
    "file_named",
    "formats_in",
    "layout_of",
    "layouts_of",
    "streamed",
    "table_names",
    "with_certificate",
    "without_answer",
]

P = ParamSpec("P")
T = TypeVar("T")

DIGEST = "Repr-Digest"
DIGEST_HEADER = {
    DIGEST: {
        "description": "The SHA-256 of the bytes of this answer (RFC 9530), in Base64.",
        "schema": {"type": "string", "examples": ["sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"]},
    }
}
"""The response header as the OpenAPI document describes it."""
_FORMATS = {media_type: kind for kind, media_type in MEDIA_TYPES.items()}
_EVERY = tuple(MEDIA_TYPES.values())
_SHORT_CERTIFICATE = 32 * 1024
"""In characters: it is parsed in about a millisecond."""


class _FileResponse(StreamingResponse):
    """A response from a file. At its end, also after an error, the file is closed and ``held`` is left."""

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


async def answer_of(request: Request, release: RecordedRelease, table: str | None) -> StreamingResponse:
    """The answer in the format that Accept prefers; or one of its tables."""
    held = ExitStack()
    held.enter_context(services_of(request).downloads.taken())
    try:
        stored, media_type = await _stored(request, release, table)
        named = release.key if table is None else f"{release.key}-{table}"
        headers = {"Vary": "Accept"} | file_named(named, media_type)
        return await streamed(stored, media_type, headers, held)
    except BaseException:
        held.close()
        raise


def are_tables(release: RecordedRelease) -> bool:
    """Whether a release has named tables. Its certificate may be large, and is not parsed for that.

    Only a member of the certificate has these characters: in a text, a quote comes after a backslash.
    """
    return '"tables":[' in release.notes.certificate


async def table_names(request: Request, release: RecordedRelease) -> list[str]:
    """The names of the tables of a release; empty if it is one table without a name."""
    if not are_tables(release):
        return []
    return await with_certificate(request, release, _names, release.notes.certificate)


async def with_certificate(
    request: Request, release: RecordedRelease, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """The result of a function that parses the certificate of a release. A worker parses a large one."""
    if len(release.notes.certificate) <= _SHORT_CERTIFICATE:
        return function(*args, **kwargs)
    return await in_pool(request, services_of(request).conversions, function, *args, **kwargs)


async def _stored(request: Request, release: RecordedRelease, table: str | None) -> tuple[SharedFile, str]:
    """The stored answer in the preferred format, in a file, and its media type."""
    if table is None:  # before the answer is fetched
        media_type = _preferred(request, release.media_type or "", [ZIP, JSON] if are_tables(release) else _EVERY)
    stored = spool()
    try:
        pool = services_of(request).ledger_pool
        await pool.fetch(lambda ledger: overwrite(stored.file, ledger.content(release)))
        if table is not None:
            kinds = await in_file_thread(formats_in, stored) if release.media_type == ZIP else {}
            media_type = _preferred(request, MEDIA_TYPES[kinds.get(table, "json")], _EVERY)
        elif media_type == release.media_type:
            return stored, media_type
        return await converted(request, stored, release, media_type, table), media_type
    except OSError:  # most likely the disk has no room for the answer
        await stored.close()
    except BaseException:
        await stored.close()
        raise
    raise Busy  # outside of the handler, whose exception would keep the answer


def _preferred(request: Request, stored: str, others: Sequence[str]) -> str:
    media_type = preferred(request, list(dict.fromkeys([stored, *others])))
    if media_type is not None:
        return media_type
    if ZIP in others:
        raise NotAcceptable(f"must allow {ZIP} or {JSON} for several tables; table= gives one of them in any format")
    raise HTTPException(406)


async def streamed(
    answer: SharedFile, media_type: str, headers: dict[str, str], held: ExitStack | None = None
) -> StreamingResponse:
    """A response from a file, with the SHA-256 of its bytes, by which a client finds what was damaged on the way."""
    digest = base64.b64encode(await in_file_thread(digest_of, answer.file)).decode()
    size = await in_file_thread(answer.file.seek, 0, 2)
    return _FileResponse(answer, size, media_type, headers | {DIGEST: f"sha-256=:{digest}:"}, held)


async def converted(
    request: Request,
    stored: SharedFile,
    release: RecordedRelease,
    into: str | Mapping[str, Format],
    table: str | None = None,
) -> SharedFile:
    """The same rows in another file. The stored one is closed.

    ``into`` is a media type, or the format of each table of an archive. ``table`` is the only table to give.
    """
    target = spool()
    try:
        notes, pool = release.notes, services_of(request).conversions
        stored_as, certificate = release.media_type or "", notes.certificate
        texts, workers = (notes.layout, certificate, notes.contents), RequestWorkers(request, pool)
        if are_tables(release):
            steps = workers.begin(_convert_tables, stored_as, into, *texts, table, stored, target)
        else:
            assert isinstance(into, str)
            steps = workers.begin(_convert, stored_as, into, *texts, stored, target)
        try:
            statement = await steps.facts()
            sealed = None if statement is None else await services_of(request).signer.sealed(statement)
            await steps.finish(Signed(sealed))
        finally:
            await steps.stop()
    except BaseException:
        await target.close()
        raise
    finally:
        await stored.close()
    return target


def layout_of(body: TableRequest) -> str:
    """What a conversion must know of the tables, as it is stored with their release."""
    names = ("key_columns", "count_column", "csv_types")
    layouts = [{name: getattr(table, name) for name in names} for table in body.posted.values()]
    if body.tables is None:
        return json.dumps(layouts[0] | body.asked_intervals)
    named = [{"name": table.name} | layout for table, layout in zip(body.tables, layouts, strict=True)]
    return json.dumps({"tables": named} | body.asked_intervals)


def layouts_of(layout: str) -> dict[str, dict[str, Any]]:
    """The layout of each table by its name. The only table of a request has the empty name."""
    stored = json.loads(layout)
    return {table["name"]: table for table in stored["tables"]} if "tables" in stored else {"": stored}


def formats_in(stored: SharedFile) -> dict[str, Format]:
    """In a thread: the format of each table of a stored archive."""
    stored.file.seek(0)
    with zipfile.ZipFile(stored.file) as archive:
        return formats_of(archive.namelist())


def _convert_tables(
    stored: str,
    into: str | Mapping[str, Format],
    layout: str,
    certificate: str,
    contents: str,
    table: str | None,
    source: SharedFile,
    target: SharedFile,
) -> Generator[bytes | None, Signed, None]:
    """In a worker: several tables from one file to the other, or one of them, with a signature of what it yields."""
    signed = yield statement_of(with_contents(certificate, contents))
    fields = json.loads(layout) if layout else {}
    layouts = {}
    if fields:
        described = {each["name"]: each for each in json.loads(certificate)["tables"]}
        for name, each in layouts_of(layout).items():
            layouts[name] = Layout(_roles(each, described[name]), each["csv_types"] or {})
    if into == ZIP:
        into = dict.fromkeys(_names(certificate), "parquet")
    kind: AnswerFormat | Mapping[str, Format] = _FORMATS[into] if isinstance(into, str) else into
    with source as read, target as sink:
        is_json = stored == JSON
        form: Literal["json", "zip"] = "json" if is_json else "zip"
        convert_tables(mapped(read), form, kind, sink, layouts, fields.get("intervals"), table, signed.signature)


def without_answer(release: RecordedRelease) -> RecordedRelease:
    """The same without the key of its answer, which no worker needs to read a certificate."""
    return replace(release, place=None)


def _names(certificate: str) -> list[str]:
    return [table["name"] for table in json.loads(certificate)["tables"]]


def _convert(
    stored_as: str,
    media_type: str,
    layout: str,
    certificate: str,
    contents: str,
    source: SharedFile,
    target: SharedFile,
) -> Generator[bytes | None, Signed, None]:
    """In a worker: from one file to the other, with a signature of what it yields."""
    said = with_contents(certificate, contents) if certificate else None
    signed = yield None if said is None else statement_of(said)
    stored, into = _FORMATS[stored_as], _FORMATS[media_type]
    with source as read, target as sink:
        content = mapped(read)
        if stored == "json":
            convert(content, stored, into, sink, signature=signed.signature)
            return
        fields = json.loads(layout) if layout else {}
        roles = _roles(fields, json.loads(certificate)) if fields else _roles_of_version_0_1(content)
        text = None if said is None else encoded(said)
        further = fields.get("csv_types"), text, fields.get("intervals"), signed.signature
        convert(content, stored, into, sink, roles, *further)


def _roles(fields: dict[str, Any], described: dict[str, Any]) -> Roles:
    return Roles(tuple(fields["key_columns"]), fields["count_column"], _value_names(described))


def _roles_of_version_0_1(content: pa.Buffer) -> Roles:
    """Keys come first, then the count, then the values, which the certificate in the table names."""
    _, table = read_table(content, ANY_SIZE)
    values = _value_names(json.loads(table.schema.metadata[CERTIFICATE.encode()]))
    *keys, count = table.schema.names[: len(table.schema.names) - len(values)]
    return Roles(tuple(keys), count, values)


def _value_names(described: dict[str, Any]) -> tuple[str, ...]:
    """The names of the further columns of a table that a certificate describes."""
    aggregates = described["mechanism"].get("aggregates") or {}
    return tuple(aggregates.get("names", ()))


def file_named(key: str | None, media_type: str) -> dict[str, str]:
    """The header that gives an answer a name with the ending of its format."""
    ending = "zip" if media_type == ZIP else _FORMATS[media_type].replace("arrow_file", "arrow")
    return content_disposition(key, ending)
