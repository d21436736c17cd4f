"""Security headers: those of every response, and those of pages. A page loads from this service alone."""

from collections.abc import Mapping

__all__ = ["COMMON_HEADERS", "page_headers"]

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
