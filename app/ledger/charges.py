"""Charges within a transaction: whether the budget pays, and the entry that records the charge and its answer.

An answer that was charged, but whose key was never stored, nobody can have read. It is drawn again and not charged
again. The history gets an entry that records the second draw, so that the chain covers the answer that is read.
"""

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from app.ledger.answer_keys import add_mark, replace_mark
from app.ledger.answers import ENCRYPTED, Staged, expect_staged
from app.ledger.budget_rows import add_entries, add_entry, set_budget, set_budgets
from app.ledger.databases import Execute, Statements
from app.ledger.errors import BudgetExceeded, LedgerUnavailable
from app.ledger.lineage import Lineage
from app.ledger.releases import (
    Notes,
    RecordedRelease,
    ReleaseState,
    add_release,
    find_release,
    release_seal,
    stored_certificate,
)
from app.ledger.secret import Secret
from app.ledger.state import Budget, Entry, EntryName
from gsh.accounting.composition import Cost, Release

__all__ = [
    "Charge",
    "Charged",
    "ChargedAnswer",
    "CheckedBudget",
    "add_charge",
    "demands_approval",
    "draw_again",
    "fitting",
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
    approval: str | None = None
    """The id of the request that another client has approved, if a budget demands it."""


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
    """A budget that pays, and its ancestors, which pay too. ``unread`` is the id of an answer that they have paid for,
    and that nobody can have read."""

    lineage: Lineage
    unread: str | None = None

    @property
    def budget(self) -> Budget:
        return self.lineage[0]

    @property
    def needs_approval(self) -> bool:
        """Whether another client must approve the release first."""
        return self.unread is None and demands_approval(self.lineage)


def demands_approval(lineage: Lineage) -> bool:
    """Whether the budget or an ancestor lets releases wait for an approval."""
    return any(budget.approval == "releases" for budget in lineage)


ChargedAnswer = Callable[[Lineage, int], Staged]
"""Makes the answer of a charge from its budget and the ancestors after the charge, and the number of its entry."""


def fitting(lineage: Lineage, charge: Charge) -> Lineage:
    """The budget and its ancestors; an error if the charge does not fit one of them, the nearest first."""
    for budget in lineage:
        after = budget.spent.plus(charge.release, charge.cost)
        if not budget.limit.settled_by(charge.cost).admits(after):
            raise BudgetExceeded(budget, charge.release, charge.cost, is_ancestor=budget is not lineage[0])
    return lineage


def add_charge(
    execute: Execute,
    sql: Statements,
    secret: Secret,
    charge: Charge,
    *,
    lineage: Lineage,
    client: str,
    at: str,
    answer: ChargedAnswer | None,
) -> RecordedRelease:
    """Record the charge at all levels, and its release. The charge fits.

    The result has the key of the answer, which the next transaction stores.
    """
    release, cost = charge.release, charge.cost
    after = tuple(replace(each, spent=each.spent.plus(release, cost)) for each in lineage)
    budget, *above = lineage
    ancestors = tuple(EntryName(each.id, each.entries + 1) for each in above)
    made = None if answer is None else answer(after, budget.entries + 1)
    key, notes = charge.idempotency_key, charge.notes
    recorded: dict[str, Any] = {"key": key, "request": charge.request, "client": client, "state": charge.state}
    recorded |= {"description": notes.description, "labels": notes.labels}
    recorded |= {"ancestors": [each._asdict() for each in ancestors]} if ancestors else {}
    approved = {} if charge.approval is None else {"approval_id": charge.approval}
    recorded |= approved
    optional = {"content_hash": charge.content, "provenance_sha256": sha256_of(notes.provenance)}
    certificate = _stored_certificate(notes, made)
    recorded |= {name: value for name, value in optional.items() if value} | _drawn_details(notes, made, certificate)
    charged, entry = budget.charged(after[0].spent, release, cost, at, recorded, notes.by)
    paid = RecordedRelease(
        key=key,
        budget=budget.id,
        number=entry.number,
        ancestors=ancestors,
        at=at,
        state=charge.state,
        notes=notes,
        cost=cost,
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
    paid = replace(paid, seal=release_seal(secret, paid.identity))
    size = paid.size if paid.place is None else None
    stored = (paid.media_type, size, None if made is None else made.content)
    levels = [charged]
    entries: list[tuple[Entry, tuple[Any, ...]]] = [
        (entry, (cost.mu_squared, cost.hazard, key, charge.request, client, *stored))
    ]
    through = {"budget": budget.id, "number": entry.number, "hash": entry.hash, "key": key}
    for ancestor, later in zip(above, after[1:], strict=True):
        charged, entry = ancestor.charged(later.spent, release, cost, at, {"through": through} | approved, notes.by)
        levels.append(charged)
        entries.append((entry, (cost.mu_squared, cost.hazard, *[None] * 6)))
    set_budgets(execute, sql, levels)
    add_entries(execute, sql, entries)
    add_release(execute, sql, paid, certificate)
    if made is not None and made.place is not None:
        add_mark(execute, sql, secret, made.place.answer)
        _claim_parts(execute, sql, made)
    return paid


def _claim_parts(execute: Execute, sql: Statements, made: Staged) -> None:
    """The parts of a large answer belong to a charge from now on."""
    if made.place is not None and made.content is None:
        expect_staged(execute, sql, made.place)
        execute(sql.unstage, (made.place.answer,))


def _stored_certificate(notes: Notes, made: Staged | None) -> str:
    if made is None or made.place is None:
        return stored_certificate(notes, None, None)
    return stored_certificate(notes, made.facts, made.place.answer)


def _drawn_details(notes: Notes, made: Staged | None, certificate: str) -> dict[str, Any]:
    """What an entry records of a draw. An encrypted answer is recorded by a keyed hash."""
    texts = {"certificate_sha256": sha256_of(certificate), "layout_sha256": sha256_of(notes.layout)}
    drawn: dict[str, Any] = {name: value for name, value in ({"release_id": notes.release_id} | texts).items() if value}
    if made is None:
        return drawn
    facts = made.facts
    answer = {"answer": made.sha256, "size": made.size} if facts is None else {"answer_seal": facts.seal}
    return drawn | {"media_type": made.media_type} | answer


def sha256_of(text: str) -> str:
    """The SHA-256 of a text; empty for an empty text."""
    return hashlib.sha256(text.encode()).hexdigest() if text else ""


logger = logging.getLogger("app.ledger")


def draw_again(
    execute: Execute,
    sql: Statements,
    secret: Secret,
    before: RecordedRelease,
    *,
    budget: Budget,
    notes: Notes,
    made: Staged,
    at: str,
) -> RecordedRelease | None:
    """The release with another draw, whose key the next transaction stores; None if the first key was stored meanwhile.

    The description and the labels stay those of the first request.
    """
    assert before.place is not None
    assert made.place is not None
    if not replace_mark(execute, sql, secret, before.place.answer, made.place.answer):
        now = find_release(execute, sql, before.key)
        if now is None or now.is_unread:
            raise LedgerUnavailable("the key of an answer was removed by somebody else: run gsh ledger verify")
        return None
    certificate = _stored_certificate(notes, made)
    changed, entry = budget.redrawn(at, {"key": before.key} | _drawn_details(notes, made, certificate), notes.by)
    set_budget(execute, sql, changed)
    add_entry(execute, sql, entry)
    execute(sql.set_content, (made.media_type, made.content, before.key))
    texts = (notes.release_id or None, certificate or None, notes.layout or None)
    execute(sql.draw_again, (*texts, made.place.answer, before.key))
    if before.place.answer != made.place.answer:
        execute(sql.stage, (before.place.answer, ""))  # its parts are removed later
    _claim_parts(execute, sql, made)
    logger.warning("an answer was charged, and never stored: it is drawn again, and not charged again")
    return replace(
        before,
        notes=replace(
            before.notes,
            release_id=notes.release_id,
            certificate=notes.certificate,
            contents=notes.contents,
            layout=notes.layout,
        ),
        media_type=made.media_type,
        size=made.size,
        answer_sha256=made.sha256,
        place=made.place,
    )
