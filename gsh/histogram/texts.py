"""The values of a column as text, for formats that have no types of their own.

integers, Booleans             -12; true, false
floating-point numbers         the shortest text that reads back as the same number, with a point or an exponent;
                               nan, inf, -inf
decimals                       all digits, without trailing zeros after the point: 1.5
dates, times                   ISO 8601: 2026-11-16, 12:30:00.000
timestamps                     2026-11-16T12:30:00.000; with a time zone, in UTC: 2026-11-16T11:30:00.000Z
durations                      ISO 8601: PT-1.5S
binary                         base64
arrow.uuid, arrow.json         their usual text

Numbers in texts can be ambiguous: 1.000 is one here and a thousand there. A number is ambiguous if it has one point or
comma, one to three digits before it that do not begin with 0, and exactly three digits after it. 0.349, 1234.568 and
12.50 are not. In one column of decimal numbers, another cell can show that the point is a decimal point: 12.5, 0.250 or
1234.568. Then 1.000 is one. ``app/web/shared/number-text.js`` has the same rules for the pages, and
``tests/number_examples.json`` has examples of both.
"""

import base64
import decimal
import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from gsh.histogram.keys.columns import plain
from gsh.histogram.keys.types import is_text, is_unicode

__all__ = ["ADVICE", "DecimalPoints", "are_ambiguous", "texts_of", "unambiguous"]

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
# More digits than any decimal has.
_ALL_DIGITS = decimal.Context(prec=200)


def texts_of(column: pa.Array) -> pa.Array:
    """The column as texts, with its nulls."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return texts_of(plain(pa.chunked_array([column.dictionary]))).take(column.indices)
    values = plain(pa.chunked_array([column]))
    for is_of, text in _SLOW.items():
        if is_of(kind):
            return pa.array([None if each is None else text(each) for each in _listed(values)], pa.large_string())
    if pa.types.is_floating(values.type):
        return _with_points(values)
    if pa.types.is_timestamp(values.type):
        return _timestamps(values)
    return values.cast(pa.large_string())


def _with_points(values: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(values.cast(pa.large_string()), r"\A(-?[0-9]+)\z", r"\1.0")


def _timestamps(values: pa.Array) -> pa.Array:
    """In UTC, so that no database of time zones is asked."""
    kind = values.type
    texts = values.view(pa.timestamp(kind.unit)).cast(pa.large_string())
    return pc.replace_substring_regex(texts, r"\A(\S+) (\S+)\z", r"\1T\2" if kind.tz is None else r"\1T\2Z")


def _listed(values: pa.Array) -> list[Any]:
    if pa.types.is_duration(values.type):
        unit = _PER_SECOND[values.type.unit]
        return [None if each is None else (each, unit) for each in values.view(pa.int64()).to_pylist()]
    if pa.types.is_decimal(values.type):
        return _exact(values)
    listed: list[Any] = values.to_pylist()
    return listed


def _exact(values: pa.Array) -> list[decimal.Decimal | None]:
    """Decimals of any scale."""
    size = values.type.bit_width // 8
    content = values.buffers()[1]
    exponent = -values.type.scale
    missing = values.is_null().to_numpy(zero_copy_only=False)
    numbers: list[decimal.Decimal | None] = []
    for place, is_missing in enumerate(missing, values.offset):
        number = int.from_bytes(content[place * size : (place + 1) * size], "little", signed=True)
        numbers.append(None if is_missing else decimal.Decimal(number).scaleb(exponent, _ALL_DIGITS))
    return numbers


def _decimal(number: decimal.Decimal) -> str:
    return format(number.normalize(_ALL_DIGITS), "f")


def _seconds(number: int, per_second: int) -> str:
    whole = decimal.Decimal(number) / per_second
    return f"{_decimal(whole)}S"


_SLOW: dict[Callable[[pa.DataType], bool], Callable[[Any], str]] = {
    lambda kind: isinstance(kind, pa.UuidType): lambda value: str(uuid.UUID(bytes=value)),
    pa.types.is_decimal: _decimal,
    pa.types.is_duration: lambda value: f"PT{_seconds(*value)}",
    lambda kind: (is_text(kind) and not is_unicode(kind)) or pa.types.is_fixed_size_binary(kind): (
        lambda value: base64.b64encode(value).decode()
    ),
}


_AMBIGUOUS = r"[-+]?[1-9][0-9]{0,2}[.,][0-9]{3}"
ADVICE = "has a number such as 1.000 or 1,000, which can mean one or a thousand: write it as 1000, or as 1.0"
"""What is wrong with a line, and what to do. It does not quote the number."""


def are_ambiguous(texts: pa.Array) -> pa.BooleanArray:
    """For each text, whether its number can be read in two ways."""
    return pc.match_substring_regex(texts, rf"\A({_AMBIGUOUS})\z")


def unambiguous(texts: pa.Array) -> pa.Array:
    """Decimal numbers with one more digit where they would be ambiguous: 12.125 is written 12.1250."""
    return pc.replace_substring_regex(texts, r"\A(-?[1-9][0-9]{0,2}\.[0-9]{3})\z", r"\10")


class DecimalPoints:
    """Finds out whether the points in one column are decimal points, batch by batch."""

    def __init__(self) -> None:
        self._first: int | None = None
        self._are_known = False

    def look(self, texts: pa.Array, row: int) -> None:
        """The next cells. ``row`` is the place of the first one."""
        if self._are_known:
            return
        found = pc.fill_null(are_ambiguous(texts), False)
        has_point = pc.fill_null(pc.match_substring(texts, "."), False)
        self._are_known = bool(pc.any(pc.and_not(has_point, found)).as_py())
        if self._first is None:
            place = pc.index(found, True).as_py()
            self._first = None if place < 0 else row + place

    @property
    def ambiguous_row(self) -> int | None:
        """The place of the first cell that can be read in two ways; None if another cell shows how to read it."""
        return None if self._are_known else self._first
