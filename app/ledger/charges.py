"""Charges within a transaction: does the budget pay, was the request answered before, and the entry with its answer."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from app.ledger.answers import SMALL_BYTES, Answer, Stored, add_parts
from app.ledger.audit import answer_digest
from app.ledger.budget_rows import add_entry, set_budget
from app.ledger.clock import seconds_of
from app.ledger.comparison_limit import refusal, wait_before
from app.ledger.connections import Execute
from app.ledger.errors import BudgetExceeded, LedgerError, UnknownBudget
from app.ledger.state import Budget
from app.ledger.statements import Statements
from gsh.accounting.composition import Cost, Release, Spent

__all__ = ["Charge", "add_charge", "fitting", "is_used", "stored_for"]


@dataclass(frozen=True, slots=True)
class Charge:
    """A release to charge to a budget, exactly once for its idempotency key."""

    budget: str
    idempotency_key: str
    request: str
    """The fingerprint of the request, by which a repeated one is recognised."""
    client: str
    """The id of the access key, or the client's address; the ledger stores a keyed hash of it."""
    release: Release
    cost: Cost


def is_used(execute: Execute, sql: Statements, charge: Charge, client: str, at: str) -> bool:
    """Whether the idempotency key is used; an error if too many requests were compared with its request lately."""
    used = execute(sql.owner, (charge.idempotency_key,))
    if used:
        by_owner = used == [(client,)]
        too_many = wait_before(execute, sql, charge.idempotency_key, by_owner=by_owner, now=seconds_of(at))
        if too_many is not None:
            raise too_many
    return bool(used)


def fitting(budget: Budget | None, charge: Charge) -> tuple[Budget, Spent]:
    """The budget, and what it will have spent; an error if the charge does not fit."""
    if budget is None:
        raise UnknownBudget
    after = budget.spent.plus(charge.release, charge.cost)
    if not budget.limit.settled_by(charge.cost).admits(after):
        raise BudgetExceeded(budget, charge.release)
    return budget, after


def stored_for(execute: Execute, sql: Statements, charge: Charge, client: str, at: str) -> Stored | LedgerError | None:
    """The stored answer of an idempotency key, or why the request does not get it, or None if the key is unused.

    Every comparison with another request counts (comparison_limit.py), so the error must be raised after the commit.
    """
    rows = execute(sql.locked_answer, (charge.idempotency_key,))
    if not rows:
        return None
    ((request, owner, media_type, size),) = rows
    is_same, by_owner = request == charge.request, owner == client
    refused = refusal(execute, sql, charge.idempotency_key, is_same=is_same, by_owner=by_owner, now=seconds_of(at))
    return refused or Stored(charge.idempotency_key, media_type, size)


def add_charge(
    execute: Execute,
    sql: Statements,
    fits: tuple[Budget, Spent],
    charge: Charge,
    client: str,
    at: str,
    answer: Callable[[Budget, int], Answer],
) -> Stored:
    """Record the charge and store its answer. ``answer`` gets the budget after the charge, and the entry's number."""
    budget, after = fits
    made = answer(replace(budget, spent=after), budget.entries + 1)
    digest, size = answer_digest(made.chunks())
    key = charge.idempotency_key
    recorded: dict[str, Any] = {"key": key, "request": charge.request, "client": client}
    recorded |= {"answer": digest, "media_type": made.media_type, "size": size}
    charged, entry = budget.charged(after, charge.release, charge.cost, at, recorded)
    set_budget(execute, sql, charged)
    content = b"".join(made.chunks()) if size <= SMALL_BYTES else None
    cost = (charge.cost.mu_squared, charge.cost.hazard)
    add_entry(execute, sql, entry, (*cost, key, charge.request, client, made.media_type, size, content))
    if content is None:
        add_parts(execute, sql, key, made.chunks())
    return Stored(key, made.media_type, size, is_new=True)
