"""Tables of groups, in any format (formats.py): their columns checked, sorted by group key, and released.

Each column of an answer is a new one in canonical form (keys/canonical.py). Of the posted schema only the types
remain: no metadata, no nullability, no order of a dictionary.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from gsh.errors import InvalidGroups, missing_column
from gsh.histogram.apply import KeptGroups, apply_mechanism
from gsh.histogram.arrays import Integers, Numbers, Positions, Values
from gsh.histogram.content import Column, digest_of, number_columns
from gsh.histogram.entropy import Entropy
from gsh.histogram.keys.columns import Key, batches, key_of, plain
from gsh.histogram.keys.order import matched, unique_order
from gsh.histogram.keys.types import answer_type
from gsh.histogram.noise import Noise
from gsh.histogram.numbers import checked_counts, checked_values
from gsh.histogram.public_keys import PublicKeys, check_public, listed_columns
from gsh.histogram.roles import Roles

__all__ = [
    "CheckedTable",
    "check_columns",
    "check_schema",
    "check_table",
    "release_table",
    "rows_of",
]


@dataclass(frozen=True, slots=True)
class CheckedTable:
    """A table that can be released: its columns, and its rows in the order of their group keys."""

    noise: Noise
    roles: Roles
    keys: Sequence[Key]
    counts: Integers
    values: Sequence[Values]
    order: Positions

    def digest(self) -> bytes:
        """A digest of the groups, whatever the format, the encoding and the order of the rows (content.py)."""
        named = zip(self.roles.keys, self.keys, strict=True)
        columns = [Column("key", name, *key.content(self.order)) for name, key in named]
        values = zip(self.roles.values, self.values, strict=True)
        return digest_of([*columns, *number_columns(self.roles.count, self.counts, values, self.order)])

    def release(
        self, entropy: Entropy, further: Callable[[KeptGroups], Mapping[str, Numbers]] = lambda _released: {}
    ) -> pa.RecordBatchReader:
        """The kept rows, sorted by group key, with noisy counts and values, and ``further`` columns made of them."""
        released = apply_mechanism(self.noise, self.counts, self.values, self.order, entropy)
        numbers = released.counts, *released.values
        return rows_of(self.roles, self.keys, released.rows, numbers, further(released))


def rows_of(
    roles: Roles,
    keys: Sequence[Key],
    rows: Positions,
    numbers: Sequence[Numbers],
    further: Mapping[str, Numbers] = MappingProxyType({}),
) -> pa.RecordBatchReader:
    """Some rows of the key columns in canonical form, with their counts and values, and further columns."""
    columns = dict(zip((roles.count, *roles.values), numbers, strict=True)) | dict(further)
    schema = pa.schema(
        [pa.field(name, key.type) for name, key in zip(roles.keys, keys, strict=True)]
        + [pa.field(name, pa.from_numpy_dtype(column.dtype), nullable=False) for name, column in columns.items()]
    )
    places = list(batches(keys, rows))
    parts = [key.kept(rows, places) for key in keys]
    parts += [map(pa.array, map(column.__getitem__, places)) for column in columns.values()]
    batched = zip(*parts, strict=True)
    return pa.RecordBatchReader.from_batches(schema, (pa.record_batch(list(batch), schema) for batch in batched))


def check_table(
    noise: Noise, table: pa.Table, roles: Roles, public: PublicKeys | pa.Table | None = None
) -> CheckedTable:
    """The table with every check made: types, names, ranges, and that no group key is there twice.

    If the groups are public, ``public`` lists them. All of them are in the result: those that are not posted count 0.
    """
    check_schema(table.schema, roles)
    check_public(noise, public, "/public_keys")
    counts = checked_counts(_numbers(table, roles.count, "/count_column"), "/count_column")
    values = [
        checked_values(_numbers(table, name, pointer), noise.steps[1 + j], pointer)
        for j, name in enumerate(roles.values)
        for pointer in (f"/mechanism/aggregates/names/{j}",)
    ]
    if public is None or isinstance(public, str):
        keys = _keys(table.schema, [table[name] for name in roles.keys], roles)
        return CheckedTable(noise, roles, keys, counts, values, unique_order(_parts(keys), len(table), "/key_columns"))
    fields = [table.schema.field(name) for name in roles.keys]
    listed = listed_columns(public, fields, "/public_keys")
    try:
        columns = [_after(first, table[name]) for first, name in zip(listed, roles.keys, strict=True)]
    except pa.ArrowException:
        raise InvalidGroups("/public_keys", "must have values of the types of the key columns") from None
    keys = _keys(table.schema, columns, roles)
    found = matched(_parts(keys), len(listed[0]), len(columns[0]), ("/public_keys", "/key_columns"))
    return CheckedTable(
        noise, roles, keys, found.completed(counts), [found.completed_values(column) for column in values], found.order
    )


def _after(listed: pa.ChunkedArray, posted: pa.ChunkedArray) -> pa.ChunkedArray:
    """One column of the listed values and then the posted ones."""
    kind, first, then = posted.type, listed.chunks, posted.chunks
    if isinstance(kind, pa.BaseExtensionType):
        kind, then = kind.storage_type, [chunk.storage for chunk in then]
    if pa.types.is_dictionary(kind):
        kind = pa.dictionary(pa.int32(), kind.value_type)
        first = [pa.DictionaryArray.from_arrays(np.arange(len(chunk), dtype=np.int32), chunk) for chunk in first]
        then = [pa.DictionaryArray.from_arrays(chunk.indices.cast(pa.int32()), chunk.dictionary) for chunk in then]
    return pa.chunked_array([*first, *then], kind)


def release_table(
    noise: Noise, table: pa.Table, roles: Roles, entropy: Entropy, public: PublicKeys | pa.Table | None = None
) -> pa.RecordBatchReader:
    """The kept rows, sorted by group key, with noisy counts and values. All checks come before any noise."""
    return check_table(noise, table, roles, public).release(entropy)


def check_columns(schema: pa.Schema, roles: Roles) -> None:
    """The names of the columns are those of the roles."""
    named = (*roles.keys, roles.count, *roles.values)
    if len(set(named)) != len(named):
        raise InvalidGroups("/key_columns", "must be unique, and neither the count column nor an aggregate")
    try:
        present = schema.names
    except UnicodeDecodeError:
        raise InvalidGroups("/table", "must have column names in UTF-8") from None
    for pointer, name in (
        *((f"/key_columns/{place}", name) for place, name in enumerate(roles.keys)),
        ("/count_column", roles.count),
        *((f"/mechanism/aggregates/names/{place}", name) for place, name in enumerate(roles.values)),
    ):
        if present.count(name) != 1:
            raise InvalidGroups(pointer, "must name exactly one column of the table", missing_column(name, present))
    if len(present) != len(named):
        raise InvalidGroups(
            "/table", "must have no columns other than the key columns, the count column and the aggregates"
        )


def check_schema(schema: pa.Schema, roles: Roles) -> None:
    """The names and the types of the columns: all that can be checked before a row is read."""
    check_columns(schema, roles)
    for place, name in enumerate(roles.keys):
        answer_type(schema.field(name), f"/key_columns/{place}")
    _check_number(schema, roles.count, "/count_column")
    for place, name in enumerate(roles.values):
        _check_number(schema, name, f"/mechanism/aggregates/names/{place}")


def _keys(schema: pa.Schema, columns: Sequence[pa.ChunkedArray], roles: Roles) -> list[Key]:
    named = enumerate(zip(columns, roles.keys, strict=True))
    return [key_of(column, schema.field(name), f"/key_columns/{place}") for place, (column, name) in named]


def _parts(keys: Sequence[Key]) -> list[pa.Array]:
    """The columns by which the keys are compared."""
    return [part for key in keys for part in key.comparable()]


def _numbers(table: pa.Table, name: str, pointer: str) -> pa.Array:
    _check_number(table.schema, name, pointer)
    return plain(table[name])


def _check_number(schema: pa.Schema, name: str, pointer: str) -> None:
    kind = schema.field(name).type
    if not pa.types.is_primitive(kind) and not pa.types.is_decimal(kind):
        raise InvalidGroups(pointer, "must name a column of plain numbers, neither a dictionary nor runs")
