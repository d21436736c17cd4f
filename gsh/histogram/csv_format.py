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

1.000 may be one or a thousand (texts.py). It is no integer. In a column of float64 or decimal it is refused, unless
another cell of the column shows that the point is a decimal point. An error has the line, and never the cell. Lines are
counted as an editor does: those inside of quoted cells too, and the header line is 1.
"""

import codecs
import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from gsh.errors import InvalidGroups, missing_column, names_listed, pointer_part
from gsh.histogram.arrays import Positions
from gsh.histogram.texts import ADVICE, DecimalPoints, are_ambiguous, texts_of, unambiguous

__all__ = ["CsvType", "CsvWriter", "csv_batches", "header_of", "uneven_line", "without_mark"]

CsvType = Literal["string", "int64", "float64", "boolean", "date", "timestamp", "decimal"]

# A record cannot be longer than a block.
_BLOCK = 1 << 23
# Each quote and each line end in it takes some sixty bytes.
_SMALL_BLOCK = 1 << 20
# More than can be declared. Arrow takes half a minute to begin a table of a million columns.
_MOST_COLUMNS = 1000
_NUMBERS = ("int64", "float64", "decimal")
_QUOTE, _COMMA, _CR, _LF = b'",\r\n'
_ENDS = np.frombuffer(b",\r\n", np.uint8)


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


def csv_batches(
    source: pa.Buffer, types: Mapping[str, CsvType], *, is_written_here: bool = False
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The batches of a CSV table, each cell checked against the declared type of its column.

    ``is_written_here``: a ``CsvWriter`` of this or an earlier version wrote it, so every point is a decimal point.
    """
    source = without_mark(source)
    _check_quotes(source)
    _check_header(source, types)
    reader = pa.csv.open_csv(
        pa.BufferReader(source),
        read_options=pa.csv.ReadOptions(block_size=_BLOCK // 8 if _has_short_lines(source) else _BLOCK),
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
            detail = "must name exactly one column of the header line"
            raise InvalidGroups(_pointer(name), detail, missing_column(name, names))
    if len(names) != len(types):
        raise _undeclared([name for name in names if name not in types])
    schema = pa.schema([pa.field(name, _CELLS[types[name]].type) for name in names])
    return schema, _batches(reader, schema, types, source, is_written_here=is_written_here)


def header_of(source: pa.Buffer) -> list[str]:
    """The names of the columns, if the header line is well formed: ``csv_batches`` finds out. Else ``ValueError``."""
    source = without_mark(source)
    start = source.slice(0, min(_SMALL_BLOCK, source.size)).to_pybytes().decode(errors="replace")
    try:
        return next(csv.reader(io.StringIO(start, newline=""), strict=True), [])
    except csv.Error:
        raise ValueError("must have a header line") from None


def without_mark(source: pa.Buffer) -> pa.Buffer:
    """The content after the byte order mark, if there is one."""
    return source.slice(3) if source.slice(0, min(3, source.size)).to_pybytes() == codecs.BOM_UTF8 else source


def _batches(
    reader: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    types: Mapping[str, CsvType],
    source: pa.Buffer,
    *,
    is_written_here: bool,
) -> Iterator[pa.RecordBatch]:
    decimals = () if is_written_here else ("float64", "decimal")
    points = {name: DecimalPoints() for name in schema.names if types[name] in decimals}
    row = 0
    for batch in reader:
        columns = []
        for name in schema.names:
            if name in points:
                points[name].look(batch[name], row)
            columns.append(_parsed(batch[name], types[name], name, source, row))
        row += len(batch)
        yield pa.record_batch(columns, schema)
    for name, found in points.items():
        if found.ambiguous_row is not None:
            raise InvalidGroups(_pointer(name), f"line {_line_of_row(source, found.ambiguous_row)} {ADVICE}")


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
        self._write(map(_text_cells, batch.columns))

    def _write(self, columns: Iterable[pa.Array]) -> None:
        cells = [pc.fill_null(_quoted(column), "") for column in columns]
        comma, end, nothing = (pa.scalar(text, pa.large_string()) for text in (",", "\n", ""))
        lines = pc.binary_join_element_wise(pc.binary_join_element_wise(*cells, comma), end, nothing)
        if len(lines):  # their bytes are one after the other
            self._sink.write(lines.buffers()[2].slice(0, pc.sum(pc.binary_length(lines)).as_py()))


def _text_cells(column: pa.Array) -> pa.Array:
    """The column as texts. A decimal number is never written so that it can be read in two ways."""
    texts, kind = texts_of(column), column.type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return unambiguous(texts) if pa.types.is_floating(kind) or pa.types.is_decimal(kind) else texts


def _quoted(texts: pa.Array) -> pa.Array:
    is_special = pc.match_substring_regex(texts, r'\A\z|[",\r\n]')
    doubled = pc.replace_substring(texts, '"', '""')
    return pc.if_else(is_special, pc.replace_substring_regex(doubled, r"(?s)\A(.*)\z", r'"\1"'), texts)


def _parsed(texts: pa.Array, declared: CsvType, name: str, source: pa.Buffer, row: int) -> pa.Array:
    """The values of some cells. ``row`` is the place of the first one in ``source``."""
    cells = _CELLS[declared]
    if cells.pattern:
        is_right = pc.match_substring_regex(texts, rf"\A({cells.pattern})\z")
        place = pc.index(is_right, False).as_py()
        if place >= 0:
            line = f"line {_line_of_row(source, row + place)}"
            if declared in _NUMBERS and are_ambiguous(texts.slice(place, 1))[0].as_py():
                raise InvalidGroups(_pointer(name), f"{line} {ADVICE}")
            raise InvalidGroups(_pointer(name), f"{_must_be(cells)}; {line} has another")
    try:
        values = texts.cast(cells.type)
    except pa.ArrowInvalid:
        values = None
    if values is None or (declared == "float64" and _is_beyond_doubles(texts, values)):
        # Outside of the handler, whose exception quotes the cell.
        raise InvalidGroups(_pointer(name), _must_be(cells))
    return values


def _is_beyond_doubles(texts: pa.Array, values: pa.Array) -> bool:
    is_number = pc.invert(pc.match_substring(texts, "inf", ignore_case=True))
    return bool(pc.any(pc.and_(pc.is_inf(values), is_number)).as_py())


def _must_be(cells: _Cells) -> str:
    return f"must be the type of all cells of this column: {cells.example}"


def _undeclared(others: Sequence[str] = ()) -> InvalidGroups:
    detail = "must name all columns of the table, and the table must have a header line"
    return InvalidGroups("/csv_types", detail, f"it also has {names_listed(others)}" if others else "")


def _pointer(name: str) -> str:
    return f"/csv_types/{pointer_part(name)}"


def _check_quotes(source: pa.Buffer) -> None:
    """Arrow reads quotes in the middle of a cell, and a last cell that is never closed, in ways of its own.

    A quote opens or closes in turn. What opens must stand at the start of a cell, and what closes at the end of one,
    except that two quotes in a row, one that closes and one that opens, are a quote inside.
    """
    content = np.frombuffer(source, np.uint8)
    seen = 0
    for start in range(0, len(content), _SMALL_BLOCK):
        places = start + np.flatnonzero(content[start : start + _SMALL_BLOCK] == _QUOTE)
        if len(places):
            turn = (seen + np.arange(len(places))) % 2
            seen += len(places)
            before, after = places[turn == 0] - 1, places[turn == 1] + 1
            neighbours = [content[before[before >= 0]], content[after[after < len(content)]]]
            if not all((np.isin(near, _ENDS) | (near == _QUOTE)).all() for near in neighbours):
                raise pa.ArrowInvalid
    if seen % 2:
        raise pa.ArrowInvalid


def _has_short_lines(source: pa.Buffer) -> bool:
    content = np.frombuffer(source, np.uint8)
    starts = range(0, len(content), _SMALL_BLOCK)
    ends = sum(int(np.count_nonzero(content[start : start + _SMALL_BLOCK] == _LF)) for start in starts)
    return ends * 6 > len(content)


def _check_header(source: pa.Buffer, types: Mapping[str, CsvType]) -> None:
    """The header line, as far as Arrow would look for its end, has commas between its cells, and not too many."""
    start = np.frombuffer(source, np.uint8)[:_BLOCK]
    is_outside = np.cumsum(start == _QUOTE) % 2 == 0
    ends = np.flatnonzero(is_outside & np.isin(start, _ENDS[1:]))
    end = ends[0] if len(ends) else len(start)
    header = start[:end][is_outside[:end]]
    commas = int(np.count_nonzero(header == _COMMA))
    if commas >= _MOST_COLUMNS:
        raise _undeclared()
    for separator, noun in ((b";", "semicolons"), (b"\t", "tabs")):
        if commas == 0 and len(types) > 1 and np.count_nonzero(header == ord(separator)) == len(types) - 1:
            detail = "must have commas between cells, and a point in decimal numbers"
            raise InvalidGroups("/table", f"{detail}; the header line has {noun}. Save the table again as CSV")


def _line_of_row(source: pa.Buffer, row: int) -> int:
    """The line in which a row begins. Row 0 is the one after the header line."""
    place = row + 1
    for lines, _ in _rows(source):
        if place < len(lines):
            return int(lines[place])
        place -= len(lines)
    raise IndexError(row)


def uneven_line(source: pa.Buffer) -> tuple[int, int, int] | None:
    """The first line whose number of cells is not that of the header line: the line, and both numbers."""
    expected = None
    for lines, widths in _rows(source):
        expected = int(widths[0]) if expected is None and len(widths) else expected
        others = np.flatnonzero(widths != expected)
        if len(others) and expected is not None:
            return int(lines[others[0]]), int(widths[others[0]]), expected
    return None


def _rows(source: pa.Buffer) -> Iterator[tuple[Positions, Positions]]:
    """For the rows that end in each block of bytes: the lines in which they begin, and their numbers of cells."""
    content = np.frombuffer(source, np.uint8)
    line, line_ends, quotes, separators = 1, 0, 0, 0
    for start in range(0, len(content), _SMALL_BLOCK):
        block = content[start : start + _SMALL_BLOCK]
        following = np.append(content[start + 1 : start + len(block) + 1], np.uint8(0))[: len(block)]
        is_outside = (quotes + np.cumsum(block == _QUOTE, dtype=np.int64)) % 2 == 0
        is_line_end = (block == _LF) | ((block == _CR) & (following != _LF))
        ends = np.flatnonzero(is_line_end & is_outside)
        commas = np.flatnonzero((block == _COMMA) & is_outside)
        before = np.searchsorted(commas, ends)
        widths = 1 + np.diff(before, prepend=-separators)
        after = 1 + line_ends + np.searchsorted(np.flatnonzero(is_line_end), ends, side="right")
        yield np.append(line, after)[: len(ends)].astype(np.int32), widths.astype(np.int32)
        separators = len(commas) - int(before[-1]) if len(ends) else separators + len(commas)
        line = int(after[-1]) if len(ends) else line
        line_ends += int(np.count_nonzero(is_line_end))
        quotes += int(np.count_nonzero(block == _QUOTE))
    if len(content) and content[-1] not in (_CR, _LF):
        yield np.array([line], np.int32), np.array([separators + 1], np.int32)
