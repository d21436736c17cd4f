"""Group keys in JSON: read as comparable columns, and written from columns.

A key is a string, a number, null, or a list of these; kinds may be mixed.

Numbers come before strings, strings before lists, and null after all of them, as in tables. Lists are compared part by
part, and a prefix of a list comes before the list. 1 and 1.0 are the same number, as in JSON.
"""

import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gsh.errors import InvalidGroups
from gsh.histogram.keys.canonical import canonical
from gsh.histogram.keys.types import is_text

__all__ = ["LISTS", "MIXED", "JsonKeys", "columns_of", "keys_as_json", "normalised"]

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
    columns = [_column(part) for part in _parts_of(keys)]
    if columns and None not in columns:
        return JsonKeys(LISTS if any(type(key) is list for key in keys[:1]) else "scalars", columns)
    return JsonKeys(MIXED, [_ranks(keys, pointer)])


def normalised(key: Any) -> Any:
    """The key in the form of an answer. Equal keys have one form: 1.0 becomes 1, and −0.0 becomes 0."""
    if type(key) is float and key.is_integer():
        return int(key)
    return list(map(normalised, key)) if type(key) is list else key


def _parts_of(keys: Sequence[Any]) -> list[Sequence[Any]]:
    """The parts of keys that are all scalars, or all lists of one length; otherwise no parts."""
    kinds = set(map(type, keys))
    if list not in kinds:
        return [keys]
    lengths = set(map(len, keys)) if kinds == {list} else set()
    if len(lengths) != 1 or max(lengths) > _MOST_PARTS:
        return []
    return [[key[place] for key in keys] for place in range(lengths.pop())]


def _column(part: Sequence[Any]) -> pa.Array | None:
    """The column of a part that is all strings or all 64-bit integers, nulls aside; else None."""
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


_Texts: TypeAlias = list[str | pa.Array]
"""Texts that stand one after the other in every row; an array has a text for each row."""


def keys_as_json(columns: Sequence[pa.Array], *, are_lists: bool) -> bytes:
    """The list of group keys. A key is the value of the only column, or the list of the values of all columns."""
    if not len(columns[0]):
        return b"[]"
    start, end = ("[", "]") if are_lists else ("", "")
    parts: _Texts = [start, *_texts(columns[0])]
    for column in columns[1:]:
        parts += [",", *_texts(column)]
    rows = _concatenated([*parts, f"{end},"])
    _, _, content = canonical(rows, rows.type).buffers()
    return b"".join((b"[", memoryview(content)[:-1], b"]"))


def _texts(column: pa.Array) -> _Texts:
    """The values as JSON."""
    if pa.types.is_floating(column.type):
        return [pa.array([_number(number) for number in column.to_pylist()], pa.large_string())]
    if not is_text(column.type):
        return [_with_nulls(column.cast(pa.large_string()))]
    column = column.cast(pa.large_string())
    if _has_escapes(column):
        return [pa.array([json.dumps(text, ensure_ascii=False) for text in column.to_pylist()], pa.large_string())]
    return [_with_nulls(_concatenated(['"', column, '"']))] if column.null_count else ['"', column, '"']


def _number(number: float | None) -> str:
    """A floating-point number, 1.0 as 1. One that JSON does not have is its text."""
    is_json = number is None or math.isfinite(number)
    return json.dumps(normalised(number) if is_json else str(number))


def _has_escapes(column: pa.Array) -> bool:
    """Whether a text has a character that JSON escapes. Bytes of other characters of UTF-8 are never equal to one."""
    _, _, content = canonical(column, column.type).buffers()
    characters = np.frombuffer(content, np.uint8)
    return bool(((characters < ord(" ")) | (characters == ord('"')) | (characters == ord("\\"))).any())


def _with_nulls(texts: pa.Array) -> pa.Array:
    return pc.fill_null(texts, _text("null")) if texts.null_count else texts


def _concatenated(parts: _Texts) -> pa.Array:
    """Null if one of the texts is null."""
    texts = [_text(part) if isinstance(part, str) else part for part in (*parts, "")]
    return pc.binary_join_element_wise(*texts)


def _text(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())
