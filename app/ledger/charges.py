"""Charges within a transaction: does the budget pay, was the request answered before, and the entry that records it."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from app.ledger.answer_keys import add_mark
from app.ledger.answers import ENCRYPTED, Staged, expect_staged
from app.ledger.budget_rows import add_entry, set_budget
from app.ledger.clock import seconds_of
from app.ledger.comparison_limit import refusal, wait_before
from app.ledger.connections import Execute
from app.ledger.errors import AnswerErased, BudgetExceeded, KeyReused, LedgerError, UnknownBudget
from app.ledger.release_seals import check_seal, release_seal
from app.ledger.releases import Notes, RecordedRelease, ReleaseState, add_release, find_release
from app.ledger.secret import Secret
from app.ledger.state import Budget
from app.ledger.statements import Statements
from gsh.accounting.composition import Cost, Release, Spent

__all__ = [
    "Charge",
    "Charged",
    "CheckedBudget",
    "add_charge",
    "claim_parts",
    "drawn_details",
    "fitting",
    "has_same_bytes",
    "released_for",
    "used_by",
]


@dataclass(frozen=True, slots=True)
class Charge:
    """A release to charge to a budget, exactly once for its idempotency key."""

    budget: str
    idempotency_key: str
    request: str
    """The fingerprint of the bytes of the request; empty if they are not compared."""
    client: str
    """The id of the access key, or the client's address; the ledger stores a keyed hash of it."""
    release: Release
    cost: Cost
    content: str = ""
    """The fingerprint of what the request means, by which it is recognised in whatever form it comes again."""
    state: ReleaseState = "made"
    notes: Notes = field(default=Notes())


@dataclass(frozen=True, slots=True)
class Charged:
    """A release of the ledger. ``is_new`` if it was paid for just now, and not by an earlier request."""

    release: RecordedRelease
    is_new: bool

    @property
    def replayed_at(self) -> str | None:
        """When the release was made, if an earlier request has paid for it; None if it is new."""
        return None if self.is_new else self.release.at


@dataclass(frozen=True, slots=True)
class CheckedBudget:
    """A budget that pays. ``unread`` is the id of an answer that it has paid for, and that nobody can have read."""

    budget: Budget
    unread: str | None = None


def used_by(
    execute: Execute, sql: Statements, secret: Secret, charge: Charge, client: str, at: str
) -> RecordedRelease | None:
    """The release of a used idempotency key; an error if the request cannot get it, whatever its content."""
    release = find_release(execute, sql, charge.idempotency_key)
    if release is None:
        return None
    if _is_of_another(release.client, client):
        raise KeyReused(release.key, release.budget, has_answer=release.has_answer)
    check_seal(secret, release.identity, release.seal)
    too_many = wait_before(execute, sql, charge.idempotency_key, seconds_of(at))
    if too_many is not None:
        raise too_many
    return release


def has_same_bytes(
    execute: Execute, sql: Statements, secret: Secret, charge: Charge, client: str, at: str
) -> RecordedRelease | None:
    """The release of the idempotency key if the request has the same bytes as the one that paid for it.

    None tells a client nothing yet: it is not counted, because ``released_for`` then compares the content and counts.
    """
    execute(sql.locked_key, (charge.idempotency_key,))
    release = used_by(execute, sql, secret, charge, client, at)
    if release is None or not charge.request or release.request != charge.request:
        return None
    erased = _erased(release)
    if erased is not None:
        raise erased
    return release


def fitting(budget: Budget | None, charge: Charge) -> tuple[Budget, Spent]:
    """The budget, and what it will have spent; an error if the charge does not fit."""
    if budget is None:
        raise UnknownBudget
    after = budget.spent.plus(charge.release, charge.cost)
    if not budget.limit.settled_by(charge.cost).admits(after):
        raise BudgetExceeded(budget, charge.release, charge.cost)
    return budget, after


def released_for(
    execute: Execute, sql: Statements, secret: Secret, charge: Charge, client: str, at: str
) -> RecordedRelease | LedgerError | None:
    """The release of an idempotency key, or why the request does not get it, or None if the key is unused.

    Every comparison with another request counts (comparison_limit.py), so the error must be raised after the commit.
    """
    rows = execute(sql.locked_key, (charge.idempotency_key,))
    release = find_release(execute, sql, charge.idempotency_key) if rows else None
    if release is None:
        return None
    reused = KeyReused(release.key, release.budget, has_answer=release.has_answer)
    if _is_of_another(release.client, client):
        return reused
    check_seal(secret, release.identity, release.seal)
    is_same = charge.request in {release.request} - {""} or charge.content in {release.content_hash} - {None, ""}
    refused = refusal(execute, sql, reused, is_same=is_same, now=seconds_of(at))
    return refused or _erased(release) or release


def add_charge(
    execute: Execute,
    sql: Statements,
    secret: Secret,
    fits: tuple[Budget, Spent],
    charge: Charge,
    client: str,
    at: str,
    answer: Callable[[Budget, int], Staged] | None,
) -> RecordedRelease:
    """Record the charge and its release. ``answer`` gets the budget after the charge, and the entry's number.

    The result has the key of the answer, which the next transaction stores.
    """
    budget, after = fits
    made = None if answer is None else answer(replace(budget, spent=after), budget.entries + 1)
    key, notes = charge.idempotency_key, charge.notes
    recorded: dict[str, Any] = {"key": key, "request": charge.request, "client": client, "state": charge.state}
    recorded |= {"description": notes.description, "labels": notes.labels}
    optional = {"content_hash": charge.content, "provenance_sha256": sha256_of(notes.provenance)}
    recorded |= {name: value for name, value in optional.items() if value} | drawn_details(notes, made)
    charged, entry = budget.charged(after, charge.release, charge.cost, at, recorded, notes.by)
    release = RecordedRelease(
        key=key,
        budget=budget.id,
        number=entry.number,
        at=at,
        state=charge.state,
        notes=notes,
        cost=charge.cost,
        head=entry.hash,
        content_hash=charge.content or None,
        request=charge.request,
        client=client,
        media_type=None if made is None else made.media_type,
        size=None if made is None else made.size,
        answer_sha256=None if made is None else made.sha256,
        place=None if made is None else made.place,
        committed=None,
        erased_at=None,
        version=ENCRYPTED,
        seal=None,
    )
    release = replace(release, seal=release_seal(secret, release.identity))
    set_budget(execute, sql, charged)
    cost = (charge.cost.mu_squared, charge.cost.hazard)
    size = release.size if release.place is None else None
    stored = (release.media_type, size, None if made is None else made.content)
    add_entry(execute, sql, entry, (*cost, key, charge.request, client, *stored))
    add_release(execute, sql, release)
    if made is not None and made.place is not None:
        add_mark(execute, sql, secret, made.place.answer)
        claim_parts(execute, sql, made)
    return release


def claim_parts(execute: Execute, sql: Statements, made: Staged) -> None:
    """The parts of a large answer belong to a charge from now on."""
    if made.place is not None and made.content is None:
        expect_staged(execute, sql, made.place)
        execute(sql.unstage, (made.place.answer,))


def drawn_details(notes: Notes, made: Staged | None) -> dict[str, Any]:
    """What an entry records of a draw. An encrypted answer is recorded by a keyed hash."""
    texts = {"certificate_sha256": sha256_of(notes.certificate), "layout_sha256": sha256_of(notes.layout)}
    drawn: dict[str, Any] = {name: value for name, value in ({"release_id": notes.release_id} | texts).items() if value}
    if made is None:
        return drawn
    facts = made.facts
    answer = {"answer": made.sha256, "size": made.size} if facts is None else {"answer_seal": facts.seal}
    return drawn | {"media_type": made.media_type} | answer


def sha256_of(text: str) -> str:
    """The SHA-256 of a text; empty for an empty text."""
    return hashlib.sha256(text.encode()).hexdigest() if text else ""


def _is_of_another(owner: str | None, client: str) -> bool:
    """Whether another client has paid. Its request is not compared: the answer would tell what it posted."""
    return owner is not None and owner != client  # charges of version 0.1 have no owner


def _erased(release: RecordedRelease) -> AnswerErased | None:
    return None if release.erased_at is None else AnswerErased(release.erased_at)
