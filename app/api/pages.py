"""GET /, /ledger, /reference and /docs: pages that need no other host, with the headers that keep it so.

Every URL in them is relative, so that they work behind a path prefix and a TLS proxy as they are. Plotly and Swagger UI
come from installed packages.
"""

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.api.assets import Assets, package_folder

__all__ = ["ASSETS", "router"]

router = APIRouter(include_in_schema=False)

# Plotly makes an empty <style> and fills it by script, which is allowed: the hash of nothing is for that element.
_EMPTY = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        f"style-src 'self' {_EMPTY}",
        "img-src 'self' data: blob:",  # pictures of plots to download, and the icons in Swagger UI's style sheet
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",  # the query has the parameters
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-cache",  # ask whether it changed; a new version shows at once
}
_STATIC = package_folder("app.web", "static")
_PAGES = Assets(_STATIC, (".html",), _HEADERS)

ASSETS = {
    "/web": Assets(_STATIC, (".css", ".js", ".svg"), _HEADERS),
    "/plotly": Assets(package_folder("plotly", "package_data"), ("plotly.min.js",), _HEADERS),
    "/swagger": Assets(package_folder("fastapi_swagger", "resources"), (".css", ".js", ".png"), _HEADERS),
}


@router.get("/")
async def explorer(request: Request) -> Response:
    """The explorer."""
    return await _PAGES.response("index.html", request.scope)


@router.get("/ledger")
async def ledger(request: Request) -> Response:
    """The budgets: a page over /budgets, which is the API."""
    return await _PAGES.response("ledger.html", request.scope)


@router.get("/reference")
async def reference(request: Request) -> Response:
    """The API for reading, made from the OpenAPI document."""
    return await _PAGES.response("reference.html", request.scope)


@router.get("/docs")
async def docs(request: Request) -> Response:
    """Swagger UI."""
    return await _PAGES.response("docs.html", request.scope)
