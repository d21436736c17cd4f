"""A budget and its ancestors: its parent, the parent of that one, and so on.

A charge is admitted by all of them or by none, in one transaction. Each level has an entry of its own: that of the
charged budget names the entries of its ancestors, and each of these has the hash of the first one. So the head of a
budget covers all charges of its descendants.

A transaction locks a budget before its parent. The lock fixes the parent, and no transaction waits for a budget below
one that it has locked. So two charges never wait for each other. A change of a parent locks the tree of budgets first:
charges do not, because a change never moves a budget that has charges.
"""

from collections.abc import Callable
from dataclasses import dataclass

from app.ledger.budget_rows import find_budget
from app.ledger.databases import Execute, Statements
from app.ledger.errors import BrokenLineage, InvalidParent, ParentSettled
from app.ledger.state import Budget
from gsh.accounting.composition import NOTHING, Cost, Release

__all__ = [
    "MOST_LEVELS",
    "Lineage",
    "Use",
    "ancestors_among",
    "ancestors_of",
    "check_parent",
    "find_lineage",
    "how_many_cost",
    "how_many_fit",
    "least_remaining",
    "lock_tree",
]

MOST_LEVELS = 8
"""The largest number of budgets from one without a parent to one without children."""

_TREE = "secret"
"""The name of the fact that a change of a parent locks. Every ledger has it."""

Lineage = tuple[Budget, ...]
"""A budget, its parent, and so on. It is empty if there is no such budget."""


def find_lineage(execute: Execute, sql: Statements, name: str, *, lock: bool = False) -> Lineage:
    """The budget and its ancestors."""
    budget = find_budget(execute, sql, name, lock=lock)
    return () if budget is None else (budget, *ancestors_of(execute, sql, budget, lock=lock))


def ancestors_of(execute: Execute, sql: Statements, budget: Budget, *, lock: bool = False) -> Lineage:
    """The parent first."""
    return ancestors_among(budget, lambda name: find_budget(execute, sql, name, lock=lock))


def ancestors_among(budget: Budget, find: Callable[[str], Budget | None]) -> Lineage:
    """The same, of budgets that are found by their names."""
    ancestors: list[Budget] = []
    parent = budget.parent
    while parent is not None:
        found = find(parent)
        if found is None or len(ancestors) == MOST_LEVELS:
            raise BrokenLineage(f"the ancestors of the budget {budget.id} are not as recorded: run gsh ledger verify")
        ancestors.append(found)
        parent = found.parent
    return tuple(ancestors)


def lock_tree(execute: Execute, sql: Statements) -> None:
    """Before a parent is changed: no other transaction changes one at the same time."""
    execute(sql.locked_fact, (_TREE,))


def check_parent(execute: Execute, sql: Statements, budget: Budget, parent: str | None) -> None:
    """An error if a budget may not get this parent, or lose the one that it has. The tree is locked."""
    if budget.spent.releases:
        raise ParentSettled
    if parent is None:
        return
    above = find_lineage(execute, sql, parent)
    if not above:
        raise InvalidParent("names no budget")
    if above[0].renews is not None:
        raise InvalidParent("must not be a budget that is renewed")
    if any(each.id == budget.id for each in above):
        raise InvalidParent("must not be the budget itself, or one below it")
    if len(above) + _height(execute, sql, budget.id) > MOST_LEVELS:
        raise InvalidParent(f"would make more than {MOST_LEVELS} levels of budgets")


def _height(execute: Execute, sql: Statements, name: str) -> int:
    """The number of levels of a budget and its descendants."""
    height, level = 0, [name]
    while level and height <= MOST_LEVELS:
        height += 1
        level = [child for each in level for (child,) in execute(sql.children, (each,))]
    return height


def least_remaining(lineage: Lineage) -> Cost:
    """What can still be charged: the least that any of the budgets has left of each sum, rounded down."""
    rooms = [each.limit.remaining(each.spent) for each in lineage]
    return Cost(min(room.mu_squared for room in rooms), min(room.hazard for room in rooms))


def how_many_fit(lineage: Lineage, release: Release, cost: Cost) -> int:
    """The number of further releases like this one that all of the budgets admit."""
    return min(each.limit.how_many_fit(each.spent, release, cost) for each in lineage)


def how_many_cost(lineage: Lineage, cost: Cost) -> int:
    """The number of further releases of this cost within the caps of all of the budgets."""
    return min(each.limit.how_many_cost(each.spent, cost) for each in lineage)


@dataclass(frozen=True, slots=True)
class Use:
    """What a release used of the budget that paid, and what is left of it: all that people want to know of a charge."""

    budget: str
    of: int
    """So many releases like this one are the whole budget."""
    more: int
    """So many more like it fit, also into the ancestors."""
    used: float
    """The used share of the budget, with this release."""

    @staticmethod
    def of_release(lineage: Lineage, cost: Cost) -> "Use":
        """For a release that is charged already."""
        budget = lineage[0]
        whole = max(budget.limit.how_many_cost(NOTHING, cost), 1)  # a single one may have exact accounting
        return Use(budget.id, whole, how_many_cost(lineage, cost), budget.limit.used(budget.spent))
