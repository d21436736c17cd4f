"""Requests with JSON, and the parts of the contract that all operations share."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from gsh.client.calls import MOST_BYTES, Answer, Body, Call, Method, Operation
from gsh.client.decoding import check_digest
from gsh.client.operations import Bound
from gsh.client.problems import Renames
from gsh.client.retries import patiently
from gsh.errors import InvalidParameter
from gsh.histogram.file_formats import JSON

__all__ = ["ask", "checked_name", "json_call", "once_headers", "part"]

_NAME = re.compile(r"[A-Za-z0-9._~:-]{1,255}")


def ask(bound: Bound[Any], call: Call, renames: Renames = ()) -> Operation[Answer]:
    """The successful answer of a call."""
    answer = yield from patiently(bound._driver.retries, call, renames)
    check_digest(answer)
    return answer


def json_call(
    method: Method,
    path: str,
    body: Mapping[str, Any] | None = None,
    *,
    is_safe: bool | None = None,
    query: Mapping[str, object] | None = None,
    once: str | None = None,
    accept: str = JSON,
    most_bytes: int = MOST_BYTES,
) -> Call:
    """A call with or without a JSON body. A POST is safe if it has ``once``, or if the caller says so."""
    written = None if body is None else json.dumps(body, ensure_ascii=False).encode()
    return Call(
        method,
        path,
        is_safe=method != "POST" or once is not None if is_safe is None else is_safe,
        query=tuple(_pairs(query or {})),
        headers={"Accept": accept} | once_headers(once),
        body=None if written is None else Body(JSON, lambda: written),
        most_bytes=most_bytes,
    )


def once_headers(once: str | None) -> dict[str, str]:
    """The header with the idempotency key."""
    if once is None:
        return {}
    return {"Idempotency-Key": checked_name("once", once)}


def checked_name(pointer: str, name: object) -> str:
    """The name of a release or of a budget."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in {".", ".."}:
        raise InvalidParameter(pointer, "must be 1 to 255 letters, digits and the characters . _ ~ : and -")
    return name


def part(pointer: str, name: str) -> str:
    """A name as one part of a path."""
    if not isinstance(name, str) or not name or name in {".", ".."}:
        raise InvalidParameter(pointer, "must be a name that is not empty")
    return quote(name, safe="")


def _pairs(query: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for name, value in query.items():
        for each in value if isinstance(value, list) else [value]:
            if each is not None:
                yield name, _written(each)


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value)
