"""The kinds of columns that a plan can use. Every engine has them, and gives their values the same text.

    string                     any text
    integer                    whole numbers of any width, decimals of scale 0 included
    decimal(p,s)               decimal numbers with s > 0 digits after the point
    double                     floating-point numbers of any width; sums only
    boolean, date, uuid
    timestamp                  a local time, without a time zone, in microseconds
    timestamp_ns               the same in nanoseconds; only some engines have it
    timestamptz                an instant, in microseconds

Floating-point numbers are no group keys and no users: engines write them differently, and NaN and −0 differ too.
"""

import re
from typing import Final

from gsh.errors import InvalidParameter

__all__ = ["KEY_KINDS", "NESTED", "SUM_KINDS", "Kind", "checked_kind", "digits", "family"]

Kind = str
"""One of the kinds above, such as ``integer`` or ``decimal(10,2)``."""

_MOMENTS = ("date", "timestamp", "timestamp_ns", "timestamptz")
KEY_KINDS: Final[tuple[str, ...]] = ("string", "integer", "decimal", "boolean", *_MOMENTS, "uuid")
"""The families of kinds of users and group keys."""
SUM_KINDS: Final[tuple[str, ...]] = ("integer", "decimal", "double", "boolean")
"""The families of kinds of sums. A true Boolean adds 1."""

NESTED: Final = "nested"
"""What an engine says of a struct, a list or a map. No plan can use it, and nobody can declare it."""

_DECIMAL = re.compile(r"decimal\(([1-9][0-9]?),([1-9][0-9]?)\)")


def family(kind: Kind) -> str:
    """The kind without its digits: ``decimal`` for ``decimal(10,2)``."""
    return kind.partition("(")[0]


def digits(kind: Kind) -> tuple[int, int]:
    """All digits of a decimal kind, and those after the point."""
    found = _DECIMAL.fullmatch(kind)
    assert found is not None, kind
    return int(found[1]), int(found[2])


def checked_kind(pointer: str, kind: object) -> Kind:
    """The kind, if it is one."""
    simple = {*KEY_KINDS, *SUM_KINDS} - {"decimal"}
    if isinstance(kind, str) and kind in simple:
        return kind
    found = _DECIMAL.fullmatch(kind) if isinstance(kind, str) else None
    if found is None or int(found[2]) > int(found[1]):
        raise InvalidParameter(pointer, f"must be one of {', '.join(sorted(simple))} or decimal(digits,scale)")
    assert isinstance(kind, str)
    return kind
