"""Group keys in JSON, as comparable columns. A key is a string, a number, null, or a list of these; kinds may be mixed.

Numbers come before strings, strings before lists, and null after all of them, as in tables. Lists are compared part by
part, and a prefix of a list comes before the list. 1 and 1.0 are the same number, as in JSON.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any

import pyarrow as pa

from gsh.errors import InvalidGroups

__all__ = ["LISTS", "MIXED", "JsonKeys", "columns_of", "normalised"]

MIXED = "mixed"
"""The layout of keys that have no columns of their own."""
LISTS = "lists"
"""The layout of keys that are lists, with a column for each part."""

_MOST_PARTS = 100
_RANK_OF_TYPE = {int: 0, float: 0, str: 1, NoneType: 3}
_RANK_OF_LISTS = 2


@dataclass(frozen=True, slots=True)
class JsonKeys:
    """Group keys as comparable columns: one for each part if all keys are of one kind, else one column of ranks.

    The layout depends on the values of the keys alone: it is the same for 1 and 1.0.
    """

    layout: str
    columns: Sequence[pa.Array]


def columns_of(keys: Sequence[Any], pointer: str) -> JsonKeys:
    """The comparable columns of group keys."""
    columns = [_column(part) for part in _parts(keys)]
    if columns and None not in columns:
        return JsonKeys(LISTS if any(type(key) is list for key in keys[:1]) else "scalars", columns)
    return JsonKeys(MIXED, [_ranks(keys, pointer)])


def normalised(key: Any) -> Any:
    """The key in the form of an answer. Equal keys have one form: 1.0 becomes 1, and −0.0 becomes 0."""
    if type(key) is float and key.is_integer():
        return int(key)
    return list(map(normalised, key)) if type(key) is list else key


def _parts(keys: Sequence[Any]) -> list[Sequence[Any]]:
    """The parts of keys that are all scalars, or all lists of one length; otherwise no parts."""
    kinds = set(map(type, keys))
    if list not in kinds:
        return [keys]
    lengths = set(map(len, keys)) if kinds == {list} else set()
    if len(lengths) != 1 or max(lengths) > _MOST_PARTS:
        return []
    return [[key[place] for key in keys] for place in range(lengths.pop())]


def _column(part: Sequence[Any]) -> pa.Array | None:
    """The column of a part that is all strings or all 64-bit integers, but for nulls; else None."""
    kinds = set(map(type, part)) - {NoneType}
    if float in kinds and kinds <= {int, float}:
        part = list(map(normalised, part))
        kinds = set(map(type, part)) - {NoneType}
    if not kinds <= {str} and not kinds <= {int}:
        return None
    try:
        return pa.array(part, pa.large_string() if str in kinds else pa.int64())
    except (OverflowError, UnicodeEncodeError):
        return None


def _ranks(keys: Sequence[Any], pointer: str) -> pa.Array:
    """The rank of each key, by a plain sort. Equal keys share a rank."""
    comparable = [_comparable(key, pointer) for key in keys]
    order = sorted(range(len(keys)), key=comparable.__getitem__)
    ranks = [0] * len(keys)
    for before, here in itertools.pairwise(order):
        ranks[here] = ranks[before] + (comparable[here] != comparable[before])
    return pa.array(ranks, pa.int64())


def _comparable(key: Any, pointer: str) -> tuple[int, Any]:
    """The rank of the type comes first, so that Python compares only values of one type."""
    if type(key) is list:
        if not 1 <= len(key) <= _MOST_PARTS:
            raise InvalidGroups(pointer, f"must have 1 to {_MOST_PARTS} parts if they are lists")
        return _RANK_OF_LISTS, [_comparable_scalar(part, pointer) for part in key]
    return _comparable_scalar(key, pointer)


def _comparable_scalar(value: Any, pointer: str) -> tuple[int, Any]:
    rank = _RANK_OF_TYPE.get(type(value))
    if rank is None:
        raise InvalidGroups(pointer, "must be strings, numbers, null, or lists of these")
    if type(value) is float and not math.isfinite(value):
        raise InvalidGroups(pointer, "must be finite if they are numbers")
    if type(value) is str and not _is_unicode(value):
        raise InvalidGroups(pointer, "must be valid Unicode if they are strings")
    return rank, 0 if value is None else value


def _is_unicode(text: str) -> bool:
    """Whether it can be written: Python's strings may have halves of surrogate pairs."""
    return not any("\ud800" <= character <= "\udfff" for character in text)
