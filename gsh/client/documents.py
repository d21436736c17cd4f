"""JSON documents as frozen objects: certificates with all their fields, and answers as dataclasses.

A field that this version does not know stays in a certificate, and is ignored in an answer. So a newer service can be
used with an older client.
"""

import dataclasses
import functools
import json
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, Union

__all__ = ["Certificate", "Document", "certificate_of", "parsed"]

T = TypeVar("T")


class Document(Mapping[str, Any]):
    """A JSON object that cannot be changed. Its members are items and attributes: ``d["mu"]`` and ``d.mu``."""

    __slots__ = ("_members",)

    def __init__(self, members: Mapping[str, Any]) -> None:
        object.__setattr__(self, "_members", {name: _frozen(value) for name, value in members.items()})

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


class Certificate(Document):
    """The certificate of a release: its privacy, as a statement that stands alone.  [docs/certificate.md]"""

    __slots__ = ()

    # For type checkers. Further members are there too.
    schema: str
    release_id: str
    idempotency_key: str | None
    released_at: str
    service_version: str
    privacy_unit: str
    period: str | None
    bounds: Document
    mechanism: Document
    grid: Document | None
    accounting: str
    mu_0: float
    mu: float
    mu_squared: float
    hazard: float
    delta_infinite: float
    epsilon: float | None
    delta: float | None
    curve: str
    budget: Document | None
    unprotected: tuple[str, ...]
    record: Document | None


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
    """A JSON value as the type that a field declares: a dataclass, a tuple, a document, or a plain value."""
    if typing.get_origin(hint) in {Union, types.UnionType}:
        if value is None:
            return None
        hint = next(each for each in typing.get_args(hint) if each is not type(None))
    if typing.get_origin(hint) is tuple:
        return tuple(_as(typing.get_args(hint)[0], item) for item in _of(list, value))
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return parsed(hint, value)
    if hint in {Certificate, Document}:
        return (certificate_of if hint is Certificate else Document)(_of(dict, value))
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


def certificate_of(document: Mapping[str, Any]) -> Certificate:
    """A certificate whose members are of the types that ``Certificate`` declares. Version 0.1 has fewer of them."""
    for name, hint in _declared().items():
        if name in document:
            _as(hint, document[name])
    for name in ("mechanism", "epsilon", "delta", "mu_squared", "hazard", "budget", "idempotency_key"):
        document[name]
    if document["budget"] is not None:
        _of(str, document["budget"]["id"])
    if "bounds" in document:
        _as(str | None, document["bounds"]["plan_digest"])
    return Certificate(document)


@functools.cache
def _declared() -> dict[str, Any]:
    return typing.get_type_hints(Certificate)


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return Document(value)
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


def _thawed(value: Any) -> Any:
    if isinstance(value, Document):
        return value.to_dict()
    return [_thawed(item) for item in value] if isinstance(value, tuple) else value
