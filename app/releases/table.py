"""POST /release/table: the mechanism applied to a table in Arrow, Parquet or CSV.

The upload goes to a file, and a worker makes the answer from it. Sorting stalls nobody, and a table that is damaged on
purpose damages only that worker.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeVar

import pyarrow as pa
from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from app.accounting.published import columns_of_released
from app.errors import Busy
from app.http.auth import access_of, needs
from app.http.bodies import BodyLimit
from app.http.idempotency import KEY_HEADER, REPLAYED_HEADERS, idempotency_key, replayed_headers
from app.http.json_route import SHORT_BYTES, DeclaredRoute, parsed, received
from app.http.problems import ACCESS_PROBLEMS, BUDGET_PROBLEMS, PROBLEMS
from app.http.services import AT_ONCE, Services, services_of
from app.http.workload import in_pool
from app.ledger.answers import Answer
from app.ledger.charges import Charge
from app.releases.answer_formats import DIGEST_HEADER, converted, file_named, is_csv, layout_of, streamed
from app.releases.dry_run import check_dry_run, dry_run
from app.releases.making import Drawn, ReleaseFacts, make_release, mapped
from app.releases.meaning import meaning_of
from app.releases.payments import Terms, payment_of
from app.releases.release_route import releases_of
from app.releases.schemas.certificate import Certificate
from app.releases.schemas.release import TableRequest
from app.releases.spool import SharedFile, digest_of, in_file_thread, overwrite, read_file, spool
from app.releases.uploads import Upload, receive_upload
from app.schemas.case_study import CASE_STUDY
from app.workers.memory import less_memory
from gsh.accounting.mechanism import Mechanism
from gsh.histogram.apply import ReleasedGroups
from gsh.histogram.arrays import Numbers
from gsh.histogram.entropy import operating_system
from gsh.histogram.errors import TooManyGroups
from gsh.histogram.file_formats import MEDIA_TYPES, Format
from gsh.histogram.formats import Limits, format_of, read_table, write_table
from gsh.histogram.interval_columns import check_interval_columns
from gsh.histogram.noise import Noise
from gsh.histogram.tables import CheckedTable, Roles, check_schema, check_table

__all__ = ["router"]

T = TypeVar("T")

_MEMORY_OF_SMALL_FILES = 1024**3
"""To read a table a worker may take three times its limit, but not more than this and 64 times the upload."""


class _TableRoute(DeclaredRoute):
    """Its bodies are spooled to the disk."""

    body_limit = BodyLimit("max_table_bytes", at_once=2)


router = APIRouter(tags=["release"], responses=PROBLEMS | BUDGET_PROBLEMS | ACCESS_PROBLEMS, route_class=_TableRoute)

_BINARY = {"schema": {"type": "string", "format": "binary"}}
_TABLES = {media_type: _BINARY for kind, media_type in MEDIA_TYPES.items() if kind != "json"}
_EXAMPLE = {"mechanism": CASE_STUDY, "epsilon": 0.349, "count_column": "users", "key_columns": ["url", "country"]}
_REQUEST = TableRequest.model_json_schema(ref_template="#/components/schemas/{model}")
_REQUEST["examples"] = [_EXAMPLE]  # without it Swagger fills in both ε and δ


@router.post(
    "/release/table",
    operation_id="releaseTable",
    summary="A private table from a true one",
    dependencies=[needs("release")],
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "The kept rows; for a dry run, its result as JSON.",
            "content": _TABLES | {"application/json": {"schema": {"$ref": "#/components/schemas/DryRunAnswer"}}},
            "headers": REPLAYED_HEADERS | DIGEST_HEADER,
        }
    },
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
                                "description": "An Arrow IPC stream or file, a Parquet file, or CSV with its types in "
                                "the request.",
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
async def release_uploaded_table(request: Request) -> Response:
    """The same for a table, in the part `table` of a form: Arrow (stream or file), Parquet, or CSV.

    The part `request` is JSON and comes first: permission and budget are checked before the table is read. The answer
    has the format of the table. Key columns keep their types, in one canonical form, and may have nulls. Rows are
    sorted by them. Numbers come back as float64, or as int64 if the grid is 1. The certificate is in the metadata of
    the schema; CSV has none. A retry has the same Idempotency-Key and the same content, in any order of rows and any
    format.
    """
    services, releases = services_of(request), releases_of(request)
    access, key = access_of(request.scope), idempotency_key(request)
    services.releases.check_room()  # before a table is read that no worker has room for

    async def check(content: bytes) -> _Checked:
        """Before the table is read. ``make_release`` asks the ledger and the authorizer again."""
        facts = await _facts(services, content)
        check_again = partial(services.authorizer.check_again, request.scope, facts.budget)
        releases.rules.check(facts.mechanism, facts.budget, is_exempt=access.is_admin)
        if facts.is_dry:
            await check_dry_run(releases.payments, access, facts, key)
            return _Checked(check_again, None, facts)
        payment = payment_of(access, facts.budget, key)
        charge = None if payment is None else payment.charge(facts.mechanism, facts.notes)
        if charge is not None:
            await releases.payments.budget_for(charge)
        return _Checked(check_again, charge)

    upload = await receive_upload(request.scope, received(request.receive), services.settings.max_body_bytes, check)
    try:
        facts = upload.checked.dry
        if facts is not None:
            given = _given(services, upload)
            meaning = partial(in_pool, request, services.releases, _meaning, *given)
            dry = await dry_run(releases.payments, access, facts, key, meaning)
            certificate = await in_pool(request, services.releases, _dry_run, *given, dry.terms)
            await upload.checked.again()
            return Response(dry.encoded(certificate), media_type="application/json")
        answer = spool()
        try:
            return await _answer_into(answer, request, upload)
        except BaseException:
            await answer.close()
            raise
    finally:
        await upload.table.close()


class _Checked(NamedTuple):
    """What the check of a request gave: the charge, if a budget pays; or the facts of a dry run."""

    again: Callable[[], Awaitable[None]]
    """Whether the client may still have it, when the table has arrived."""
    charge: Charge | None
    dry: ReleaseFacts | None = None


def _given(services: Services, upload: Upload[_Checked]) -> tuple[bytes, Limits, SharedFile]:
    """What a worker needs to read the table."""
    limits = Limits(services.settings.max_table_groups, services.settings.max_table_bytes)
    return upload.request, limits, upload.table


async def _answer_into(answer: SharedFile, request: Request, upload: Upload[_Checked]) -> Response:
    """The response. Its file is drawn now, or has a stored answer."""
    releases, charge = releases_of(request), upload.checked.charge
    try:
        if charge is not None:
            digest = await in_file_thread(digest_of, upload.table.file)
            fingerprint = await releases.payments.fingerprint(b"release/table", upload.request, digest)
            charge = replace(charge, request=fingerprint)
        making = _InFile(request, upload, answer)
        outcome = await make_release(releases.payments, charge, making, upload.checked.again)
        media_type = outcome.answer.media_type
        if outcome.replayed_at is not None:
            return await _replayed(answer, request, upload, media_type, outcome.replayed_at)
        key = None if charge is None else charge.idempotency_key
        return await streamed(answer, media_type, file_named(key, media_type))
    except OSError:  # most likely the disk has no room for the answer
        pass
    raise Busy  # outside of the handler, whose exception would keep the answer


async def _replayed(answer: SharedFile, request: Request, upload: Upload[_Checked], stored: str, at: str) -> Response:
    """A stored answer, in the format of the table that came now."""
    charge = upload.checked.charge
    assert charge is not None
    wanted = MEDIA_TYPES["csv" if is_csv(charge.notes.layout) else await in_file_thread(_format_of, upload.table)]
    if wanted != stored:
        pool = services_of(request).ledger_pool
        release = await pool.read(lambda ledger: ledger.release(charge.idempotency_key))
        answer = await converted(request, answer, release, wanted)
    try:
        return await streamed(answer, wanted, replayed_headers(at) | file_named(charge.idempotency_key, wanted))
    except BaseException:
        await answer.close()
        raise


def _format_of(table: SharedFile) -> Format:
    """The format of a table that is not CSV."""
    table.file.seek(0)
    return format_of(pa.py_buffer(table.file.read(8)))


class _InFile:
    """A release from one file to another."""

    def __init__(self, request: Request, upload: Upload[_Checked], answer: SharedFile) -> None:
        self._request = request
        self._upload = upload
        self._answer = answer

    async def meaning(self) -> bytes:
        services = services_of(self._request)
        return await in_pool(self._request, services.releases, _meaning, *_given(services, self._upload))

    async def draw(self, terms: Terms | None) -> Drawn:
        services = services_of(self._request)
        given = _given(services, self._upload)
        drawn = await in_pool(self._request, services.releases, _drawn, *given, terms, self._answer)
        kind, release_id, certificate, meaning = drawn
        answer = Answer(MEDIA_TYPES[kind], lambda: read_file(self._answer.file))
        return Drawn(answer, release_id, certificate, meaning)

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
    notes = replace(body.notes(), layout=layout_of(body))
    return ReleaseFacts(body.budget, body.mechanism.to_domain().bare, notes, body.dry_run)


class _Worked(NamedTuple):
    """In a worker: a request and its table, checked."""

    body: TableRequest
    mechanism: Mechanism
    noise: Noise
    kind: Format
    table: CheckedTable

    def certificate(self, terms: Terms | None) -> Certificate:
        draft = Certificate.draft(self.body, self.mechanism, self.noise)
        return draft if terms is None else draft.charged_to(**terms._asdict())

    def intervals(self, released: ReleasedGroups) -> dict[str, Numbers]:
        """The columns with intervals, if any are asked for."""
        level = self.body.intervals
        return {} if level is None else columns_of_released(self.mechanism, self.table.roles, released, level)

    def meaning(self) -> bytes:
        body = self.body
        names = {"key_columns": body.key_columns, "count_column": body.count_column, **body.asked_intervals}
        return meaning_of("release/table", body, body.budget, self.table.digest(), **names)


def _drawn(
    content: bytes, limits: Limits, table: SharedFile, terms: Terms | None, answer: SharedFile
) -> tuple[Format, str, str, bytes]:
    """In a worker: the kept rows, written to a file; their format, the certificate, and what the request means."""

    def draw(worked: _Worked) -> tuple[Format, str, str, bytes]:
        certificate = worked.certificate(terms)
        encoded = certificate.model_dump_json()
        meaning = b"" if terms is None else worked.meaning()
        with answer as sink:
            write_table(worked.kind, worked.table.release(operating_system, worked.intervals), encoded, sink)
        return worked.kind, certificate.release_id, encoded, meaning

    return _with_table(content, limits, table, draw)


def _meaning(content: bytes, limits: Limits, table: SharedFile) -> bytes:
    """In a worker: the digest of what a request means."""
    return _with_table(content, limits, table, _Worked.meaning)


def _dry_run(content: bytes, limits: Limits, table: SharedFile, terms: Terms | None) -> str:
    """In a worker: all checks, and the certificate."""
    return _with_table(content, limits, table, lambda worked: worked.certificate(terms).model_dump_json())


def _with_table(content: bytes, limits: Limits, table: SharedFile, work: Callable[[_Worked], T]) -> T:
    """The result of work on a table that is read and checked."""
    body = parsed(TableRequest, content)
    mechanism = body.mechanism.to_domain()
    noise = Noise(mechanism)
    roles = Roles(tuple(body.key_columns), body.count_column, mechanism.column_names)
    if body.intervals is not None:
        check_interval_columns((roles.count, *roles.values), roles.keys)
    with table as source:
        try:
            upload = mapped(source)
            with less_memory(min(3 * limits.bytes, _MEMORY_OF_SMALL_FILES + 64 * upload.size)):
                kind, read = read_table(upload, limits, body.csv_types, partial(check_schema, roles=roles))
            return work(_Worked(body, mechanism, noise, kind, check_table(noise, read, roles)))
        except MemoryError:
            pass
    # Outside of the handler, whose exception would keep the memory.
    raise TooManyGroups("/table", "must be smaller: the service has no memory for it")
