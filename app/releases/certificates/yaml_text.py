"""YAML from plain values: the part of the language that a registry entry needs.

Strings are quoted and on one line, so that no text can be read as something else: not as a number, a date or a key.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

__all__ = ["Noted", "Value", "to_yaml"]


class Noted(NamedTuple):
    """A text with a comment for the person who edits it."""

    text: str
    comment: str


Value: TypeAlias = str | int | float | Noted | Mapping[str, "Value"] | Sequence["Value"]

_INDENT = "  "
_KEY = re.compile("(?!(?:null|true|false|yes|no|on|off)$)[a-z_]+")  # readers take these words for values
# YAML readers refuse other characters, or take them for the end of a line.
_NOT_PLAIN = re.compile('["\\\\]|[^ -~\u00a1-\u2027\u2030-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]')


def to_yaml(value: Value) -> str:
    """A block of YAML that every reader reads as this value."""
    return "".join(f"{line}\n" for line in _lines(value))


def _lines(value: Value) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            if not _KEY.fullmatch(name):
                raise ValueError("a key is a name of small letters and underscores")
            if _is_scalar(each):
                yield f"{name}: {_scalar(each)}"
            else:
                yield f"{name}:"
                yield from (_INDENT + line for line in _lines(each))
    elif isinstance(value, Sequence) and not _is_scalar(value):
        for each in value:
            first, *rest = _lines(each)
            yield f"- {first}"
            yield from (_INDENT + line for line in rest)
    else:
        yield _scalar(value)


def _is_scalar(value: Value) -> bool:
    return isinstance(value, str | int | float | Noted)


def _scalar(value: Value) -> str:
    match value:
        case Noted(text, comment):
            return f"{_quoted(text)}  # {comment}"
        case str():
            return _quoted(value)
        case float():
            return _number(value)
        case _:
            return str(value)


def _number(value: float) -> str:
    """All digits. Readers of YAML 1.1 take 1e-05 for a text, and 1.0e-05 for a number."""
    mantissa, e, exponent = repr(value).partition("e")
    return repr(value) if not e or "." in mantissa else f"{mantissa}.0e{exponent}"


def _quoted(text: str) -> str:
    return f'"{_NOT_PLAIN.sub(_escaped, text)}"'


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    return f"\\{character}" if character in {'"', "\\"} else f"\\U{ord(character):08X}"
