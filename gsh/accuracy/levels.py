"""Levels of confidence: from one half to one error in a million. Without SciPy, which takes long to load."""

import math

from gsh.errors import InvalidParameter

__all__ = ["LARGEST_LEVEL", "LEAST_LEVEL", "check_level", "log_tails"]

LEAST_LEVEL, LARGEST_LEVEL = 0.5, 0.999999


def check_level(level: float) -> None:
    if not LEAST_LEVEL <= level <= LARGEST_LEVEL:
        raise InvalidParameter("level", f"must be from {LEAST_LEVEL} to {LARGEST_LEVEL}")


def log_tails(level: float) -> tuple[float, float, float]:
    """ln q for the lower end, the estimate and the upper end, where q = α/2, ½ and 1 − α/2."""
    alpha = 1 - level
    return math.log(alpha / 2), math.log(0.5), math.log1p(-alpha / 2)
