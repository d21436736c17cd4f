"""Formats of tables: Arrow IPC streams and files, Parquet files, and CSV; read with every buffer checked, and written.

Given the certificate, the bytes of a written table depend only on its rows and the types of its columns.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gsh.errors import InvalidGroups, TooManyGroups
from gsh.histogram.csv_format import CsvType, CsvWriter, csv_batches, uneven_line, without_mark
from gsh.histogram.file_formats import Format
from gsh.histogram.keys.types import is_text

__all__ = [
    "ANY_SIZE",
    "CERTIFICATE",
    "MOST_SCHEMA_BYTES",
    "SIGNATURE",
    "TABLE",
    "Limits",
    "decoded_size",
    "format_of",
    "metadata_of",
    "read_table",
    "signature_in",
    "stream_batches",
    "stream_in",
    "write_table",
]

CERTIFICATE = "certificate"
"""The name of the certificate, as JSON, in the metadata of an answer's schema. CSV has no place for it."""
TABLE = "table"
"""In the same place, if a release has several tables: the name of this one."""
SIGNATURE = "gsh.signature"
"""In the same place: the signed envelope of the certificate, as JSON (docs/certificate.md)."""

_FILE_MAGIC = b"ARROW1"
_FILE_BLOCK = np.dtype([("offset", "<i8"), ("metadata", "<i4"), ("", "<i4"), ("body", "<i8")])
_PARQUET_MAGIC = b"PAR1"
_END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"
_CONTINUED = 0xFFFFFFFF
_BATCH = 1 << 17
MOST_SCHEMA_BYTES = 1 << 23
_LEAST_BATCH = 128

_Batches = tuple[pa.Schema, Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class Limits:
    """The most groups of a table, and the most bytes that it may take in memory."""

    groups: int
    bytes: int


ANY_SIZE = Limits(2**31 - 1, 2**63 - 1)
"""For a table that was read before: it has passed other limits."""


def read_table(
    source: pa.Buffer,
    limits: Limits,
    csv_types: Mapping[str, CsvType] | None = None,
    check_schema: Callable[[pa.Schema], None] = lambda _schema: None,
    *,
    is_written_here: bool = False,
) -> tuple[Format, pa.Table]:
    """The format of a posted table, and the table with every buffer checked. It refers to ``source``.

    A table is CSV if and only if the types of its columns are declared. ``check_schema`` may raise an error before any
    row is read. ``is_written_here`` is for ``csv_batches``.
    """
    kind = format_of(source) if csv_types is None else "csv"
    try:
        if csv_types is not None:
            schema, batches = csv_batches(source, csv_types, is_written_here=is_written_here)
        elif kind == "parquet":
            schema, batches = _parquet_batches(source, limits)
        else:
            schema, batches = (_file_batches if kind == "arrow_file" else stream_batches)(source)
        _check_types(schema)
        check_schema(schema)
        return kind, _collected(schema, batches, limits)
    except MemoryError:
        is_too_large = True
    except (pa.ArrowException, OSError, ValueError, OverflowError):
        is_too_large = False
    # Outside of the handlers, whose exceptions quote cells and keep memory.
    if is_too_large:
        raise _too_large(limits)
    raise InvalidGroups("/table", _MUST_BE[kind == "csv"] + (_uneven(source) if kind == "csv" else ""))


def _uneven(source: pa.Buffer) -> str:
    """Which line of CSV has too few or too many cells, in words."""
    found = uneven_line(without_mark(source))
    if found is None:
        return ""
    line, cells, expected = found
    more = ". Write numbers without separators between thousands" if cells > expected else ""
    return f"; line {line} has {cells} of {expected} cells{more}"


_MUST_BE = {
    False: "must be a complete Arrow IPC stream, Arrow IPC file or Parquet file; CSV needs the types of its columns "
    "(csv_types)",
    True: "must be CSV in UTF-8 (RFC 4180), with a header line and as many cells in every line",
}


def metadata_of(certificate: str | None, name: str = "", signature: str | None = None) -> dict[str, str]:
    """The metadata of a table: its certificate, its name if it is one of several, and the signature if there is one."""
    found = ({} if certificate is None else {CERTIFICATE: certificate}) | ({TABLE: name} if name else {})
    return found | ({} if signature is None else {SIGNATURE: signature})


def signature_in(table: pa.Table) -> str | None:
    """The signed envelope in the metadata of a table, if there is one."""
    found = (table.schema.metadata or {}).get(SIGNATURE.encode())
    return None if found is None else found.decode(errors="replace")


def write_table(
    kind: Format,
    rows: pa.RecordBatchReader,
    certificate: str | None,
    sink: IO[bytes],
    name: str = "",
    signature: str | None = None,
) -> None:
    """Write a table, with its certificate in the metadata of the schema if the format has a place for it.

    ``name`` is that of the table, if it is one of several. ``signature`` is the signed envelope of the certificate.
    """
    schema = rows.schema.with_metadata(metadata_of(certificate, name, signature) or None)
    with _WRITERS[kind](sink, schema) as writer:
        for batch in rows:
            writer.write_batch(batch)


_WRITERS: dict[Format, Callable[[IO[bytes], pa.Schema], Any]] = {
    "arrow": pa.ipc.new_stream,
    "arrow_file": pa.ipc.new_file,
    "parquet": pq.ParquetWriter,
    "csv": CsvWriter,
}


def format_of(source: pa.Buffer) -> Format:
    """The format of a table that is not CSV, by its first bytes."""
    start = source.slice(0, min(6, source.size)).to_pybytes()
    if start == _FILE_MAGIC:
        return "arrow_file"
    return "parquet" if start.startswith(_PARQUET_MAGIC) else "arrow"


def stream_batches(source: pa.Buffer) -> _Batches:
    """The batches of a stream, not validated. It must end with the end mark: otherwise it may have been cut off."""
    size, is_marked = _stream_schema_size(source)
    if not is_marked and size > MOST_SCHEMA_BYTES:
        raise pa.ArrowInvalid  # most likely text, such as CSV, whose first letters are no length
    _check_schema_size(size)
    reader = pa.BufferReader(source)
    stream = pa.ipc.open_stream(reader)

    def batches() -> Iterator[pa.RecordBatch]:
        yield from stream
        _check_end(source, reader.tell())

    return stream.schema, batches()


def stream_in(source: pa.Buffer) -> pa.Buffer:
    """The stream that an Arrow IPC file is made of: between its first 8 bytes and its footer."""
    _, end = _opened_file(source)
    return source.slice(8, max(0, end - 8))


def _file_batches(source: pa.Buffer) -> _Batches:
    """The batches of a file, by its footer."""
    file, _ = _opened_file(source)
    return file.schema, map(file.get_batch, range(file.num_record_batches))


def _opened_file(source: pa.Buffer) -> tuple[pa.RecordBatchFileReader, int]:
    """A file, and where its footer begins. Arrow checks the footer and the mark at the end.

    Before the footer must be the end mark, and before that the last batch of the footer: otherwise the file has more
    batches than the footer, or is two files.
    """
    tail = len(_FILE_MAGIC) + 4
    size = int.from_bytes(source.slice(max(0, source.size - tail), 4).to_pybytes(), "little")
    # The footer also has 24 bytes for each batch.
    _check_schema_size(size - source.size // _LEAST_BATCH * _FILE_BLOCK.itemsize)
    file = pa.ipc.open_file(source)
    before = source.size - tail - size
    last = _end_of_blocks(source.slice(before, size).to_pybytes())
    _check_end(source.slice(0, before), last + len(_END_OF_STREAM) if last else before)
    return file, before


def _end_of_blocks(footer: bytes) -> int:
    """Where the last of the blocks ends that a footer lists: dictionaries and batches; 0 if it lists none.

    The footer is a flatbuffer. Its table has a list of blocks in the third place and in the fourth.
    """

    def number(place: int, width: int) -> int:
        return int.from_bytes(footer[place : place + width], "little", signed=width == 4)

    table = number(0, 4)
    places = table - number(table, 4)
    fields = [number(places + 4 + 2 * field, 2) if 4 + 2 * field < number(places, 2) else 0 for field in (2, 3)]
    ends = [0]
    for field in filter(None, fields):
        start = table + field + number(table + field, 4)
        blocks = np.frombuffer(footer, _FILE_BLOCK, number(start, 4), start + 4)
        ends += (blocks["offset"] + blocks["metadata"] + blocks["body"]).tolist()
    return max(ends)


def _check_end(stream: pa.Buffer, end: int) -> None:
    if end != stream.size or stream.slice(stream.size - 8).to_pybytes() != _END_OF_STREAM:
        raise pa.ArrowInvalid


def _parquet_batches(source: pa.Buffer, limits: Limits) -> _Batches:
    footer = int.from_bytes(source.slice(max(0, source.size - 8), 4).to_pybytes(), "little")
    _check_schema_size(footer)
    file = pq.ParquetFile(pa.BufferReader(source), page_checksum_verification=True)
    if file.metadata.num_rows > limits.groups:
        raise _too_many(limits)
    return file.schema_arrow, file.iter_batches(_BATCH)


def _collected(schema: pa.Schema, batches: Iterator[pa.RecordBatch], limits: Limits) -> pa.Table:
    collected, rows, size = [], 0, 0
    for batch in batches:
        batch.validate()
        rows += len(batch)
        size += _decoded_size(batch)
        if rows > limits.groups:
            raise _too_many(limits)
        if size > limits.bytes:
            raise _too_large(limits)
        # Arrow would follow offsets and indices that point outside of their buffers. Each view reads its text again.
        batch.validate(full=True)
        collected.append(batch)
    columns = pa.Table.from_batches(collected, schema).columns
    collected.clear()
    for place, column in enumerate(columns):  # one by one, so that at most one column takes memory twice
        columns[place] = _joined(column)
    return pa.Table.from_arrays(columns, schema=schema)


def _stream_schema_size(source: pa.Buffer) -> tuple[int, bool]:
    """The length of the first message, and whether a mark is before it. Early versions of the format have none."""
    start = np.frombuffer(source.slice(0, 8 * (source.size >= 8)), "<u4")
    if not len(start):
        return 0, False
    is_marked = bool(start[0] == _CONTINUED)
    return int(start[int(is_marked)]), is_marked


def _check_schema_size(size: int) -> None:
    """Each byte of a schema takes many in memory, and all of it is read before any check can be made."""
    if size > MOST_SCHEMA_BYTES:
        raise InvalidGroups("/table", f"must have a schema, with its metadata, of at most {MOST_SCHEMA_BYTES} bytes")


def _joined(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of numbers in one piece. Other columns are joined later, according to their role."""
    if column.num_chunks == 1 or not pa.types.is_primitive(column.type):
        return column
    return pa.chunked_array([column.combine_chunks()], column.type)


def _check_types(schema: pa.Schema) -> None:
    try:
        list(schema.types)
    except KeyError:  # a type of Arrow that pyarrow does not have
        raise InvalidGroups("/table", "must have columns of types that pyarrow knows") from None


def _too_many(limits: Limits) -> TooManyGroups:
    return TooManyGroups("/table", f"must have at most {limits.groups} groups")


def _too_large(limits: Limits) -> TooManyGroups:
    return TooManyGroups("/table", f"must take at most {limits.bytes} bytes")


# What an array of no rows takes, in bytes.
_ARRAY = 512
_LONGEST_NUMBER = 32


def decoded_size(table: pa.Table) -> int:
    """The most memory that a table takes with its columns decoded: what ``Limits`` bounds."""
    return sum(map(_decoded_size, table.to_batches()))


def _decoded_size(batch: pa.RecordBatch) -> int:
    """The most memory that a batch takes with its columns decoded: a few bytes can encode a long column of views.

    Nothing is decoded. The buffers must have the sizes that the batch needs. Dictionaries stay encoded.
    """
    encoded = (place for place, field in enumerate(batch.schema) if _is_encoded(field.type))
    arrays: int = max(batch.nbytes, _ARRAY * batch.num_columns)
    return arrays + sum(_decoded(batch.column(place)) for place in encoded)


def _is_encoded(kind: pa.DataType) -> bool:
    return bool(isinstance(kind, pa.BaseExtensionType) or _is_view(kind))


def _is_view(kind: pa.DataType) -> bool:
    return bool(kind in (pa.string_view(), pa.binary_view()))


def _decoded(column: pa.Array) -> int:
    """The bytes of the decoded column, or 0 if it is not encoded."""
    if isinstance(column.type, pa.BaseExtensionType):
        return _decoded(column.storage)
    return int(_lengths(column).sum()) if _is_view(column.type) else 0


def _lengths(values: pa.Array) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """The bytes of each value."""
    if not is_text(values.type):
        return np.full(len(values), _LONGEST_NUMBER, np.int64)
    if not _is_view(values.type):
        return np.asarray(pc.fill_null(pc.binary_length(values), 0).to_numpy(), np.int64)
    # A view begins with its length. Arrow has no function for it. Under a null it may be anything.
    views = np.frombuffer(values.buffers()[1], np.int32).reshape(-1, 4)[values.offset :][: len(values)]
    return np.where(values.is_valid().to_numpy(zero_copy_only=False), np.maximum(views[:, 0], 0), 0).astype(np.int64)
