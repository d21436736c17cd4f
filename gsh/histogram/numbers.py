"""Columns of true counts and values, checked, from Arrow arrays to numpy arrays."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gsh.histogram.apply import MOST_COUNT
from gsh.histogram.arrays import Doubles, Integers
from gsh.histogram.errors import InvalidGroups

__all__ = ["checked_counts", "checked_values"]

# So far below 2⁶³ that no noise on a grid of 1 reaches it.
_MOST_INTEGER = 2.0**62


def checked_counts(column: pa.Array, pointer: str) -> Integers:
    """The true numbers of users."""
    if not pa.types.is_integer(column.type):
        raise InvalidGroups(pointer, "must be of an integer type")
    _refuse_missing(column, pointer)
    least, most = _extremes(column)
    if least < 0 or most > MOST_COUNT:
        raise InvalidGroups(pointer, "must be integers from 0 to 2^53")
    return column.cast(pa.int64()).to_numpy()  # type: ignore[no-any-return]


def checked_values(column: pa.Array, grid: float, pointer: str) -> Doubles:
    """The true values of a column as doubles. An integer that is not a double is refused, not rounded."""
    if pa.types.is_integer(column.type):
        least, most = _extremes(column)
        if least < -MOST_COUNT or most > MOST_COUNT:
            raise InvalidGroups(pointer, "must be between -2^53 and 2^53 if they are integers")
    elif not pa.types.is_floating(column.type):
        raise InvalidGroups(pointer, "must be of an integer or floating-point type")
    _refuse_missing(column, pointer)
    doubles: Doubles = column.cast(pa.float64()).to_numpy()
    if not np.isfinite(doubles).all():
        raise InvalidGroups(pointer, "must be finite")
    if grid == 1 and np.abs(doubles).max(initial=0) > _MOST_INTEGER:
        raise InvalidGroups(pointer, "must be between -2^62 and 2^62 if the noise is on a grid of 1")
    return doubles


def _refuse_missing(column: pa.Array, pointer: str) -> None:
    if column.null_count:
        raise InvalidGroups(pointer, "must not have missing values")


def _extremes(column: pa.Array) -> tuple[int, int]:
    """The least and the largest of some integers; zero if there are none."""
    extremes = pc.min_max(column).as_py()
    return extremes["min"] or 0, extremes["max"] or 0
