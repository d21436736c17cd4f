"""JSON before it is parsed: how much memory it would take, and whether an object has a member twice.

Parsed, a list of empty lists takes forty times the memory of its text. And of two members with one name a parser keeps
the last one, while another program, or a person, may read the first.
"""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

__all__ = ["decoded_size", "most_decoded", "repeated_member"]

Path = tuple[str | int, ...]

_BLOCK = 1 << 20
# Measured with pydantic 2: what an item, a member, and a list or an object take at most, in bytes of memory.
_ITEM, _MEMBER, _CONTAINER = 80, 200, 160
_COMMA, _COLON, _QUOTE, _BACKSLASH = b',:"\\'
_OPEN_LIST, _OPEN_OBJECT, _CLOSE_OBJECT = b"[{}"
# json.loads is faster than numpy up to here.
_SHORT = 4096


def decoded_size(content: bytes) -> int:
    """An upper bound of the memory that JSON takes when it is parsed, without that of its text."""
    size = 0
    for block in _blocks(content):
        items, members = int(np.count_nonzero(block == _COMMA)), int(np.count_nonzero(block == _COLON))
        containers = int(np.count_nonzero((block == _OPEN_LIST) | (block == _OPEN_OBJECT)))
        size += _ITEM * items + _MEMBER * members + _CONTAINER * containers
    return size


def most_decoded(most_bytes: int) -> int:
    """The most memory that a body of groups may take when it is parsed, given the limit of its text."""
    return 4 * most_bytes


def repeated_member(content: bytes) -> Path | None:
    """The path of a member that is there twice, in content that is JSON; None if there is none."""
    if len(content) > _SHORT and not _may_repeat(content):
        return None
    found: list[_Repeated] = []

    def collected(pairs: list[tuple[str, Any]]) -> Any:
        members = dict(pairs)
        if len(members) == len(pairs):
            return members
        found.append(_Repeated(pairs))
        return found[-1]

    parsed = json.loads(content, object_pairs_hook=collected)
    return next(_paths(parsed, ())) if found else None


class _Repeated:
    """An object with a member that is there twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                self.name = name
                break
            seen.add(name)


def _paths(value: Any, path: Path) -> Iterator[Path]:
    """Where objects with repeated members are."""
    if isinstance(value, _Repeated):
        yield (*path, value.name)
    elif isinstance(value, dict | list):
        for name, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _paths(item, (*path, name))


def _may_repeat(content: bytes) -> bool:
    """Whether an object may have two members with one name. This is fast for long lists and few objects.

    It looks at member names and braces only: what is inside of strings is found by the number of quotes before it.
    """
    names: list[set[bytes]] = []
    seen = start = 0
    text = np.frombuffer(content, np.uint8)
    is_escaping = b"\\" in content
    for block in _blocks(content):
        quotes = np.flatnonzero(block == _QUOTE) + start
        if is_escaping:
            doubtful = np.flatnonzero(text[quotes - 1] == _BACKSLASH)
            escaped = [_is_escaped(content, place) for place in quotes[doubtful].tolist()]
            quotes = np.delete(quotes, doubtful[np.array(escaped, np.bool_)])
        marks = np.flatnonzero((block == _COLON) | (block == _OPEN_OBJECT) | (block == _CLOSE_OBJECT)) + start
        is_outside = (seen + np.searchsorted(quotes, marks)) % 2 == 0
        seen += len(quotes)
        start += len(block)
        for place in marks[is_outside].tolist():
            mark = content[place]
            if mark == _OPEN_OBJECT:
                names.append(set())
            elif mark == _CLOSE_OBJECT:
                names.pop()
            else:
                name = _name_before(content, place)
                if b"\\" in name or name in names[-1]:  # an escaped name may equal another one
                    return True
                names[-1].add(name)
    return False


def _is_escaped(content: bytes, place: int) -> bool:
    before = place
    while before and content[before - 1] == _BACKSLASH:
        before -= 1
    return (place - before) % 2 == 1


def _name_before(content: bytes, colon: int) -> bytes:
    """The name before a colon, as it is written."""
    end = colon
    while end and content[end - 1] in b" \t\r\n":
        end -= 1
    start = content.rfind(b'"', 0, end - 1)
    while start > 0 and _is_escaped(content, start):
        start = content.rfind(b'"', 0, start)
    return content[start + 1 : end - 1]


def _blocks(content: bytes) -> Iterator[Any]:
    text = np.frombuffer(content, np.uint8)
    return (text[start : start + _BLOCK] for start in range(0, len(text), _BLOCK))
