"""Budgets and the entries of their histories, as rows of the database."""

import json
from collections.abc import Sequence
from typing import Any

from app.ledger.databases import Execute, Statements
from app.ledger.errors import UnknownBudget
from app.ledger.state import Budget, Entry, fraction_of, text_of
from gsh.accounting.budget_limits import Caps, Limit
from gsh.accounting.composition import Cost, Spent
from gsh.wire import charged_from_json, charged_to_json

__all__ = [
    "add_budget",
    "add_entries",
    "add_entry",
    "all_budgets",
    "find_budget",
    "known_budget",
    "periods_of",
    "set_budget",
    "set_budgets",
]


def all_budgets(execute: Execute, sql: Statements) -> list[Budget]:
    return [_budget_of(row) for row in execute(sql.budgets)]


def find_budget(execute: Execute, sql: Statements, name: str, *, lock: bool = False) -> Budget | None:
    rows = execute(sql.locked_budget if lock else sql.budget, (name,))
    return _budget_of(rows[0]) if rows else None


def periods_of(execute: Execute, sql: Statements, name: str) -> list[Budget]:
    """The budgets of the periods of a renewed one, the earliest first."""
    return [_budget_of(row) for row in execute(sql.periods, (name,))]


def known_budget(execute: Execute, sql: Statements, name: str, *, lock: bool = False) -> Budget:
    budget = find_budget(execute, sql, name, lock=lock)
    if budget is None:
        raise UnknownBudget
    return budget


def add_budget(execute: Execute, sql: Statements, budget: Budget) -> None:
    execute(sql.add_budget, (budget.id, *_columns(budget)))


def set_budget(execute: Execute, sql: Statements, budget: Budget) -> None:
    execute(sql.set_budget, (*_columns(budget), budget.id))


def set_budgets(execute: Execute, sql: Statements, budgets: Sequence[Budget]) -> None:
    """The same for several, in one statement."""
    execute(sql.set_budgets(len(budgets)), tuple(value for each in budgets for value in (each.id, *_columns(each))))


def add_entry(execute: Execute, sql: Statements, entry: Entry, charge: tuple[Any, ...] = (None,) * 8) -> None:
    """``charge`` is the cost of a charge and its answer."""
    add_entries(execute, sql, [(entry, charge)])


def add_entries(execute: Execute, sql: Statements, entries: Sequence[tuple[Entry, tuple[Any, ...]]]) -> None:
    """The same for several, in one statement."""
    rows = (
        (each.budget, each.number, each.kind, each.at, each.payload, each.hash, *charge) for each, charge in entries
    )
    execute(sql.add_entries(len(entries)), tuple(value for row in rows for value in row))


def _columns(budget: Budget) -> tuple[Any, ...]:
    limit, spent = budget.limit, budget.spent
    proportion = (None, None) if limit.proportion is None else (limit.proportion.mu_squared, limit.proportion.hazard)
    only = None if spent.only is None else json.dumps(charged_to_json(spent.only))
    sums = (text_of(spent.mu_squared), text_of(spent.hazard), spent.releases, only)
    unit = (budget.privacy_unit, budget.period)
    return (
        *(limit.epsilon, limit.delta, *proportion, budget.description),
        *(*sums, budget.entries, budget.head, *_texts(budget.hull), *unit, *_texts(limit.ray), budget.parent),
        *(budget.renews, budget.closes_after, budget.period_of, budget.most_sigma, budget.approval),
    )


def _texts(caps: Caps | None) -> tuple[str | None, str | None]:
    return (None, None) if caps is None else (text_of(caps.mu_squared), text_of(caps.hazard))


def _caps_of(mu_squared: str | None, hazard: str | None) -> Caps | None:
    return None if mu_squared is None or hazard is None else Caps(fraction_of(mu_squared), fraction_of(hazard))


def _budget_of(row: Sequence[Any]) -> Budget:
    name, epsilon, delta, proportion_s, proportion_d, description, s, d, charges, only, entries, head, *rest = row
    hull_s, hull_d, privacy_unit, period, *ray, parent, renews, closes_after, period_of, most_sigma, approval = rest
    limit = Limit(epsilon, delta, None if proportion_s is None else Cost(proportion_s, proportion_d), _caps_of(*ray))
    release = None if only is None else charged_from_json(json.loads(only))
    spent = Spent(fraction_of(s), fraction_of(d), charges, release)
    return Budget(
        id=name,
        limit=limit,
        description=description,
        spent=spent,
        entries=entries,
        head=head,
        hull=_caps_of(hull_s, hull_d),
        privacy_unit=privacy_unit,
        period=period,
        parent=parent,
        renews=renews,
        closes_after=closes_after,
        period_of=period_of,
        most_sigma=most_sigma,
        approval=approval,
    )
