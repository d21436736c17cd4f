"""Counts and times requests, and logs a line for each if that is set."""

import logging
import time
from collections.abc import Collection

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.metrics import Metrics

__all__ = ["MetricsMiddleware"]

logger = logging.getLogger("app.access")

_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


class MetricsMiddleware:
    """The duration of requests to ``untimed`` routes is neither counted nor logged."""

    def __init__(self, app: ASGIApp, metrics: Metrics, access_log: bool, untimed: Collection[str]) -> None:
        self._app = app
        self._metrics = metrics
        self._access_log = access_log
        self._untimed = untimed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        started = time.perf_counter()
        status = 500

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, observed)
        finally:
            method = scope["method"] if scope["method"] in _METHODS else "other"
            route = getattr(scope.get("route"), "path", "none")
            seconds = None if route in self._untimed else time.perf_counter() - started
            self._metrics.observe(method, route, status, seconds)
            if self._access_log:
                line = {"method": method, "route": route, "status": status}
                logger.info("request", extra=line if seconds is None else line | {"seconds": round(seconds, 6)})
