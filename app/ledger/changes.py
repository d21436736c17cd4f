"""Changes of budgets within a transaction: what a change would do, whether it may, and the entry that records it."""

from dataclasses import dataclass, replace
from typing import Any

from app.ledger.budget_rows import add_budget, add_entry, find_budget, periods_of, set_budget
from app.ledger.databases import Execute, Statements
from app.ledger.errors import (
    DivisionSettled,
    InvalidSetting,
    ParentSettled,
    ReasonMissing,
    UnitSettled,
    UnknownBudget,
)
from app.ledger.lineage import check_parent, lock_tree
from app.ledger.periods import split
from app.ledger.state import Budget, By, Settings
from gsh.accounting.budget_limits import Limit, same_proportion

__all__ = ["Change", "PlannedChange", "make_change", "plan_change"]


@dataclass(frozen=True, slots=True)
class Change:
    """A limit and settings for a budget. What ``settings`` does not name stays."""

    budget: str
    limit: Limit
    settings: Settings
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """What a change would do. The budget is locked."""

    before: Budget
    after: Budget
    settings: Settings
    """Also those that follow from others."""
    reason: str

    @property
    def is_new(self) -> bool:
        return self.before.entries == 0

    @property
    def is_none(self) -> bool:
        """Whether the budget is there, and already as it should be."""
        return not self.is_new and self.before.recorded == self.after.recorded

    @property
    def is_of_words(self) -> bool:
        """Whether the description alone changes, which needs no reason and no approval."""
        return replace(self.before, description=self.after.description).recorded == self.after.recorded

    @property
    def needs_approval(self) -> bool:
        return not self.is_new and not self.is_of_words and self.before.approval is not None


def plan_change(execute: Execute, sql: Statements, change: Change) -> PlannedChange:
    """What the change would do, or an error."""
    if not {"parent", "renews"}.isdisjoint(change.settings):
        lock_tree(execute, sql)
    found = find_budget(execute, sql, change.budget, lock=True)
    if found is None and split(change.budget)[1] is not None:
        raise UnknownBudget  # the first charge makes the budget of a period
    before = found or Budget(change.budget, change.limit, "")
    after = replace(before, **change.settings, limit=change.limit if found is None else _changed(before, change.limit))
    settings, after = _renewed(execute, sql, before, after, change.settings)
    if before.parent != after.parent:
        check_parent(execute, sql, before, after.parent)
    planned = PlannedChange(before, after, settings, change.reason)
    if planned.is_new:
        return planned
    if before.spent.releases and (before.privacy_unit, before.period) != (after.privacy_unit, after.period):
        raise UnitSettled
    if not planned.is_of_words and not change.reason:
        raise ReasonMissing
    return planned


def make_change(
    execute: Execute, sql: Statements, planned: PlannedChange, at: str, by: By | None, **further: Any
) -> Budget:
    """Make or change the budget, and record it."""
    if planned.after.approval is not None and by is None:
        raise InvalidSetting("approval", "needs access keys: another one than the one that asks must approve")
    changed, entry = planned.before.changed_to(
        planned.after.limit,
        at,
        planned.settings,
        reason="" if planned.is_new else planned.reason,
        by=by,
        further=further,
    )
    if planned.is_new:
        add_budget(execute, sql, changed)
    else:
        set_budget(execute, sql, changed)
    add_entry(execute, sql, entry)
    return changed


def _renewed(
    execute: Execute, sql: Statements, before: Budget, after: Budget, settings: Settings
) -> tuple[Settings, Budget]:
    """The settings with those that follow from ``renews``, and the budget with them, if it may be renewed so."""
    if before.renews != after.renews:
        follow: Settings = {"period": after.renews}
        settings = follow | ({"closes_after": None} if after.renews is None else {}) | settings
        after = replace(before, **settings, limit=after.limit)
    if after.renews is not None and before.period_of is not None:
        raise InvalidSetting("renews", "must be omitted: the budget is for a period of another one")
    if after.renews is not None and execute(sql.children, (before.id,)):
        raise InvalidSetting("renews", "must be omitted: the budget is the parent of others")
    if after.renews is not None and after.period != after.renews:
        raise InvalidSetting("period", f"must be {after.renews}, as renews says, or omitted")
    if after.closes_after is not None and after.renews is None and before.period_of is None:
        raise InvalidSetting("closes_after", "needs renews: only periods are closed")
    fixed = [(each.renews, each.parent, each.privacy_unit) for each in (before, after)]
    if fixed[0] != fixed[1] and (before.spent.releases or periods_of(execute, sql, before.id)):
        raise ParentSettled if before.parent != after.parent else UnitSettled
    return settings, after


def _changed(budget: Budget, limit: Limit) -> Limit:
    """The limit that a budget may get. After its first charge it keeps its proportion, and its caps their ray."""
    if limit.proportion is None:
        limit = replace(limit, proportion=budget.limit.proportion)
    if budget.spent.releases == 0:
        return limit
    if not same_proportion(limit, budget.limit):
        raise DivisionSettled
    return replace(limit, proportion=budget.limit.proportion, ray=budget.limit.ray)
