"""Tables of groups, as Arrow IPC streams and Parquet files: read with suspicion, written in the format they came in.

Of the posted table only its kept rows go into the answer: no metadata of schema or columns (where engines note, say,
the number of rows), and no dictionary entry that no kept row uses. What is under a null is zero.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from app.release.entropy import Entropy
from app.release.errors import InvalidGroups, TooManyGroups
from app.release.keys import Positions, comparable, unique_order
from app.release.mechanism import Numbers, counts_of, release, values_of
from app.release.noise import Noise

__all__ = ["CERTIFICATE", "Format", "Limits", "Roles", "read_table", "release_table", "write_table"]

Format = Literal["arrow", "parquet"]

CERTIFICATE = "certificate"
"""The key of the schema's metadata under which an answer carries its certificate, as JSON."""

_PARQUET_MAGIC = b"PAR1"
_END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"
_BATCH = 1 << 17


@dataclass(frozen=True, slots=True)
class Roles:
    """Which columns of a table are what; it may have no others."""

    keys: tuple[str, ...]
    count: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """The most groups, and the most bytes that a table may take up in memory once it is read."""

    groups: int
    bytes: int


def read_table(source: pa.Buffer, limits: Limits) -> tuple[Format, pa.Table]:
    """The format of a posted table, and the table with every buffer checked; it refers to ``source``."""
    is_parquet = source.slice(0, min(4, source.size)).to_pybytes() == _PARQUET_MAGIC
    try:
        if is_parquet:
            return "parquet", _collected(*_parquet_batches(source, limits), limits)
        return "arrow", _collected(*_stream_batches(source), limits)
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError):
        raise InvalidGroups("/table", "must be a complete Arrow IPC stream or Parquet file") from None


def release_table(noise: Noise, table: pa.Table, roles: Roles, entropy: Entropy) -> pa.RecordBatchReader:
    """The kept rows, sorted by key: key columns as they came, count and values noisy. Checks come before any noise."""
    _check_columns(table, roles)
    keys = [_plain(table[name]) for name in roles.keys]
    order = unique_order(
        [part for place, key in enumerate(keys) for part in comparable(key, f"/key_columns/{place}")],
        len(table),
        "/key_columns",
    )
    counts = counts_of(_plain(table[roles.count]), "/count_column")
    values = [
        values_of(_plain(table[name]), noise.value_grids[j], f"/mechanism/aggregates/names/{j}")
        for j, name in enumerate(roles.values)
    ]
    released = release(noise, counts, values, order, entropy)
    numbers = dict(zip((roles.count, *roles.values), (released.counts, *released.values), strict=True))
    kinds = [table.schema.field(name).type for name in roles.keys]
    fields = [pa.field(name, kind) for name, kind in zip(roles.keys, kinds, strict=True)]
    fields += [pa.field(name, pa.from_numpy_dtype(column.dtype), nullable=False) for name, column in numbers.items()]
    schema = pa.schema(fields)
    parts = [_taken(key, kind, released.rows) for key, kind in zip(keys, kinds, strict=True)]
    parts += [_sliced(column) for column in numbers.values()]
    batches = (pa.record_batch(list(columns), schema) for columns in zip(*parts, strict=True))
    return pa.RecordBatchReader.from_batches(schema, batches)


def write_table(kind: Format, released: pa.RecordBatchReader, certificate: str, sink: IO[bytes]) -> None:
    """The answer, with its certificate in the metadata of the schema."""
    schema = released.schema.with_metadata({CERTIFICATE: certificate})
    with pq.ParquetWriter(sink, schema) if kind == "parquet" else pa.ipc.new_stream(sink, schema) as writer:
        for batch in released:
            writer.write_batch(batch)


def _stream_batches(source: pa.Buffer) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """A stream that just stops may have been cut off, so its end must be marked, and be the end."""
    reader = pa.BufferReader(source)
    stream = pa.ipc.open_stream(reader)

    def batches() -> Iterator[pa.RecordBatch]:
        yield from stream
        if reader.tell() != source.size or source.slice(source.size - 8).to_pybytes() != _END_OF_STREAM:
            raise pa.ArrowInvalid

    return stream.schema, batches()


def _parquet_batches(source: pa.Buffer, limits: Limits) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    file = pq.ParquetFile(pa.BufferReader(source), page_checksum_verification=True)
    if file.metadata.num_rows > limits.groups:
        raise _too_many(limits)
    return file.schema_arrow, file.iter_batches(_BATCH)


def _collected(schema: pa.Schema, batches: Iterator[pa.RecordBatch], limits: Limits) -> pa.Table:
    collected, rows, size = [], 0, 0
    for batch in batches:
        batch.validate(full=True)  # offsets and indices that lead out of their buffers would be followed
        rows += len(batch)
        size += batch.nbytes
        if rows > limits.groups:
            raise _too_many(limits)
        if size > limits.bytes:
            raise TooManyGroups("/table", f"must take up at most {limits.bytes} bytes")
        collected.append(batch)
    columns = pa.Table.from_batches(collected, schema).columns
    collected.clear()
    for place, column in enumerate(columns):  # one by one, so that no more than one is there twice
        columns[place] = _joined(column)
    return pa.Table.from_arrays(columns, schema=schema)


def _too_many(limits: Limits) -> TooManyGroups:
    return TooManyGroups("/table", f"must have at most {limits.groups} groups")


def _check_columns(table: pa.Table, roles: Roles) -> None:
    named = (*roles.keys, roles.count, *roles.values)
    if len(set(named)) != len(named):
        raise InvalidGroups("/key_columns", "must be unique, and neither the count column nor an aggregate")
    try:
        present = table.schema.names
    except UnicodeDecodeError:
        raise InvalidGroups("/table", "must have column names in UTF-8") from None
    for pointer, name in (
        *((f"/key_columns/{place}", name) for place, name in enumerate(roles.keys)),
        ("/count_column", roles.count),
        *((f"/mechanism/aggregates/names/{place}", name) for place, name in enumerate(roles.values)),
    ):
        if present.count(name) != 1:
            raise InvalidGroups(pointer, "must name exactly one column of the table")
    if len(present) != len(named):
        raise InvalidGroups("/table", "must have no column beside its keys, its count and the aggregates")


def _joined(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column in one piece, as long as its offsets can tell where in it a value begins."""
    if column.num_chunks == 1 or (column.type in (pa.string(), pa.binary()) and column.nbytes >= 2**31):
        return column
    joined = column.unify_dictionaries().combine_chunks()
    return joined if isinstance(joined, pa.ChunkedArray) else pa.chunked_array([joined])


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """The column in one piece and in a type from which rows can be taken."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type))
    if pa.types.is_run_end_encoded(kind):
        return _plain(pa.chunked_array([pc.run_end_decode(chunk) for chunk in column.chunks], kind.value_type))
    if pa.types.is_dictionary(kind):
        column = column.unify_dictionaries()
    elif _is_text(kind) and (column.num_chunks != 1 or kind in (pa.string_view(), pa.binary_view())):
        # Together the pieces may be longer than the offsets of the smaller types can tell.
        column = column.cast(pa.large_string() if _is_unicode(kind) else pa.large_binary())
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _restored(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values in the type that the column had; a dictionary has only the entries that are used."""
    if isinstance(kind, pa.BaseExtensionType):
        return kind.wrap_array(_restored(array, kind.storage_type))
    if pa.types.is_run_end_encoded(kind):
        return pc.run_end_encode(_restored(array, kind.value_type), run_end_type=kind.run_end_type)
    if pa.types.is_dictionary(kind):
        used = array.dictionary_decode().dictionary_encode()
        return pa.DictionaryArray.from_arrays(used.indices.cast(kind.index_type), used.dictionary, ordered=kind.ordered)
    return array if array.type == kind else array.cast(kind)


def _taken(key: pa.Array, kind: pa.DataType, rows: Positions) -> Iterator[pa.Array]:
    """The rows of a key column, batch by batch; batches of a stream share their dictionary."""
    batches = (_restored(key.take(pa.array(part)), kind) for part in _sliced_rows(rows))
    if pa.types.is_dictionary(kind):
        yield from pa.chunked_array(batches, kind).unify_dictionaries().chunks
    else:
        yield from batches


def _sliced_rows(rows: Positions) -> Iterator[Positions]:
    return (rows[start : start + _BATCH] for start in range(0, len(rows), _BATCH))


def _sliced(numbers: Numbers) -> Iterator[pa.Array]:
    return (pa.array(numbers[start : start + _BATCH]) for start in range(0, len(numbers), _BATCH))


def _is_unicode(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def _is_text(kind: pa.DataType) -> bool:
    return _is_unicode(kind) or kind in (pa.binary(), pa.large_binary(), pa.binary_view())
