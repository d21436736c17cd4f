"""The mechanism applied to the groups of a table, as arrays: noise, threshold, and the groups that are kept."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gsh.histogram.arrays import Decimals, Doubles, Integers, Numbers, Positions, Rest, Values
from gsh.histogram.entropy import Entropy
from gsh.histogram.noise import Noise

__all__ = ["MOST_COUNT", "KeptGroups", "apply_mechanism", "rounded"]

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
    parts = zip(numbers, noise.steps, strict=True)
    kept_counts, *kept_values = [
        _on_grid(row[:kept], step) if noise.rounded is None else rounded(row[:kept], step) for row, step in parts
    ]
    return KeptGroups(rows[:kept], kept_counts, tuple(kept_values))


def _on_grid(numbers: Doubles, grid: float) -> Numbers:
    return numbers.astype(np.int64) if grid == 1 else numbers


def rounded(numbers: Doubles, unit: float) -> Numbers:
    """The nearest multiples of a unit: of 0.01 the doubles that show two digits."""
    digits = round(-math.log10(unit))
    is_decimal = digits > 0 and float(f"1e-{digits}") == unit
    nearest = np.round(numbers, digits) if is_decimal else np.rint(numbers / unit) * unit
    # Beyond 2⁵³ units, doubles are farther apart than they are.
    return _on_grid(np.where(np.abs(numbers) < MOST_COUNT * unit, nearest, numbers) + 0.0, unit)
