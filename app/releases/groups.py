"""Groups in JSON: one posted request, read and drawn by one worker, or on the event loop if it is small.

A worker keeps the groups between its two steps, while the ledger decides whether the budget can pay. To read a large
body once more would take longer than to draw.
"""

from collections.abc import Generator
from io import BytesIO
from typing import NamedTuple

import pyarrow as pa
from pydantic_core import to_json

from app.accounting.published import intervals_of_released
from app.http.json_route import SHORT_BYTES, parsed
from app.http.json_text import decoded_size, most_decoded
from app.http.services import AT_ONCE
from app.http.workload import RequestWorkers, StepsInPool
from app.ledger.answers import Answer
from app.ledger.releases import RecordedRelease
from app.ledger.store import Ledger
from app.releases.asked import Asked, Drawn, Terms, drafted, encoded, meaning_of, notes_of, on_terms
from app.releases.schemas.release import ReleaseRequest
from app.workers.steps import StepsHere
from app.workers.work_bounds import work_of
from gsh.accounting.mechanism import Mechanism
from gsh.errors import TooManyGroups
from gsh.histogram.entropy import operating_system
from gsh.histogram.file_formats import JSON
from gsh.histogram.groups import CheckedGroups, check_groups
from gsh.histogram.noise import Noise
from gsh.histogram.tables import check_interval_columns

__all__ = ["PostedGroups"]


class _Read(NamedTuple):
    """The first step: what is asked, and the digest of what it means; empty if nothing will be compared with it."""

    asked: Asked
    meaning: bytes


class _Decision(NamedTuple):
    """The second step may begin. Without terms the release is free."""

    terms: Terms | None


class _Released(NamedTuple):
    """The second step: the answer, which is empty for a dry run, and the certificate as JSON."""

    answer: bytes
    release_id: str
    certificate: str


_Steps = StepsHere[_Read, _Released] | StepsInPool[_Read, _Released]


class PostedGroups:
    """The body of POST /release, and its answer in memory."""

    def __init__(
        self, content: bytes, workers: RequestWorkers, *, most_bytes: int, most_groups: int, is_paid: bool
    ) -> None:
        self._content = content
        self._steps = _begun(content, workers, most_bytes, most_groups, is_paid)
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

    async def certificate(self, terms: Terms | None) -> str:
        return (await self._steps.finish(_Decision(terms))).certificate

    async def draw(self, terms: Terms | None) -> Drawn:
        answer, release_id, certificate = await self._steps.finish(_Decision(terms))
        return Drawn(Answer(JSON, lambda: [answer]), release_id, certificate, self._meaning)

    def collect(self, ledger: Ledger, release: RecordedRelease) -> Answer:
        stored = b"".join(ledger.content(release))
        return Answer(release.media_type or JSON, lambda: [stored])


def _begun(content: bytes, workers: RequestWorkers, most_bytes: int, most_groups: int, is_paid: bool) -> _Steps:
    """The release, on the event loop if it is small, else in a worker."""
    if len(content) > SHORT_BYTES:
        return workers.begin(_release_content, content, most_decoded(most_bytes), most_groups, is_paid)
    body = parsed(ReleaseRequest, content)
    if work_of(body.mechanism) > AT_ONCE or body.intervals is not None:
        return workers.begin(_release, body, most_groups, is_paid)
    return StepsHere(_release(body, most_groups, is_paid))


def _release_content(
    content: bytes, most_bytes: int, most_groups: int, is_paid: bool
) -> Generator[_Read, _Decision, _Released]:
    if decoded_size(content) > most_bytes:
        raise TooManyGroups("/groups", "must have fewer groups or columns; larger tables go to /release/table")
    return _release(parsed(ReleaseRequest, content), most_groups, is_paid)


def _release(body: ReleaseRequest, most_groups: int, is_paid: bool) -> Generator[_Read, _Decision, _Released]:
    """The whole release: first all checks and what a payment needs, then noise and the answer."""
    mechanism = body.mechanism.to_domain()
    noise = Noise(mechanism)
    draft, checked = drafted(body, {"": mechanism}, {"": noise}), _checked(body, mechanism, noise, most_groups)
    meaning = meaning_of("release", body, body.budget, checked.digest(), **body.asked_intervals) if is_paid else b""
    decision = yield _Read(Asked(body.budget, (mechanism.without_columns,), notes_of(body), body.dry_run), meaning)
    certificate = encoded(on_terms(draft, decision.terms))
    if body.dry_run:
        return _Released(b"", draft.release_id, certificate)
    kept = checked.release(operating_system)
    further = ""
    if body.intervals is not None:
        further = f',"intervals":{intervals_of_released(mechanism, kept, body.intervals).model_dump_json()}'
    answer = BytesIO()
    answer.write(b'{"groups":')
    checked.write(kept, answer, to_json)
    answer.write(f'{further},"certificate":{certificate}}}'.encode())
    return _Released(answer.getvalue(), draft.release_id, certificate)


def _checked(body: ReleaseRequest, mechanism: Mechanism, noise: Noise, most_groups: int) -> CheckedGroups:
    groups = body.groups
    if body.intervals is not None:
        check_interval_columns(("count", *mechanism.column_names))  # GET /releases/{key}/answer can give a table
    if len(groups.keys) > most_groups:
        raise TooManyGroups("/groups", f"must be at most {most_groups} groups; larger tables go to /release/table")
    counts = pa.array(groups.counts, pa.int64())
    values = {name: pa.array(column, pa.float64()) for name, column in groups.values.items()}
    return check_groups(noise, mechanism.column_names, groups.keys, counts, values, at="/groups/")
