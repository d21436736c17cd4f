"""Public group keys: the caller lists them, all of them are published, and a group that is not posted counts 0.

The list must not depend on the data. Without it, the posted groups themselves would reveal which groups have users.
"""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias
from uuid import UUID

import pyarrow as pa

from gsh.errors import Error, InvalidGroups
from gsh.histogram.keys.columns import decoded
from gsh.histogram.keys.types import answer_type, is_unicode
from gsh.histogram.noise import Noise

__all__ = ["POSTED", "PublicKeys", "check_public", "key_parts", "listed_columns"]

POSTED: Literal["posted"] = "posted"
"""The posted groups are the list: the caller has added the groups without users."""

PublicKeys: TypeAlias = Literal["posted"] | Sequence[Any]


def check_public(noise: Noise, public: object, pointer: str) -> None:
    """Public keys are for a mechanism without thresholds, and such a mechanism is for public keys."""
    if public is None:
        if noise.is_public:
            raise InvalidGroups(pointer, "must list the groups to publish: a mechanism without thresholds drops none")
    elif not noise.is_public:
        raise InvalidGroups(pointer, "must be omitted: a mechanism with thresholds is for groups that are not public")
    elif isinstance(public, str) and public != POSTED:
        raise InvalidGroups(pointer, f"must be a list of group keys, or the word {POSTED}")


def listed_columns(public: Sequence[Any] | pa.Table, fields: Sequence[pa.Field], pointer: str) -> list[pa.ChunkedArray]:
    """Listed keys as columns of the types of a table: a table with the same names, or JSON values.

    The columns have the values that a dictionary encodes, and the storage of an extension type.
    """
    types = [answer_type(field, pointer) for field in fields]
    if isinstance(public, pa.Table):
        names = [field.name for field in fields]
        if sorted(public.column_names) != sorted(names):
            raise InvalidGroups(pointer, f"must have the columns {', '.join(names)}, and no others")
        columns = [public[name] for name in names]
    else:
        columns = [pa.chunked_array([_array(part, pointer)]) for part in key_parts(public, len(fields), pointer)]
    try:
        return [_cast(column, kind) for column, kind in zip(columns, types, strict=True)]
    except (pa.ArrowException, InvalidGroups, ValueError):
        raise InvalidGroups(pointer, "must have values of the types of the key columns") from None


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    if pa.types.is_dictionary(column.type):
        column = pa.chunked_array([decoded(column)])
    if isinstance(kind, pa.UuidType) and is_unicode(column.type):
        texts = column.to_pylist()
        column = pa.chunked_array([pa.array([None if text is None else UUID(text).bytes for text in texts])])
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    return column.cast(kind.value_type if pa.types.is_dictionary(kind) else kind)


def key_parts(public: Sequence[Any], count: int, pointer: str, error: type[Error] = InvalidGroups) -> list[list[Any]]:
    """The values of each key column. A key of one column may be without a list around it."""
    keys = [list(key) if isinstance(key, list | tuple) else [key] for key in public]
    if any(len(key) != count for key in keys):
        raise error(pointer, f"must have a value for each key column: {count}")
    return [[key[place] for key in keys] for place in range(count)]


def _array(part: Sequence[Any], pointer: str) -> pa.Array:
    try:
        return pa.array(part)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise InvalidGroups(pointer, "must have values of one type in each part") from None
