"""The types of the arrays that a release works on."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["Doubles", "Flags", "Integers", "Numbers", "Positions"]

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

Numbers = Doubles | Integers
"""Released numbers: integers if the grid is 1, otherwise doubles."""

Positions = NDArray[np.int32]
"""Positions of rows in a table, which has fewer than 2³¹."""
