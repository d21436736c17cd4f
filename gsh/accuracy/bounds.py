"""What intervals and utility accept: levels, sizes of groups, names of columns. SciPy is not loaded here."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gsh.errors import InvalidParameter

__all__ = ["LARGEST", "LARGEST_LEVEL", "LEAST_LEVEL", "Integers", "centred", "check_level", "counted", "log_tails"]

LEAST_LEVEL, LARGEST_LEVEL = 0.5, 0.999999


def check_level(level: float) -> None:
    if not LEAST_LEVEL <= level <= LARGEST_LEVEL:
        raise InvalidParameter("level", f"must be from {LEAST_LEVEL} to {LARGEST_LEVEL}")


def log_tails(level: float) -> tuple[float, float, float]:
    """ln q for the lower end, the estimate and the upper end, where q = α/2, ½ and 1 − α/2."""
    alpha = 1 - level
    return math.log(alpha / 2), math.log(0.5), math.log1p(-alpha / 2)


def centred(name: str) -> str:
    """The column that has the sum of x − m over the users of a group, m the middle of the range of x."""
    return f"{name}_centred"


Integers = NDArray[np.int64]

LARGEST = 2**53
"""The largest size, and the most groups."""


def counted(sizes: NDArray[np.integer[Any]], times: NDArray[np.integer[Any]] | None) -> tuple[Integers, Integers]:
    """The distinct sizes in increasing order, and how many groups have each. ``times`` is 1 for each size if None."""
    _check("sizes", sizes)
    if times is None:
        found, counts = np.unique(sizes, return_counts=True)
        return found.astype(np.int64), counts.astype(np.int64)
    _check("times", times)
    if len(times) != len(sizes):
        raise InvalidParameter("times", "must have as many items as sizes")
    if sum(times.tolist()) > LARGEST:  # integers of 64 bits could overflow
        raise InvalidParameter("times", "must add up to at most 2^53")
    found, places = np.unique(sizes, return_inverse=True)
    counts = np.zeros(len(found), np.int64)
    np.add.at(counts, places, times.astype(np.int64))
    return found.astype(np.int64), counts


def _check(name: str, numbers: NDArray[np.integer[Any]]) -> None:
    if len(numbers) == 0:
        raise InvalidParameter(name, "must have at least 1 item")
    if numbers.min() < 1 or numbers.max() > LARGEST:
        raise InvalidParameter(name, "must be integers from 1 to 2^53")
