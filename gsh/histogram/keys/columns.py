"""Key columns: read from any encoding, and written from their kept rows alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gsh.errors import InvalidGroups
from gsh.histogram.arrays import Positions
from gsh.histogram.keys.canonical import canonical, with_dictionary
from gsh.histogram.keys.order import comparable, ranked
from gsh.histogram.keys.types import answer_type, is_text, is_unicode

__all__ = ["Key", "batches", "decoded", "key_of", "plain"]

_MOST_ROWS = 1 << 17
_MOST_BYTES = 1 << 28
_MOST_ENTRIES = _MOST_ENTRY_BYTES = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Key:
    """A posted key column, and its type in the answer."""

    type: pa.DataType
    rows: pa.Array
    """The values in a type from which rows can be taken. For a dictionary: the ranks of the entries."""
    entries: pa.Array | None = None
    """For a dictionary: its distinct entries by rank."""

    def comparable(self) -> list[pa.Array]:
        return comparable(self.rows)

    def kept(self, rows: Positions, places: Sequence[slice]) -> Iterator[pa.Array]:
        """The kept rows in canonical form, batch by batch. All batches share one dictionary."""
        if self.entries is not None:
            return self._kept_with_dictionary(self.entries, rows, places)
        taken = (self.rows.take(pa.array(rows[place])) for place in places)
        return (canonical(values, self.type) for values in taken)

    def _kept_with_dictionary(
        self, entries: pa.Array, rows: Positions, places: Sequence[slice]
    ) -> Iterator[pa.DictionaryArray]:
        used, indices = self._used(entries, rows)
        entries = canonical(used, self.type.value_type)
        return (with_dictionary(indices[place], entries) for place in places)

    def content(self, order: Positions) -> tuple[pa.DataType, pa.Array, pa.Array]:
        """The type of the values, the values that rows have, and for each row in this order its place in them."""
        kind = self.type if self.entries is None else self.type.value_type
        if self.entries is None:
            return kind, self.rows, pa.array(order)
        return kind, *self._used(self.entries, order)

    def _used(self, entries: pa.Array, rows: Positions) -> tuple[pa.Array, pa.Array]:
        """The entries of a dictionary that some rows have, and for each of these rows its place in them."""
        ranks = self.rows.take(pa.array(rows))
        is_used = np.zeros(len(entries), np.bool_)
        is_used[ranks.drop_null().to_numpy()] = True
        indices = pa.array(np.cumsum(is_used, dtype=np.int32) - np.int32(1)).take(ranks)
        return entries.take(pa.array(np.flatnonzero(is_used))), indices


def key_of(column: pa.ChunkedArray, field: pa.Field, pointer: str) -> Key:
    """The key column, or an error if the answer cannot have it. The error comes before any noise."""
    kind = answer_type(field, pointer)
    try:
        if not pa.types.is_dictionary(kind):
            return Key(kind, plain(column))
        indices, entries = _joined_dictionaries(column)
        ranks, places = ranked(entries)
        distinct = entries.take(pa.array(places))
    except MemoryError:
        raise
    except pa.ArrowException:
        raise InvalidGroups(pointer, "must name a column that can be decoded") from None
    if is_text(kind.value_type) and (pc.sum(pc.binary_length(distinct)).as_py() or 0) > _MOST_ENTRY_BYTES:
        raise InvalidGroups(pointer, f"must have at most {_MOST_ENTRY_BYTES} bytes of distinct values in a dictionary")
    return Key(kind, ranks.take(indices), distinct)


def decoded(column: pa.ChunkedArray) -> pa.Array:
    """The values that a column of an answer encodes, in one piece and in a type from which rows can be taken."""
    key = key_of(column, pa.field("", column.type), "")
    _, values, places = key.content(np.arange(len(column), dtype=np.int32))
    return values if key.entries is None else values.take(places)


def plain(column: pa.ChunkedArray) -> pa.Array:
    """The column in one piece and in a type from which rows can be taken."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return plain(pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type))
    if is_text(kind) and (column.num_chunks != 1 or kind in (pa.string_view(), pa.binary_view())):
        # Together the pieces may be too long for the offsets of the smaller types.
        column = column.cast(pa.large_string() if is_unicode(kind) else pa.large_binary())
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _joined_dictionaries(column: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """The indices and the entries of all pieces. An entry may occur twice.

    Arrow's own unification refuses null entries and changes half-precision numbers.
    """
    last = pa.array([], column.type.value_type)
    entries, indices, start, length = [last], [pa.array([], pa.int64())], 0, 0
    for chunk in column.chunks:
        dictionary = chunk.dictionary
        if _memory(dictionary) != _memory(last):
            # The pieces of a file often have copies of one dictionary, or of a dictionary that grows.
            is_more = dictionary.slice(0, len(last)).equals(last)
            start = start if is_more else length
            entries.append(dictionary.slice(len(last)) if is_more else dictionary)
            length, last = start + len(dictionary), dictionary
        indices.append(pc.add(chunk.indices.cast(pa.int64()), start))
    if length > _MOST_ENTRIES:
        raise pa.ArrowInvalid
    return pa.concat_arrays(indices), plain(pa.chunked_array(entries[1:] or entries))


def _memory(array: pa.Array) -> tuple[int, ...]:
    return array.offset, len(array), *(part.address for part in array.buffers() if part)


def batches(keys: Sequence[Key], rows: Positions) -> Iterator[slice]:
    """Split the kept rows into batches. No batch has too many rows, or keys too long for their offsets."""
    ends = np.zeros(1 + len(rows), np.int64)
    for key in keys:
        if is_text(key.rows.type):
            lengths = pc.fill_null(pc.binary_length(key.rows), 0).take(pa.array(rows))
            ends[1:] += np.cumsum(lengths.to_numpy())
        elif key.entries is not None and is_text(key.entries.type):  # CSV has them as text
            lengths = pc.binary_length(key.entries).take(key.rows.take(pa.array(rows)))
            ends[1:] += np.cumsum(pc.fill_null(lengths, 0).to_numpy())
    start = 0
    while start < len(rows):
        fitting = int(np.searchsorted(ends, ends[start] + _MOST_BYTES, side="right")) - 1
        end = min(start + _MOST_ROWS, max(fitting, start + 1), len(rows))
        yield slice(start, end)
        start = end
