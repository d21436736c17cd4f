"""Tables of groups, as Arrow IPC streams and Parquet files: read and checked, and written in the same format.

Given the certificate, the bytes of an answer depend only on the kept rows and the types of the columns. Each column is
built anew in canonical form (keys/canonical.py). Of the posted schema only the types remain: no metadata, no
nullability, no order of a dictionary.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from gsh.histogram.apply import apply_mechanism
from gsh.histogram.arrays import Doubles, Integers, Positions
from gsh.histogram.content import Column, digest_of, number_columns
from gsh.histogram.entropy import Entropy
from gsh.histogram.errors import InvalidGroups, TooManyGroups
from gsh.histogram.keys.columns import Key, batches, key_of, plain
from gsh.histogram.keys.order import unique_order
from gsh.histogram.noise import Noise
from gsh.histogram.numbers import checked_counts, checked_values

__all__ = [
    "CERTIFICATE",
    "CheckedTable",
    "Format",
    "Limits",
    "Roles",
    "check_table",
    "read_table",
    "release_table",
    "write_table",
]

Format = Literal["arrow", "parquet"]

CERTIFICATE = "certificate"
"""The name of the certificate, as JSON, in the metadata of an answer's schema."""

_PARQUET_MAGIC = b"PAR1"
_END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"
_BATCH = 1 << 17


@dataclass(frozen=True, slots=True)
class Roles:
    """The role of each column of a table. The table must have no other columns."""

    keys: tuple[str, ...]
    count: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """The most groups of a table, and the most bytes that it may take in memory."""

    groups: int
    bytes: int


def read_table(source: pa.Buffer, limits: Limits) -> tuple[Format, pa.Table]:
    """The format of a posted table, and the table with every buffer checked. It refers to ``source``."""
    is_parquet = source.slice(0, min(4, source.size)).to_pybytes() == _PARQUET_MAGIC
    try:
        if is_parquet:
            return "parquet", _collected(*_parquet_batches(source, limits), limits)
        return "arrow", _collected(*_stream_batches(source), limits)
    except MemoryError:
        raise _too_large(limits) from None
    except (pa.ArrowException, OSError, ValueError, OverflowError):
        raise InvalidGroups("/table", "must be a complete Arrow IPC stream or Parquet file") from None


@dataclass(frozen=True, slots=True)
class CheckedTable:
    """A table that can be released: its columns, and its rows in the order of their group keys."""

    noise: Noise
    roles: Roles
    keys: Sequence[Key]
    counts: Integers
    values: Sequence[Doubles]
    order: Positions

    def digest(self) -> bytes:
        """A digest of the groups, whatever the format, the encoding and the order of the rows (content.py)."""
        named = zip(self.roles.keys, self.keys, strict=True)
        columns = [Column("key", name, *key.content(self.order)) for name, key in named]
        values = zip(self.roles.values, self.values, strict=True)
        return digest_of([*columns, *number_columns(self.roles.count, self.counts, values, self.order)])

    def release(self, entropy: Entropy) -> pa.RecordBatchReader:
        """The kept rows, sorted by group key, with noisy counts and values."""
        released = apply_mechanism(self.noise, self.counts, self.values, self.order, entropy)
        names = (self.roles.count, *self.roles.values)
        numbers = dict(zip(names, (released.counts, *released.values), strict=True))
        schema = pa.schema(
            [pa.field(name, key.type) for name, key in zip(self.roles.keys, self.keys, strict=True)]
            + [pa.field(name, pa.from_numpy_dtype(column.dtype), nullable=False) for name, column in numbers.items()]
        )
        places = list(batches(self.keys, released.rows))
        parts = [key.kept(released.rows, places) for key in self.keys]
        parts += [map(pa.array, map(column.__getitem__, places)) for column in numbers.values()]
        rows = zip(*parts, strict=True)
        return pa.RecordBatchReader.from_batches(schema, (pa.record_batch(list(columns), schema) for columns in rows))


def check_table(noise: Noise, table: pa.Table, roles: Roles) -> CheckedTable:
    """The table with every check made: types, names, ranges, and that no group key is there twice."""
    _check_columns(table, roles)
    keys, order = _keys_in_order(table, roles)
    counts = checked_counts(_numbers(table, roles.count, "/count_column"), "/count_column")
    values = [
        checked_values(_numbers(table, name, pointer), noise.value_grids[j], pointer)
        for j, name in enumerate(roles.values)
        for pointer in (f"/mechanism/aggregates/names/{j}",)
    ]
    return CheckedTable(noise, roles, keys, counts, values, order)


def release_table(noise: Noise, table: pa.Table, roles: Roles, entropy: Entropy) -> pa.RecordBatchReader:
    """The kept rows, sorted by group key, with noisy counts and values. All checks come before any noise."""
    return check_table(noise, table, roles).release(entropy)


def write_table(kind: Format, released: pa.RecordBatchReader, certificate: str, sink: IO[bytes]) -> None:
    """Write the answer, with its certificate in the metadata of the schema."""
    schema = released.schema.with_metadata({CERTIFICATE: certificate})
    with pq.ParquetWriter(sink, schema) if kind == "parquet" else pa.ipc.new_stream(sink, schema) as writer:
        for batch in released:
            writer.write_batch(batch)


def _stream_batches(source: pa.Buffer) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The batches of a stream. It must end with the end mark: otherwise it may have been cut off."""
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
    _check_types(schema)
    collected, rows, size = [], 0, 0
    for batch in batches:
        batch.validate(full=True)  # Arrow would follow offsets and indices that point outside of their buffers
        rows += len(batch)
        size += batch.nbytes
        if rows > limits.groups:
            raise _too_many(limits)
        if size > limits.bytes:
            raise _too_large(limits)
        collected.append(batch)
    columns = pa.Table.from_batches(collected, schema).columns
    collected.clear()
    for place, column in enumerate(columns):  # one by one, so that at most one column takes memory twice
        columns[place] = _joined(column)
    return pa.Table.from_arrays(columns, schema=schema)


def _check_types(schema: pa.Schema) -> None:
    try:
        list(schema.types)
    except KeyError:  # a type of Arrow that pyarrow does not have
        raise InvalidGroups("/table", "must have columns of types that pyarrow knows") from None


def _too_many(limits: Limits) -> TooManyGroups:
    return TooManyGroups("/table", f"must have at most {limits.groups} groups")


def _too_large(limits: Limits) -> TooManyGroups:
    return TooManyGroups("/table", f"must take at most {limits.bytes} bytes")


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
        raise InvalidGroups(
            "/table", "must have no columns other than the key columns, the count column and the aggregates"
        )


def _joined(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of numbers in one piece. Other columns are joined later, according to their role."""
    if column.num_chunks == 1 or not pa.types.is_primitive(column.type):
        return column
    return pa.chunked_array([column.combine_chunks()], column.type)


def _keys_in_order(table: pa.Table, roles: Roles) -> tuple[list[Key], Positions]:
    """The key columns, and the order of the rows by key."""
    keys = [
        key_of(table[name], table.schema.field(name), f"/key_columns/{place}") for place, name in enumerate(roles.keys)
    ]
    parts = [part for key in keys for part in key.comparable()]
    return keys, unique_order(parts, len(table), "/key_columns")


def _numbers(table: pa.Table, name: str, pointer: str) -> pa.Array:
    column = table[name]
    if not pa.types.is_primitive(column.type):
        raise InvalidGroups(pointer, "must be of an integer or floating-point type")
    return plain(column)
