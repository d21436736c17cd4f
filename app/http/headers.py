"""Headers of answers: security headers of all answers and of pages, and the names of downloaded files."""

from collections.abc import Mapping
from typing import Literal

__all__ = ["COMMON_HEADERS", "content_disposition", "page_headers"]

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


_MOST_CHARACTERS = 200  # file systems allow 255 bytes with the ending
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def content_disposition(
    key: str | None, ending: str, how: Literal["attachment", "inline"] = "attachment"
) -> dict[str, str]:
    """The header that names a file. ``key`` is the idempotency key; a release without one is «private»."""
    plain = "".join(each if each in _PLAIN else "_" for each in (key or "private")[:_MOST_CHARACTERS])
    return {"Content-Disposition": f'{how}; filename="{plain}.{ending}"'}
