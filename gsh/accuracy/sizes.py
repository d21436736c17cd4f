"""The sizes of groups as a histogram: distinct sizes, and how many groups have each."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gsh.errors import InvalidParameter

__all__ = ["LARGEST", "Integers", "counted"]

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
