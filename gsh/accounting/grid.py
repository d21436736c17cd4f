"""The grid on which noisy numbers are published. It depends on the noise alone, never on the numbers."""

import math

from gsh.accounting.mechanism import AnyMechanism
from gsh.errors import InvalidParameter

__all__ = ["count_grid", "value_grids"]

_GRID_BITS = 20
# Within these a power of two, and a product of two, stay in the range of doubles.
_LEAST_DEVIATION, _LARGEST_DEVIATION = 2.0**-400, 2.0**400


def count_grid(mechanism: AnyMechanism) -> float:
    """The step of noisy counts."""
    return _grid(mechanism.sigma, "sigma")


def value_grids(mechanism: AnyMechanism) -> tuple[float, ...]:
    """The step of each other column."""
    matrix = () if mechanism.aggregates is None else mechanism.aggregates.covariance
    return tuple(_grid(math.sqrt(row[j]), f"aggregates/covariance/{j}/{j}") for j, row in enumerate(matrix))


def _grid(deviation: float, pointer: str) -> float:
    """The largest power of two that is at most 2⁻²⁰ of the deviation."""
    if not _LEAST_DEVIATION <= deviation <= _LARGEST_DEVIATION:
        raise InvalidParameter(pointer, "must make a standard deviation between 2^-400 and 2^400 to draw noise with")
    return 2.0 ** (math.frexp(deviation)[1] - 1 - _GRID_BITS)
