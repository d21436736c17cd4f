"""The order of groups by their keys, of any type. One sort serves both the output and the search for duplicates.

A group key is a row of Arrow columns, compared from the first to the last:

    numbers, dates, times, durations   by value; −0 equals 0, and NaN is one value after all others
    strings, binary                    byte by byte, in UTF-8: this is the order of code points
    Booleans                           false, then true
    dictionary, extension              by the values that they encode
    null                               after every value

Null equals null: two groups whose keys are both null are duplicates.
"""

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gsh.errors import InvalidGroups
from gsh.histogram.arrays import Decimals, Flags, Positions, Values

__all__ = ["Matched", "comparable", "matched", "ranked", "unify_floats", "unique_order"]

_RUN = 1 << 17
_BUCKETS, _PER_BUCKET = 16, 64
_DECIMALS = {32: pa.decimal32, 64: pa.decimal64, 128: pa.decimal128, 256: pa.decimal256}


class Matched(NamedTuple):
    """The listed groups in the order of their keys, and for each listed group its place among the posted ones."""

    order: Positions
    posted: NDArray[np.int64]
    """−1 if the group was not posted."""

    def completed(self, column: NDArray[Any]) -> NDArray[Any]:
        """A number for each listed group: 0 if the group was not posted."""
        # One more item, which −1 takes: there may be no posted group at all.
        return np.append(column, column.dtype.type(0))[self.posted]

    def completed_values(self, column: Values) -> Values:
        """The same for a column of values."""
        if isinstance(column, Decimals):
            return Decimals(self.completed(column.units), column.digits)
        return self.completed(column)


def unique_order(columns: Sequence[pa.Array], length: int, pointer: str) -> Positions:
    """The positions of the rows in the order of their keys, given as comparable columns. Duplicates are an error."""
    order, repeats = _arrange(columns, length)
    if repeats.any():
        raise InvalidGroups(pointer, "must be unique: no two groups may have the same group key")
    return order


def matched(columns: Sequence[pa.Array], listed: int, length: int, pointers: tuple[str, str]) -> Matched:
    """Finds the posted groups among the listed ones. The first ``listed`` rows are listed, the others posted.

    ``pointers`` name the listed keys and the posted ones. An error names no group.
    """
    order, repeats = _arrange(columns, length)
    is_posted, before = order >= listed, np.roll(order, 1)
    if (repeats & ~is_posted).any():  # equal rows keep their order: the listed one comes first
        raise InvalidGroups(pointers[0], "must be unique: no group key may be listed twice")
    if (is_posted & ~repeats).any():
        raise InvalidGroups(pointers[1], "must all be listed in public_keys")
    if (is_posted & (before >= listed)).any():
        raise InvalidGroups(pointers[1], "must be unique: no two groups may have the same group key")
    posted = np.full(listed, -1, np.int64)
    posted[before[is_posted]] = order[is_posted] - listed
    return Matched(order[~is_posted], posted)


def ranked(values: pa.Array) -> tuple[pa.Array, Positions]:
    """The rank of each value, shared by equal values and null for null; and for each rank a position that has it."""
    order, repeats = _arrange(comparable(values), len(values))
    ranks = np.empty(len(values), np.int32)
    ranks[order] = np.cumsum(~repeats) - 1
    missing = values.is_null().to_numpy(zero_copy_only=False)
    first = order[~repeats]
    return pa.array(ranks, mask=missing), first[~missing[first]]


def comparable(column: pa.Array) -> list[pa.Array]:
    """Columns that Arrow can sort and compare. Together, the first one first, they order rows as the column does."""
    return [] if pa.types.is_null(column.type) else [_sortable(column)]


def unify_floats(bits: NDArray[np.unsignedinteger]) -> None:
    """Make all NaN equal and all zeros equal, in place. By bits, because arithmetic on a signalling NaN warns."""
    number, width = bits.dtype.type, bits.dtype.itemsize
    infinity, nan = (np.array(special, f"f{width}").view(number)[()] for special in (np.inf, np.nan))
    magnitude = bits & number(2 ** (8 * width - 1) - 1)
    bits[magnitude == 0] = 0
    bits[magnitude > infinity] = nan


def _equal_to_previous(columns: Iterable[pa.Array]) -> Flags:
    """For each row but the first, whether it equals the row before in every column."""
    repeats: Flags | bool = True
    for column in columns:
        here, before = column.slice(1), column.slice(0, len(column) - 1)
        equal = pc.fill_null(pc.equal(here, before), False)
        if column.null_count:
            equal = pc.or_(equal, pc.and_(pc.is_null(here), pc.is_null(before)))
        repeats = repeats & equal.to_numpy(zero_copy_only=False)
    return np.asarray(repeats)


def _arrange(columns: Sequence[pa.Array], length: int) -> tuple[Positions, Flags]:
    """The sorted positions, and a flag for each key that equals the one before it."""
    if not columns:
        return np.arange(length, dtype=np.int32), np.arange(length) > 0
    if length <= _RUN:
        return _arrange_run(columns, length)
    bucket_of = _buckets(columns[0])
    ends = np.cumsum(np.bincount(bucket_of, minlength=_BUCKETS))
    order, repeats = np.empty(length, np.int32), np.empty(length, np.bool_)

    def arrange_bucket(number: int) -> None:
        rows = np.flatnonzero(bucket_of == number).astype(np.int32)
        taken = pa.array(rows)
        place = slice(ends[number] - len(rows), ends[number])
        within, repeats[place] = _arrange_run([column.take(taken) for column in columns], len(rows))
        order[place] = rows[within]

    with ThreadPoolExecutor(os.cpu_count()) as pool:  # Arrow sorts without the interpreter's lock
        list(pool.map(arrange_bucket, range(_BUCKETS)))
    return order, repeats


def _buckets(column: pa.Array) -> NDArray[np.int8]:
    """The bucket of each row: the number of pivots, sampled from the column, that the row is not below.

    Nulls are above all pivots. Equal values share a bucket. The rows of a bucket are close together in memory, so
    sorting bucket by bucket is faster than sorting all.
    """
    sample = column.take(pa.array(np.linspace(0, len(column) - 1, _BUCKETS * _PER_BUCKET, dtype=np.int64))).drop_null()
    ordered = sample.take(pc.sort_indices(sample))
    bucket = np.zeros(len(column), np.int8)
    for place in range(_PER_BUCKET, len(ordered), _PER_BUCKET):
        bucket += pc.fill_null(pc.greater_equal(column, ordered[place]), True).to_numpy(zero_copy_only=False)
    return bucket


def _arrange_run(columns: Sequence[pa.Array], length: int) -> tuple[Positions, Flags]:
    names = [str(place) for place in range(len(columns))]
    table = pa.table(dict(zip(names, columns, strict=True)))
    order = pc.sort_indices(table, sort_keys=[(name, "ascending", "at_end") for name in names])
    repeats = np.zeros(length, np.bool_)
    for start in range(0, length - 1, _RUN):
        rows = order.slice(start, _RUN + 1)  # and the first row of the next run
        repeats[start + 1 : start + len(rows)] = _equal_to_previous(column.take(rows) for column in columns)
    return order.to_numpy().astype(np.int32), repeats


def _sortable(column: pa.Array) -> pa.Array:
    """The column in a type that Arrow can sort. Its values are equal if and only if the keys are equal."""
    kind = column.type
    if pa.types.is_floating(kind):
        return _ordered_bits(column)
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return column.cast(pa.large_binary())
    if pa.types.is_decimal(kind):
        # Without the scale the order is the same, and Arrow compares no decimals of a negative scale.
        whole = column.view(_DECIMALS[kind.bit_width](kind.precision, 0))
        return whole.cast(pa.decimal128(kind.precision, 0)) if kind.bit_width < 128 else whole
    return column


def _ordered_bits(column: pa.Array) -> pa.Array:
    """Integers in the order of the floating-point numbers, with one integer for all NaN."""
    absent = column.is_null().to_numpy(zero_copy_only=False)
    numbers = column.cast(pa.float64()).fill_null(0.0).to_numpy().copy()
    unify_floats(numbers.view(np.uint64))
    bits = numbers.view(np.int64)
    bits ^= (bits >> 63) & np.int64(2**63 - 1)
    return pa.array(bits, mask=absent)
