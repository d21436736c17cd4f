"""Decimals at the ends of what engines can do: as queries for an engine, and what they must count in units."""

import math
from fractions import Fraction

from gsh.events.bounding import record_units
from gsh.events.dialects import DIALECTS
from gsh.library.measures import Measure

__all__ = ["COUNTED", "TYPES", "query"]

TYPES = [(1, 1), (2, 1), (5, 2), (16, 2), (18, 2), (18, 18), (19, 6), (20, 18), (36, 18), (38, 1), (38, 9), (38, 18)]
"""Decimals with so many digits, of which some are after the point."""
UNITS = (1, 2, 6, 12)
_LIMIT = 2**52


def _numbers(precision: int, scale: int) -> list[int]:
    """Without the point: the largest ones, those next to the limit in each unit, and those next to half a unit."""
    found = {0, 1, 10**precision - 1, 10**precision // 2}
    for unit in UNITS:
        found |= {_LIMIT * 10**scale // 10**unit + near for near in (-1, 0, 1)}
        if scale > unit:
            half = 5 * 10 ** (scale - unit - 1)
            found |= {whole * 10 ** (scale - unit) + half + near for whole in (0, 1, 2) for near in (-1, 0, 1)}
    both = {sign * number for number in found for sign in (1, -1)}
    return sorted(number for number in both if abs(number) < 10**precision)


def query(dialect: str, precision: int, scale: int) -> str:
    """A row for each number: what it counts in each unit."""
    sql = DIALECTS[dialect]
    texts = (_text(number, scale) for number in _numbers(precision, scale))
    rows = ", ".join(f"(CAST('{text}' AS DECIMAL({precision}, {scale})))" for text in texts)
    measures = [Measure("x", "sum", 0, 1, float(f"1e-{unit}")) for unit in UNITS]
    units = ", ".join(record_units(sql, each, {"x": f"decimal({precision},{scale})"}) for each in measures)
    return f"SELECT {units} FROM (VALUES {rows}) AS t({sql.identifier('x')})"


def _text(number: int, scale: int) -> str:
    whole, rest = divmod(abs(number), 10**scale)
    return f"{'-' if number < 0 else ''}{whole}.{rest:0{scale}}"


def _counted(number: int, scale: int, unit: int) -> int:
    exact = Fraction(number, 10**scale) * 10**unit
    return math.floor(max(-_LIMIT, min(_LIMIT, exact)) + Fraction(1, 2))


COUNTED = {
    kind: sorted(tuple(_counted(number, kind[1], unit) for unit in UNITS) for number in _numbers(*kind))
    for kind in TYPES
}
"""What the rows must be, in their order as numbers."""
