"""Renewed budgets: a charge to one is a charge to the budget of a period, which its first charge makes.

The period is the present one, unless the name says another: ``web@2026-W46``. Nothing is stored for a period before its
first charge. Two first charges at once make one budget: both lock the renewed budget before they look again.
"""

from datetime import date, timedelta

from app.ledger.budget_rows import add_budget, add_entry, find_budget
from app.ledger.databases import Execute, Statements
from app.ledger.errors import PeriodClosed, UnknownPeriod
from app.ledger.periods import Renews, begins, ends, period_at, split
from app.ledger.state import Budget, By

__all__ = ["check_open", "find_paying", "make_period"]


def find_paying(execute: Execute, sql: Statements, name: str, at: str, *, lock: bool = False) -> Budget | None:
    """The budget that a charge at this time is for. One of a period without charges is not stored: it has no entry."""
    found = find_budget(execute, sql, name, lock=lock)
    if found is not None and found.renews is None:
        return found
    renewed, label = split(name)
    if found is None and label is not None:
        found = find_budget(execute, sql, renewed, lock=lock)
    if found is None or found.renews is None:
        return None
    period = found.of_period(_begun(label or period_at(at, found.renews), found.renews, at))
    return find_budget(execute, sql, period.id, lock=lock) or period


def make_period(execute: Execute, sql: Statements, period: Budget, at: str, by: By | None) -> Budget:
    """Store the budget of a period. The renewed one is locked, so nobody else has made it."""
    made, entry = period.changed_to(period.limit, at, by=by)
    add_budget(execute, sql, made)
    add_entry(execute, sql, entry)
    return made


def check_open(budget: Budget, at: str) -> None:
    """An error if the budget is for a period that has ended, and is closed since."""
    _, label = split(budget.id)
    if budget.closes_after is None or budget.period_of is None or label is None:
        return
    renews: Renews = budget.period  # type: ignore[assignment]
    first = begins(label, renews)
    assert first is not None
    if date.fromisoformat(at[:10]) >= ends(first, renews) + timedelta(days=budget.closes_after):
        raise PeriodClosed(budget.id)


def _begun(label: str, renews: Renews, at: str) -> str:
    """The label of a period that has begun, or an error."""
    first = begins(label, renews)
    if first is None:
        raise UnknownPeriod(f"must be the name of a {renews}, such as {period_at(at, renews)}")
    if first > date.fromisoformat(at[:10]):
        raise UnknownPeriod(f"must not be a {renews} that has not begun")
    return label
