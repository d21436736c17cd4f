"""Releases as the ledger keeps them: what was charged under an idempotency key, for whom, and where its answer is.

A repeated request is recognised by columns of the database: the client, the hash of the request and the hash of its
content. A writer to the database without the secret could name another client there. So the service compares
these columns with their seal before it gives a stored answer or a seed, and before it commits a release.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from app.ledger.answer_keys import Facts, facts_of, opened_contents, sealed_contents
from app.ledger.answers import ENCRYPTED, AnswerPlace
from app.ledger.databases import Execute, Statements
from app.ledger.errors import LedgerUnavailable
from app.ledger.secret import Secret
from app.ledger.state import UNREADABLE, By, Entry, EntryName
from gsh.accounting.composition import Cost

__all__ = [
    "ChosenBounds",
    "Commit",
    "Notes",
    "RecordedRelease",
    "ReleaseState",
    "add_release",
    "check_seal",
    "find_by_id",
    "find_release",
    "list_releases",
    "place_of",
    "release_seal",
    "seal_releases",
    "stored_certificate",
]

ReleaseState = Literal["made", "open", "committed", "charged"]
"""Made here, with an answer; opened for another engine, and committed by it; or charged only."""
Identity = tuple[str, str, int, int, str | None, str, str | None]
"""The idempotency key, the budget, the number of the entry, the version, the client, the request and the content."""
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Notes:
    """What is kept with a release for people and programs. Nothing of it is compared when a request comes again."""

    release_id: str = ""
    description: str = ""
    labels: tuple[str, ...] = ()
    certificate: str = ""
    """JSON, as it is in the answer, but without the contents."""
    provenance: str = ""
    """JSON: who bounded the contributions, and by which plan."""
    layout: str = ""
    """JSON: the roles of the columns of a table."""
    by: By | None = None
    contents: str = ""
    """JSON: the digests of the rows of each table (gsh/histogram/released_content.py), by its name."""


def stored_certificate(notes: Notes, facts: Facts | None, answer: str | None) -> str:
    """The text that is stored: the certificate, and in a second line the contents, which nobody can read before the
    answer can be read (answer_keys.py)."""
    if not notes.contents or facts is None or answer is None:
        return notes.certificate
    return f"{notes.certificate}\n{sealed_contents(notes.contents, facts, answer)}"


def _read_certificate(stored: str, facts: Facts | None, answer: str | None) -> tuple[str, str]:
    """The certificate, and the contents; they are empty if nobody can have read the answer."""
    certificate, _, contents = stored.partition("\n")
    if not contents or facts is None or answer is None:
        return certificate, ""
    return certificate, opened_contents(contents, facts, answer)


@dataclass(frozen=True, slots=True)
class Commit:
    """What another engine published: the SHA-256 of its output, and perhaps the number of rows and their digests."""

    sha256: str
    rows: int | None
    at: str
    contents: str | None = None
    """JSON, as in ``Notes``."""


@dataclass(frozen=True, slots=True)
class ChosenBounds:
    """What another engine chose from the survey of an open release."""

    digest: str
    """The SHA-256 of the noisy histograms."""
    certificate: str
    """JSON: the certificate with the chosen bounds."""
    provenance: str
    at: str


@dataclass(frozen=True, slots=True)
class RecordedRelease:
    """A release of the ledger."""

    key: str
    budget: str
    number: int
    ancestors: tuple[EntryName, ...]
    """The entries of the same charge in the histories of the budget's ancestors, the parent first."""
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
    version: int
    """How its answer is encrypted, and its seed derived."""
    seal: str | None
    """Over its identity."""

    @property
    def has_answer(self) -> bool:
        """Whether it has, or had, an answer with groups that can be read."""
        return self.state == "made" and self.answer_sha256 is not None

    @property
    def is_unread(self) -> bool:
        """Whether nobody can have read its answer: the key was not stored."""
        is_stored = self.answer_sha256 is not None or self.erased_at is not None
        return self.state == "made" and self.version >= ENCRYPTED and not is_stored

    def is_unread_draw(self, answer: str | None) -> bool:
        """Whether nobody can have read it, and this is the id of its draw."""
        return self.is_unread and self.place is not None and self.place.answer == answer

    @property
    def identity(self) -> Identity:
        """What decides who may have it again."""
        charged = (self.key, self.budget, self.number, self.version)
        return *charged, self.client, self.request, self.content_hash


def add_release(execute: Execute, sql: Statements, release: RecordedRelease, certificate: str) -> None:
    """Record a release whose charge is in the same transaction, without the key of its answer.

    ``certificate`` is the text that is stored.
    """
    notes = release.notes
    texts = (certificate or None, notes.provenance or None, notes.layout or None)
    described = (notes.release_id or None, notes.description, json.dumps(notes.labels), *texts, release.content_hash)
    answer = None if release.place is None else release.place.answer
    charged = (release.key, release.budget, release.number, release.at, release.state)
    execute(sql.add_release, (*charged, *described, answer, release.version, release.seal))


def place_of(version: int, answer: str | None, old_key: bytes | None, key: bytes | None) -> AnswerPlace | None:
    """From the columns of a release. ``key`` is None if it is not stored, or erased."""
    if answer is None:
        return None
    used = key if version >= ENCRYPTED else old_key
    return AnswerPlace(answer, None if used is None else bytes(used), version)


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
    media_type, size, client, request, version, seal, key_stored, facts_stored = rest
    facts = None if facts_stored is None else facts_of(bytes(facts_stored))
    is_readable = facts is not None and erased_at is None
    details = Entry(budget, number, "charge", at, payload, head).details
    by = By(**details["by"]) if "by" in details else None
    promise, contents = _read_certificate(certificate or "", facts, answer)
    described = (
        release_id or "",
        description,
        tuple(json.loads(labels)),
        promise,
        provenance or "",
        layout or "",
    )
    return RecordedRelease(
        key=key,
        budget=budget,
        number=number,
        ancestors=tuple(EntryName(**each) for each in details.get("ancestors", ())),
        at=at,
        state=state,
        notes=Notes(*described, by=by, contents=contents),
        cost=Cost(s, d),
        head=head,
        content_hash=content_hash,
        request=request,
        client=client,
        media_type=media_type,
        size=size if facts is None else facts.size,
        answer_sha256=details.get("answer") if facts is None else facts.sha256,
        place=place_of(version, answer, answer_key, key_stored if is_readable else None),
        committed=None if committed is None else Commit(**json.loads(committed)),
        erased_at=erased_at,
        version=version,
        seal=seal,
    )


def release_seal(secret: Secret, identity: Identity) -> str:
    """A missing value has another seal than an empty one."""
    return secret.fingerprint(b"release", *(b"" if each is None else b"=" + str(each).encode() for each in identity))


def check_seal(secret: Secret, identity: Identity, seal: str | None) -> None:
    """An error if the columns were changed by someone without the secret."""
    if seal != release_seal(secret, identity):
        raise LedgerUnavailable("a release is not as it was sealed, its client cannot be known: run gsh ledger verify")


def seal_releases(execute: Execute, sql: Statements, secret: Secret) -> int:
    """Seal all releases as they are now, and return how many."""
    sealed, last = 0, ""
    while rows := execute(sql.identities, (last, _PAGE)):
        for row in rows:
            execute(sql.set_seal, (release_seal(secret, tuple(row)), row[0]))
        sealed, last = sealed + len(rows), rows[-1][0]
    return sealed
