"""Calibration of several tables to the remaining budget: each gets a share of the two sums that are left.

Once a limit has its caps (budget_limits.py), each of k releases may cost a k-th of the remaining ``mu_squared`` and of
the remaining ``hazard``. Its tables share both (shares.py). Before the first charge the k releases fix the caps
themselves: then a search finds nearly the division with which the highest τ* is lowest (compared_tables.py). A single
first release has exact accounting. If the budget has ancestors, the least of what each has left is shared. Every answer
is certified to fit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from gsh.accounting.budget_limits import Account, Caps, Limit
from gsh.accounting.calibration.compared_tables import best_composition
from gsh.accounting.calibration.draft import Target
from gsh.accounting.calibration.shares import (
    Shares,
    TableDraft,
    calibrate_tables,
    check_drafts,
    shares_of,
    tables_within,
)
from gsh.accounting.composition import Spent, cost_of, delta_at
from gsh.accounting.mechanism import AnyMechanism, release_of
from gsh.accounting.numerics.doubles import double_below
from gsh.errors import InfeasibleTarget

__all__ = ["RemainingTables", "calibrate_remaining_tables"]

_ROOM = 2.0**-52


@dataclass(frozen=True, slots=True)
class RemainingTables:
    """The completed tables in their order, their shares, and the certified δ at the limit's ε after all releases."""

    tables: tuple[AnyMechanism, ...]
    shares: tuple[Fraction, ...]
    delta: float


def calibrate_remaining_tables(
    spent: Spent,
    drafts: Sequence[TableDraft],
    shares: Shares,
    releases: int,
    limit: Limit,
    above: Sequence[Account] = (),
) -> RemainingTables:
    """The smallest σ of each table for its share, and then the smallest τ*, so that ``releases`` equal ones fit."""
    check_drafts(drafts)
    weights, accounts = shares_of(drafts, shares), (Account(spent, limit), *above)
    if spent.releases == 0 and releases == 1 and not above:
        tables = calibrate_tables(drafts, shares, Target(limit.epsilon, limit.delta)).tables
    elif any(each.limit.used(each.spent) == 1 for each in accounts):
        raise InfeasibleTarget("tables", "cannot be solved: the budget is used up")
    else:
        tables = _within(accounts, drafts, weights, releases)
    release = release_of(tables)
    after = spent.plus(release, cost_of(release), releases)
    return RemainingTables(tables, weights, delta_at(after, limit.epsilon))


def _within(
    accounts: Sequence[Account], drafts: Sequence[TableDraft], weights: Sequence[Fraction], releases: int
) -> tuple[AnyMechanism, ...]:
    """The tables with a k-th of what is left of both sums: the least that an account has left of each."""
    rooms = [_room(account, drafts, weights, releases) for account in accounts]
    whole_square, whole_hazard = min(each.mu_squared for each in rooms), min(each.hazard for each in rooms)
    # A charge is rounded up to a double. A sum below a double is not rounded above it.
    square, hazard, room = double_below(whole_square / releases), double_below(whole_hazard / releases), _ROOM
    while square > 0 and hazard > 0 and room < 1:
        tables = tables_within(drafts, weights, Fraction(square), Fraction(hazard))
        release = release_of(tables)
        cost = cost_of(release)
        if all(account.admits(release, cost, releases) for account in accounts):
            return tables
        square, hazard, room = square * (1 - room), hazard * (1 - room), 16 * room
    raise InfeasibleTarget("tables", "cannot be solved: too little of the budget is left")


def _room(account: Account, drafts: Sequence[TableDraft], weights: Sequence[Fraction], releases: int) -> Caps:
    """What an account has left of both sums for these releases."""
    spent, limit = account
    target = Target(limit.epsilon, limit.delta)
    if spent.releases == 0 and releases == 1:
        cost = cost_of(release_of(calibrate_tables(drafts, list(weights), target).tables))
        return Caps(Fraction(cost.mu_squared), Fraction(cost.hazard) or limit.reserve)
    if limit.proportion is None:
        return Caps(*best_composition(drafts, weights, target, releases, least_hazard=limit.reserve))
    return Caps(limit.caps.mu_squared - spent.mu_squared, limit.caps.hazard - spent.hazard)
