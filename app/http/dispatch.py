"""The only way to an endpoint: find the route, check its declared scopes, call it. An undeclared route is refused."""

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from app.http.auth import Authorizer
from app.http.bodies import Body, BodyLimit, BodyQuotas
from app.http.problems.errors import InvalidQuery, is_plain

__all__ = ["Application", "Dispatcher"]

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
        _check_query(scope, route)
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


def _check_query(scope: Scope, route: BaseRoute) -> None:
    """Refuse parameters that an operation does not have. Pages are not checked: they keep their state in the query."""
    if not scope["query_string"] or not isinstance(route, APIRoute) or not route.include_in_schema:
        return
    known = {parameter.alias for parameter in route.dependant.query_params}
    unknown = [name for name in QueryParams(scope["query_string"]) if name not in known]
    if all(is_plain(name) for name in unknown):
        faults = [(name, "is not a parameter of this operation") for name in unknown]
    else:
        faults = [("", "has a parameter that is not part of this operation")]
    if faults:
        raise InvalidQuery(*faults)


class Application(FastAPI):
    """Its layers are those that are added, and then the handlers of exceptions.

    FastAPI has three more: one answers after unexpected errors, as GuardMiddleware does, one reports to telemetry, and
    one closes files of a form, which only FastAPI's own routes need (json_route.py).
    """

    def build_middleware_stack(self) -> ASGIApp:
        handlers = {kind: handler for kind, handler in self.exception_handlers.items() if kind not in (500, Exception)}
        app: ASGIApp = ExceptionMiddleware(self.router.middleware_stack, handlers=handlers)
        for layer, args, kwargs in reversed(self.user_middleware):
            app = layer(app, *args, **kwargs)
        return app
