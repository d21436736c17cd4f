"""Groups in JSON: one posted request, read and drawn by one worker, or on the event loop if it is small.

A worker keeps the groups between its two steps, while the ledger decides whether the budget can pay. To read a large
body once more would take longer than to draw.
"""

from collections.abc import Generator, Sequence
from io import BytesIO
from typing import Any, NamedTuple

import pyarrow as pa
from pydantic_core import to_json

from app.accounting.published import intervals_of_released
from app.http.json_route import SHORT_BYTES, parsed
from app.http.json_text import decoded_size, most_decoded
from app.http.workload import RequestWorkers, StepsInPool
from app.ledger.answers import Answer
from app.ledger.releases import RecordedRelease
from app.ledger.store import Ledger
from app.releases.asked import (
    Asked,
    BudgetTerms,
    Drawn,
    Sign,
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
from app.releases.schemas.release import GroupsTableIn, ReleaseRequest
from app.workers.steps import StepsHere
from gsh.accounting.mechanism import AnyMechanism
from gsh.errors import TooManyGroups
from gsh.histogram.entropy import operating_system
from gsh.histogram.file_formats import JSON
from gsh.histogram.groups import CheckedGroups, check_groups
from gsh.histogram.json_answers import ending
from gsh.histogram.roles import check_interval_columns
from gsh.proof.envelopes import statement_of

__all__ = ["PostedGroups"]


class _Read(NamedTuple):
    """The first step: what is asked, and the digest of what it means; empty if nothing will be compared with it."""

    asked: Asked
    meaning: bytes


class _Decision(NamedTuple):
    """The second step may begin. Without terms the release is free."""

    terms: BudgetTerms | None


class _Released(NamedTuple):
    """The second step: the answer, which is empty for a dry run, the certificate and the contents as JSON."""

    answer: bytes
    """Without its end: the certificate with the contents, and the signature."""
    release_id: str
    certificate: str
    contents: str = ""
    shown: str = ""
    """The certificate as it is in the answer."""
    statement: bytes | None = None
    """What is signed; None if no budget pays."""


_Steps = StepsHere[_Read, _Released] | StepsInPool[_Read, _Released]


class PostedGroups:
    """The body of POST /release, and its answer in memory."""

    def __init__(
        self,
        content: bytes,
        workers: RequestWorkers,
        bounds: Bounds,
        sign: Sign,
        *,
        most_bytes: int,
        most_groups: int,
        is_paid: bool,
    ) -> None:
        self._content = content
        self._sign = sign
        self._steps = _begun(content, workers, most_bytes, _Setting(bounds, most_groups, is_paid))
        self._meaning = b""
        self.stop = self._steps.stop

    async def ask(self) -> Asked:
        asked, self._meaning = await self._steps.facts()
        return asked

    async def receive(self) -> bool:
        return False  # the groups are here

    async def sent(self) -> tuple[bytes, ...]:
        return b"release", self._content

    async def meaning(self) -> bytes:
        return self._meaning

    async def certificate(self, terms: BudgetTerms | None) -> str:
        return (await self._steps.finish(_Decision(terms))).certificate

    async def draw(self, terms: BudgetTerms | None) -> Drawn:
        drawn = await self._steps.finish(_Decision(terms))
        signature = None if drawn.statement is None else await self._sign(drawn.statement)
        answer = Answer(JSON, lambda: [drawn.answer, ending(drawn.shown, signature)])
        return Drawn(answer, drawn.release_id, drawn.certificate, self._meaning, drawn.contents)

    def collect(self, ledger: Ledger, release: RecordedRelease) -> Answer:
        stored = b"".join(ledger.content(release))
        return Answer(release.media_type or JSON, lambda: [stored])


class _Setting(NamedTuple):
    """What a worker must know besides the request."""

    bounds: Bounds
    most_groups: int
    is_paid: bool


def _begun(content: bytes, workers: RequestWorkers, most_bytes: int, setting: _Setting) -> _Steps:
    """The release, on the event loop if it is small, else in a worker."""
    if len(content) > SHORT_BYTES:
        return workers.begin(_release_content, content, most_decoded(most_bytes), setting)
    body = parsed(ReleaseRequest, content)
    if not _check_bounds(body, setting.bounds) or body.intervals is not None:
        return workers.begin(_release, body, setting)
    return StepsHere(_release(body, setting))


def _release_content(content: bytes, most_bytes: int, setting: _Setting) -> Generator[_Read, _Decision, _Released]:
    if decoded_size(content) > most_bytes:
        raise TooManyGroups("", "must have fewer groups or columns; larger tables go to /release/table")
    body = parsed(ReleaseRequest, content)
    _check_bounds(body, setting.bounds)
    return _release(body, setting)


def _check_bounds(body: ReleaseRequest, bounds: Bounds) -> bool:
    """An error if it asks for too much. Whether the event loop may make the release."""
    mechanisms = [table.mechanism for table in body.posted.values()]
    return bounds.check(body, mechanisms, are_tables=body.tables is not None)


class _Worked(NamedTuple):
    """A table, checked."""

    posted: GroupsTableIn
    mechanism: AnyMechanism
    groups: CheckedGroups


def _release(body: ReleaseRequest, setting: _Setting) -> Generator[_Read, _Decision, _Released]:
    """The whole release: first all checks of all tables and what a payment needs, then noise and the answer."""
    _check_sizes(body, setting.most_groups)
    tables = [_checked(place, table, body) for place, table in body.posted.items()]
    noise = {table.posted.name: table.groups.noise for table in tables}
    draft = drafted(body, {table.posted.name: table.mechanism for table in tables}, noise)
    meaning = _meaning(body, tables) if setting.is_paid else b""
    costs = tuple(table.mechanism.without_columns for table in tables)
    asked = Asked(body.paying, costs, notes_of(body), body.dry_run, places=(*body.posted,), survey=body.statement)
    decision = yield _Read(judged(asked, setting.bounds.most), meaning)
    certificate = on_terms(draft, decision.terms)
    if body.dry_run:
        return _Released(b"", draft.release_id, encoded(certificate))
    answer, contents = BytesIO(), {}
    if body.tables is None:
        answer.write(b"{")
        contents[""] = _write(tables[0], body.intervals, answer)
    else:
        answer.write(b'{"tables":[')
        for k, table in enumerate(tables):
            answer.write(b'%b{"name":%b,' % (b"," if k else b"", to_json(table.posted.name)))
            contents[table.posted.name] = _write(table, body.intervals, answer)
            answer.write(b"}")
        answer.write(b"]")
    said = certificate.with_contents(contents)
    statement = None if decision.terms is None else statement_of(said)
    texts = encoded(certificate), to_json(contents).decode(), encoded(said)
    return _Released(answer.getvalue(), draft.release_id, *texts, statement)


def _write(table: _Worked, level: float | None, answer: BytesIO) -> dict[str, Any]:
    """Draw the noise of a table, and write what is kept as members of an object; its content as JSON."""
    kept = table.groups.release(operating_system)
    answer.write(b'"groups":')
    table.groups.write(kept, answer, to_json)
    if level is not None:
        intervals = intervals_of_released(table.mechanism, kept, level, table.groups.noise.rounded)
        answer.write(f',"intervals":{intervals.model_dump_json()}'.encode())
    return table.groups.content(kept, level).to_json()


def _meaning(body: ReleaseRequest, tables: Sequence[_Worked]) -> bytes:
    if body.tables is None:
        asked = body.asked_intervals | tables[0].posted.asked_rounding
        return meaning_of("release", body, body.paying, tables[0].groups.digest(), **asked)
    described = {
        table.posted.name: {
            "mechanism": table.posted.mechanism.model_dump(mode="json"),
            "groups": table.groups.digest().hex(),
            **table.posted.asked_rounding,
        }
        for table in tables
    }
    return meaning_of_tables("release", body, body.paying, described, **body.asked_intervals)


def _check_sizes(body: ReleaseRequest, most_groups: int) -> None:
    """A public group is one group, whether it is listed, posted or both."""
    every = body.posted.values()
    listed = (table.public_keys if isinstance(table.public_keys, list) else () for table in every)
    if sum(max(len(table.groups.keys), len(keys)) for table, keys in zip(every, listed, strict=True)) > most_groups:
        raise TooManyGroups(
            "/groups" if body.tables is None else "/tables",
            f"must be at most {most_groups} groups; larger tables go to /release/table",
        )


def _checked(place: str, table: GroupsTableIn, body: ReleaseRequest) -> _Worked:
    groups = table.groups
    with in_table(place):
        mechanism = table.mechanism.to_domain()
        noise = table.noise(mechanism)
    if body.intervals is not None:
        check_interval_columns(("count", *mechanism.column_names))  # GET /releases/{key}/answer can give a table
    counts = pa.array(groups.counts, pa.int64())
    values = {name: pa.array(column, pa.float64()) for name, column in groups.values.items()}
    with in_table(place):
        checked = check_groups(
            noise,
            mechanism.column_names,
            groups.keys,
            counts,
            values,
            public=table.public_keys,
            at="/groups/",
            at_public="/public_keys",
        )
    return _Worked(table, mechanism, checked)
