"""Arrow arrays in canonical form: their bytes depend only on their values and their type.

Arrow leaves many bytes of an array undefined. Canonical form defines them:

    validity bitmap              present only if there is a null; bits past the end are 0
    values under a null          0, or of length 0
    buffers                      of exactly the needed length, every bit written, offsets from 0
    floating-point numbers       one NaN, and 0 for −0, so that equal keys have equal bytes
    dictionary                   sorted by value, without nulls, repeats and unused entries

Values under a null matter most. Arrow's kernels do not write them, so the memory may hold keys of other requests.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gsh.histogram.arrays import Flags
from gsh.histogram.keys.order import unify_floats
from gsh.histogram.keys.types import is_text, is_unicode

__all__ = ["canonical", "with_dictionary"]

_INLINE = 12


def canonical(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values as a new array of a scalar type, or of an extension of one."""
    if isinstance(kind, pa.BaseExtensionType):
        return kind.wrap_array(canonical(values, kind.storage_type))
    if pa.types.is_null(kind):
        return pa.nulls(len(values))
    missing = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
    if is_text(kind):
        buffers = _text(values, kind)
    elif pa.types.is_boolean(kind):
        buffers = [_bits(values.fill_null(False).to_numpy(zero_copy_only=False))]
    else:
        buffers = [_fixed_width(values, kind, missing)]
    validity = None if missing is None else _bits(~missing)
    return pa.Array.from_buffers(kind, len(values), [validity, *buffers], 0 if missing is None else int(missing.sum()))


def with_dictionary(places: pa.Array, entries: pa.Array) -> pa.DictionaryArray:
    """A dictionary array from indices and canonical entries, which are sorted, distinct and all in use."""
    return pa.DictionaryArray.from_arrays(canonical(places, pa.int32()), entries)


def _bits(flags: Flags) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def _fixed_width(values: pa.Array, kind: pa.DataType, missing: Flags | None) -> pa.Buffer:
    width = kind.bit_width // 8
    content = values.buffers()[1].slice(values.offset * width, len(values) * width)
    if missing is None and not pa.types.is_floating(kind):
        return content  # every slot has a value, so Arrow has written it
    slots = np.frombuffer(content, np.uint8).reshape(len(values), width).copy()
    if missing is not None:
        slots[missing] = 0
    if pa.types.is_floating(kind):
        unify_floats(slots.view(f"<u{width}"))
    return pa.py_buffer(slots)


def _text(values: pa.Array, kind: pa.DataType) -> Sequence[pa.Buffer]:
    """Offsets, or views, and the bytes that they refer to."""
    if values.null_count:
        values = values.fill_null("" if is_unicode(values.type) else b"")
    offsets, content = _offsets_and_content(values)
    if kind in (pa.string_view(), pa.binary_view()):
        return _views(offsets, content)
    is_large = kind in (pa.large_string(), pa.large_binary())
    return pa.py_buffer(offsets.astype(np.int64 if is_large else np.int32, copy=False)), content


def _offsets_and_content(values: pa.Array) -> tuple[NDArray[Any], pa.Buffer]:
    """Offsets that start at 0, and exactly the bytes between the first and the last of them."""
    _, starts, content = values.buffers()
    if not len(values):
        return np.zeros(1, np.int64), pa.py_buffer(b"")
    is_large = values.type in (pa.large_string(), pa.large_binary())
    offsets = np.frombuffer(starts, np.int64 if is_large else np.int32)[values.offset :][: len(values) + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    used = pa.py_buffer(b"") if first == last else content.slice(first, last - first)
    return (offsets - offsets[0] if first else offsets), used


def _views(offsets: NDArray[Any], content: pa.Buffer) -> Sequence[pa.Buffer]:
    """Sixteen bytes for each value: its length, then the value if it is short, else its first bytes and its offset."""
    lengths = np.diff(offsets)
    views = np.zeros((len(lengths), 16), np.uint8)
    numbers = views.view("<i4")
    numbers[:, 0] = lengths
    source = np.frombuffer(content, np.uint8)
    is_short = lengths <= _INLINE
    for place in range(_INLINE):
        rows = np.flatnonzero((lengths > place) & (is_short | (place < 4)))
        views[rows, 4 + place] = source[offsets[rows] + place]
    numbers[~is_short, 3] = offsets[:-1][~is_short]
    return pa.py_buffer(views), content
