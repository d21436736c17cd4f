"""Renewed budgets: a charge to one is a charge to the budget of a period, which its first charge makes.

The period is the present one, unless the name says another: ``web@2026-W46``. Nothing is stored for a period before its
first charge. Two first charges at once make one budget: both lock the renewed budget before they look again.
"""

from datetime import date, timedelta

from app.ledger.budget_rows import add_budget, add_entry, find_budget, known_budget
from app.ledger.databases import Execute, Statements
from app.ledger.errors import InvalidSetting, PeriodClosed, UnknownPeriod
from app.ledger.periods import Renews, begins, ends, name_of, period_at, split
from app.ledger.state import Budget, By, Entry

__all__ = ["check_open", "find_paying", "make_period", "named_period", "wrong_period"]


def named_period(budget: str, label: str | None) -> str:
    """The name of the budget that a request is for, which may name the period in a field of its own."""
    if label is None:
        return budget
    if split(budget)[1] is not None:
        raise InvalidSetting("period", "must be omitted: the name of the budget says the period")
    return name_of(budget, label)


def find_paying(execute: Execute, sql: Statements, name: str, at: str, *, lock: bool = False) -> Budget | None:
    """The budget that a charge at this time is for. One of a period without charges is not stored: it has no entry."""
    found = find_budget(execute, sql, name, lock=lock)
    if found is not None and found.renews is None:
        return found
    renewed, label = split(name)
    if found is None and label is not None:
        found = find_budget(execute, sql, renewed, lock=lock)
    if found is None:
        return None
    if found.renews is None:
        raise UnknownPeriod("must be omitted: the budget is not renewed")
    period = found.of_period(_begun(label or period_at(at, found.renews), found.renews, at))
    return find_budget(execute, sql, period.id, lock=lock) or period


def make_period(execute: Execute, sql: Statements, period: Budget, at: str, by: By | None) -> Budget:
    """Store the budget of a period. The renewed one is locked, so nobody else has made it."""
    renewed = known_budget(execute, sql, split(period.id)[0])
    made, entry = period.changed_to(period.limit, at, by=by, further={"renewed_entry": renewed.entries})
    add_budget(execute, sql, made)
    add_entry(execute, sql, entry)
    return made


_RECENT = 1000
"""A renewed budget has so few other entries between two changes."""


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


_INHERITED = (
    "epsilon",
    "delta",
    "proportion",
    "description",
    "privacy_unit",
    "parent",
    "closes_after",
    "most_sigma",
    "approval",
)


def wrong_period(execute: Execute, sql: Statements, budget: Budget, first: Entry) -> str | None:
    """Why the first entry of a period is not what its renewed budget said when it was made, or None."""
    name, label = split(budget.id)
    if budget.period_of is None:
        return None if label is None else "is not that of a period, as its name is"
    made, wrong = first.details, "was not made as its renewed budget was then"
    number = made.get("renewed_entry")
    if budget.period_of != name or label is None or type(number) is not int:
        return wrong
    rows = (Entry(*row) for row in execute(sql.charges, (name, number + 1, _RECENT)))
    entry = next((each for each in rows if each.kind in {"created", "changed"}), None)
    if entry is None or entry.number + _RECENT <= number:
        return wrong
    then = entry.details
    is_same = all(made.get(field) == then.get(field) for field in _INHERITED)
    if not is_same or made.get("period") != then.get("renews") or begins(label, then["renews"]) is None:
        return wrong
    return None


def _begun(label: str, renews: Renews, at: str) -> str:
    """The label of a period that has begun, or an error."""
    first = begins(label, renews)
    if first is None:
        raise UnknownPeriod(f"must be the name of a {renews}, such as {period_at(at, renews)}")
    if first > date.fromisoformat(at[:10]):
        raise UnknownPeriod(f"must not be a {renews} that has not begun")
    return label
