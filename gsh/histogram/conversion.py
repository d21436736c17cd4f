"""Converts stored answers to another format: the same rows, computed from the stored bytes alone.

JSON is described in json_answers.py, and the text of cells in CSV in texts.py. A type that Parquet has no place for
becomes the type of the values that it encodes, or else text.
"""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import IO, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gsh.histogram.archives import Tables, read_archive, write_archive
from gsh.histogram.arrays import Numbers
from gsh.histogram.csv_format import CsvType
from gsh.histogram.file_formats import AnswerFormat, Format
from gsh.histogram.formats import ANY_SIZE, CERTIFICATE, read_table, signature_in, write_table
from gsh.histogram.json_answers import Answer, read_json, read_json_tables, write_json, write_json_tables
from gsh.histogram.keys.columns import decoded, key_of, plain
from gsh.histogram.keys.types import is_text
from gsh.histogram.roles import Roles, interval_columns
from gsh.histogram.tables import rows_of
from gsh.histogram.texts import texts_of

__all__ = ["Layout", "convert", "convert_tables", "write_rows"]


def convert(
    source: pa.Buffer,
    stored: AnswerFormat,
    into: AnswerFormat,
    sink: IO[bytes],
    roles: Roles | None = None,
    csv_types: Mapping[str, CsvType] | None = None,
    certificate: str | None = None,
    level: float | None = None,
    signature: str | None = None,
) -> None:
    """Write a stored answer in another format.

    A table needs the roles of its columns. ``csv_types`` are those of the key columns of a CSV table; without them they
    are strings. ``certificate`` stands in for that of CSV, which has none. ``level`` is that of a table's intervals, if
    it has any. ``signature`` is the signed envelope of the certificate, for the formats that have a place for it.
    """
    if stored == into:
        sink.write(source)
        return
    if stored == "json":
        answer = read_json(source)
    elif roles is not None:
        answer = _read_table(source, stored, roles, csv_types or {}, level)
    else:
        raise ValueError("the roles of the columns of a table must be given")
    certificate = answer.certificate if answer.certificate is not None else certificate
    if into == "json":
        write_json(answer, certificate, sink, signature=signature)
    else:
        _write_table(answer, certificate, into, sink, signature=signature)


@dataclass(frozen=True, slots=True)
class Layout:
    """What is not in the bytes of a stored table: the roles of its columns, and the types of CSV."""

    roles: Roles
    csv_types: Mapping[str, CsvType]


def convert_tables(
    source: pa.Buffer,
    stored: Literal["json", "zip"],
    into: AnswerFormat | Mapping[str, Format],
    sink: IO[bytes],
    layouts: Mapping[str, Layout],
    level: float | None = None,
    only: str | None = None,
    signature: str | None = None,
) -> None:
    """Write a stored answer of several tables in another form: all of them as JSON or as an archive, or one of them.

    For an archive, ``into`` is the format of each table. ``only`` names the one table to write in the format ``into``.
    Tables of a stored archive have ``layouts``; ``level`` is that of their intervals, if they have any.
    """
    if stored == "json":
        tables = read_json_tables(source, only)
        certificate = next(iter(tables.values())).certificate or ""
    else:
        members, certificate = read_archive(source)
        if only is not None:
            kind, content = members[only]
            if kind == into:
                sink.write(content)
                return
            members = {only: members[only]}
        tables = {
            name: _read_table(content, kind, layouts[name].roles, layouts[name].csv_types, level)
            for name, (kind, content) in members.items()
        }
    if isinstance(into, Mapping):
        writers: Tables = {
            name: (into[name], partial(_write_table, table, certificate, into[name], name=name, signature=signature))
            for name, table in tables.items()
        }
        write_archive(sink, writers, certificate)
    elif only is None:
        write_json_tables(tables, certificate, sink, signature)
    elif into == "json":
        write_json(tables[only], certificate, sink, only, signature)
    else:
        _write_table(tables[only], certificate, into, sink, only, signature)


def write_rows(
    table: pa.Table,
    roles: Roles,
    into: Format,
    certificate: str | None,
    sink: IO[bytes],
    name: str = "",
) -> None:
    """Write a private table in canonical form: the values of its rows, and nothing else that its memory holds.

    ``name`` is that of the table, if it is one of several. A signature in its metadata stays.
    """
    numbers = [_numbers(plain(table[column])) for column in (roles.count, *roles.values)]
    answer = Answer(roles, [table[column] for column in roles.keys], numbers, certificate)
    _write_table(answer, certificate, into, sink, name, signature_in(table))


def _read_table(
    source: pa.Buffer, stored: Format, roles: Roles, csv_types: Mapping[str, CsvType], level: float | None
) -> Answer:
    numbers = (roles.count, *roles.values)
    intervals = () if level is None else interval_columns(numbers)
    types: dict[str, CsvType] = {name: csv_types.get(name, "string") for name in roles.keys}
    types |= dict.fromkeys(numbers, "string")
    types |= dict.fromkeys(intervals, "float64")
    _, table = read_table(source, ANY_SIZE, types if stored == "csv" else None, is_written_here=True)
    stated = (table.schema.metadata or {}).get(CERTIFICATE.encode())
    return Answer(
        roles,
        [table[name] for name in roles.keys],
        [_numbers(plain(table[name])) for name in numbers],
        None if stated is None else stated.decode(),
        level,
        [plain(table[name]).to_numpy() for name in intervals],
    )


def _numbers(column: pa.Array) -> Numbers:
    """Numbers, also from CSV: written with neither a point nor an exponent, they are integers."""
    if not pa.types.is_primitive(column.type):
        is_whole = pc.all(pc.match_substring_regex(column, r"\A-?[0-9]+\z"), min_count=0).as_py()
        column = column.cast(pa.int64() if is_whole else pa.float64())
    return column.to_numpy()  # type: ignore[no-any-return]


def _write_table(
    answer: Answer,
    certificate: str | None,
    into: Format,
    sink: IO[bytes],
    name: str = "",
    signature: str | None = None,
) -> None:
    columns = [_storable(column) for column in answer.keys] if into == "parquet" else answer.keys
    keys = [key_of(column, pa.field("", column.type), "") for column in columns]
    every = np.arange(len(answer.numbers[0]), dtype=np.int32)
    numbers = (answer.roles.count, *answer.roles.values)
    further = {} if answer.level is None else dict(zip(interval_columns(numbers), answer.intervals, strict=True))
    rows = rows_of(answer.roles, keys, every, answer.numbers, further)
    write_table(into, rows, certificate, sink, name, signature)


def _storable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column in the first of its forms that Parquet has a place for. It has dictionaries of text only."""
    kind = column.type
    is_wide = _in_seconds(kind) or (pa.types.is_dictionary(kind) and not is_text(kind.value_type))
    if _has_place_in_parquet(kind) and not is_wide:
        return column
    values = decoded(column)
    if _in_seconds(values.type):
        return pa.chunked_array([_in_milliseconds(values)])
    if pa.types.is_decimal(values.type) and values.type.bit_width < 128:
        values = values.cast(pa.decimal128(values.type.precision, values.type.scale))
    if _has_place_in_parquet(values.type):
        return pa.chunked_array([values])
    return pa.chunked_array([texts_of(values)])


def _in_seconds(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind)) and kind.unit == "s"


def _in_milliseconds(values: pa.Array) -> pa.Array:
    """Parquet has no timestamps in seconds. The text of a time that milliseconds cannot reach."""
    try:
        return values.cast(pa.timestamp("ms", values.type.tz))
    except pa.ArrowInvalid:
        return texts_of(values)


def _has_place_in_parquet(kind: pa.DataType) -> bool:
    try:
        pq.write_table(pa.table({"key": pa.nulls(1, kind)}), io.BytesIO())
    except (pa.ArrowException, OSError):
        return False
    return True
