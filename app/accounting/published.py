"""Intervals of published numbers, in a worker: only workers need SciPy, which takes a fifth of a second to load."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from app.accounting.schemas.intervals import IntervalOut, IntervalsOut
from gsh.accounting.mechanism import AnyMechanism
from gsh.histogram.apply import KeptGroups
from gsh.histogram.arrays import Numbers
from gsh.histogram.roles import Roles, interval_columns

if TYPE_CHECKING:
    from gsh.accuracy.intervals import Interval

__all__ = ["columns_of_released", "intervals_of_released", "shown"]


def intervals_of_released(
    mechanism: AnyMechanism, released: KeptGroups, level: float, rounded: Sequence[float] | None = None
) -> IntervalsOut:
    """The intervals of the groups that were kept."""
    counts, values = _doubles(mechanism, released)
    one, *others = map(shown, _intervals(mechanism, counts, values, level, rounded))
    return IntervalsOut.model_construct(level=level, counts=one, values=dict(zip(values, others, strict=True)))


def columns_of_released(
    mechanism: AnyMechanism, roles: Roles, released: KeptGroups, level: float, rounded: Sequence[float] | None = None
) -> dict[str, Numbers]:
    """The same as columns of a table."""
    found = _intervals(mechanism, *_doubles(mechanism, released), level, rounded)
    ends = [end for each in found for end in (each.low, each.estimate, each.high)]
    return dict(zip(interval_columns((roles.count, *roles.values)), ends, strict=True))


def _intervals(
    mechanism: AnyMechanism,
    counts: NDArray[np.float64],
    values: Mapping[str, NDArray[np.float64]],
    level: float,
    rounded: Sequence[float] | None,
) -> "list[Interval]":
    """Those of the counts, and of each column of values."""
    from gsh.accuracy.intervals import count_intervals, value_intervals  # noqa: PLC0415

    places = {name: place for place, name in enumerate(mechanism.column_names)}
    unit, *units = rounded or (0.0,) * (1 + len(places))
    others = (
        value_intervals(mechanism, places[name], column, level, units[places[name]]) for name, column in values.items()
    )
    return [count_intervals(mechanism, counts, level, unit), *others]


def _doubles(
    mechanism: AnyMechanism, released: KeptGroups
) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
    counts, *values = [column.astype(np.float64) for column in (released.counts, *released.values)]
    return counts, dict(zip(mechanism.column_names, values, strict=True))


def shown(interval: "Interval") -> IntervalOut:
    return IntervalOut.model_construct(
        low=interval.low.tolist(), estimate=interval.estimate.tolist(), high=interval.high.tolist()
    )
