"""Group keys as JSON, from columns: Arrow writes texts and integers without a Python object for each."""

import json
import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gsh.histogram.keys.canonical import canonical
from gsh.histogram.keys.json_keys import normalised
from gsh.histogram.keys.types import is_text

__all__ = ["keys_as_json"]

_Parts: TypeAlias = list[str | pa.Array]
"""Texts that stand one after the other in every row; an array has a text for each row."""


def keys_as_json(columns: Sequence[pa.Array], *, are_lists: bool) -> bytes:
    """The list of group keys. A key is the value of the only column, or the list of the values of all columns."""
    if not len(columns[0]):
        return b"[]"
    start, end = ("[", "]") if are_lists else ("", "")
    parts: _Parts = [start, *_parts(columns[0])]
    for column in columns[1:]:
        parts += [",", *_parts(column)]
    rows = _concatenated([*parts, f"{end},"])
    _, _, content = canonical(rows, rows.type).buffers()
    return b"".join((b"[", memoryview(content)[:-1], b"]"))


def _parts(column: pa.Array) -> _Parts:
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


def _concatenated(parts: _Parts) -> pa.Array:
    """Null if one of the texts is null."""
    texts = [_text(part) if isinstance(part, str) else part for part in (*parts, "")]
    return pc.binary_join_element_wise(*texts)


def _text(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())
