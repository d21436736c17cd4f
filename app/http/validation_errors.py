"""Pydantic's validation errors in our words: a place and a bound, never a posted value."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from app.schemas.strict import is_tag
from gsh.errors import pointer_part

__all__ = ["REPEATED", "body_faults", "is_plain", "parameter_faults"]

_DETAILS = {
    "missing": "is required",
    "greater_than": "must be greater than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than": "must be less than {lt:g}",
    "less_than_equal": "must be at most {le:g}",
    "finite_number": "must be finite",
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "int_parsing": "must be an integer",
    "int_parsing_size": "must be an integer with fewer digits",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "string_type": "must be a string",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "too_short": "must have at least {min_length:d} items",
    "too_long": "must have at most {max_length:d} items",
    "string_pattern_mismatch": "has characters that are not allowed here",
    "literal_error": "must be {expected}",
    "union_tag_invalid": "must be one of {expected_tags}",
    "union_tag_not_found": "is required",
    "model_attributes_type": "must be an object",
    "model_type": "must be an object",
    "dict_type": "must be an object",
    "stated": "{stated}",
}
REPEATED = "repeated"
"""The type of an error for a member that is there twice."""
_MEMBERS = {
    "extra_forbidden": ("is not a field of this object", "has a field that is not part of this object"),
    REPEATED: ("must be in this object once", "must have each of its members once"),
}
_GROUPS = {
    "counts": "must be integers from 0 to 2^53",
    "values": "must be lists of finite numbers, one for each of aggregates/names",
}
_PLAIN_NAME = re.compile(r"(?!gsh_)[A-Za-z_][A-Za-z0-9_-]{0,63}")


def is_plain(name: str) -> bool:
    """Whether an answer may repeat the name of an unknown field or parameter: a short identifier, and no access key."""
    return _PLAIN_NAME.fullmatch(name) is not None


def body_faults(errors: Sequence[Any], *, has_groups: bool) -> Iterator[tuple[str, str]]:
    """The (pointer, detail) of each error in a body."""
    for error in errors:
        location, kind, context = list(error["loc"]), error["type"], error.get("ctx", {})
        if kind in _MEMBERS:
            yield _member(location, has_groups, *_MEMBERS[kind])
            continue
        if kind in {"union_tag_invalid", "union_tag_not_found"} and context["discriminator"] == "'kind'":
            location.append("kind")
        table = len(_table(location))
        if location[table : table + 1] == ["groups"] and len(location) > table + 2:
            # Which group is at fault, and how, depends on the data: the answer is the same wherever the fault is.
            yield _pointer(location[: table + 2]), _GROUPS[str(location[table + 1])]
        else:
            yield _pointer(location), _detail(kind, context)


def parameter_faults(errors: Sequence[Any]) -> Iterator[tuple[Literal["pointer", "header", "parameter"], str, str]]:
    """The (kind of place, place, detail) of each error in a request, as FastAPI locates them."""
    for error in errors:
        (source, *location), detail = error["loc"], _detail(error["type"], error.get("ctx", {}))
        match source:
            case "path" | "query":
                yield "parameter", str(location[0]), detail
            case "header":
                yield "header", str(location[0]), detail
            case _:
                yield "pointer", _pointer(location), detail


def _detail(kind: str, context: Mapping[str, Any]) -> str:
    return _DETAILS.get(kind, "is not valid").format_map(context)


def _member(location: list[str | int], has_groups: bool, named: str, unnamed: str) -> tuple[str, str]:
    """The member by its name. A name in the groups, or in their place, is not repeated: it may be a group key."""
    inside = location[len(_table(location)) :]
    may_be_group_key = has_groups if len(inside) == 1 else inside[0] == "groups"
    if not may_be_group_key and is_plain(str(location[-1])):
        return _pointer(location), named
    return _pointer(location[:-1]), unnamed


def _table(location: list[str | int]) -> list[str | int]:
    """The beginning of a location that says in which of several tables it is."""
    return location[:2] if location[:1] == ["tables"] and len(location) > 2 else []


def _pointer(location: Sequence[str | int]) -> str:
    """The JSON Pointer of a location, without the tags of unions. The sensitivity of balanced columns is no union."""
    parts: list[str] = []
    previous: str | int | None = None
    has_kinds = "<balanced>" not in location
    for part in location:
        if not is_tag(part) and not (has_kinds and previous == "sensitivity" and part != "kind"):
            parts.append(pointer_part(str(part)))
        previous = part
    return "".join(f"/{part}" for part in parts)
