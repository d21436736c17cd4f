"""Numbers in texts that can be read in two ways: 1.000 is one here and a thousand there.

A number is ambiguous if it has one point or comma, one to three digits before it that do not begin with 0, and exactly
three digits after it. 0.349, 1234.568 and 12.50 are not. In one column of decimal numbers, another cell can show that
the point is a decimal point: 12.5, 0.250 or 1234.568. Then 1.000 is one.

``app/web/shared/number-text.js`` has the same rules for the pages. ``tests/number_examples.json`` has examples of both.
"""

import re

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["ADVICE", "DecimalPoints", "are_ambiguous", "is_ambiguous", "unambiguous"]

_AMBIGUOUS = r"[-+]?[1-9][0-9]{0,2}[.,][0-9]{3}"
ADVICE = "has a number such as 1.000 or 1,000, which can mean one or a thousand: write it as 1000, or as 1.0"
"""What is wrong with a line, and what to do. It does not quote the number."""


def is_ambiguous(text: str) -> bool:
    """Whether a number can be read in two ways."""
    return re.fullmatch(_AMBIGUOUS, text, re.ASCII) is not None


def are_ambiguous(texts: pa.Array) -> pa.BooleanArray:
    """The same for each text."""
    return pc.match_substring_regex(texts, rf"\A({_AMBIGUOUS})\z")


def unambiguous(texts: pa.Array) -> pa.Array:
    """Decimal numbers with one more digit where they would be ambiguous: 12.125 is written 12.1250."""
    return pc.replace_substring_regex(texts, r"\A(-?[1-9][0-9]{0,2}\.[0-9]{3})\z", r"\10")


class DecimalPoints:
    """Looks through the cells of one column, batch by batch."""

    def __init__(self) -> None:
        self._first: int | None = None
        self._are_known = False

    def look(self, texts: pa.Array, row: int) -> None:
        """The next cells. ``row`` is the place of the first one."""
        if self._are_known:
            return
        found = pc.fill_null(are_ambiguous(texts), False)
        has_point = pc.fill_null(pc.match_substring(texts, "."), False)
        self._are_known = bool(pc.any(pc.and_not(has_point, found)).as_py())
        if self._first is None:
            place = pc.index(found, True).as_py()
            self._first = None if place < 0 else row + place

    @property
    def ambiguous_row(self) -> int | None:
        """The place of the first cell that can be read in two ways; None if another cell shows how to read it."""
        return None if self._are_known else self._first
