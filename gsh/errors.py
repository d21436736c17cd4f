"""Errors of the library. Every error names a parameter and the bound that it must keep.

Error
├── AccountingError
│   ├── InvalidParameter     a value that the theorem does not allow
│   └── InfeasibleTarget     no value of the omitted parameters meets the target
├── EventsError              events that cannot be read, or whose sums are too large
├── FileError                a published file that cannot be read, or without its certificate
├── ProofError               a file, a certificate or a signature that is not what it says
└── ReleaseError
    ├── InvalidGroups        group keys, counts or values that cannot be released
    └── TooManyGroups        more groups, or more bytes of them, than the limits allow

The same value has other places for other callers: ``mu_0`` of a call is ``/mechanism/aggregates/mu_0`` of a request.
``renamed`` is the only function that moves an error from one place to another.
"""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Self

__all__ = [
    "AccountingError",
    "Error",
    "EventsError",
    "FileError",
    "InfeasibleTarget",
    "InvalidGroups",
    "InvalidParameter",
    "ProofError",
    "ReleaseError",
    "TooLittleLeft",
    "TooManyGroups",
    "missing_column",
    "names_listed",
    "pointer_part",
    "renamed",
    "renamed_pointer",
    "sum_too_large",
    "visible",
]

_MOST_LISTED = 30


class Error(Exception):
    """The base of all errors that the library raises on purpose.

    ``pointer`` names the parameter (``tau_star``) and ``detail`` states the bound. Neither contains data. ``hint`` is
    for the caller of the library, such as the columns that a table has: the service never repeats what was posted.
    """

    def __init__(self, pointer: str, detail: str, hint: str = "") -> None:
        super().__init__(pointer, detail)
        self.pointer = pointer
        self.detail = detail
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.pointer.removeprefix('/')}: {self.detail}{self.hint and f'; {self.hint}'}"

    def at(self, pointer: str) -> Self:
        """The same error at another place."""
        moved = copy.copy(self)
        moved.pointer = pointer
        moved.args = (pointer, *self.args[1:])
        return moved


class AccountingError(Error):
    """An error of accounting or calibration. It contains no data."""


class InvalidParameter(AccountingError):
    """A value that the theorem does not allow. ``detail`` states the bound, never the value."""


class InfeasibleTarget(AccountingError):
    """No value of the omitted parameters meets the target. ``detail`` says what would make it possible."""


class TooLittleLeft(AccountingError):
    """What remains of a budget allows only releases with far more noise than usual. ``detail`` says what is short."""


class EventsError(Error):
    """Events that cannot be read, or whose sums leave 2⁵³. It contains no data."""


class FileError(Error):
    """A published file or folder that cannot be read. ``pointer`` names it, and ``detail`` says what is wrong."""

    def __str__(self) -> str:
        return f"{visible(self.pointer)}: {self.detail}"


class ProofError(Error):
    """A file, a certificate or a signature that is not what it says it is. ``detail`` says what differs."""


class ReleaseError(Error):
    """An error of a release, before any group is published. It contains no data."""


class InvalidGroups(ReleaseError):
    """Group keys, counts or values that cannot be released, or cannot be read."""


class TooManyGroups(ReleaseError):
    """More groups, or more bytes of them, than the limits allow."""


def renamed_pointer(pointer: str, *names: tuple[str, str]) -> str:
    """The pointer with another beginning. Each pair is a beginning and what replaces it; the first that fits is used.

    >>> renamed_pointer("aggregates/mu_0", ("aggregates/mu_0", "mu_0"), ("aggregates", ""))
    'mu_0'
    >>> renamed_pointer("sigma", ("", "/mechanism"))
    '/mechanism/sigma'
    """
    for before, after in names:
        rest = _below(before, pointer)
        if rest is not None:
            # A place that would have no name keeps its own.
            return "/".join(part for part in (after, rest) if part) or pointer.removeprefix("/")
    return pointer


def _below(place: str, pointer: str) -> str | None:
    """What follows a place in a pointer; None if the pointer is not at or below the place."""
    if not place:
        return pointer.removeprefix("/")
    if place == pointer:
        return ""
    return pointer.removeprefix(f"{place}/") if pointer.startswith(f"{place}/") else None


@contextmanager
def renamed(*names: tuple[str, str]) -> Iterator[None]:
    """Errors inside this block have other places, as ``renamed_pointer`` says."""
    try:
        yield
    except Error as error:
        raise error.at(renamed_pointer(error.pointer, *names)) from None


def pointer_part(name: str) -> str:
    """A name as one part of a JSON Pointer.  [RFC 6901]"""
    return name.replace("~", "~0").replace("/", "~1")


def missing_column(name: str, names: Sequence[str]) -> str:
    """What to say of a column that is not there, or there twice."""
    found = f"{name} is there twice" if name in names else f"there is no {name}"
    return f"{found}; there are {names_listed(names)}"


def names_listed(names: Sequence[str]) -> str:
    """The first of many names."""
    return ", ".join(names[:_MOST_LISTED]) + (" …" if len(names) > _MOST_LISTED else "")


def sum_too_large(pointer: str) -> EventsError:
    """A group whose sum of this measure leaves 2⁵³ units."""
    return EventsError(pointer, "must stay within 2^53 units in every group: take a larger unit")


def visible(text: str) -> str:
    """Text from elsewhere in one line. Characters that cannot be printed are escaped.

    So a terminal shows escape sequences, line ends and marks that turn the direction of writing, and never obeys them.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
