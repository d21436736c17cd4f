"""Key columns of any type: made plain, so that rows can be taken from them, and given back in the type they had."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.release.keys import Positions

__all__ = ["batches", "extension", "plain", "taken"]

_MOST_ROWS = 1 << 17
_MOST_BYTES = 1 << 28


def plain(column: pa.ChunkedArray) -> pa.Array:
    """The column in one piece and in a type from which rows can be taken."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return plain(pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type))
    if pa.types.is_run_end_encoded(kind):
        return plain(pa.chunked_array([pc.run_end_decode(chunk) for chunk in column.chunks], kind.value_type))
    if pa.types.is_dictionary(kind):
        column = _unified(column)
    elif _is_text(kind) and (column.num_chunks != 1 or kind in (pa.string_view(), pa.binary_view())):
        # Together the pieces may be longer than the offsets of the smaller types can tell.
        column = column.cast(pa.large_string() if _is_unicode(kind) else pa.large_binary())
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _unified(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same entries for all pieces, themselves plain; more of them than the indices can tell are an error."""
    kind = pa.dictionary(pa.int32(), plain(pa.chunked_array([], column.type.value_type)).type)
    chunks = [
        pa.DictionaryArray.from_arrays(chunk.indices.cast(pa.int32()), plain(pa.chunked_array([chunk.dictionary])))
        for chunk in column.chunks
    ]
    unified = pa.chunked_array([chunk.cast(kind) for chunk in chunks], kind).unify_dictionaries()
    index_type = column.type.index_type
    most = 2 ** (index_type.bit_width - pa.types.is_signed_integer(index_type))
    if any(len(chunk.dictionary) > most for chunk in unified.chunks):
        raise pa.ArrowInvalid
    return unified


def _restored(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values in the type that the column had."""
    if isinstance(kind, pa.BaseExtensionType):
        return kind.wrap_array(_restored(array, kind.storage_type))
    if pa.types.is_run_end_encoded(kind):
        return pc.run_end_encode(_restored(array, kind.value_type), run_end_type=kind.run_end_type)
    return array if array.type == kind else array.cast(kind)


def _used(key: pa.Array, kind: pa.DataType, rows: Positions) -> pa.Array:
    """The rows of a column with a dictionary, which has those entries that they use, in the order it had them in."""
    indices = key.indices.take(pa.array(rows))
    entries = np.unique(indices.drop_null().to_numpy())
    places = pa.array(np.searchsorted(entries, indices.fill_null(0).to_numpy()), mask=indices.is_null().to_numpy(False))
    dictionary = _restored(key.dictionary.take(pa.array(entries)), kind.value_type)
    return pa.DictionaryArray.from_arrays(places.cast(kind.index_type), dictionary, ordered=kind.ordered)


def taken(key: pa.Array, kind: pa.DataType, rows: Positions, places: list[slice]) -> Iterator[pa.Array]:
    """The rows of a key column, batch by batch; all share a dictionary, if there is one."""
    if pa.types.is_dictionary(kind):
        used = _used(key, kind, rows)
        return (used[place] for place in places)
    return (_restored(key.take(pa.array(rows[place])), kind) for place in places)


def batches(keys: list[pa.Array], rows: Positions) -> Iterator[slice]:
    """Where to cut: no batch has too many rows, nor so long keys that their offsets could not tell."""
    ends = np.zeros(1 + len(rows), np.int64)
    for key in keys:
        if _is_text(key.type):
            lengths = pc.fill_null(pc.binary_length(key), 0).take(pa.array(rows))
            ends[1:] += np.cumsum(lengths.to_numpy())
    start = 0
    while start < len(rows):
        fitting = int(np.searchsorted(ends, ends[start] + _MOST_BYTES, side="right")) - 1
        end = min(start + _MOST_ROWS, max(fitting, start + 1), len(rows))
        yield slice(start, end)
        start = end


def extension(field: pa.Field) -> dict[bytes, bytes]:
    """What the metadata of a field say of its type, where that is one which Arrow does not know."""
    metadata = field.metadata or {}
    return {name: text for name, text in metadata.items() if name.startswith(b"ARROW:extension:")}


def _is_unicode(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def _is_text(kind: pa.DataType) -> bool:
    return _is_unicode(kind) or kind in (pa.binary(), pa.large_binary(), pa.binary_view())
