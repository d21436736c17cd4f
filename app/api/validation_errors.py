"""Pydantic's validation errors in our words: a JSON Pointer and the bound, and nothing of the input."""

from collections.abc import Iterator, Sequence
from typing import Any

__all__ = ["NUMBER", "NUMBERS", "reworded"]

# Tags of unions that are told apart by shape. They appear in pydantic's locations but not in the body.
NUMBER, NUMBERS = "<number>", "<numbers>"
_SHAPES = {NUMBER, NUMBERS, "<columns>", "<relative>", "<mu_0>", "<threshold>", "<plain>"}

_DETAILS = {
    "missing": "is required",
    "greater_than": "must be greater than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than": "must be less than {lt:g}",
    "less_than_equal": "must be at most {le:g}",
    "finite_number": "must be finite",
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "float_type": "must be a number",
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
    "model_attributes_type": "must be an object",
    "model_type": "must be an object",
    "dict_type": "must be an object",
    "extra_forbidden": "has a field that is not part of this object",
    "stated": "{stated}",
}
_GROUPS = {
    "counts": "must be integers from 0 to 2^53",
    "values": "must be lists of finite numbers, one for each of aggregates/names",
}


def reworded(errors: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """The (pointer, detail) of each error."""
    for error in errors:
        location, kind, context = list(error["loc"]), error["type"], error.get("ctx", {})
        if kind == "extra_forbidden":
            location.pop()  # the name of an unknown field is posted data
        if kind in {"union_tag_invalid", "union_tag_not_found"} and context["discriminator"] == "'kind'":
            location.append("kind")
        template = _DETAILS.get(kind, "is required" if kind == "union_tag_not_found" else "is not valid")
        if location[:1] == ["groups"] and len(location) > 2:
            # Which group is at fault, and how, is a matter of the data: the answer is the same wherever the fault is.
            del location[2:]
            template = _GROUPS[str(location[1])]
        yield _pointer(location), template.format_map(context)


def _pointer(location: Sequence[str | int]) -> str:
    """The JSON Pointer of a location, without the tags of unions."""
    parts: list[str] = []
    previous: str | int | None = None
    for part in location:
        if part not in _SHAPES and not (previous == "sensitivity" and part != "kind"):
            parts.append(str(part).replace("~", "~0").replace("/", "~1"))
        previous = part
    return "".join(f"/{part}" for part in parts)
