"""The Arrow types that a key column may have, and its type in the answer.

    posted                           in the answer
    scalar                           the same type
    dictionary of a scalar           dictionary of the same scalar, with int32 indices, not ordered
    arrow.uuid, arrow.json           the same extension type, with metadata made here

All others are refused. The width of indices is fixed, because some engines choose it by the number of distinct values,
and that number includes dropped groups. A dictionary in an answer is never `ordered`: it is sorted by value, and the
flag means another order.
"""

import pyarrow as pa

from gsh.errors import InvalidGroups

__all__ = ["answer_type", "is_text", "is_unicode"]

_EXTENSION_METADATA = b"ARROW:extension:"


def answer_type(field: pa.Field, pointer: str) -> pa.DataType:
    """The type of a key column in the answer. It depends only on the posted type."""
    kind = field.type
    is_extension = isinstance(kind, pa.BaseExtensionType)
    if not is_extension and any(name.startswith(_EXTENSION_METADATA) for name in field.metadata or {}):
        raise _unsupported(pointer)
    if isinstance(kind, pa.UuidType):
        return pa.uuid()
    if isinstance(kind, pa.JsonType):
        return pa.json_(kind.storage_type)
    if _is_scalar(kind) or pa.types.is_null(kind):
        return kind
    if pa.types.is_dictionary(kind) and _is_scalar(_value_type(kind)):
        return pa.dictionary(pa.int32(), kind.value_type)
    raise _unsupported(pointer)


def is_unicode(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def is_text(kind: pa.DataType) -> bool:
    """Whether the values are text or binary, of variable length."""
    return is_unicode(kind) or kind in (pa.binary(), pa.large_binary(), pa.binary_view())


def _value_type(kind: pa.DataType) -> pa.DataType:
    try:
        return kind.value_type
    except KeyError:  # a type of Arrow that pyarrow does not have
        return pa.null()


def _is_scalar(kind: pa.DataType) -> bool:
    is_number = pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return bool(
        is_number
        or pa.types.is_decimal(kind)
        or (pa.types.is_temporal(kind) and not pa.types.is_interval(kind))
        or pa.types.is_fixed_size_binary(kind)
        or is_text(kind)
    )


def _unsupported(pointer: str) -> InvalidGroups:
    return InvalidGroups(
        pointer,
        "must name a column of a scalar type, a dictionary of one, or the extension type arrow.uuid or arrow.json",
    )
