"""A digest of the content of groups: the same for the same set of groups, in any format and order.

It covers the role and the name of every column in the order of the request, the class of every column, and all rows in
the order of their group keys. Dictionaries are what they encode. A length stands before every part, so that
different contents never give the same bytes to hash.

The digest is a plain SHA-256. A program that stores it must key it: otherwise a reader can test guesses of the table.

Equal values of one class have equal bytes, whatever type holds them:

    number                     integers of any width and sign, and decimals: 1, 1.0 and 1.00
    float                      halves, floats and doubles: by value; −0 is 0, and NaN is one value
    text, binary               of any offsets; fixed-size binary is binary; never a number
    boolean                    itself
    date                       date32 and date64
    time, duration             in any unit
    timestamp                  without a time zone, in any unit: what a clock shows
    instant                    with a time zone, in any unit. The name of the zone is not part of it: it says how to
                               show an instant, and engines take it from the session
    uuid, json                 themselves
    null                       a column of nulls, of any type: it has no values that could differ

A float is not a number: a whole one may have been rounded before.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gsh.histogram.arrays import Decimals, Integers, Positions, Values
from gsh.histogram.keys.canonical import canonical
from gsh.histogram.keys.types import is_text, is_unicode

__all__ = ["Bytes", "Column", "digest_of", "least_scale", "number_columns"]

Bytes: TypeAlias = bytes | pa.Buffer | memoryview
_Parts: TypeAlias = Callable[[pa.Array, int], tuple[Bytes, Bytes]]
"""Some values in two streams of bytes; the second argument is the number of rows before them."""

_AT_ONCE = 1 << 16
_UNITS = ("s", "ms", "us", "ns")
_DAY = 86_400_000
_DIGITS = 76
_INTEGER_DIGITS = 19
"""Of integers of 64 bits."""


def _class_of(kind: pa.DataType, values: pa.Array) -> tuple[str, _Parts]:
    """The class of a column of this type, and how its values become bytes. No value may be there that no row has."""
    if values.null_count == len(values):
        return "null", lambda _values, _start: (b"", b"")
    for is_of, name, parts in _SIMPLE:
        if is_of(kind):
            return name, parts
    return _number(values) if pa.types.is_integer(kind) or pa.types.is_decimal(kind) else _moment(kind, values)


def _text(values: pa.Array, _start: int) -> tuple[Bytes, Bytes]:
    """The lengths, and the bytes that they divide."""
    _, offsets, content = canonical(values.cast(pa.large_binary()), pa.large_binary()).buffers()
    return np.diff(np.frombuffer(offsets, np.int64)).data, content


def _slots(values: pa.Array) -> pa.Buffer:
    """Values of fixed width; those under a null are zero."""
    return canonical(values, values.type).buffers()[1]


_SIMPLE: tuple[tuple[Callable[[pa.DataType], bool], str, _Parts], ...] = (
    (lambda kind: isinstance(kind, pa.UuidType), "uuid", _text),
    (lambda kind: isinstance(kind, pa.JsonType), "json", _text),
    (pa.types.is_boolean, "boolean", lambda values, _start: (b"", _slots(values.cast(pa.int8())))),
    (is_unicode, "text", _text),
    (lambda kind: is_text(kind) or pa.types.is_fixed_size_binary(kind), "binary", _text),
    (pa.types.is_floating, "float", lambda values, _start: (b"", _slots(values.cast(pa.float64())))),
)


def _number(values: pa.Array) -> tuple[str, _Parts]:
    """Integers at the least scale at which all are whole. Those beyond 64 bits have a note of their further bits."""
    kind = values.type
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return "number 0", lambda values, _start: (b"", _slots(values.cast(pa.int64())))
    scale = least_scale(values, 0 if kind == pa.uint64() else kind.scale)

    def parts(values: pa.Array, start: int) -> tuple[Bytes, Bytes]:
        words = np.frombuffer(_slots(values.cast(pa.decimal256(_DIGITS, scale))), np.int64).reshape(-1, 4)
        rows = np.flatnonzero((words[:, 1:] != (words[:, :1] >> 63)).any(axis=1))
        return np.column_stack((rows + start, words[rows, 1:])).tobytes(), words[:, 0].tobytes()

    return f"number {scale}", parts


def least_scale(values: pa.Array, most: int) -> int:
    """The least scale from 0 that changes no value; below 0 only for values that are too large at 0."""
    if most < 0 and _fits(values, 0):
        return 0
    least = 0 if most >= 0 else most - _DIGITS
    while least < most:
        middle = (least + most) // 2
        least, most = (least, middle) if _fits(values, middle) else (middle + 1, most)
    return most


def _fits(values: pa.Array, scale: int) -> bool:
    try:
        for batch in _batches(values):
            batch.cast(pa.decimal256(_DIGITS, scale))
    except pa.ArrowInvalid:
        return False
    return True


def _moment(kind: pa.DataType, values: pa.Array) -> tuple[str, _Parts]:
    """Dates, times, timestamps and durations, as integers of the largest unit in which all are whole."""
    name, steps = _name_and_steps(kind)
    divisor, left = 1, len(steps)
    while left and not any((_integers(batch) % (divisor * steps[left - 1])).any() for batch in _batches(values)):
        left -= 1
        divisor *= steps[left]
    return f"{name} {left}", lambda values, _start: (b"", (_integers(values) // divisor).data)


def _name_and_steps(kind: pa.DataType) -> tuple[str, list[int]]:
    """The class of moments, and the steps from its largest unit to the unit of the type."""
    if pa.types.is_date(kind):
        return "date", [_DAY] if kind == pa.date64() else []
    steps = [1000] * _UNITS.index(kind.unit)
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "instant", steps
    return "time" if pa.types.is_time(kind) else "duration", steps


def _batches(values: pa.Array) -> Iterator[pa.Array]:
    return (values.slice(start, _AT_ONCE) for start in range(0, len(values), _AT_ONCE))


def _integers(values: pa.Array) -> Integers:
    """The integers that Arrow stores for moments; zero under a null."""
    slots: NDArray[np.signedinteger] = np.frombuffer(_slots(values), f"<i{values.type.bit_width // 8}")
    return slots.astype(np.int64)


_VERSION = b"gsh content 1"
_ROWS = 1 << 16
_MOST_BYTES = 1 << 26


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a type: the values that rows have, and for each row, in the order of the keys, its place in them."""

    role: str
    name: str
    type: pa.DataType
    values: pa.Array
    places: pa.Array

    def digest(self) -> tuple[str, bytes]:
        """The class of the column, and the digests of its nulls and values. Where a batch ends does not matter."""
        name, parts = _class_of(self.type, self.values)
        streams = [hashlib.sha256() for _ in range(3)]
        start = 0
        for batch in self._batches():
            for stream, part in zip(streams, (_nulls(batch, start), *parts(batch, start)), strict=True):
                stream.update(part)
            start += len(batch)
        return name, b"".join(stream.digest() for stream in streams)

    def _batches(self) -> Iterator[pa.Array]:
        """The rows, in batches that are bounded in rows and in bytes."""
        longest = (pc.max(pc.binary_length(self.values)).as_py() or 0) if is_text(self.values.type) else 0
        step = max(1, min(_ROWS, _MOST_BYTES // max(1, longest)))
        for start in range(0, len(self.places), step):
            yield self.values.take(self.places.slice(start, step))


def number_columns(
    count: str, counts: Integers, values: Iterable[tuple[str, Values]], order: Positions
) -> list[Column]:
    """The columns of the true numbers."""
    places = pa.array(order)
    columns = [Column("count", count, pa.int64(), pa.array(counts), places)]
    arrays = ((name, _array(column)) for name, column in values)
    return columns + [Column("value", name, each.type, each, places) for name, each in arrays]


def _array(column: Values) -> pa.Array:
    if not isinstance(column, Decimals):
        return pa.array(column)
    whole = pa.array(column.units).cast(pa.decimal128(_INTEGER_DIGITS, 0))
    return pa.Array.from_buffers(pa.decimal128(_INTEGER_DIGITS, column.digits), len(whole), whole.buffers())


def digest_of(columns: Sequence[Column], *further: bytes) -> bytes:
    """The digest of some columns of equal length, and of ``further`` facts about them."""
    if len(columns[0].places) <= _ROWS:
        digests = list(map(Column.digest, columns))
    else:
        with ThreadPoolExecutor(os.cpu_count()) as pool:  # Arrow and the hash work without the interpreter's lock
            digests = list(pool.map(Column.digest, columns))
    facts = [_VERSION, str(len(columns[0].places)).encode(), *further]
    for column, (name, content) in zip(columns, digests, strict=True):
        facts += (column.role.encode(), column.name.encode("utf-8", "surrogatepass"), name.encode(), content)
    return hashlib.sha256(b"".join(len(fact).to_bytes(8, "little") + fact for fact in facts)).digest()


def _nulls(batch: pa.Array, start: int) -> Bytes:
    """The numbers of the rows that are null."""
    if not batch.null_count:
        return b""
    return (np.flatnonzero(batch.is_null().to_numpy(zero_copy_only=False)) + start).data
