"""The types of the arrays that a release works on."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Decimals", "Doubles", "Flags", "Integers", "Numbers", "Positions", "Rest", "Values"]

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

Numbers = Doubles | Integers
"""Released numbers: integers if the grid is 1, otherwise doubles."""


class Rest(NamedTuple):
    """What decimal numbers have beyond their whole numbers: integers of at most 2⁵³, each of units of 10^−digits."""

    units: Integers
    digits: int

    def at(self, rows: slice) -> "Rest":
        return Rest(self.units[rows], self.digits)


@dataclass(frozen=True, slots=True, eq=False)
class Decimals:
    """Decimal numbers, exactly: integers of at most 2⁵³, each of units of 10^−digits, for at most 18 digits."""

    units: Integers
    digits: int

    def __len__(self) -> int:
        return len(self.units)

    def parts(self, rows: "Positions") -> tuple[Doubles, Rest]:
        """The whole numbers of some rows, cut off towards 0, and the rest. Both are exact."""
        units, whole = self.units[rows], 10**self.digits
        rest = np.fmod(units, whole)
        return ((units - rest) // whole).astype(np.float64), Rest(rest, self.digits)


Values = Doubles | Decimals
"""The true values of a column."""

Positions = NDArray[np.int32]
"""Positions of rows in a table, which has fewer than 2³¹."""
