"""Means and ratios as columns of a table: what follows from its published numbers, as its certificate says.

    seconds_mean, seconds_mean_low, seconds_mean_high           of each mean
    likes_per_view, likes_per_view_low, likes_per_view_high     of each ratio

They cost no privacy. They are not part of what was released: whoever reads the table computes them again. A ratio is
NaN if the numbers do not say it, and an end without a bound is infinite.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from gsh.accounting.mechanism import AnyMechanism
from gsh.accounting.sensitivity import Box
from gsh.histogram.meanings import Meaning
from gsh.histogram.roles import Roles

if TYPE_CHECKING:
    from gsh.library.accuracy import Interval

__all__ = ["means_in", "numbers_in", "ratios_in", "with_averages"]

LEVEL: Final = 0.95
"""Of the intervals in a table."""


def with_averages(table: pa.Table, mechanism: AnyMechanism, roles: Roles, meaning: Meaning) -> pa.Table:
    """The table with the columns of all means and ratios, in place of those that it has."""
    table = table.select(meaning.without_averages(table.column_names))
    if not meaning.averages:
        return table
    given = numbers_in(table, roles, meaning)
    found = [
        *means_in(mechanism, meaning, given, LEVEL).values(),
        *ratios_in(mechanism, meaning, given, LEVEL).values(),
    ]
    ends = [end for each in found for end in (each.estimate, each.low, each.high)]
    for name, column in zip(meaning.averages, ends, strict=True):
        table = table.append_column(pa.field(name, pa.float64(), nullable=False), pa.array(column))
    return table


def numbers_in(table: pa.Table, roles: Roles, meaning: Meaning) -> dict[str, Any]:
    """The published numbers of a table, as arguments of ``gsh.intervals`` and ``gsh.means``."""
    values = {name: table[name].to_numpy() for name in roles.values}
    given: dict[str, Any] = {"counts": table[roles.count].to_numpy(), "values": values}
    if meaning.rounded is not None:
        given |= {"is_rounded": True, "units": dict(zip(roles.values, meaning.rounded[1:], strict=True))}
    return given


def means_in(
    mechanism: AnyMechanism,
    meaning: Meaning,
    numbers: Mapping[str, Any],
    level: Any,
    asked: Mapping[str, tuple[Any, Any]] | None = None,
) -> "Mapping[str, Interval]":
    """The means per user that are asked for, or else those that the certificate names."""
    from gsh.library.means import means  # noqa: PLC0415 - loads SciPy

    return means(mechanism, means=_ranges(mechanism, meaning) if asked is None else asked, **numbers, level=level)


def ratios_in(
    mechanism: AnyMechanism,
    meaning: Meaning,
    numbers: Mapping[str, Any],
    level: Any,
    asked: Mapping[str, tuple[str, str]] | None = None,
) -> "Mapping[str, Interval]":
    """The ratios that are asked for, or else those that the certificate names."""
    from gsh.library.means import ratios  # noqa: PLC0415

    return ratios(mechanism, ratios=meaning.ratios if asked is None else asked, **numbers, level=level)


def _ranges(mechanism: AnyMechanism, meaning: Meaning) -> dict[str, tuple[float, float]]:
    """The range of each mean: that of its column, around the middle."""
    box = None if mechanism.aggregates is None else mechanism.aggregates.sensitivity
    if not isinstance(box, Box):
        return {}
    boxes = dict(zip(mechanism.column_names, zip(box.lower, box.upper, strict=True), strict=True))
    return {
        each.of: (boxes[column][0] + each.middle, boxes[column][1] + each.middle)
        for column, each in meaning.columns.items()
        if each.of is not None
    }
