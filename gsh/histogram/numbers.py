"""Checks columns of true counts and values, and converts them from Arrow to numpy arrays."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gsh.errors import InvalidGroups
from gsh.histogram.apply import MOST_COUNT
from gsh.histogram.arrays import Decimals, Doubles, Integers, Values
from gsh.histogram.content import least_scale

__all__ = ["checked_counts", "checked_values"]

# So far below 2⁶³ that no noise on a grid of 1 reaches it.
_MOST_INTEGER = 2.0**62
_MOST_DIGITS = 18
_WIDEST = 76


def checked_counts(column: pa.Array, pointer: str) -> Integers:
    """The true numbers of users."""
    if not _is_whole(column.type):
        raise InvalidGroups(pointer, "must be of an integer type, or a decimal type of scale 0")
    _refuse_missing(column, pointer)
    least, most = _extremes(column)
    if least < 0 or most > MOST_COUNT:
        raise InvalidGroups(pointer, "must be integers from 0 to 2^53")
    return _as_integers(column).to_numpy()  # type: ignore[no-any-return]


def checked_values(column: pa.Array, grid: float, pointer: str) -> Values:
    """The true values of a column: exactly, as doubles or as decimals. What is neither is refused, not rounded."""
    is_decimal = pa.types.is_decimal(column.type) and 0 < column.type.scale <= _MOST_DIGITS
    if not is_decimal and not _is_whole(column.type) and not pa.types.is_floating(column.type):
        detail = f"must be of an integer type, a floating-point type, or a decimal type of scale 0 to {_MOST_DIGITS}"
        raise InvalidGroups(pointer, detail)
    _refuse_missing(column, pointer)
    if is_decimal:
        return _decimals(column, pointer)
    if _is_whole(column.type):
        least, most = _extremes(column)
        if least < -MOST_COUNT or most > MOST_COUNT:
            raise InvalidGroups(pointer, "must be between -2^53 and 2^53 if they are whole")
        column = _as_integers(column)
    doubles: Doubles = column.cast(pa.float64()).to_numpy()
    if not np.isfinite(doubles).all():
        raise InvalidGroups(pointer, "must be finite")
    if grid == 1 and np.abs(doubles).max(initial=0) > _MOST_INTEGER:
        raise InvalidGroups(pointer, "must be between -2^62 and 2^62 if the noise is on a grid of 1")
    return doubles


def _decimals(column: pa.Array, pointer: str) -> Decimals:
    """The digits as integers; zeros at the end of all numbers are left out if there are too many digits."""
    wide, digits = column.cast(pa.decimal256(_WIDEST, column.type.scale)), column.type.scale
    if not _fit(wide):
        digits = max(least_scale(wide, digits), 0)
        wide = wide.cast(pa.decimal256(_WIDEST, digits))
    if not _fit(wide):
        detail = f"must be between -2^53 and 2^53 units of the last digit, if they are decimals: here 10^-{digits}"
        raise InvalidGroups(pointer, detail)
    return Decimals(_in_units(wide).cast(pa.int64()).to_numpy(), digits)


def _fit(column: pa.Array) -> bool:
    least, most = _extremes(_in_units(column))
    return max(-least, most) <= MOST_COUNT


def _in_units(column: pa.Array) -> pa.Array:
    """The same digits without the point."""
    return pa.Array.from_buffers(pa.decimal256(_WIDEST, 0), len(column), column.buffers(), offset=column.offset)


def _is_whole(kind: pa.DataType) -> bool:
    """Integers, also as SUM gives them in some engines: decimals of scale 0."""
    return bool(pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0))


def _as_integers(column: pa.Array) -> pa.Array:
    """Whole numbers that are at most 2⁵³."""
    return _comparable(column).cast(pa.int64())


def _comparable(column: pa.Array) -> pa.Array:
    """Arrow neither compares decimals of 32 and 64 bits nor casts them to integers."""
    kind = column.type
    is_small = pa.types.is_decimal(kind) and kind.bit_width < 128
    return column.cast(pa.decimal128(kind.precision, 0)) if is_small else column


def _refuse_missing(column: pa.Array, pointer: str) -> None:
    if column.null_count:
        raise InvalidGroups(pointer, "must not have missing values")


def _extremes(column: pa.Array) -> tuple[int, int]:
    """The least and the largest of some integers; zero if there are none."""
    extremes = pc.min_max(_comparable(column)).as_py()
    return int(extremes["min"] or 0), int(extremes["max"] or 0)
