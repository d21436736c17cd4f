"""How fast budgets are spent, and how long they last at this rate.

    days left = the least, over both caps, of  remaining ÷ (what the last charges cost ÷ the days that they took)

The last charges are those of 28 days. A younger budget has fewer days, and at least seven: one release says
little about a rate. A budget with many charges has the days of the last hundred.
"""

from typing import NamedTuple

from app.ledger.budget_rows import all_budgets
from app.ledger.clock import seconds_of
from app.ledger.databases import Execute, Statements
from app.ledger.periods import name_of, period_at
from app.ledger.state import Budget, Entry

__all__ = ["Standing", "days_left", "standings"]

_DAY = 86_400.0
_DAYS = 28.0
_LEAST_DAYS = 7.0
_CHARGES = 100


class Standing(NamedTuple):
    """What an operator watches: the used shares of a budget, and the days until it ends at the present rate."""

    budget: str
    mu_squared: float
    """The used share of the cap of ``mu_squared``, rounded up."""
    hazard: float
    days_left: float | None
    """None if nothing was charged lately, or if the budget is renewed: then it does not end."""


def standings(execute: Execute, sql: Statements, at: str) -> list[Standing]:
    """All budgets, by name. A renewed one is used as its present period is; the periods are not listed themselves."""
    budgets = {each.id: each for each in all_budgets(execute, sql)}
    found = []
    for budget in budgets.values():
        if budget.period_of is not None:
            continue
        now = budget if budget.renews is None else budgets.get(name_of(budget.id, period_at(at, budget.renews)), budget)
        left = days_left(execute, sql, budget, at)
        found.append(Standing(budget.id, *now.limit.used_shares(now.spent), left))
    return found


def days_left(execute: Execute, sql: Statements, budget: Budget, at: str) -> float | None:
    """The days until one of its caps is full at the present rate; those of its ancestors may be full before."""
    if budget.renews is not None or budget.period_of is not None:
        return None
    now = seconds_of(at)
    rows: list[tuple[float, float, str]] = [*execute(sql.last_charges, (budget.id, _CHARGES))]
    recent = [row for row in rows if seconds_of(row[2]) > now - _DAYS * _DAY]
    if not recent:
        return None
    made = [Entry(*row).at for row in execute(sql.entries_at(1), (budget.id, 1))]
    begun = made[0] if made and len(recent) < _CHARGES else recent[-1][2]
    days = min(max((now - seconds_of(begun)) / _DAY, _LEAST_DAYS), _DAYS)
    room = budget.limit.remaining(budget.spent)
    noise, threshold = sum(row[0] for row in recent), sum(row[1] for row in recent)
    return min(days * left / cost for left, cost in ((room.mu_squared, noise), (room.hazard, threshold)) if cost)
