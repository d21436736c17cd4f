"""From the bytes of an answer to what they say. Whatever is wrong with them is one error, ``UnexpectedAnswer``.

The server may be another program than it seems, and a proxy may change what it says. So everything is checked before it
is used: the digest, if the service states one; the syntax, the depth and the types of JSON; every buffer of a table.
"""

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import pyarrow as pa

from gsh.client.calls import Answer
from gsh.client.errors import UnexpectedAnswer
from gsh.errors import Error
from gsh.wire import Json

__all__ = ["check_digest", "check_sha256", "decoded", "document_in", "understood", "unexpected"]

T = TypeVar("T")

_OF_PYTHON = (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError)
_FAULTS = (*_OF_PYTHON, pa.ArrowException, Error)
"""What reading can raise."""
_DEPTH = 32
"""A problem has less than ten levels, and a certificate too."""
_DIGEST = re.compile(r"(?:\A|,)\s*sha-256\s*=\s*:([^:,]*):")


def understood(answer: Answer, read: Callable[[], T]) -> T:
    """What is read from an answer, or one error. The cause is not kept: it may quote the answer."""
    with suppress(*_FAULTS):
        return read()
    raise unexpected(answer)


def decoded(answer: Answer, decode: Callable[[Json], T]) -> T:
    """What the JSON object of an answer says."""
    return understood(answer, lambda: decode(document_in(answer.content)))


def document_in(content: pa.Buffer) -> Json:
    """A JSON object that is neither too deep nor has numbers that JSON does not have. Else an error of Python."""
    document = json.loads(content.to_pybytes(), parse_constant=_refuse)
    if not isinstance(document, dict):
        raise TypeError
    _check_depth(document, _DEPTH)
    return document


def check_digest(answer: Answer) -> None:
    """The content must have the SHA-256 that the service states.  [RFC 9530, Repr-Digest]"""
    found = _DIGEST.search(answer.headers.get("repr-digest", ""))
    if found is None:
        return
    stated = b""
    with suppress(binascii.Error, ValueError):
        stated = base64.b64decode(found[1], validate=True)
    check_sha256(answer, stated.hex())


def check_sha256(answer: Answer, stated: str) -> None:
    """The content must have this SHA-256."""
    if answer.sha256 != stated:
        raise unexpected(answer, "is damaged: its SHA-256 is not the one that the service states")


def unexpected(
    answer: Answer,
    what: str = "is not one of the service: check the URL and the proxies",
    retry_after: float | None = None,
) -> UnexpectedAnswer:
    """The error of an answer that cannot be used. It quotes nothing of it."""
    detail = f"the answer, of status {answer.status}, {what}"
    return UnexpectedAnswer("", detail, status=answer.status, retry_after=retry_after)


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
