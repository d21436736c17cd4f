"""What a survey counts: each user once, in one public bin of each histogram.

    groups     the number of groups of a user, in bins that end at 1, 2, 4, … 2²⁰; the last one has all with more
    a sum      its value in the one group of the user with the smallest lot, in units: bins to 1, 2, 4, … 2⁴⁰
    events     the number of events there: bins to 1, 2, 4, … 2²⁰

The group is chosen by lot. The largest value of a user has another distribution than the values of a group: clips
would be 2 to 3 bins too high. Negative sums are in the first bin: their clip is [0, b].

An engine answers one query per table: the bins of all its histograms, and how many users are in them together.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gsh.events.bounding import users_query
from gsh.events.choosing import BINS, edges
from gsh.events.kinds import Kind
from gsh.events.plan import Plan
from gsh.events.surveys.asked import Asks
from gsh.events.tables import AnyPlan
from gsh.library.measures import Measure

__all__ = ["Counts", "Wanted", "counted", "survey_query", "wanted"]

_BINS_OF_A_SUM = 41
Counts = dict[str, list[NDArray[np.int64]]]
"""The true numbers of users in the bins of each histogram, by table. They are raw data."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One histogram of a survey."""

    table: str
    column: str | None
    """The measure; None for the number of groups."""
    bins: tuple[float, ...]
    """Where they end."""

    @property
    def of(self) -> str:
        """What it counts the users by, in words."""
        counted = "groups of a user" if self.column is None else f"{self.column} of a user in one group"
        return f"{self.table}: {counted}" if self.table else counted


def wanted(plan: AnyPlan, asks: Mapping[str, Asks]) -> tuple[Wanted, ...]:
    """All histograms of a survey, in their order."""
    plans = {"": plan} if isinstance(plan, Plan) else plan.tables
    return tuple(each for name, asked in asks.items() for each in _of_table(name, plans[name], asked))


def _of_table(name: str, plan: Plan, asks: Asks) -> list[Wanted]:
    found = [Wanted(name, None, tuple(map(float, edges())))] if asks.c_u else []
    for measure in _asked(plan, asks):
        ends = tuple(each * measure.scale for each in edges(_bins_of(measure)))
        found.append(Wanted(name, measure.name, ends))
    return found


def survey_query(plan: Plan, asks: Asks, kinds: Mapping[str, Kind], dialect: str, source: str) -> str:
    """Rows ``_bin0``, ``_bin1`` …, ``_users``: so many users are in these bins of the histograms of the table."""
    measures = _asked(plan, asks)
    # From 0 to the end of the last bin: what is beyond is in the last bin too.
    counting = replace(plan, measures=tuple(each.between(0, 2 ** (_bins_of(each) - 1)) for each in measures))
    numbers = [("_groups", BINS)] if asks.c_u else []
    numbers += [(f"_sum{j}", _bins_of(each)) for j, each in enumerate(measures, 1)]
    bins = ", ".join(f"{_bin(name, count)} AS _bin{j}" for j, (name, count) in enumerate(numbers))
    names = ", ".join(f"_bin{j}" for j in range(len(numbers)))
    binned = f"SELECT {bins} FROM ({users_query(counting, kinds, dialect, source)}) AS _each"
    return f"SELECT {names}, COUNT(*) AS _users FROM ({binned}) AS _binned GROUP BY {names}"


def counted(plan: Plan, asks: Asks, rows: Iterable[Sequence[int]]) -> list[NDArray[np.int64]]:
    """Each histogram of a table, from the rows of its query. Rows of disjoint sets of users add up."""
    found = [np.zeros(len(each.bins), np.int64) for each in _of_table("", plan, asks)]
    for *bins, users in rows:
        for histogram, each in zip(found, bins, strict=True):
            histogram[each] += users
    return found


def _asked(plan: Plan, asks: Asks) -> list[Measure]:
    return [each for each in plan.measures if each.name in asks.columns]


def _bins_of(measure: Measure) -> int:
    return BINS if measure.kind == "events" else _BINS_OF_A_SUM


def _bin(number: str, bins: int) -> str:
    """The first bin whose end is at least the number."""
    cases = " ".join(f"WHEN {number} <= {end} THEN {place}" for place, end in enumerate(edges(bins - 1)))
    return f"CASE {cases} ELSE {bins - 1} END"
