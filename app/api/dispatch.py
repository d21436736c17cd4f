"""The only way to an endpoint: find the route, check its declared scopes, call it. An undeclared route is refused."""

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

from app.api.auth import Authorizer
from app.api.bodies import Body, BodyLimit, BodyQuotas
from app.api.query import check_query

__all__ = ["Dispatcher"]

_NO_LIMIT_DECLARED = BodyLimit()


class Dispatcher:
    """Replaces the router's own search, so no path can avoid the authorizer."""

    def __init__(self, router: APIRouter, authorizer: Authorizer, quotas: BodyQuotas) -> None:
        self._router = router
        self._authorizer = authorizer
        self._quotas = quotas
        self._plain: dict[tuple[str, str], Route] = {}
        """Routes without parameters that were found before, by method and path."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._router.lifespan(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close"})
        assert isinstance(receive, Body)  # from GuardMiddleware; in the scope it would be a cycle of references
        route = self._route(scope)
        await self._authorizer.enter(scope, getattr(route, "needs", None))
        check_query(scope, route)
        receive.bind(getattr(route, "body_limit", _NO_LIMIT_DECLARED), self._quotas)
        return await route.handle(scope, receive, send)

    def _route(self, scope: Scope) -> BaseRoute:
        """The route for this path and method. Starlette's patterns also match a path that ends with a line end."""
        if not scope["path"].isprintable():
            raise HTTPException(404)
        asked = scope["method"], scope["path"]
        plain = None if scope.get("root_path") else self._plain.get(asked)
        if plain is not None:
            scope.update(endpoint=plain.endpoint, path_params={}, route=plain)
            return plain
        others: list[tuple[BaseRoute, Scope]] = []
        for route in self._router.routes:
            match, found = route.matches(scope)
            if match is Match.FULL:
                scope.update(found)
                scope["route"] = route
                if isinstance(route, Route) and route.path == scope["path"] and not route.param_convertors:
                    self._plain[asked] = route
                return route
            if match is Match.PARTIAL:
                others.append((route, found))
        if not others:
            raise HTTPException(404)
        scope.update(others[0][1])
        scope["route"] = others[0][0]
        methods = {method for route, _ in others for method in getattr(route, "methods", ())}
        raise HTTPException(405, headers={"Allow": ", ".join(sorted(methods))})
