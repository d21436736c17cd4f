"""Tables as CSV: read strictly, by declared types, and written in one form.  [RFC 4180]

Both ways: UTF-8, a header line, commas, cells with commas, quotes or newlines in double quotes, and "" for a quote
inside. An empty cell is null; an empty cell in quotes is an empty string. Lines end with \\n or \\r\\n, and are written
with \\n.

    declared     a cell                                              type
    string       any text                                            string
    int64        -12                                                 int64
    float64      -1.5, 2e3, nan, inf                                 float64, rounded to the nearest
    boolean      true, false                                         bool
    date         2026-11-16                                          date32
    timestamp    2026-11-16T12:30:00.000001, or a space for T        timestamp[us], without a time zone
    decimal      -1.5, with up to 29 digits before the point         decimal128(38, 9)
                 and 9 after it

A declared type decides the type of a column alone, so no cell of a dropped group shows in the answer's types.
"""

import codecs
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from gsh.histogram.errors import InvalidGroups
from gsh.histogram.texts import texts_of
from gsh.pointers import pointer_part

__all__ = ["CsvType", "CsvWriter", "csv_batches"]

CsvType = Literal["string", "int64", "float64", "boolean", "date", "timestamp", "decimal"]

_BLOCK = 1 << 23
# More than can be declared. Arrow takes half a minute to begin a table of a million columns.
_MOST_COLUMNS = 1000
_QUOTE, _ENDS = ord('"'), np.frombuffer(b",\r\n", np.uint8)


@dataclass(frozen=True, slots=True)
class _Cells:
    type: pa.DataType
    pattern: str
    example: str


_CELLS: dict[str, _Cells] = {
    "string": _Cells(pa.string(), "", "any text"),
    "int64": _Cells(pa.int64(), r"-?[0-9]+", "integers of 64 bits, such as -12"),
    "float64": _Cells(
        pa.float64(),
        r"(?i)-?([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?|nan|-?inf(inity)?",
        "numbers in the range of doubles, such as -1.5 or 2e3",
    ),
    "boolean": _Cells(pa.bool_(), "(?i)true|false", "true or false"),
    "date": _Cells(pa.date32(), "[0-9]{4}-[0-9]{2}-[0-9]{2}", "dates such as 2026-11-16"),
    "timestamp": _Cells(
        pa.timestamp("us"),
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?",
        "timestamps without a time zone, such as 2026-11-16T12:30:00",
    ),
    "decimal": _Cells(
        pa.decimal128(38, 9),
        r"-?[0-9]+(\.[0-9]+)?",
        "decimal numbers such as -1.5, with at most 29 digits before the point and 9 after it",
    ),
}


def csv_batches(source: pa.Buffer, types: Mapping[str, CsvType]) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The batches of a CSV table, each cell checked against the declared type of its column."""
    source = source.slice(3) if source.slice(0, min(3, source.size)).to_pybytes() == codecs.BOM_UTF8 else source
    _check_quotes(source)
    if _width(source) > _MOST_COLUMNS:
        raise _undeclared()
    reader = pa.csv.open_csv(
        pa.BufferReader(source),
        read_options=pa.csv.ReadOptions(block_size=_BLOCK),
        parse_options=pa.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        convert_options=pa.csv.ConvertOptions(
            column_types=dict.fromkeys(types, pa.string()),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=[""],
        ),
    )
    names = reader.schema.names
    for name in types:
        if names.count(name) != 1:
            raise InvalidGroups(_pointer(name), "must name exactly one column of the header line")
    if len(names) != len(types):
        raise _undeclared()
    schema = pa.schema([pa.field(name, _CELLS[types[name]].type) for name in names])
    return schema, (
        pa.record_batch([_parsed(batch[name], types[name], name) for name in names], schema) for batch in reader
    )


class CsvWriter:
    """Writes batches as CSV. Given the types, its bytes depend on the rows alone."""

    def __init__(self, sink: IO[bytes], schema: pa.Schema) -> None:
        self._sink = sink
        self._write([pa.array([name], pa.large_string()) for name in schema.names])

    def __enter__(self) -> "CsvWriter":
        return self

    def __exit__(self, *_error: object) -> None:
        """The caller closes the sink."""

    def write_batch(self, batch: pa.RecordBatch) -> None:
        self._write(map(texts_of, batch.columns))

    def _write(self, columns: Iterable[pa.Array]) -> None:
        cells = [pc.fill_null(_quoted(column), "") for column in columns]
        comma, end, nothing = (pa.scalar(text, pa.large_string()) for text in (",", "\n", ""))
        lines = pc.binary_join_element_wise(pc.binary_join_element_wise(*cells, comma), end, nothing)
        if len(lines):  # their bytes are one after the other
            self._sink.write(lines.buffers()[2].slice(0, pc.sum(pc.binary_length(lines)).as_py()))


def _quoted(texts: pa.Array) -> pa.Array:
    is_special = pc.match_substring_regex(texts, r'\A\z|[",\r\n]')
    doubled = pc.replace_substring(texts, '"', '""')
    return pc.if_else(is_special, pc.replace_substring_regex(doubled, r"(?s)\A(.*)\z", r'"\1"'), texts)


def _parsed(texts: pa.Array, declared: CsvType, name: str) -> pa.Array:
    cells = _CELLS[declared]
    if cells.pattern:
        is_right = pc.match_substring_regex(texts, rf"\A({cells.pattern})\z")
        if pc.any(pc.invert(is_right)).as_py():
            raise _wrong(name, cells)
    try:
        values = texts.cast(cells.type)
    except pa.ArrowInvalid:
        values = None
    if values is None or (declared == "float64" and _is_beyond_doubles(texts, values)):
        raise _wrong(name, cells)  # outside of the handler, whose exception quotes the cell
    return values


def _is_beyond_doubles(texts: pa.Array, values: pa.Array) -> bool:
    is_number = pc.invert(pc.match_substring(texts, "inf", ignore_case=True))
    return bool(pc.any(pc.and_(pc.is_inf(values), is_number)).as_py())


def _wrong(name: str, cells: _Cells) -> InvalidGroups:
    return InvalidGroups(_pointer(name), f"must be the type of all cells of this column: {cells.example}")


def _undeclared() -> InvalidGroups:
    return InvalidGroups("/csv_types", "must declare all columns of the table, and the table must have a header line")


def _pointer(name: str) -> str:
    return f"/csv_types/{pointer_part(name)}"


def _check_quotes(source: pa.Buffer) -> None:
    """Arrow reads quotes in the middle of a cell, and a last cell that is never closed, in ways of its own.

    A quote opens or closes in turn. What opens must stand at the start of a cell, and what closes at the end of one,
    except that two quotes in a row, one that closes and one that opens, are a quote inside.
    """
    content = np.frombuffer(source, np.uint8)
    seen = 0
    for start in range(0, len(content), _BLOCK):
        places = start + np.flatnonzero(content[start : start + _BLOCK] == _QUOTE)
        if len(places):
            turn = (seen + np.arange(len(places))) % 2
            seen += len(places)
            before, after = places[turn == 0] - 1, places[turn == 1] + 1
            neighbours = [content[before[before >= 0]], content[after[after < len(content)]]]
            if not all((np.isin(near, _ENDS) | (near == _QUOTE)).all() for near in neighbours):
                raise pa.ArrowInvalid
    if seen % 2:
        raise pa.ArrowInvalid


def _width(source: pa.Buffer) -> int:
    """The number of cells in the header line, as far as Arrow would look for its end."""
    start = np.frombuffer(source, np.uint8)[:_BLOCK]
    is_outside = np.cumsum(start == _QUOTE) % 2 == 0
    ends = np.flatnonzero(is_outside & np.isin(start, _ENDS[1:]))
    end = ends[0] if len(ends) else len(start)
    return 1 + int(np.count_nonzero(is_outside[:end] & (start[:end] == _ENDS[0])))
