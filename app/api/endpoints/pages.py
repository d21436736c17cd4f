"""GET /, /ledger, /reference, /docs and /openapi.json: pages that need no other host, with headers that keep it so.

Every URL in them is relative, so that they work behind a path prefix and a TLS proxy as they are. Plotly and Swagger UI
come from installed packages.
"""

import json
from functools import lru_cache

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import Response
from starlette.routing import Mount

from app.api.assets import Assets, package_folder
from app.api.auth import PUBLIC, Requirement
from app.api.json_route import DeclaredRoute

__all__ = ["router"]

router = APIRouter(include_in_schema=False, route_class=DeclaredRoute)

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

_ASSETS = {
    "/web": Assets(_STATIC, (".css", ".js", ".svg"), _HEADERS),
    "/plotly": Assets(package_folder("plotly", "package_data"), ("plotly.min.js",), _HEADERS),
    "/swagger": Assets(package_folder("fastapi_swagger", "resources"), (".css", ".js", ".png"), _HEADERS),
}


@router.get("/", dependencies=[PUBLIC])
async def explorer(request: Request) -> Response:
    """The explorer."""
    return await _PAGES.response("index.html", request.scope)


@router.get("/ledger", dependencies=[PUBLIC])
async def ledger(request: Request) -> Response:
    """The budgets: a page over /budgets, which is the API."""
    return await _PAGES.response("ledger.html", request.scope)


@router.get("/reference", dependencies=[PUBLIC])
async def reference(request: Request) -> Response:
    """The API for reading, made from the OpenAPI document."""
    return await _PAGES.response("reference.html", request.scope)


@router.get("/docs", dependencies=[PUBLIC])
async def docs(request: Request) -> Response:
    """Swagger UI."""
    return await _PAGES.response("docs.html", request.scope)


@router.get("/openapi.json", dependencies=[PUBLIC])
async def openapi(request: Request) -> Response:
    """The API for programs; behind a path prefix it says so."""
    prefix = request.scope.get("root_path", "").rstrip("/")
    return Response(_encoded_openapi(request.app, prefix), media_type="application/json")


@lru_cache(maxsize=8)
def _encoded_openapi(app: FastAPI, prefix: str) -> bytes:
    document = app.openapi()
    return json.dumps(document | {"servers": [{"url": prefix}]} if prefix else document).encode()


class _PublicMount(Mount):
    needs = Requirement(frozenset())


router.routes.extend(_PublicMount(path, assets) for path, assets in _ASSETS.items())
