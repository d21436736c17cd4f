"""Faults of a request: where in the request each is, and what must be there instead, never the posted value.

Errors of pydantic and FastAPI become faults here. No exception here keeps a part of the body: it may end in a log, or
travel between processes.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Self

from app.schemas.strict import is_tag
from gsh.errors import pointer_part

__all__ = [
    "MOST_FAULTS",
    "REPEATED",
    "ContentTooLarge",
    "Fault",
    "InvalidBody",
    "InvalidEncoding",
    "InvalidHeader",
    "InvalidMultipart",
    "InvalidQuery",
    "NoCertificate",
    "NotAcceptable",
    "NotAdmitted",
    "RequestFault",
    "UnsupportedEncoding",
    "is_plain",
    "parameter_faults",
]

MOST_FAULTS = 50


class Fault(NamedTuple):
    """One fault: the kind of place, the place itself, and what it must be."""

    place: Literal["pointer", "header", "parameter"]
    name: str
    detail: str

    def __str__(self) -> str:
        nameless = {"pointer": "The body", "header": "The headers", "parameter": "The query"}
        prefix = {"pointer": "", "header": "The header ", "parameter": "The parameter "}[self.place]
        return f"{prefix}{self.name} {self.detail}" if self.name else f"{nameless[self.place]} {self.detail}"


class RequestFault(Exception):
    """An error that says where its faults are."""

    faults: Sequence[Fault]


class InvalidBody(RequestFault):
    """A body that does not match its schema."""

    def __init__(self, errors: tuple[tuple[str, str], ...], count: int, is_json: bool) -> None:
        super().__init__(errors, count, is_json)
        self.faults = [Fault("pointer", pointer, detail) for pointer, detail in errors]
        self.count = count
        self.is_json = is_json

    @classmethod
    def of(cls, found: Sequence[Any], *, has_groups: bool) -> Self:
        """From pydantic's errors; the first fifty are kept."""
        if any(each["type"] == "json_invalid" for each in found):
            return cls((), 0, is_json=False)
        errors = tuple(dict.fromkeys(_body_faults(found, has_groups=has_groups)))
        return cls(errors[:MOST_FAULTS], len(errors), is_json=True)


class InvalidHeader(RequestFault):
    """A header that is missing, repeated or malformed."""

    def __init__(self, header: str, detail: str) -> None:
        super().__init__(header, detail)
        self.faults = [Fault("header", header, detail)]


class InvalidQuery(RequestFault):
    """Parameters of the URL that are unknown, missing or out of bounds: pairs of a name and a detail."""

    def __init__(self, *errors: tuple[str, str]) -> None:
        super().__init__(*errors)
        self.faults = [Fault("parameter", name, detail) for name, detail in errors]


class InvalidMultipart(Exception):
    """A body that claims to be a form but cannot be read as one, or not to its end."""


class InvalidEncoding(RequestFault):
    """A compressed body that is damaged, ends too early, or has something after its end."""

    def __init__(self) -> None:
        super().__init__()
        self.faults = [
            Fault("pointer", "", "must be complete data of its Content-Encoding; zstd's window is at most 8 MiB")
        ]


class UnsupportedEncoding(RequestFault):
    """A body with a content coding that is not read, or with several."""

    def __init__(self) -> None:
        super().__init__()
        self.faults = [Fault("header", "Content-Encoding", "must be gzip, zstd or identity, and only one of them")]


class ContentTooLarge(RequestFault):
    """A body with more bytes than its route accepts. ``advice`` names another way to send it."""

    def __init__(self, most: int, advice: str) -> None:
        super().__init__(most, advice)
        self.faults = [Fault("pointer", "", f"must have at most {most} bytes{advice}")]


class NotAcceptable(RequestFault):
    """A header Accept without a format of the resource. ``detail`` says what to do."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.faults = [Fault("header", "Accept", detail)]


class NoCertificate(Exception):
    """A release of version 0.1: its certificate is only inside its answer."""


class NotAdmitted(Exception):
    """A request without the access key that it needs. ``reason`` is for the metrics."""

    def __init__(self, status: int, reason: str, retry_after: int | None = None) -> None:
        super().__init__(status, reason)
        self.status = status
        self.reason = reason
        self.retry_after = retry_after


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


def _body_faults(errors: Sequence[Any], *, has_groups: bool) -> Iterator[tuple[str, str]]:
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


def parameter_faults(errors: Sequence[Any]) -> Iterator[Fault]:
    """The fault of each error in a request, as FastAPI locates them."""
    for error in errors:
        (source, *location), detail = error["loc"], _detail(error["type"], error.get("ctx", {}))
        match source:
            case "path" | "query":
                yield Fault("parameter", str(location[0]), detail)
            case "header":
                yield Fault("header", str(location[0]), detail)
            case _:
                yield Fault("pointer", _pointer(location), detail)


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
