"""The pages, and GET /openapi.json. The pages load from this service alone; headers enforce it.

Every URL in them is relative, so that they work behind a path prefix and a TLS proxy. Plotly and Swagger UI come from
installed packages.
"""

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any, Literal

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import Response

from app.http.auth import PUBLIC
from app.http.headers import page_headers
from app.http.json_route import DeclaredRoute
from app.http.services import services_of
from app.ledger.errors import LedgerUnavailable
from app.web.assets import Assets, Content, PublicMount, package_folder
from app.web.pages import PAGES, html

__all__ = ["router"]

router = APIRouter(include_in_schema=False, route_class=DeclaredRoute)

# Plotly inserts an empty <style> and fills it by script. This is the hash of the empty text.
_EMPTY = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
_HEADERS = page_headers(
    script_src="'self'",
    style_src=f"'self' {_EMPTY}",
    img_src="'self' data: blob:",  # downloads of plots, and the icons of Swagger UI
    connect_src="'self'",
)
_ASSETS = {
    "/web": Assets(package_folder("app.web"), (".css", ".js", ".svg"), _HEADERS),
    "/plotly": Assets(package_folder("plotly", "package_data"), ("plotly.min.js",), _HEADERS),
    "/swagger": Assets(package_folder("fastapi_swagger", "resources"), (".css", ".js", ".png"), _HEADERS),
}


def _endpoint(content: Content) -> Callable[[Request], Awaitable[Response]]:
    async def page(request: Request) -> Response:
        return content.response(request.scope, _HEADERS)

    return page


for each in PAGES:
    content = Content.of(html(each).encode(), "text/html")
    router.add_api_route(f"/{each.path.removeprefix('.')}", _endpoint(content), dependencies=[PUBLIC])


@router.get("/openapi.json", dependencies=[PUBLIC])
async def openapi(request: Request, padlocks: Literal["now"] | None = None) -> Response:
    """The API for programs. Behind a path prefix, its server URL is that prefix.

    With ``padlocks=now``, for Swagger UI, only operations that need an access key now have a security requirement.
    """
    services = services_of(request)
    keys_made = None
    if padlocks == "now":
        with suppress(LedgerUnavailable):  # then it stays the contract: a key may be needed
            keys_made = await services.authorizer.keys_made()
    prefix = request.scope.get("root_path", "").rstrip("/")
    content = _openapi(request.app, prefix, keys_made, services.settings.account_keys)
    return content.response(request.scope, {"Cache-Control": "no-cache"})


@lru_cache(maxsize=8)
def _openapi(app: FastAPI, prefix: str, keys_made: bool | None, account_keys: bool) -> Content:
    document = app.openapi()
    if keys_made is not None:
        document = _with_padlocks(app, document, keys_made=keys_made, account_keys=account_keys)
    if prefix:
        document = document | {"servers": [{"url": prefix}]}
    return Content.of(json.dumps(document).encode(), "application/json")


def _with_padlocks(app: FastAPI, document: dict[str, Any], *, keys_made: bool, account_keys: bool) -> dict[str, Any]:
    """The document with a security requirement only where a request without an access key is refused now.

    The contract says where a key can be needed. Whether it is depends on the service: on its first access key, and on
    its settings.
    """
    scopes = {
        route.operation_id: frozenset() if route.needs is None else route.needs.scopes
        for route in app.routes
        if isinstance(route, DeclaredRoute)
    }

    def locked(operation: dict[str, Any]) -> dict[str, Any]:
        open_one = {name: value for name, value in operation.items() if name != "security"}
        needed = scopes[operation["operationId"]]
        if not keys_made or not needed:
            return open_one
        if needed != {"account"} or account_keys:
            return open_one | {"security": [{"accessKey": []}]}
        # Accounting is open. But a body that names a budget, which can be unknown, needs the access key of the budget.
        return operation if "404" in operation["responses"] else open_one

    paths = {
        path: {method: locked(operation) for method, operation in operations.items()}
        for path, operations in document["paths"].items()
    }
    components = document["components"]
    if not any("security" in each for operations in paths.values() for each in operations.values()):
        components = {name: value for name, value in components.items() if name != "securitySchemes"}
    return document | {"paths": paths, "components": components}


router.routes.extend(PublicMount(path, assets) for path, assets in _ASSETS.items())
