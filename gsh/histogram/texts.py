"""The values of a column as text, for formats that have no types of their own.

integers, Booleans             -12; true, false
floating-point numbers         the shortest text that reads back as the same number, with a point or an exponent;
                               nan, inf, -inf
decimals                       all digits, without trailing zeros after the point: 1.5
dates, times                   ISO 8601: 2026-11-16, 12:30:00.000
timestamps                     2026-11-16T12:30:00.000; with a time zone, in UTC: 2026-11-16T11:30:00.000Z
durations, intervals           ISO 8601, with a sign for each part: PT-1.5S, P14M-3DT0.000000001S
binary                         base64
arrow.uuid, arrow.json         their usual text
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

__all__ = ["texts_of"]

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
