"""Headers of requests and answers: security headers, content negotiation, idempotency keys, and names of files."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from fastapi import Request

from app.http.problems.errors import InvalidHeader
from app.ledger.lineage import Use

__all__ = [
    "COMMON_HEADERS",
    "KEY_HEADER",
    "PAID_HEADERS",
    "USED_HEADER",
    "content_disposition",
    "idempotency_key",
    "page_headers",
    "paid_headers",
    "preferred",
    "used_header",
]

_MOST_CHARACTERS = 200  # file systems allow 255 bytes with the ending
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_MOST_ACCEPT = 1000  # characters of Accept that are read; a longer one would stall the event loop
_ANYTHING = "*/*"
_MOST_INTEGER = 10**15 - 1
"""The largest integer of a structured field."""

COMMON_HEADERS: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",  # the URL contains the parameters
    "Cross-Origin-Resource-Policy": "same-origin",  # no page of another site may load it
}
"""The same for pages and for all other responses."""


def page_headers(**allowed: str) -> Mapping[str, str]:
    """The headers of a page. ``script_src="'self'"`` allows a source; what is not named is forbidden."""
    policy = {"default-src": "'none'", "base-uri": "'none'", "form-action": "'none'", "frame-ancestors": "'none'"}
    policy |= {name.replace("_", "-"): source for name, source in allowed.items()}
    return {
        "Content-Security-Policy": "; ".join(f"{name} {source}" for name, source in policy.items()),
        **COMMON_HEADERS,
        "Cross-Origin-Opener-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
        "Cache-Control": "no-cache",  # browsers ask whether it changed, so a new version shows at once
    }


def content_disposition(
    key: str | None, ending: str, how: Literal["attachment", "inline"] = "attachment"
) -> dict[str, str]:
    """The header that names a file. ``key`` is the idempotency key; a release without one is «private»."""
    plain = "".join(each if each in _PLAIN else "_" for each in (key or "private")[:_MOST_CHARACTERS])
    return {"Content-Disposition": f'{how}; filename="{plain}.{ending}"'}


def preferred(request: Request, offered: Sequence[str]) -> str | None:
    """The offered media type that Accept prefers, the earlier one of two equals; None if none is acceptable.

    The most specific range decides on a media type: ``text/html`` before ``text/*`` before ``*/*``. Without Accept, the
    first is preferred.  [RFC 9110, section 12.5.1]
    """
    accept = ",".join(request.headers.getlist("accept"))
    if not accept.strip():
        return offered[0]
    weights: dict[str, float] = {}
    for media_range, weight in _ranges(accept):
        weights[media_range] = max(weight, weights.get(media_range, 0.0))
    weighed = {media_type: _weight_of(media_type, weights) for media_type in offered}
    best = max(offered, key=weighed.__getitem__)  # the first of equals
    return best if weighed[best] > 0 else None


def _weight_of(media_type: str, weights: dict[str, float]) -> float:
    whole_type = media_type.partition("/")[0] + "/*"
    for media_range in (media_type, whole_type, _ANYTHING):
        if media_range in weights:
            return weights[media_range]
    return 0.0


def _ranges(accept: str) -> Iterator[tuple[str, float]]:
    """Each media range with its weight. Parameters other than q are ignored: no form has any."""
    if len(accept) > _MOST_ACCEPT:
        accept = accept[:_MOST_ACCEPT].rpartition(",")[0]  # half a range could be another range
    for accepted in accept.lower().split(","):
        media_range, *parameters = (part.strip() for part in accepted.split(";"))
        yield media_range, _weight(parameters)


def _weight(parameters: list[str]) -> float:
    """The weight q, 1 if there is none, and 0 if it is not a number from 0 to 1."""
    given = [each.removeprefix("q=") for each in parameters if each.startswith("q=")]
    try:
        weight = float(given[0]) if given else 1.0
    except ValueError:
        return 0.0
    return weight if 0 <= weight <= 1 else 0.0


_KEY = r"[A-Za-z0-9._~:-]{1,255}"
_HEADER = re.compile(rf'({_KEY})|"({_KEY})"')
KEY_HEADER = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "1 to 255 letters, digits and the characters . _ ~ : and -, with or without double quotes. It is "
    "required with a budget: the same request with the same idempotency key gets the same stored answer and is charged "
    "once; another request with it is 422. A dry run with it says which of the two it would be.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 257, "pattern": rf'^({_KEY}|"{_KEY}")$'},
}
"""The header as the OpenAPI document describes it."""
_REPLAYED, _RELEASED_AT = "Idempotency-Replayed", "Idempotency-Released-At"
_USED = "Budget-Used"
USED_HEADER = {
    _USED: {
        "description": "If a budget pays: its name, with parameters. So many releases like this one are the whole "
        "budget (of), so many more fit (more), and this share of the budget is used now (used). It is left out if "
        "the ledger is busy.",
        "schema": {"type": "string", "example": '"web";of=52;more=51;used=0.0193'},
    }
}
"""What a release used of its budget, as the OpenAPI document describes it.  [RFC 9651, an item with parameters]"""
PAID_HEADERS = USED_HEADER | {
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
    """The idempotency key of a request, with or without quotes, if it has one."""
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


def paid_headers(released_at: str | None, use: Use | None) -> dict[str, str]:
    """What a release used of its budget, and the marks of an answer which an earlier request has paid for."""
    replayed = {} if released_at is None else {_REPLAYED: "true", _RELEASED_AT: released_at}
    return used_header(use) | replayed


def used_header(use: Use | None) -> dict[str, str]:
    if use is None:
        return {}
    of, more = (min(number, _MOST_INTEGER) for number in (use.of, use.more))
    return {_USED: f'"{use.budget}";of={of};more={more};used={use.used:.6g}'}
