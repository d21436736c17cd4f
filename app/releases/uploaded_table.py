"""Tables in files: one posted request, read from a form to files, and drawn by a worker to another file.

Sorting stalls nobody, and a table that is damaged on purpose damages only that worker.
"""

import json
import pickle
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import IO, Any, NamedTuple

import pyarrow as pa

from app.accounting.published import columns_of_released
from app.http.json_route import SHORT_BYTES, parsed
from app.http.workload import RequestWorkers
from app.ledger.answers import Answer
from app.ledger.releases import RecordedRelease
from app.ledger.store import Ledger
from app.releases.answer_formats import layout_of, layouts_of
from app.releases.asked import (
    Asked,
    BudgetTerms,
    Drawn,
    Sign,
    Signed,
    drafted,
    encoded,
    in_table,
    judged,
    meaning_of,
    meaning_of_tables,
    notes_of,
    on_terms,
)
from app.releases.bounds import Bounds
from app.releases.schemas.release import ColumnsTableIn, TableRequest
from app.releases.spool import SharedFile, digest_of, in_file_thread, mapped, overwrite, read_file, spool
from app.releases.uploads import Form
from app.workers.memory import less_memory
from gsh.accounting.mechanism import AnyMechanism
from gsh.certificate import Certificate
from gsh.errors import TooManyGroups
from gsh.histogram.apply import KeptGroups
from gsh.histogram.archives import write_archive
from gsh.histogram.arrays import Numbers
from gsh.histogram.entropy import operating_system
from gsh.histogram.file_formats import MEDIA_TYPES, ZIP, Format
from gsh.histogram.formats import Limits, decoded_size, format_of, read_table, write_table
from gsh.histogram.noise import Noise
from gsh.histogram.public_keys import POSTED
from gsh.histogram.released_content import contents_of
from gsh.histogram.roles import Roles, check_interval_columns
from gsh.histogram.tables import CheckedTable, check_schema, check_table
from gsh.proof.envelopes import statement_of

__all__ = ["UploadedTables"]

_MEMORY_OF_SMALL_FILES = 1024**3
"""To read a table a worker may take three times its limit, but not more than this and 64 times the upload."""


class _Request(NamedTuple):
    """The part ``request`` of a form."""

    asked: Asked
    names: tuple[str, ...]
    """Those of the tables. The only table of a request has the empty name."""
    packed: bytes
    """The parsed request and its mechanisms, for the worker. Packed, they take little memory while tables arrive."""


class UploadedTables:
    """The form of POST /release/table, and its answer in a file. The caller closes it."""

    def __init__(
        self, form: Form, workers: RequestWorkers, limits: Limits, bounds: Bounds, sign: Sign, seconds: float
    ) -> None:
        self._form = form
        self._sign = sign
        self._workers = workers
        self._limits = limits
        self._bounds = bounds
        self._seconds = seconds
        self._arrived: list[SharedFile] = []
        self.answer: SharedFile | None = None
        """None until the tables have arrived, and for a dry run."""

    async def ask(self) -> Asked:
        """What reads the form notices a client that hangs up."""
        self._request = await self._form.request(self._read)
        return self._request.asked

    async def receive(self) -> bool:
        self._arrived = await self._form.tables(self._request.names)
        self.answer = None if self._request.asked.is_dry else spool()
        return True

    async def sent(self) -> tuple[bytes, ...]:
        digests = [await in_file_thread(digest_of, table.file) for table in self._arrived]
        return b"release/table", self._form.content, *digests

    async def meaning(self) -> bytes:
        return await self._workers.run(_meaning, *self._given)

    async def certificate(self, terms: BudgetTerms | None) -> str:
        return await self._workers.run(_certificate, *self._given, terms)

    async def draw(self, terms: BudgetTerms | None) -> Drawn:
        answer = self._answer
        steps = self._workers.begin(_drawn, *self._given, terms, answer)
        try:
            statement = await steps.facts()
            drawn = await steps.finish(Signed(None if statement is None else await self._sign(statement)))
        finally:
            await steps.stop()
        media_type, release_id, certificate, meaning, contents = drawn
        return Drawn(Answer(media_type, lambda: read_file(answer.file)), release_id, certificate, meaning, contents)

    def collect(self, ledger: Ledger, release: RecordedRelease) -> Answer:
        file = self._answer.file
        overwrite(file, ledger.content(release))  # what was drawn, if anything, is forgotten
        return Answer(release.media_type or "", lambda: read_file(file))

    async def stop(self) -> None:
        """No worker waits: the upload may take hours."""

    async def formats(self) -> dict[str, Format]:
        """The format of each table. The answer has it, even if a stored answer has another one."""
        layout = layouts_of(self._request.asked.notes.layout)
        return {
            name: "csv" if layout[name]["csv_types"] is not None else await in_file_thread(_format_of, table)
            for name, table in zip(self._request.names, self._arrived, strict=True)
        }

    async def close(self) -> None:
        """Close the tables. The answer stays: it is sent next."""
        self._form.stop()
        for table in self._arrived:
            await table.close()

    async def forget(self) -> None:
        """Close the answer, which is not sent."""
        if self.answer is not None:
            await self.answer.close()

    @property
    def _answer(self) -> SharedFile:
        assert self.answer is not None
        return self.answer

    @property
    def _given(self) -> tuple[bytes, Limits, list[SharedFile]]:
        """What a worker needs to read the tables."""
        return self._request.packed, self._limits, self._arrived

    async def _read(self, content: bytes) -> _Request:
        """A worker reads a long request, or one whose mechanism takes long."""
        if len(content) > SHORT_BYTES:
            return await self._workers.pool.run_within(self._seconds, _read_content, content, self._bounds)
        body = parsed(TableRequest, content)
        if _check_bounds(body, self._bounds):
            return _read(body, self._bounds.most)
        return await self._workers.pool.run_within(self._seconds, _read, body, self._bounds.most)


def _format_of(table: SharedFile) -> Format:
    """The format of a table that is not CSV."""
    table.file.seek(0)
    return format_of(pa.py_buffer(table.file.read(8)))


def _read_content(content: bytes, bounds: Bounds) -> _Request:
    body = parsed(TableRequest, content)
    _check_bounds(body, bounds)
    return _read(body, bounds.most)


def _check_bounds(body: TableRequest, bounds: Bounds) -> bool:
    """An error if it asks for too much. Whether the event loop may read it."""
    mechanisms = [table.mechanism for table in body.posted.values()]
    return bounds.check(body, mechanisms, are_tables=body.tables is not None)


def _read(body: TableRequest, most: tuple[float, float] | None) -> _Request:
    mechanisms: list[AnyMechanism] = []
    for place, table in body.posted.items():
        with in_table(place):
            mechanisms.append(table.mechanism.to_domain())
    costs = tuple(mechanism.without_columns for mechanism in mechanisms)
    asked = Asked(
        body.paying, costs, notes_of(body, layout_of(body)), body.dry_run, places=(*body.posted,), survey=body.statement
    )
    names = tuple(table.name for table in body.posted.values())
    return _Request(judged(asked, most), names, pickle.dumps((body, mechanisms)))


class _Worked(NamedTuple):
    """In a worker: one table, checked."""

    posted: ColumnsTableIn
    mechanism: AnyMechanism
    kind: Format
    table: CheckedTable
    level: float | None

    def intervals(self, released: KeptGroups) -> dict[str, Numbers]:
        """The columns with intervals, if any are asked for."""
        if self.level is None:
            return {}
        rounded = self.table.noise.rounded
        return columns_of_released(self.mechanism, self.table.roles, released, self.level, rounded)

    @property
    def named(self) -> dict[str, Any]:
        columns = {"key_columns": self.posted.key_columns, "count_column": self.posted.count_column}
        return columns | self.posted.asked_rounding

    def release(self) -> pa.Table:
        """Draw the noise: the kept rows."""
        return self.table.release(operating_system, self.intervals).read_all()

    def write(self, rows: pa.Table, certificate: str, signature: str | None, sink: IO[bytes]) -> None:
        write_table(self.kind, rows.to_reader(), certificate, sink, self.posted.name, signature)


_Tables = Sequence[_Worked]


def _certified(body: TableRequest, tables: _Tables, terms: BudgetTerms | None) -> Certificate:
    mechanisms = {table.posted.name: table.mechanism for table in tables}
    noise = {table.posted.name: table.table.noise for table in tables}
    roles = {table.posted.name: table.table.roles for table in tables}
    return on_terms(drafted(body, mechanisms, noise, roles), terms)


def _meant(body: TableRequest, tables: _Tables) -> bytes:
    """The digest of what a request means."""
    if body.tables is None:
        names = tables[0].named | body.asked_intervals
        return meaning_of("release/table", body, body.paying, tables[0].table.digest(), **names)
    described = {
        table.posted.name: {
            "mechanism": table.posted.mechanism.model_dump(mode="json"),
            "groups": table.table.digest().hex(),
            **table.named,
        }
        for table in tables
    }
    return meaning_of_tables("release/table", body, body.paying, described, **body.asked_intervals)


def _drawn(
    packed: bytes, limits: Limits, uploads: Sequence[SharedFile], terms: BudgetTerms | None, answer: SharedFile
) -> Generator[bytes | None, Signed, tuple[str, str, str, bytes, str]]:
    """In a worker: the kept rows, written to a file, with a signature of what it yields; None if no budget pays.

    Its media type, the id and the certificate of the release, what the request means, and the contents.
    """
    with _tables(packed, limits, uploads) as (body, tables):
        certificate = _certified(body, tables, terms)
        meaning = b"" if terms is None else _meant(body, tables)
        drawn = {table.posted.name: table.release() for table in tables}
        contents = contents_of(drawn, {table.posted.name: table.table.roles for table in tables}, body.intervals)
        said = certificate.with_contents(contents)
        shown, signed = encoded(said), (yield None if terms is None else statement_of(said))
        with answer as sink:
            if body.tables is None:
                tables[0].write(drawn[""], shown, signed.signature, sink)
                media_type = MEDIA_TYPES[tables[0].kind]
            else:
                named = ((table.posted.name, table) for table in tables)
                files = {
                    name: (table.kind, partial(table.write, drawn[name], shown, signed.signature))
                    for name, table in named
                }
                write_archive(sink, files, shown)
                media_type = ZIP
        return media_type, certificate.release_id, encoded(certificate), meaning, json.dumps(contents)


def _meaning(packed: bytes, limits: Limits, uploads: Sequence[SharedFile]) -> bytes:
    """In a worker: the digest of what a request means."""
    with _tables(packed, limits, uploads) as (body, tables):
        return _meant(body, tables)


def _certificate(packed: bytes, limits: Limits, uploads: Sequence[SharedFile], terms: BudgetTerms | None) -> str:
    """In a worker: all checks, and the certificate."""
    with _tables(packed, limits, uploads) as (body, tables):
        return encoded(_certified(body, tables, terms))


@contextmanager
def _tables(
    packed: bytes, limits: Limits, uploads: Sequence[SharedFile]
) -> Iterator[tuple[TableRequest, list[_Worked]]]:
    """A request, and its tables, which are all read and checked."""
    body, mechanisms = pickle.loads(packed)  # noqa: S301 - made by _read
    try:
        with ExitStack() as opened:
            sources = [mapped(opened.enter_context(upload)) for upload in uploads]
            yield body, _checked(body, mechanisms, sources, limits)
            return
    except MemoryError:
        pass
    # Outside of the handler, whose exception would keep the memory.
    raise TooManyGroups(_all_tables(body), "must be smaller: the service has no memory for it")


def _checked(
    body: TableRequest, mechanisms: Sequence[AnyMechanism], sources: Sequence[pa.Buffer], limits: Limits
) -> list[_Worked]:
    """All tables. The limits are for all of them together."""
    noises: list[Noise] = []
    for (place, table), mechanism in zip(body.posted.items(), mechanisms, strict=True):
        with in_table(place):
            noises.append(table.noise(mechanism))
    each = list(zip(body.posted.items(), mechanisms, noises, sources, strict=True))
    roles = [_roles(table, mechanism) for (_, table), mechanism, *_ in each]
    if body.intervals is not None:
        for names in roles:
            check_interval_columns((names.count, *names.values), names.keys)
    read, left = [], limits
    with less_memory(min(3 * limits.bytes, _MEMORY_OF_SMALL_FILES + 64 * sum(source.size for source in sources))):
        for ((place, table), _, _, source), names in zip(each, roles, strict=True):
            with in_table(place):
                read.append(_within(left, limits, body, source, table, names))
            groups = read[-1][1]
            left = Limits(left.groups - _groups(table, groups), left.bytes - decoded_size(groups))
    tables = []
    for ((place, table), mechanism, noise, _), names, (kind, groups) in zip(each, roles, read, strict=True):
        with in_table(place):
            checked = check_table(noise, groups, names, table.public_keys)
        tables.append(_Worked(table, mechanism, kind, checked, body.intervals))
    return tables


def _within(
    left: Limits, limits: Limits, body: TableRequest, source: pa.Buffer, table: ColumnsTableIn, roles: Roles
) -> tuple[Format, pa.Table]:
    """A table that fits what the tables before it have left of the limits."""
    if len(table.public_keys or ()) > left.groups and table.public_keys != POSTED:
        raise TooManyGroups("/public_keys", f"must have at most {limits.groups} groups")
    try:
        return read_table(source, left, table.csv_types, partial(check_schema, roles=roles))
    except TooManyGroups:
        if body.tables is None:
            raise
    # What is left depends on the other tables.
    raise TooManyGroups(
        "/table", f"must have at most {limits.groups} groups and {limits.bytes} bytes, together with the other tables"
    )


def _groups(table: ColumnsTableIn, groups: pa.Table) -> int:
    """A public group is one group, whether it is listed, posted or both."""
    return max(len(groups), len(table.public_keys) if isinstance(table.public_keys, list) else 0)


def _roles(table: ColumnsTableIn, mechanism: AnyMechanism) -> Roles:
    return Roles(tuple(table.key_columns), table.count_column, mechanism.column_names)


def _all_tables(body: TableRequest) -> str:
    return "/table" if body.tables is None else "/tables"
