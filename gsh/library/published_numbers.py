"""Published numbers as callers give them, checked: the mechanism can have published them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gsh.accounting.grid import count_grid, value_grids
from gsh.accounting.mechanism import AnyMechanism
from gsh.accuracy.bounds import check_level
from gsh.accuracy.intervals import check_counts, check_values
from gsh.arguments import Real, Reals, real
from gsh.errors import InvalidParameter, pointer_part
from gsh.library.rounding import rounded_to

__all__ = ["PublishedColumn", "PublishedNumbers", "level_of", "published_numbers"]

Doubles: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class PublishedColumn:
    """The published numbers of one of the other columns."""

    place: int
    """The column of the mechanism."""
    numbers: Doubles
    unit: float
    """What the numbers were rounded to; 0 if they are as the mechanism made them."""


@dataclass(frozen=True, slots=True, eq=False)
class PublishedNumbers:
    """The published counts, and the other columns by their names."""

    counts: Doubles
    unit: float
    """What the counts were rounded to, or 0."""
    values: Mapping[str, PublishedColumn]


def level_of(level: object) -> float:
    """A level that intervals can have."""
    chosen = real("level", level)
    check_level(chosen)
    return chosen


def published_numbers(
    mechanism: AnyMechanism,
    counts: object,
    values: Mapping[str, Reals] | None,
    is_rounded: bool = False,
    units: Mapping[str, Real] | None = None,
) -> PublishedNumbers:
    """The numbers, if the mechanism can have published them. The unit of rounded columns is 1, unless it is given."""
    count_grid(mechanism), value_grids(mechanism)  # refuses noise that is never drawn
    rounded = rounded_to(mechanism, is_rounded, units) or (0.0,) * (1 + len(mechanism.column_names))
    unit = rounded[0]
    noisy = _column("counts", counts)
    check_counts(mechanism, noisy, "counts", unit)
    if not isinstance(values, Mapping | None):
        raise InvalidParameter("values", f"must map each name to a column, and {type(values).__name__} does not")
    columns: dict[str, PublishedColumn] = {}
    for name, column in (values or {}).items():
        pointer = f"values/{pointer_part(str(name))}"
        if name not in mechanism.column_names:
            raise InvalidParameter(pointer, "must be one of the names of the mechanism's aggregates")
        numbers = _column(pointer, column)
        check_values(numbers, len(noisy), pointer)
        place = mechanism.column_names.index(name)
        columns[name] = PublishedColumn(place, numbers, rounded[1 + place])
    return PublishedNumbers(noisy, unit, columns)


def _column(pointer: str, numbers: object) -> Doubles:
    try:
        column = np.asarray(numbers)
    except (TypeError, ValueError):
        column = np.empty(())
    if column.ndim != 1 or (column.dtype.kind not in "fiu" and column.size):
        raise InvalidParameter(pointer, "must be a list or an array of numbers")
    return column.astype(np.float64)
