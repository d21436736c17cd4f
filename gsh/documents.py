"""JSON objects as frozen values: documents with all their members, and dataclasses.

A member that this version does not know stays in a document, and is ignored in a dataclass. So a newer service can be
used with an older client.
"""

import dataclasses
import functools
import json
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Self, TypeVar, Union

from gsh.accounting.mechanism import Mechanism
from gsh.wire import mechanism_from_json

__all__ = ["Document", "check_members", "object_in", "parsed"]

T = TypeVar("T")

_DEPTH = 32
"""A problem has less than ten levels, and a certificate too."""


class Document(Mapping[str, Any]):
    """A JSON object that cannot be changed. Its members are items and attributes: ``d["mu"]`` and ``d.mu``."""

    __slots__ = ("_members",)

    def __init__(self, members: Mapping[str, Any]) -> None:
        object.__setattr__(self, "_members", {name: _frozen(value) for name, value in members.items()})

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        return cls(document)

    def __getitem__(self, name: str) -> Any:
        return self._members[name]

    def __getattr__(self, name: str) -> Any:
        try:
            return object.__getattribute__(self, "_members")[name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no member {name!r}") from None

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} cannot be changed")

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._members]

    def __eq__(self, other: object) -> bool:
        """Equal to the same JSON as plain dictionaries and lists, too."""
        if not isinstance(other, Mapping):
            return NotImplemented
        return self.to_dict() == (other if isinstance(other, Document) else Document(other)).to_dict()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.to_dict(),)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.to_dict()!r})"

    def to_dict(self) -> dict[str, Any]:
        """As plain dictionaries and lists, to change or to write."""
        return {name: _thawed(value) for name, value in self._members.items()}

    def to_json(self, indent: int | None = None) -> str:
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)


def object_in(content: bytes | str) -> dict[str, Any]:
    """A JSON object. An error of Python if it is too deep, or has numbers that JSON does not have."""
    document = json.loads(content, parse_constant=_refuse)
    if not isinstance(document, dict):
        raise TypeError
    _check_depth(document, _DEPTH)
    return document


def _refuse(_constant: str) -> Any:
    raise ValueError


def _check_depth(value: object, left: int) -> None:
    if not isinstance(value, Mapping | list):
        return
    if not left:
        raise ValueError
    for item in value.values() if isinstance(value, Mapping) else value:
        if isinstance(item, Mapping | list):
            _check_depth(item, left - 1)


def parsed(kind: type[T], document: Mapping[str, Any]) -> T:
    """A dataclass from a JSON object. Members that the dataclass does not have are ignored.

    ``ValueError``, ``TypeError`` or another error of a lookup if a member is missing, or is of another type.
    """
    assert dataclasses.is_dataclass(kind)
    wanted = _fields(kind)
    given = {name: _as(hint, document[name]) for name, hint in wanted.items() if name in document}
    return kind(**given)


@functools.cache
def _fields(kind: type) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind) if field.init}


def _as(hint: Any, value: Any) -> Any:
    """A JSON value as the type of a field: a dataclass, a mechanism, a tuple, a document, or a plain value."""
    if typing.get_origin(hint) in {Union, types.UnionType}:
        if value is None:
            return None
        hint = next(each for each in typing.get_args(hint) if each is not type(None))
    if typing.get_origin(hint) is tuple:
        return tuple(_as(typing.get_args(hint)[0], item) for item in _of(list, value))
    if hint is Mechanism:
        return mechanism_from_json(value)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return value if isinstance(value, hint) else parsed(hint, value)
    if isinstance(hint, type) and issubclass(hint, Document):
        return hint.from_json(_of(dict, value))
    return _plain(hint, value)


def _plain(hint: Any, value: Any) -> Any:
    if typing.get_origin(hint) is typing.Literal:  # a newer service may have more words
        return _of(str, value)
    if hint is float:
        return float(_of((int, float), value))
    return _of(hint, value) if hint in {str, int, bool, bytes} else value


def _of(kind: Any, value: Any) -> Any:
    """A value of a plain type. A Boolean is no number."""
    if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        return value
    raise ValueError("must be of another type")


def check_members(kind: type[Document], document: Mapping[str, Any]) -> None:
    """``ValueError`` if a member is not of the type that the class declares. Members may be missing."""
    for name, hint in _declared(kind).items():
        if name in document:
            _as(hint, document[name])


@functools.cache
def _declared(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


# Asked first: to ask whether a number is a Mapping takes longer than all the rest, and a covariance has many numbers.
_PLAIN = {str, int, float, bool, type(None)}


def _frozen(value: Any) -> Any:
    if type(value) in _PLAIN or isinstance(value, Document):
        return value
    if isinstance(value, list | tuple):
        return tuple(map(_frozen, value))
    return Document(value) if isinstance(value, Mapping) else value


def _thawed(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, tuple):
        return list(map(_thawed, value))
    return value.to_dict() if isinstance(value, Document) else value
