"""Releases as the ledger keeps them: what was charged under an idempotency key, for whom, and where its answer is."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from app.ledger.answers import AnswerPlace, place_of
from app.ledger.connections import Execute
from app.ledger.errors import LedgerUnavailable
from app.ledger.state import UNREADABLE, By, Entry
from app.ledger.statements import Statements
from gsh.accounting.composition import Cost

__all__ = [
    "Commit",
    "Notes",
    "RecordedRelease",
    "ReleaseState",
    "add_release",
    "find_by_id",
    "find_release",
    "list_releases",
]

ReleaseState = Literal["made", "open", "committed", "charged"]
"""Made here, with an answer; opened for another engine, and committed by it; or charged only."""


@dataclass(frozen=True, slots=True)
class Notes:
    """What is kept with a release for people and programs. Nothing of it is compared when a request comes again."""

    release_id: str = ""
    description: str = ""
    labels: tuple[str, ...] = ()
    certificate: str = ""
    """JSON, as it is in the answer."""
    provenance: str = ""
    """JSON: who bounded the contributions, and by which plan."""
    layout: str = ""
    """JSON: the roles of the columns of a table."""
    by: By | None = None


@dataclass(frozen=True, slots=True)
class Commit:
    """What another engine published: the SHA-256 of its output, and perhaps the number of rows."""

    sha256: str
    rows: int | None
    at: str


@dataclass(frozen=True, slots=True)
class RecordedRelease:
    """A release of the ledger."""

    key: str
    budget: str
    number: int
    at: str
    state: ReleaseState
    notes: Notes
    cost: Cost
    head: str
    """The hash of the entry that charged it."""
    content_hash: str | None
    request: str
    client: str | None
    media_type: str | None
    size: int | None
    answer_sha256: str | None
    place: AnswerPlace | None
    committed: Commit | None
    erased_at: str | None

    @property
    def has_answer(self) -> bool:
        """Whether it has, or had, an answer with groups."""
        return self.state == "made"


def add_release(
    execute: Execute,
    sql: Statements,
    entry: Entry,
    key: str,
    state: ReleaseState,
    notes: Notes,
    content_hash: str,
    place: AnswerPlace | None,
) -> None:
    """Record a release whose charge is in the same transaction."""
    where = (None, None) if place is None else (place.answer, place.key)
    texts = (notes.certificate or None, notes.provenance or None, notes.layout or None)
    told = (notes.release_id or None, notes.description, json.dumps(notes.labels), *texts)
    execute(
        sql.add_release,
        (key, entry.budget, entry.number, entry.at, state, *told, content_hash or None, *where),
    )


def find_release(execute: Execute, sql: Statements, key: str) -> RecordedRelease | None:
    rows = execute(sql.release, (key,))
    return _release_of(rows[0]) if rows else None


def find_by_id(execute: Execute, sql: Statements, release_id: str) -> RecordedRelease | None:
    rows = execute(sql.release_by_id, (release_id,))
    return _release_of(rows[0]) if rows else None


def list_releases(
    execute: Execute, sql: Statements, budgets: Sequence[str], before: str | None, limit: int
) -> list[RecordedRelease]:
    """A page, the newest first. ``before`` is the idempotency key of the last release of the page before."""
    cursor = () if before is None else (before,)
    statement = sql.releases(len(budgets), is_continued=before is not None)
    return [_release_of(row) for row in execute(statement, (*budgets, *cursor, limit))]


def _release_of(row: Sequence[Any]) -> RecordedRelease:
    try:
        return _read(row)
    except UNREADABLE:
        pass
    # Outside of the handler: the error of a reader holds what it could not read.
    raise LedgerUnavailable("a release cannot be read")


def _read(row: Sequence[Any]) -> RecordedRelease:
    key, budget, number, at, state, release_id, description, labels, certificate, provenance, layout, *rest = row
    content_hash, answer, answer_key, committed, erased_at, _erasure, head, payload, s, d, *rest = rest
    media_type, size, client, request = rest
    details = Entry(budget, number, "charge", at, payload, head).details
    by = By(**details["by"]) if "by" in details else None
    told = (release_id or "", description, tuple(json.loads(labels)), certificate or "", provenance or "", layout or "")
    return RecordedRelease(
        key=key,
        budget=budget,
        number=number,
        at=at,
        state=state,
        notes=Notes(*told, by=by),
        cost=Cost(s, d),
        head=head,
        content_hash=content_hash,
        request=request,
        client=client,
        media_type=media_type,
        size=size,
        answer_sha256=details.get("answer"),
        place=place_of(answer, answer_key),
        committed=None if committed is None else Commit(**json.loads(committed)),
        erased_at=erased_at,
    )
