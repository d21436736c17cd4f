"""Requests that wait for a second access key: changes of budgets, and releases.

The history of the budget has everything: an entry when somebody asks, one when another client approves or refuses, and
then the change or the charge, which names both. A row for each request makes them easy to find. What is approved is
what is done: a change is made from what the entry says, and a release must have the content whose keyed hash the entry
has. Nothing is drawn before.
"""

import secrets
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from app.ledger.budget_rows import add_entry, known_budget, set_budget
from app.ledger.changes import Change, PlannedChange
from app.ledger.charges import Charge
from app.ledger.databases import Execute, Statements
from app.ledger.errors import AlreadyDecided, NoSecondKey, OutdatedRequest, UnknownApproval
from app.ledger.state import Budget, By, Entry, Settings
from gsh.accounting.budget_limits import Limit
from gsh.accounting.composition import Cost
from gsh.wire import charged_to_json

__all__ = [
    "Approval",
    "ApprovalState",
    "Approver",
    "ask_for_change",
    "ask_for_release",
    "check_current",
    "decide",
    "find_approval",
    "find_for_release",
    "finish",
    "list_approvals",
    "wanted_by",
]

ApprovalState: TypeAlias = Literal["waiting", "approved", "refused", "done"]
"""``done``: the change is made, or the release is charged."""


@dataclass(frozen=True, slots=True)
class Approver:
    """Who asks or decides: the access key, and the client, which is the same after a rotation."""

    by: By
    client: str
    """A keyed hash."""


@dataclass(frozen=True, slots=True)
class Approval:
    """A request and what became of it."""

    id: str
    kind: Literal["change", "release"]
    budget: str
    number: int
    """The entry in the history of the budget in which somebody asked."""
    key: str | None
    """The idempotency key of a release."""
    state: ApprovalState
    asked: Entry
    decided: Entry | None

    @property
    def details(self) -> dict[str, Any]:
        return self.asked.details


def ask_for_change(execute: Execute, sql: Statements, planned: PlannedChange, asker: Approver, at: str) -> Approval:
    """Record the request; or find it, if the same client has asked for the same, and it still waits."""
    before, after = planned.before, planned.after
    changed = [name for name, value in before.recorded.items() if value != after.recorded[name]]
    wanted = {
        "before": {name: before.recorded[name] for name in changed},
        "after": {name: after.recorded[name] for name in changed},
        "reason": planned.reason,
    }
    for waiting in list_approvals(execute, sql, before.id):
        details = waiting.details
        is_same = all(details.get(name) == value for name, value in wanted.items())
        if waiting.state == "waiting" and is_same and details["client"] == asker.client:
            return waiting
    return _ask(execute, sql, before, "change", None, wanted, asker, at)


def ask_for_release(
    execute: Execute, sql: Statements, charge: Charge, budget: Budget, asker: Approver, at: str
) -> Approval:
    """Record the request. The budget is locked and stored."""
    wanted = {
        "key": charge.idempotency_key,
        "content_hash": charge.content,
        "release": charged_to_json(charge.release),
        "s": charge.cost.mu_squared,
        "d": charge.cost.hazard,
        "state": charge.state,
        "description": charge.notes.description,
        "labels": list(charge.notes.labels),
    }
    return _ask(execute, sql, budget, "release", charge.idempotency_key, wanted, asker, at)


def _ask(
    execute: Execute,
    sql: Statements,
    budget: Budget,
    kind: Literal["change", "release"],
    key: str | None,
    wanted: dict[str, Any],
    asker: Approver,
    at: str,
) -> Approval:
    name = secrets.token_hex(8)
    details = {"approval_id": name, "kind": kind, "client": asker.client} | wanted
    changed, entry = budget.noted("requested", at, details, asker.by)
    set_budget(execute, sql, changed)
    add_entry(execute, sql, entry)
    execute(sql.add_approval, (name, kind, budget.id, entry.number, key, "waiting"))
    return Approval(name, kind, budget.id, entry.number, key, "waiting", entry, None)


def decide(
    execute: Execute, sql: Statements, found: Approval, approver: Approver, reason: str, at: str, *, is_approved: bool
) -> Budget:
    """Record the decision of another client. The budget and the row are locked."""
    if found.state != "waiting":
        raise AlreadyDecided(found.state)
    if found.details["client"] == approver.client:
        raise NoSecondKey
    budget = known_budget(execute, sql, found.budget)
    details = {"approval_id": found.id, "client": approver.client, "reason": reason}
    changed, entry = budget.noted("approved" if is_approved else "refused", at, details, approver.by)
    set_budget(execute, sql, changed)
    add_entry(execute, sql, entry)
    execute(sql.decide_approval, ("approved" if is_approved else "refused", entry.number, found.id))
    return changed


def finish(execute: Execute, sql: Statements, name: str) -> None:
    """The change is made, or the release is charged: in the same transaction."""
    execute(sql.finish_approval, ("done", name))


def check_current(found: Approval, planned: PlannedChange) -> None:
    """An error if the budget is no longer as it was when somebody asked."""
    before = found.details["before"]
    if any(planned.before.recorded[name] != value for name, value in before.items()):
        raise OutdatedRequest
    if any(planned.after.recorded[name] != value for name, value in found.details["after"].items()):
        raise OutdatedRequest


def wanted_by(found: Approval, budget: Budget) -> Change:
    """The change of the budget that a request asks for."""
    after: dict[str, Any] = dict(found.details["after"])
    proportion = after.pop("proportion", None)
    limit = Limit(
        after.pop("epsilon", budget.limit.epsilon),
        after.pop("delta", budget.limit.delta),
        None if proportion is None else Cost(proportion["s"], proportion["d"]),
    )
    settings: Settings = after  # type: ignore[assignment]
    return Change(budget.id, limit, settings, found.details["reason"])


def find_approval(execute: Execute, sql: Statements, name: str, *, lock: bool = False) -> Approval:
    return _one(execute, sql, execute(sql.locked_approval if lock else sql.approval, (name,)))


def find_for_release(execute: Execute, sql: Statements, key: str, *, lock: bool = False) -> Approval | None:
    """The request for a release with this idempotency key."""
    rows = execute(sql.locked_approval_of if lock else sql.approval_of, (key,))
    return _one(execute, sql, rows) if rows else None


def list_approvals(execute: Execute, sql: Statements, budget: str | None = None) -> list[Approval]:
    """The requests of a budget or of all, the newest first."""
    rows = execute(sql.approvals) if budget is None else execute(sql.approvals_of, (budget,))
    return sorted((_approval(execute, sql, row) for row in rows), key=lambda each: each.asked.at, reverse=True)


def _one(execute: Execute, sql: Statements, rows: list[tuple[Any, ...]]) -> Approval:
    if not rows:
        raise UnknownApproval
    return _approval(execute, sql, rows[0])


def _approval(execute: Execute, sql: Statements, row: tuple[Any, ...]) -> Approval:
    name, kind, budget, number, key, state, decision = row
    numbers = [number] if decision is None else [number, decision]
    entries = {each[1]: Entry(*each) for each in execute(sql.entries_at(len(numbers)), (budget, *numbers))}
    return Approval(name, kind, budget, number, key, state, entries[number], entries.get(decision))
