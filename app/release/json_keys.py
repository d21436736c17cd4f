"""Keys as JSON has them: strings, numbers, and lists of these, even mixed; as columns that can be compared.

Numbers come before strings and these before lists. Lists are compared part by part, and one that is the beginning of
another comes before it. 1 and 1.0 are the same number, as they are in JSON.
"""

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from app.release.errors import InvalidGroups

__all__ = ["columns_of"]

_MOST_PARTS = 100


class _Absent:
    """Stands for a part that a shorter list does not have."""


_ABSENT = _Absent()
_RANKS = {_Absent: 0, int: 1, float: 1, str: 2}


def columns_of(keys: Sequence[Any], pointer: str) -> list[pa.Array]:
    """Comparable columns, one or more for each part of the keys, whose types are checked here."""
    kinds = set(map(type, keys))
    if not kinds:
        return []
    if kinds == {list}:
        return _parts(keys, pointer)
    if list not in kinds:
        return _scalars(keys, pointer)
    is_list = pa.array([isinstance(key, list) for key in keys])
    return [is_list, *_parts([key if isinstance(key, list) else [key] for key in keys], pointer)]


def _parts(keys: Sequence[list[Any]], pointer: str) -> list[pa.Array]:
    lengths = set(map(len, keys))
    if min(lengths) < 1 or max(lengths) > _MOST_PARTS:
        raise InvalidGroups(pointer, f"must be strings, numbers, or lists of 1 to {_MOST_PARTS} of these")
    columns: list[pa.Array] = []
    for place in range(max(lengths)):
        part = [key[place] if place < len(key) else _ABSENT for key in keys]
        columns += _scalars(part, pointer)
    return columns


def _scalars(part: Sequence[Any], pointer: str) -> list[pa.Array]:
    kinds = set(map(type, part))
    if kinds == {str}:
        return [pa.array(part, pa.large_string())]
    if kinds == {int}:
        return [_integers(part, pointer)]
    if not kinds <= _RANKS.keys():
        raise InvalidGroups(pointer, "must be strings, numbers, or lists of these")
    if any(isinstance(value, float) and not math.isfinite(value) for value in part):
        raise InvalidGroups(pointer, "must be finite where they are numbers")
    numbers = [value if isinstance(value, int | float) else 0 for value in part]
    # A number is its whole part and the rest, both exact, and of one sign: no integer is rounded to a double.
    whole = [math.trunc(number) for number in numbers]
    rest = [number - trunc if isinstance(number, float) else 0.0 for number, trunc in zip(numbers, whole, strict=True)]
    strings = [value if isinstance(value, str) else "" for value in part]
    ranks = [_RANKS[type(value)] for value in part]
    return [pa.array(ranks), _integers(whole, pointer), pa.array(rest), pa.array(strings, pa.large_string())]


def _integers(values: Sequence[Any], pointer: str) -> pa.Array:
    try:
        return pa.array(values, pa.int64())
    except OverflowError:
        raise InvalidGroups(pointer, "must be between -2^63 and 2^63 where they are numbers") from None
