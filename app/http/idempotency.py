"""The Idempotency-Key header, bare or as a quoted string, and the headers that mark a replayed answer."""

import re

from fastapi import Request

from app.http.problems import InvalidHeader

__all__ = ["KEY_HEADER", "REPLAYED_HEADERS", "idempotency_key", "replayed_headers"]

_KEY = r"[A-Za-z0-9._~:-]{1,255}"
_HEADER = re.compile(rf'({_KEY})|"({_KEY})"')
KEY_HEADER = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "1 to 255 letters, digits and the characters . _ ~ : and -, bare or in double quotes. It is "
    "required with a budget: the same request with the same idempotency key gets the same stored answer and is charged "
    "once; another request with it is 422. A dry run with it says which of the two it would be.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 257, "pattern": rf'^({_KEY}|"{_KEY}")$'},
}
"""The header as the OpenAPI document describes it."""
_REPLAYED, _RELEASED_AT = "Idempotency-Replayed", "Idempotency-Released-At"
REPLAYED_HEADERS = {
    _REPLAYED: {
        "description": "“true” if an earlier request has paid for this answer.",
        "schema": {"type": "string", "const": "true"},
    },
    _RELEASED_AT: {
        "description": "With Idempotency-Replayed: when the release was made and charged.",
        "schema": {"type": "string", "format": "date-time"},
    },
}
"""The response headers as the OpenAPI document describes them."""


def idempotency_key(request: Request) -> str | None:
    """The idempotency key of a request, if it has one."""
    given = request.headers.getlist("idempotency-key")
    if not given:
        return None
    found = _HEADER.fullmatch(given[0]) if len(given) == 1 else None
    key = None if found is None else found[1] or found[2]
    if key in {None, ".", ".."}:  # as a part of a path, dots mean something else
        raise InvalidHeader(
            "Idempotency-Key",
            "must be given once, as 1 to 255 letters, digits and the characters . _ ~ : and -, but not . or ..",
        )
    return key


def replayed_headers(released_at: str | None) -> dict[str, str]:
    """The headers that mark an answer which an earlier request has paid for; none if it is new."""
    return {} if released_at is None else {_REPLAYED: "true", _RELEASED_AT: released_at}
