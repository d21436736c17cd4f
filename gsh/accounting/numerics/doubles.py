"""Doubles in their order: the next one, the nearest one on a given side of an exact number, and their positions."""

import math
import struct
import sys
from fractions import Fraction

__all__ = [
    "LARGEST_DOUBLE",
    "LEAST_DOUBLE",
    "double_above",
    "double_at",
    "double_below",
    "next_above",
    "next_below",
    "position_of",
]

LEAST_DOUBLE = math.ulp(0.0)
"""The smallest positive double, 2^−1074."""

LARGEST_DOUBLE = sys.float_info.max
"""The largest finite double."""


def next_above(double: float) -> float:
    """The smallest double greater than a double."""
    return math.nextafter(double, math.inf)


def next_below(double: float) -> float:
    """The largest double less than a double."""
    return math.nextafter(double, -math.inf)


def double_above(exact: Fraction | int) -> float:
    """The smallest double at or above an exact number; infinity if no finite double is."""
    if exact > LARGEST_DOUBLE:
        return math.inf
    near = float(exact)
    return near if near >= exact else next_above(near)


def double_below(exact: Fraction | int) -> float:
    """The largest finite double at or below an exact number, which is at least −LARGEST_DOUBLE."""
    if exact > LARGEST_DOUBLE:
        return LARGEST_DOUBLE
    near = float(exact)
    return near if near <= exact else next_below(near)


def position_of(double: float) -> int:
    """The position of a non-negative double in the order of all: 0.0 → 0, the next one → 1, …"""
    position: int = struct.unpack("<q", struct.pack("<d", double))[0]
    return position


def double_at(position: int) -> float:
    """The non-negative double at a position."""
    double: float = struct.unpack("<d", struct.pack("<q", position))[0]
    return double
