"""The mechanism applied to the groups of a table, as arrays: noise, threshold, and the groups that are kept."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gsh.histogram.arrays import Decimals, Doubles, Integers, Numbers, Positions, Rest, Values
from gsh.histogram.entropy import Entropy
from gsh.histogram.noise import Noise

__all__ = ["MOST_COUNT", "KeptGroups", "apply_mechanism"]

MOST_COUNT = 2**53
"""Every integer up to here is a double."""

_BLOCK = 1 << 17


@dataclass(frozen=True, slots=True)
class KeptGroups:
    """The positions of the kept groups, in the given order, and their noisy numbers."""

    rows: Positions
    counts: Numbers
    values: tuple[Numbers, ...]


def apply_mechanism(
    noise: Noise, counts: Integers, values: Sequence[Values], order: Positions, entropy: Entropy
) -> KeptGroups:
    """Add noise to every group, in the order of their keys, and keep those at or above the thresholds.

    Counts and values are checked already (numbers.py). The work goes block by block, so that only kept groups take
    memory a second time.  [KKWZ Algorithm 1; docs/math/noise.md]
    """
    rows = np.empty_like(order)
    numbers = np.empty((1 + len(values), len(order)))
    kept = 0
    for start in range(0, len(order), _BLOCK):
        block = order[start : start + _BLOCK]
        columns = np.empty((len(block), len(values)))
        rests: dict[int, Rest] = {}
        for j, column in enumerate(values):
            if isinstance(column, Decimals):
                columns[:, j], rests[j] = column.parts(block)
            else:
                columns[:, j] = column[block]
        noisy = noise.add(counts[block], columns, entropy, rests)
        place = slice(kept, kept + int(noisy.kept.sum()))
        rows[place] = block[noisy.kept]
        numbers[0, place] = noisy.counts[noisy.kept]
        numbers[1:, place] = noisy.values[noisy.kept].T
        kept = place.stop
    grids = (noise.count_grid, *noise.value_grids)
    kept_counts, *kept_values = [_on_grid(row[:kept], grid) for row, grid in zip(numbers, grids, strict=True)]
    return KeptGroups(rows[:kept], kept_counts, tuple(kept_values))


def _on_grid(numbers: Doubles, grid: float) -> Numbers:
    return numbers.astype(np.int64) if grid == 1 else numbers
