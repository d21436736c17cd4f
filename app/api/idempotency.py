"""The Idempotency-Key header."""

from fastapi import Request

from app.api.problems import InvalidHeader

__all__ = ["KEY_HEADER", "idempotency_key"]

_MOST_CHARACTERS = 255
KEY_HEADER = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "1 to 255 visible ASCII characters, required with a budget: a request with the same idempotency key "
    "and body gets the same stored answer and is charged once; the same idempotency key with another request is 409.",
    "schema": {"type": "string", "minLength": 1, "maxLength": _MOST_CHARACTERS, "pattern": "^[!-~]+$"},
}
"""The header as the OpenAPI document describes it."""


def idempotency_key(request: Request) -> str | None:
    """The idempotency key of a request, if it has one."""
    keys = request.headers.getlist("idempotency-key")
    if not keys:
        return None
    (key,) = keys if len(keys) == 1 else ("",)
    if not (0 < len(key) <= _MOST_CHARACTERS and all("!" <= character <= "~" for character in key)):
        raise InvalidHeader("Idempotency-Key", "must be given once, as 1 to 255 visible ASCII characters")
    return key
