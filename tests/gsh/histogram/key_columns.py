"""Key columns of every type and encoding, posted in as many ways as Arrow has for the same values."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gsh.histogram.keys.types import is_text, is_unicode

__all__ = ["ENCODINGS", "EXTENSIONS", "SCALARS", "encoded", "value", "with_garbage_under_nulls"]

# fmt: off
SCALARS = [
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
    pa.float16(), pa.float32(), pa.float64(),
    pa.decimal32(5, 1), pa.decimal64(12, 2), pa.decimal128(30, 3), pa.decimal256(60, 4),
    pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view(),
    pa.binary(0), pa.binary(3), pa.binary(16),
    pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"),
    pa.timestamp("s"), pa.timestamp("ms", "UTC"), pa.timestamp("us"), pa.timestamp("ns", "Europe/Berlin"),
    pa.duration("s"), pa.duration("ns"),
]
# fmt: on
EXTENSIONS = [pa.uuid(), pa.json_(), pa.json_(pa.large_string()), pa.json_(pa.string_view())]
ENCODINGS = ("plain", "dictionary")


def value(kind: pa.DataType, number: int) -> Any:
    """A value for each number from 0; different ones, as far as the type has them."""
    storage = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    for is_of, made in VALUES.items():
        if is_of(storage):
            return made(storage, number)
    return number


VALUES: dict[Callable[[pa.DataType], bool], Callable[[pa.DataType, int], Any]] = {
    pa.types.is_boolean: lambda _, number: number % 2 == 1,
    pa.types.is_decimal: lambda _, number: number - 7,
    pa.types.is_floating: lambda kind, number: np.dtype(kind.to_pandas_dtype()).type(number / 2 - 3),
    pa.types.is_fixed_size_binary: lambda kind, number: bytes([number % 7, number] * 8)[: kind.byte_width],
    is_unicode: lambda _, number: f"{number:02}" * (number % 9),
    is_text: lambda _, number: bytes([255 - number, number]) * (number % 9),
    pa.types.is_date64: lambda _, number: number * 86_400_000,
}


def encoded(
    kind: pa.DataType, encoding: str, values: Sequence[Any], draw: random.Random | None, null_entries: bool = True
) -> pa.Array:
    """A column of the values in the plainest form; with a generator, as odd as Arrow allows."""
    storage = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    if encoding == "dictionary":
        if draw is None:
            return _with_dictionary(storage, values)
        return _with_odd_dictionary(storage, values, draw, [None] if null_entries else [])
    column = pa.array(values, storage)
    if draw is not None:
        column = with_garbage_under_nulls(column)
    return kind.wrap_array(column) if isinstance(kind, pa.BaseExtensionType) else column


def _with_dictionary(kind: pa.DataType, values: Sequence[Any]) -> pa.Array:
    entries = list({item: None for item in values if item is not None})
    places = [None if item is None else entries.index(item) for item in values]
    return pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), pa.array(entries, kind))


def _with_odd_dictionary(kind: pa.DataType, values: Sequence[Any], draw: random.Random, nulls: list[None]) -> pa.Array:
    """In any order and `ordered`, with entries that are there twice, unused or null, and other indices."""
    entries = [*nulls, *values, value(kind, 60)]
    draw.shuffle(entries)
    if not nulls:
        entries = [entry for entry in entries if entry is not None]
    places = [_place(entries, item, draw) for item in values]
    return pa.DictionaryArray.from_arrays(pa.array(places, pa.uint8()), pa.array(entries, kind), ordered=True)


def _place(entries: list[Any], item: Any, draw: random.Random) -> int | None:
    places: list[int | None] = [i for i, entry in enumerate(entries) if _same(entry, item)]
    return draw.choice([*places, None] if item is None else places)


def _same(entry: Any, item: Any) -> bool:
    return (entry is None) == (item is None) and bool(entry == item)


def with_garbage_under_nulls(column: pa.Array) -> pa.Array:
    """The same values. The bytes under the nulls are not zero, and for strings not empty."""
    kind = column.type
    missing = column.is_null().to_numpy(zero_copy_only=False)
    if kind in (pa.string_view(), pa.binary_view()) or kind in (pa.bool_(), pa.null()) or not missing.any():
        return column
    validity = column.buffers()[0]
    if is_text(kind):
        full = column.fill_null("gArBaGe" if is_unicode(kind) else b"gArBaGe")
        return pa.Array.from_buffers(kind, len(column), [validity, *full.buffers()[1:]])
    content = np.frombuffer(column.buffers()[1], np.uint8).copy()
    slots = content[: len(column) * (kind.bit_width // 8)].reshape(len(column), -1)
    slots[missing] = 0x67
    return pa.Array.from_buffers(kind, len(column), [validity, pa.py_buffer(slots)])
