"""The mechanism applied to groups that are already in the order of their keys."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gsh.release.entropy import Entropy
from gsh.release.errors import InvalidGroups
from gsh.release.keys.order import Positions
from gsh.release.noise import Noise

__all__ = ["MOST_COUNT", "Numbers", "Released", "counts_of", "release", "values_of"]

Numbers = NDArray[np.float64] | NDArray[np.int64]

MOST_COUNT = 2**53
"""Every integer up to here is a double."""

# So far from 2⁶³ that no noise on a grid of 1 leads there.
_MOST_INTEGER = 2.0**62
_BLOCK = 1 << 17


@dataclass(frozen=True, slots=True)
class Released:
    """The rows kept, in the order given, with their noisy numbers: integers where the grid is 1, else doubles."""

    rows: Positions
    counts: Numbers
    values: tuple[Numbers, ...]


def release(
    noise: Noise, counts: NDArray[np.int64], values: Sequence[NDArray[np.float64]], order: Positions, entropy: Entropy
) -> Released:
    """The groups that the mechanism keeps, visited in the given order.  [KKWZ Algorithm 1; docs/noise.md]

    Block by block, so that nothing but what is kept is ever held twice.
    """
    rows = np.empty_like(order)
    numbers = np.empty((1 + len(values), len(order)))
    kept = 0
    for start in range(0, len(order), _BLOCK):
        block = order[start : start + _BLOCK]
        columns = np.empty((len(block), len(values)))
        for j, column in enumerate(values):
            columns[:, j] = column[block]
        noisy = noise.add(counts[block], columns, entropy)
        place = slice(kept, kept + int(noisy.kept.sum()))
        rows[place] = block[noisy.kept]
        numbers[0, place] = noisy.counts[noisy.kept]
        numbers[1:, place] = noisy.values[noisy.kept].T
        kept = place.stop
    grids = (noise.count_grid, *noise.value_grids)
    kept_counts, *kept_values = [_published(row[:kept], grid) for row, grid in zip(numbers, grids, strict=True)]
    return Released(rows[:kept], kept_counts, tuple(kept_values))


def counts_of(column: pa.Array, pointer: str) -> NDArray[np.int64]:
    """The true numbers of users, checked."""
    if not pa.types.is_integer(column.type):
        raise InvalidGroups(pointer, "must be of an integer type")
    _refuse_missing(column, pointer)
    least, most = _extremes(column)
    if least < 0 or most > MOST_COUNT:
        raise InvalidGroups(pointer, "must be integers from 0 to 2^53")
    return column.cast(pa.int64()).to_numpy()  # type: ignore[no-any-return]


def values_of(column: pa.Array, grid: float, pointer: str) -> NDArray[np.float64]:
    """The true aggregates as doubles, checked; an integer that is no double is refused rather than rounded."""
    if pa.types.is_integer(column.type):
        least, most = _extremes(column)
        if least < -MOST_COUNT or most > MOST_COUNT:
            raise InvalidGroups(pointer, "must be between -2^53 and 2^53 where they are integers")
    elif not pa.types.is_floating(column.type):
        raise InvalidGroups(pointer, "must be of an integer or floating-point type")
    _refuse_missing(column, pointer)
    doubles: NDArray[np.float64] = column.cast(pa.float64()).to_numpy()
    if not np.isfinite(doubles).all():
        raise InvalidGroups(pointer, "must be finite")
    if grid == 1 and np.abs(doubles).max(initial=0) > _MOST_INTEGER:
        raise InvalidGroups(pointer, "must be between -2^62 and 2^62 where the noise is on a grid of 1")
    return doubles


def _refuse_missing(column: pa.Array, pointer: str) -> None:
    if column.null_count:
        raise InvalidGroups(pointer, "must not have missing values")


def _extremes(column: pa.Array) -> tuple[int, int]:
    """The least and the largest of some integers, zero if there are none."""
    extremes = pc.min_max(column).as_py()
    return extremes["min"] or 0, extremes["max"] or 0


def _published(numbers: NDArray[np.float64], grid: float) -> Numbers:
    return numbers.astype(np.int64) if grid == 1 else numbers
