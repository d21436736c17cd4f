"""Charges within a transaction: does the budget pay, was the request answered before, and the entry that records it."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from app.ledger.answers import Staged, expect_staged
from app.ledger.budget_rows import add_entry, set_budget
from app.ledger.clock import seconds_of
from app.ledger.comparison_limit import refusal, wait_before
from app.ledger.connections import Execute
from app.ledger.errors import AnswerErased, BudgetExceeded, KeyReused, LedgerError, UnknownBudget
from app.ledger.releases import Notes, RecordedRelease, ReleaseState, add_release, find_release
from app.ledger.state import Budget
from app.ledger.statements import Statements
from gsh.accounting.composition import Cost, Release, Spent

__all__ = ["Charge", "Charged", "add_charge", "fitting", "has_same_bytes", "is_used", "released_for"]


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


def is_used(execute: Execute, sql: Statements, charge: Charge, client: str, at: str) -> bool:
    """Whether the idempotency key is used; an error if the request cannot get its release, whatever its content."""
    return _owned(execute, sql, charge, client, at) is not None


def has_same_bytes(execute: Execute, sql: Statements, charge: Charge, client: str, at: str) -> RecordedRelease | None:
    """The release of the idempotency key if the request has the same bytes as the one that paid for it.

    None tells a client nothing yet: it is not counted, because ``released_for`` then compares the content and counts.
    """
    execute(sql.locked_key, (charge.idempotency_key,))
    request = _owned(execute, sql, charge, client, at)
    if not charge.request or request != charge.request:
        return None
    return _still_answered(find_release(execute, sql, charge.idempotency_key))


def fitting(budget: Budget | None, charge: Charge) -> tuple[Budget, Spent]:
    """The budget, and what it will have spent; an error if the charge does not fit."""
    if budget is None:
        raise UnknownBudget
    after = budget.spent.plus(charge.release, charge.cost)
    if not budget.limit.settled_by(charge.cost).admits(after):
        raise BudgetExceeded(budget, charge.release, charge.cost)
    return budget, after


def released_for(
    execute: Execute, sql: Statements, charge: Charge, client: str, at: str
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
    is_same = charge.request in {release.request} - {""} or charge.content in {release.content_hash} - {None, ""}
    refused = refusal(execute, sql, reused, is_same=is_same, now=seconds_of(at))
    return refused or _erased(release) or release


def add_charge(
    execute: Execute,
    sql: Statements,
    fits: tuple[Budget, Spent],
    charge: Charge,
    client: str,
    at: str,
    answer: Callable[[Budget, int], Staged] | None,
) -> RecordedRelease:
    """Record the charge and its release. ``answer`` gets the budget after the charge, and the entry's number."""
    budget, after = fits
    made = None if answer is None else answer(replace(budget, spent=after), budget.entries + 1)
    key, notes = charge.idempotency_key, charge.notes
    recorded: dict[str, Any] = {"key": key, "request": charge.request, "client": client, "state": charge.state}
    recorded |= {"description": notes.description, "labels": notes.labels}
    optional = {"release_id": notes.release_id, "content_hash": charge.content}
    texts = {"certificate": notes.certificate, "provenance": notes.provenance, "layout": notes.layout}
    optional |= {f"{name}_sha256": sha256_of(text) for name, text in texts.items()}
    recorded |= {name: value for name, value in optional.items() if value}
    if made is not None:
        recorded |= {"answer": made.sha256, "media_type": made.media_type, "size": made.size}
    charged, entry = budget.charged(after, charge.release, charge.cost, at, recorded, notes.by)
    set_budget(execute, sql, charged)
    cost = (charge.cost.mu_squared, charge.cost.hazard)
    stored = (None, None, None) if made is None else (made.media_type, made.size, made.content)
    add_entry(execute, sql, entry, (*cost, key, charge.request, client, *stored))
    place = None if made is None else made.place
    add_release(execute, sql, entry, key, charge.state, notes, charge.content, place)
    if place is not None:
        expect_staged(execute, sql, place)
        execute(sql.unstage, (place.answer,))
    return RecordedRelease(
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
        media_type=stored[0],
        size=stored[1],
        answer_sha256=recorded.get("answer"),
        place=place,
        committed=None,
        erased_at=None,
    )


def sha256_of(text: str) -> str:
    """The SHA-256 of a text; empty for an empty text."""
    return hashlib.sha256(text.encode()).hexdigest() if text else ""


def _owned(execute: Execute, sql: Statements, charge: Charge, client: str, at: str) -> str | None:
    """The hash of the request that used the idempotency key, or None. An error if this client gets no comparison."""
    used = execute(sql.owner, (charge.idempotency_key,))
    if not used:
        return None
    ((owner, request, budget, state),) = used
    if _is_of_another(owner, client):
        raise KeyReused(charge.idempotency_key, budget, has_answer=state == "made")
    too_many = wait_before(execute, sql, charge.idempotency_key, seconds_of(at))
    if too_many is not None:
        raise too_many
    return str(request)


def _is_of_another(owner: str | None, client: str) -> bool:
    """Whether another client has paid. Its request is not compared: the answer would tell what it posted."""
    return owner is not None and owner != client  # charges of version 0.1 have no owner


def _still_answered(release: RecordedRelease | None) -> RecordedRelease | None:
    erased = None if release is None else _erased(release)
    if erased is not None:
        raise erased
    return release


def _erased(release: RecordedRelease) -> AnswerErased | None:
    return None if release.erased_at is None else AnswerErased(release.erased_at)
