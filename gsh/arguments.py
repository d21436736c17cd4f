"""Converts arguments to plain Python values: numbers, strings and tuples of them.

It takes numpy's numbers and arrays, and columns of pandas, polars and Arrow. Strings, Booleans and None are not
numbers. An error names the parameter of the call.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from gsh.errors import InvalidParameter

__all__ = [
    "ColumnLike",
    "Integer",
    "Matrix",
    "Real",
    "Reals",
    "flag",
    "instance",
    "integer",
    "is_several",
    "matrix",
    "path",
    "real",
    "reals",
    "text",
    "texts",
]


T = TypeVar("T")


class ColumnLike(Protocol):
    """A column of pandas, polars or Arrow: anything that numpy can read."""

    def __array__(self) -> NDArray[Any]: ...
    def __len__(self) -> int: ...


Integer: TypeAlias = int | np.integer[Any]
Real: TypeAlias = float | np.floating[Any] | np.integer[Any]
Reals: TypeAlias = Sequence[Real] | NDArray[np.floating[Any]] | NDArray[np.integer[Any]] | ColumnLike
Matrix: TypeAlias = Sequence[Reals] | NDArray[np.floating[Any]] | NDArray[np.integer[Any]] | ColumnLike


def integer(pointer: str, value: object) -> int:
    if type(value) is int:
        return value
    value = _without_wrapper(value)
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidParameter(pointer, f"must be an integer, not {_kind(value)}")
    return int(value)


def real(pointer: str, value: object) -> float:
    if type(value) is float:
        return value
    value = _without_wrapper(value)
    if isinstance(value, bool) or not isinstance(value, float | int | np.floating | np.integer):
        raise InvalidParameter(pointer, f"must be a number, not {_kind(value)}")
    try:
        double = float(value)
    except OverflowError:
        raise InvalidParameter(pointer, "must be in the range of doubles") from None
    if double != value and value == value:  # noqa: PLR0124 - NaN is refused by the core, with the bound
        raise InvalidParameter(pointer, "must be a double: rounding it could make it less private")
    return double


def is_several(value: object) -> bool:
    """Whether the value is a list, a tuple, an array or a column, rather than one number."""
    value = _without_wrapper(value)
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes)


def reals(pointer: str, value: object) -> tuple[float, ...]:
    if isinstance(value, list | tuple) and set(map(type, value)) == {float}:
        return tuple(value)
    return tuple(real(f"{pointer}/{place}", item) for place, item in enumerate(_items(pointer, value, "numbers")))


def matrix(pointer: str, value: object) -> tuple[tuple[float, ...], ...]:
    rows = _items(pointer, value, "rows of numbers")
    return tuple(reals(f"{pointer}/{place}", row) for place, row in enumerate(rows))


def instance(pointer: str, value: object, kind: type[T]) -> T:
    """An object of a class of the library."""
    if not isinstance(value, kind):
        article = "" if kind.__name__.endswith("s") else "a "
        raise InvalidParameter(pointer, f"must be {article}gsh.{kind.__name__}, not {type(value).__name__}")
    return value


def flag(pointer: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidParameter(pointer, f"must be True or False, not {_kind(value)}")
    return value


def text(pointer: str, value: object) -> str:
    """A string that can be written: half of a surrogate pair cannot."""
    if not isinstance(value, str):
        raise InvalidParameter(pointer, f"must be a string, not {_kind(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidParameter(pointer, "must be Unicode without lone surrogates") from None
    return value


def path(pointer: str, value: object) -> str:
    """A path as a string, also of a path-like object."""
    if isinstance(value, str):
        return text(pointer, value)
    if isinstance(value, type) or not hasattr(value, "__fspath__"):
        raise InvalidParameter(pointer, f"must be a path, not {_kind(value)}")
    return text(pointer, value.__fspath__())


def texts(pointer: str, value: object) -> tuple[str, ...]:
    items = tuple(_items(pointer, value, "strings"))
    return tuple(text(f"{pointer}/{place}", item) for place, item in enumerate(items))


def _items(pointer: str, value: object, content: str) -> Iterable[object]:
    if not is_several(value):
        raise InvalidParameter(pointer, f"must be a list or an array of {content}, not {_kind(value)}")
    items = _without_wrapper(value)
    assert isinstance(items, Iterable)
    return items


def _without_wrapper(value: object) -> object:
    """A column of pandas, polars or Arrow as an array. An array without dimensions as its number."""
    if not isinstance(value, np.ndarray | np.generic | type) and hasattr(value, "__array__"):
        value = np.asarray(value)
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def _kind(value: object) -> str:
    return "None" if value is None else type(value).__name__
