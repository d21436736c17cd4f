"""What published numbers mean: intervals for single numbers and for totals. They cost no privacy."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gsh.accounting import mechanism as core
from gsh.accounting.grid import count_grid, value_grids
from gsh.accounting.mechanism import Mechanism
from gsh.accuracy import intervals as numeric
from gsh.accuracy.intervals import Interval
from gsh.accuracy.levels import check_level
from gsh.accuracy.totals import Total, count_total, value_total
from gsh.arguments import Real, Reals, instance, real
from gsh.errors import InvalidParameter, pointer_part

__all__ = [
    "Interval",
    "Intervals",
    "Total",
    "Totals",
    "intervals",
    "level_of",
    "published_numbers",
    "total",
]

Doubles: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """The intervals of published counts, and of each published column of values, at one level."""

    level: float
    counts: Interval
    values: Mapping[str, Interval]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", MappingProxyType(dict(self.values)))

    def __reduce__(self) -> tuple[type["Intervals"], tuple[object, ...]]:
        return Intervals, (self.level, self.counts, dict(self.values))


@dataclass(frozen=True, slots=True, eq=False)
class Totals:
    """The totals over some published groups: of their counts, and of each column of values."""

    level: float
    counts: Total
    values: Mapping[str, Total]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", MappingProxyType(dict(self.values)))

    def __reduce__(self) -> tuple[type["Totals"], tuple[object, ...]]:
        return Totals, (self.level, self.counts, dict(self.values))


def intervals(
    mechanism: Mechanism, *, counts: Reals, values: Mapping[str, Reals] | None = None, level: Real = 0.95
) -> Intervals:
    """Where the true numbers of published groups are, at a level of confidence.  [docs/accuracy.md, section 4]

        { C ≥ max(τ, 1) :  α/2 ≤ Φ̄((y − C)/σ) / Φ̄((τ* − C)/σ) ≤ 1 − α/2 },   α = 1 − level

    Near τ* only counts that noise has raised are published, so y ± 1.96 σ is wrong there. These intervals cover the
    true count of a published group with the stated probability, wherever it is. Other columns have y ± z s.

    Give the published numbers and the mechanism that made them. It costs no privacy.

    >>> import gsh
    >>> mechanism = gsh.Mechanism(c_u=3, tau=1, tau_star=120, sigma=20)
    >>> found = gsh.intervals(mechanism, counts=[121, 150, 400])
    >>> found.counts.low.round(1)
    array([  1. ,  93.2, 360.8])
    >>> found.counts.estimate.round(1)
    array([  1., 148., 400.])
    >>> found.counts.high.round(1)
    array([130.6, 189.1, 439.2])
    """
    chosen = level_of(level)
    instance("mechanism", mechanism, Mechanism)
    published, others = published_numbers(mechanism, counts, values)
    return Intervals(
        chosen,
        numeric.count_intervals(mechanism, published, chosen),
        {name: numeric.value_intervals(mechanism, *column, chosen) for name, column in others.items()},
    )


def total(
    mechanism: Mechanism, *, counts: Reals, values: Mapping[str, Reals] | None = None, level: Real = 0.95
) -> Totals:
    """The sum of the true numbers of some published groups, such as all of one country.  [docs/accuracy.md, section 6]

    Each ``Total`` has ``estimate``, ``standard_error``, ``low`` and ``high``. It is the total of the published groups:
    dropped groups are missing, and the table cannot say how large they are. It costs no privacy.

    >>> import gsh
    >>> mechanism = gsh.Mechanism(c_u=3, tau=1, tau_star=120, sigma=20)
    >>> found = gsh.total(mechanism, counts=[180, 300, 400]).counts
    >>> round(found.estimate, 1), round(found.standard_error, 1)
    (880.0, 34.6)
    >>> round(found.low, 1), round(found.high, 1)
    (810.5, 949.4)
    """
    chosen = level_of(level)
    instance("mechanism", mechanism, Mechanism)
    published, others = published_numbers(mechanism, counts, values)
    return Totals(
        chosen,
        count_total(mechanism, published, chosen, "counts"),
        {
            name: value_total(mechanism, place, numbers, chosen, f"values/{pointer_part(name)}")
            for name, (place, numbers) in others.items()
        },
    )


def level_of(level: object) -> float:
    """A level that intervals can have."""
    chosen = real("level", level)
    check_level(chosen)
    return chosen


def published_numbers(
    mechanism: core.Mechanism, counts: object, values: Mapping[str, Reals] | None
) -> tuple[Doubles, dict[str, tuple[int, Doubles]]]:
    """The published counts; and by name the place of each other column in the mechanism, and its values."""
    count_grid(mechanism), value_grids(mechanism)  # refuses noise that is never drawn
    published = _column("counts", counts)
    numeric.check_counts(mechanism, published, "counts")
    if not isinstance(values, Mapping | None):
        raise InvalidParameter("values", f"must map each name to a column, and {type(values).__name__} does not")
    others: dict[str, tuple[int, Doubles]] = {}
    for name, column in (values or {}).items():
        pointer = f"values/{pointer_part(str(name))}"
        if name not in mechanism.column_names:
            raise InvalidParameter(pointer, "must be one of the names of the mechanism's aggregates")
        numbers = _column(pointer, column)
        numeric.check_values(numbers, len(published), pointer)
        others[name] = mechanism.column_names.index(name), numbers
    return published, others


def _column(pointer: str, numbers: object) -> Doubles:
    try:
        column = np.asarray(numbers)
    except (TypeError, ValueError):
        column = np.empty(())
    if column.ndim != 1 or (column.dtype.kind not in "fiu" and column.size):
        raise InvalidParameter(pointer, "must be a list or an array of numbers")
    return column.astype(np.float64)
