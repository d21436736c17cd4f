"""A table in a file: one posted request, read from a form to a file, and drawn by a worker to another file.

Sorting stalls nobody, and a table that is damaged on purpose damages only that worker.
"""

import pickle
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar

import pyarrow as pa

from app.accounting.published import columns_of_released
from app.http.json_route import SHORT_BYTES, parsed
from app.http.services import AT_ONCE
from app.http.workload import RequestWorkers
from app.ledger.answers import Answer
from app.ledger.releases import RecordedRelease
from app.ledger.store import Ledger
from app.releases.answer_formats import is_csv, layout_of
from app.releases.asked import Asked, Drawn, Outcome, Terms, drafted, encoded, meaning_of, notes_of, on_terms
from app.releases.schemas.release import TableRequest
from app.releases.spool import SharedFile, digest_of, in_file_thread, mapped, overwrite, read_file, spool
from app.releases.uploads import Form
from app.workers.memory import less_memory
from app.workers.work_bounds import work_of
from gsh.accounting.mechanism import Mechanism
from gsh.certificate import Certificate
from gsh.errors import TooManyGroups
from gsh.histogram.apply import ReleasedGroups
from gsh.histogram.arrays import Numbers
from gsh.histogram.entropy import operating_system
from gsh.histogram.file_formats import MEDIA_TYPES, Format
from gsh.histogram.formats import Limits, format_of, read_table, write_table
from gsh.histogram.noise import Noise
from gsh.histogram.tables import CheckedTable, Roles, check_interval_columns, check_schema, check_table

__all__ = ["UploadedTable"]

T = TypeVar("T")

_MEMORY_OF_SMALL_FILES = 1024**3
"""To read a table a worker may take three times its limit, but not more than this and 64 times the upload."""


class _Request(NamedTuple):
    """The part ``request`` of a form."""

    asked: Asked
    packed: bytes
    """The parsed request and its mechanism, for the worker. Packed, they take little memory while the table arrives."""


class UploadedTable:
    """The form of POST /release/table, and its answer in a file. The caller closes it."""

    def __init__(self, form: Form, workers: RequestWorkers, limits: Limits, seconds: float) -> None:
        self._form = form
        self._workers = workers
        self._limits = limits
        self._seconds = seconds
        self._arrived: SharedFile | None = None
        self.answer: SharedFile | None = None
        """None until the table has arrived, and for a dry run."""

    async def ask(self) -> Asked:
        """What reads the form notices a client that hangs up."""
        self._request = await self._form.request(self._read)
        return self._request.asked

    async def receive(self) -> bool:
        self._arrived = await self._form.table()
        self.answer = None if self._request.asked.is_dry else spool()
        return True

    async def sent(self) -> tuple[bytes, ...]:
        return b"release/table", self._form.content, await in_file_thread(digest_of, self._table.file)

    async def meaning(self) -> bytes:
        return await self._workers.run(_meaning, *self._given)

    async def certificate(self, terms: Terms | None) -> str:
        return await self._workers.run(_certificate, *self._given, terms)

    async def draw(self, terms: Terms | None) -> Drawn:
        answer = self._answer
        drawn = await self._workers.run(_drawn, *self._given, terms, answer)
        kind, release_id, certificate, meaning = drawn
        return Drawn(Answer(MEDIA_TYPES[kind], lambda: read_file(answer.file)), release_id, certificate, meaning)

    def collect(self, ledger: Ledger, release: RecordedRelease) -> Answer:
        file = self._answer.file
        overwrite(file, ledger.content(release))  # what was drawn, if anything, is forgotten
        return Answer(release.media_type or "", lambda: read_file(file))

    async def stop(self) -> None:
        """No worker waits: the upload may take hours."""

    async def media_type(self, outcome: Outcome) -> str:
        """The format of the answer: that of the table, even if a stored answer has another one."""
        if outcome.earlier is None:
            return outcome.answer.media_type
        if is_csv(self._request.asked.notes.layout):
            return MEDIA_TYPES["csv"]
        return MEDIA_TYPES[await in_file_thread(_format_of, self._table)]

    async def close(self) -> None:
        """Close the table. The answer stays: it is sent next."""
        self._form.stop()
        if self._arrived is not None:
            await self._arrived.close()

    async def forget(self) -> None:
        """Close the answer, which is not sent."""
        if self.answer is not None:
            await self.answer.close()

    @property
    def _table(self) -> SharedFile:
        assert self._arrived is not None
        return self._arrived

    @property
    def _answer(self) -> SharedFile:
        assert self.answer is not None
        return self.answer

    @property
    def _given(self) -> tuple[bytes, Limits, SharedFile]:
        """What a worker needs to read the table."""
        return self._request.packed, self._limits, self._table

    async def _read(self, content: bytes) -> _Request:
        """A worker reads a long request, or one whose mechanism takes long."""
        if len(content) > SHORT_BYTES:
            return await self._workers.pool.run_within(self._seconds, _read_content, content)
        body = parsed(TableRequest, content)
        if work_of(body.mechanism) > AT_ONCE:
            return await self._workers.pool.run_within(self._seconds, _read, body)
        return _read(body)


def _format_of(table: SharedFile) -> Format:
    """The format of a table that is not CSV."""
    table.file.seek(0)
    return format_of(pa.py_buffer(table.file.read(8)))


def _read_content(content: bytes) -> _Request:
    return _read(parsed(TableRequest, content))


def _read(body: TableRequest) -> _Request:
    mechanism, notes = body.mechanism.to_domain(), notes_of(body, layout_of(body))
    asked = Asked(body.budget, (mechanism.without_columns,), notes, body.dry_run)
    return _Request(asked, pickle.dumps((body, mechanism)))


class _Worked(NamedTuple):
    """In a worker: a request and its table, checked."""

    body: TableRequest
    mechanism: Mechanism
    noise: Noise
    kind: Format
    table: CheckedTable

    def certificate(self, terms: Terms | None) -> Certificate:
        return on_terms(drafted(self.body, {"": self.mechanism}, {"": self.noise}), terms)

    def intervals(self, released: ReleasedGroups) -> dict[str, Numbers]:
        """The columns with intervals, if any are asked for."""
        level = self.body.intervals
        return {} if level is None else columns_of_released(self.mechanism, self.table.roles, released, level)

    def meaning(self) -> bytes:
        body = self.body
        names = {"key_columns": body.key_columns, "count_column": body.count_column, **body.asked_intervals}
        return meaning_of("release/table", body, body.budget, self.table.digest(), **names)


def _drawn(
    packed: bytes, limits: Limits, table: SharedFile, terms: Terms | None, answer: SharedFile
) -> tuple[Format, str, str, bytes]:
    """In a worker: the kept rows, written to a file; their format, the certificate, and what the request means."""

    def draw(worked: _Worked) -> tuple[Format, str, str, bytes]:
        certificate = worked.certificate(terms)
        shown = encoded(certificate)
        meaning = b"" if terms is None else worked.meaning()
        with answer as sink:
            write_table(worked.kind, worked.table.release(operating_system, worked.intervals), shown, sink)
        return worked.kind, certificate.release_id, shown, meaning

    return _with_table(packed, limits, table, draw)


def _meaning(packed: bytes, limits: Limits, table: SharedFile) -> bytes:
    """In a worker: the digest of what a request means."""
    return _with_table(packed, limits, table, _Worked.meaning)


def _certificate(packed: bytes, limits: Limits, table: SharedFile, terms: Terms | None) -> str:
    """In a worker: all checks, and the certificate."""
    return _with_table(packed, limits, table, lambda worked: encoded(worked.certificate(terms)))


def _with_table(packed: bytes, limits: Limits, table: SharedFile, work: Callable[[_Worked], T]) -> T:
    """The result of work on a table that is read and checked."""
    body, mechanism = pickle.loads(packed)  # noqa: S301 - made by _read
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
