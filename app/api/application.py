"""FastAPI without the layers around every request that the service does not need."""

from fastapi import FastAPI
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.types import ASGIApp

__all__ = ["Application"]


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
