"""Answers as JSON, in the shape of POST /release: read into columns, and written from them.

A group key is a scalar, or a list if there are several key columns. Integers and finite floating-point numbers are
numbers, Booleans are Booleans, nulls are null, and all else is text (texts.py).

Read into columns, each part of the keys is a column:

    keys                                       key columns
    scalars                                    key
    lists of one length                        key_1, key_2, …
    lists of different lengths, or mixed       key

A column is of strings, of int64 or of float64 if all its values are. Otherwise it holds each value as JSON text, and a
null as null. If another column has the name of a key column, the names of the key columns begin with _. Intervals are
columns too (``interval_columns``).
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import pyarrow as pa

from gsh.histogram.arrays import Numbers
from gsh.histogram.keys.columns import decoded
from gsh.histogram.keys.json_keys import keys_as_json
from gsh.histogram.roles import ENDS, Roles, interval_columns
from gsh.histogram.texts import texts_of

__all__ = [
    "Answer",
    "ending",
    "key_columns",
    "key_names",
    "read_json",
    "read_json_tables",
    "write_groups",
    "write_json",
    "write_json_tables",
]

_ROWS = 1 << 16
_MOST_DOUBLE = 2**53


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _json_bytes(value: Any) -> bytes:
    return _json(value).encode()


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: its key columns, its counts and values, and its certificate as JSON, if it has one."""

    roles: Roles
    keys: Sequence[pa.ChunkedArray]
    numbers: Sequence[Numbers]
    certificate: str | None
    level: float | None = None
    """The level of the intervals, if there are any."""
    intervals: Sequence[Numbers] = ()
    """Three columns for each column of numbers."""


def read_json(source: pa.Buffer, *, are_texts: bool = False) -> Answer:
    """An answer of POST /release as columns. ``are_texts``: all keys as text, as CSV has them."""
    answer = json.loads(source.to_pybytes())
    return _read(answer, _json(answer["certificate"]), _as_text if are_texts else _key_column)


def read_json_tables(source: pa.Buffer, only: str | None = None) -> dict[str, Answer]:
    """The tables of an answer that has several, or ``only`` one of them."""
    answer = json.loads(source.to_pybytes())
    certificate = _json(answer["certificate"])
    chosen = (table for table in answer["tables"] if only in (None, table["name"]))
    return {table["name"]: _read(table, certificate, _key_column) for table in chosen}


def _read(answer: dict[str, Any], certificate: str, column: Callable[[Sequence[Any]], pa.Array]) -> Answer:
    keys, values = answer["groups"]["keys"], answer["groups"]["values"]
    intervals = answer.get("intervals")
    columns = key_columns(keys, values, has_intervals=bool(intervals), column=column)
    return Answer(
        Roles(tuple(columns), "count", tuple(values)),
        [pa.chunked_array([part]) for part in columns.values()],
        [_number_column(column) for column in (answer["groups"]["counts"], *values.values())],
        certificate,
        *([intervals["level"], _interval_numbers(intervals, values)] if intervals else []),
    )


def key_columns(
    keys: Sequence[Any],
    values: Iterable[str],
    *,
    has_intervals: bool,
    column: Callable[[Sequence[Any]], pa.Array] | None = None,
) -> dict[str, pa.Array]:
    """The key columns of group keys, by their names. ``values`` are the names of the columns of values."""
    lengths = {len(key) if isinstance(key, list) else 0 for key in keys}
    is_of_lists = len(lengths) == 1 and lengths != {0}
    parts = list(zip(*keys, strict=True)) if is_of_lists else [keys]
    names = key_names(len(parts) if is_of_lists else 0, values, has_intervals=has_intervals)
    return dict(zip(names, map(column or _key_column, parts), strict=True))


def key_names(parts: int, values: Iterable[str], *, has_intervals: bool) -> tuple[str, ...]:
    """The names of the key columns: of lists with so many parts, or 0 for keys that are no lists."""
    names = [f"key_{place}" for place in range(1, parts + 1)] if parts else ["key"]
    numbers = ("count", *values)
    while {*numbers, *(interval_columns(numbers) if has_intervals else ())} & {*names}:
        names = [f"_{name}" for name in names]
    return tuple(names)


def write_json(
    answer: Answer, certificate: str | None, sink: IO[bytes], name: str = "", signature: str | None = None
) -> None:
    """An answer as JSON, in one form. ``name`` is that of the table, if it is one of several.

    ``signature`` is the signed envelope of the certificate.
    """
    sink.write(b"{")
    _write_members(answer, sink, name)
    sink.write(ending(certificate, signature))


def write_json_tables(
    tables: Mapping[str, Answer], certificate: str | None, sink: IO[bytes], signature: str | None = None
) -> None:
    """The same for several tables."""
    sink.write(b'{"tables":[')
    for place, (name, answer) in enumerate(tables.items()):
        sink.write(b",{" if place else b"{")
        _write_members(answer, sink, name)
        sink.write(b"}")
    sink.write(b"]")
    sink.write(ending(certificate, signature))


def _write_members(answer: Answer, sink: IO[bytes], name: str) -> None:
    parts = [_json_ready(column) for column in answer.keys]
    pieces = ([part.slice(start, _ROWS).combine_chunks() for part in parts] for start in range(0, len(parts[0]), _ROWS))
    keys = (keys_as_json(piece, are_lists=len(piece) > 1) for piece in pieces)
    sink.write(b'"groups":' if not name else f'"name":{_json(name)},"groups":'.encode())
    write_groups(keys, answer.numbers, answer.roles.values, sink)
    if answer.level is not None:
        _write_intervals(answer, answer.level, sink)


def ending(certificate: str | None, signature: str | None = None) -> bytes:
    """The end of an answer: its certificate, and the signed envelope of that, if there is one."""
    signed = "" if signature is None else f',"signature":{signature}'
    return f',"certificate":{"null" if certificate is None else certificate}{signed}}}'.encode()


def write_groups(
    keys: Iterable[bytes],
    numbers: Sequence[Numbers],
    names: Sequence[str],
    sink: IO[bytes],
    encode: Callable[[Any], bytes] = _json_bytes,
) -> None:
    """The member ``groups`` of an answer: its keys, as lists in JSON that follow each other, its counts and values.

    ``encode`` writes lists of numbers, and names: a service may have a faster function than that of Python.
    """
    counts, *values = numbers
    sink.write(b'{"keys":')
    _write_list(keys, sink)
    sink.write(b',"counts":')
    _write_list(_pieces(counts, encode), sink)
    sink.write(b',"values":{')
    for place, (name, column) in enumerate(zip(names, values, strict=True)):
        sink.write(b"%b%b:" % (b"," if place else b"", encode(name)))
        _write_list(_pieces(column, encode), sink)
    sink.write(b"}}")


def _interval_numbers(intervals: dict[str, Any], values: Iterable[str]) -> list[Numbers]:
    columns = [intervals["counts"], *(intervals["values"][name] for name in values)]
    return [np.array(column[end], np.float64) for column in columns for end in ENDS]


def _write_intervals(answer: Answer, level: float, sink: IO[bytes]) -> None:
    """The member ``intervals``: its columns in the shape of the groups."""

    def write(name: str, column: int) -> None:
        sink.write(f"{_json(name)}:{{".encode())
        for place, end in enumerate(ENDS):
            sink.write(f"{',' if place else ''}{_json(end)}:".encode())
            _write_list(_pieces(answer.intervals[len(ENDS) * column + place]), sink)
        sink.write(b"}")

    sink.write(f',"intervals":{{"level":{_json(level)},'.encode())
    write("counts", 0)
    sink.write(b',"values":{')
    for place, name in enumerate(answer.roles.values):
        sink.write(b"," if place else b"")
        write(name, 1 + place)
    sink.write(b"}}")


def _number_column(numbers: Sequence[float]) -> Numbers:
    is_whole = all(isinstance(number, int) for number in numbers)
    return np.array(numbers, np.int64) if is_whole else np.array(numbers, np.float64)


def _key_column(part: Sequence[Any]) -> pa.Array:
    kinds = {type(item) for item in part if item is not None}
    if kinds <= {str}:
        return pa.array(part, pa.string())
    integers = [item for item in part if type(item) is int]
    if kinds == {int} and all(-(2**63) <= item < 2**63 for item in integers):
        return pa.array(part, pa.int64())
    if kinds <= {int, float} and all(abs(item) <= _MOST_DOUBLE for item in integers):
        return pa.array(part, pa.float64())
    return pa.array([None if item is None else _json(item) for item in part], pa.string())


def _as_text(part: Sequence[Any]) -> pa.Array:
    return pa.array([item if item is None or isinstance(item, str) else _json(item) for item in part], pa.string())


def _json_ready(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Numbers and Booleans as they are, and all else as text."""
    values = pa.chunked_array([decoded(column)])
    if pa.types.is_floating(values.type):
        return values.cast(pa.float64())
    if pa.types.is_integer(values.type) or pa.types.is_boolean(values.type):
        return values
    return pa.chunked_array([texts_of(chunk) for chunk in column.chunks], pa.large_string())


def _pieces(column: Numbers, encode: Callable[[Any], bytes] = _json_bytes) -> Iterable[bytes]:
    return (encode(column[start : start + _ROWS].tolist()) for start in range(0, len(column), _ROWS))


def _write_list(pieces: Iterable[bytes], sink: IO[bytes]) -> None:
    """One list of the items of several. Only the first one may be empty."""
    sink.write(b"[")
    for place, piece in enumerate(pieces):
        sink.write(b"," if place else b"")
        sink.write(memoryview(piece)[1:-1])
    sink.write(b"]")
