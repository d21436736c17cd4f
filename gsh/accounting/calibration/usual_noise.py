"""Refuses a calibration if too little of a budget is left, before anything is charged.  [docs/budgets.md]

With enough noise, a release fits any remaining budget. But a table with σ = 10⁸ is empty, costs the rest of the budget,
and uses up its name. So at least half of a usual release must be left, that is, of the average cost of a release so
far: enough for one with √2 times its noise. Half, because equal releases differ a little, and the last one gets the
rest. And σ is at most 10⁶. ``most_sigma`` replaces both rules. They do not depend on data. If the budget has ancestors
(``above``), each of them must have as much left of its own usual release.
"""

from collections.abc import Sequence
from fractions import Fraction

from gsh.accounting.budget_limits import Account, Limit
from gsh.accounting.calibration.draft import Draft
from gsh.accounting.calibration.remaining import RemainingCalibration, calibrate_remaining
from gsh.accounting.calibration.remaining_tables import RemainingTables, calibrate_remaining_tables
from gsh.accounting.calibration.shares import Shares, TableDraft
from gsh.accounting.composition import Spent
from gsh.errors import TooLittleLeft

__all__ = ["MOST_SIGMA", "calibrate_usual", "calibrate_usual_tables"]

MOST_SIGMA = 1e6
"""The largest σ that is calibrated to a budget, or published with, unless the caller gives another bound."""
_LEAST_SHARE = Fraction(1, 2)
_ADVICE = "raise the limit of the budget, or allow more noise by most_sigma"


def calibrate_usual(
    spent: Spent,
    draft: Draft,
    releases: int,
    limit: Limit,
    most_sigma: float | None = None,
    above: Sequence[Account] = (),
) -> RemainingCalibration:
    """``calibrate_remaining``, or ``TooLittleLeft`` if less than half of a usual release is left, or σ is too large."""
    if "sigma" in draft.missing:
        _expect_room((Account(spent, limit), *above), most_sigma)
    found = calibrate_remaining(spent, draft, releases, limit, above)
    if "sigma" in found.solved:
        _expect_little_noise(found.mechanism.sigma, most_sigma)
    return found


def calibrate_usual_tables(
    spent: Spent,
    drafts: Sequence[TableDraft],
    shares: Shares,
    releases: int,
    limit: Limit,
    most_sigma: float | None = None,
    above: Sequence[Account] = (),
) -> RemainingTables:
    """``calibrate_remaining_tables``, by the same rules: they bound the largest σ of the tables."""
    _expect_room((Account(spent, limit), *above), most_sigma)
    found = calibrate_remaining_tables(spent, drafts, shares, releases, limit, above)
    _expect_little_noise(max(table.sigma for table in found.tables), most_sigma)
    return found


def _expect_room(accounts: Sequence[Account], most_sigma: float | None) -> None:
    for spent, limit in accounts:
        if spent.releases and most_sigma is None:
            _expect_a_usual_one(spent, limit)
        if spent.releases and limit.used(spent) == 1:
            raise TooLittleLeft("/releases", "nothing is left: raise the limit of the budget")


def _expect_little_noise(sigma: float, most_sigma: float | None) -> None:
    bound = MOST_SIGMA if most_sigma is None else most_sigma
    if sigma > bound:
        detail = f"too little is left: sigma would be {sigma:.6g}, and most_sigma is {bound:g}; {_ADVICE}"
        raise TooLittleLeft("/releases", detail)


def _expect_a_usual_one(spent: Spent, limit: Limit) -> None:
    caps = limit.caps
    for name in ("mu_squared", "hazard"):
        left = max(getattr(caps, name) - getattr(spent, name), Fraction(0))
        usual = getattr(spent, name) / spent.releases
        if left < _LEAST_SHARE * usual:
            numbers = f"{float(left):.3g} of {name}, and a release so far cost {float(usual):.3g} on average"
            raise TooLittleLeft("/releases", f"too little is left: {numbers}; {_ADVICE}")
