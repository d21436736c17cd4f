"""Arguments as people give them, as the core wants them: Python's own numbers and tuples.

Numpy scalars and arrays are welcome. Strings, Booleans and None are not numbers. An error names the parameter.
"""

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gsh.accounting.errors import InvalidParameter

__all__ = ["Integer", "Matrix", "Real", "Reals", "integer", "is_several", "matrix", "real", "reals", "texts"]

Integer: TypeAlias = int | np.integer[Any]
Real: TypeAlias = float | np.floating[Any] | np.integer[Any]
Reals: TypeAlias = Sequence[Real] | NDArray[np.floating[Any]] | NDArray[np.integer[Any]]
Matrix: TypeAlias = Sequence[Reals] | NDArray[np.floating[Any]] | NDArray[np.integer[Any]]


def integer(pointer: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidParameter(pointer, f"must be an integer, not {_kind(value)}")
    return int(value)


def real(pointer: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, float | int | np.floating | np.integer):
        raise InvalidParameter(pointer, f"must be a number, not {_kind(value)}")
    try:
        return float(value)
    except OverflowError:
        raise InvalidParameter(pointer, "must be in the range of doubles") from None


def is_several(value: object) -> bool:
    """Whether the value is a list, a tuple or an array, rather than one number."""
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes)


def reals(pointer: str, value: object) -> tuple[float, ...]:
    return tuple(real(f"{pointer}/{place}", item) for place, item in enumerate(_items(pointer, value, "numbers")))


def matrix(pointer: str, value: object) -> tuple[tuple[float, ...], ...]:
    rows = _items(pointer, value, "rows of numbers")
    return tuple(reals(f"{pointer}/{place}", row) for place, row in enumerate(rows))


def texts(pointer: str, value: object) -> tuple[str, ...]:
    items = tuple(_items(pointer, value, "strings"))
    for place, item in enumerate(items):
        if not isinstance(item, str):
            raise InvalidParameter(f"{pointer}/{place}", f"must be a string, not {_kind(item)}")
    return tuple(map(str, items))


def _items(pointer: str, value: object, content: str) -> Iterable[object]:
    if not is_several(value) or (isinstance(value, np.ndarray) and value.ndim == 0):
        raise InvalidParameter(pointer, f"must be a list or an array of {content}, not {_kind(value)}")
    assert isinstance(value, Iterable)
    return value


def _kind(value: object) -> str:
    return "None" if value is None else type(value).__name__
