"""What the service tells Prometheus: requests and latency by route and status, and the cache's hits and misses.

Labels are bounded and say nothing of what was posted: route templates, known methods, statuses.
"""

import logging
import os
import time

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.accounting.curves import CurveCache

__all__ = ["Metrics", "MetricsMiddleware"]

logger = logging.getLogger("app.access")

_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """The service's counters. With several workers (``PROMETHEUS_MULTIPROC_DIR``) a scrape adds them all up."""

    def __init__(self, cache: CurveCache) -> None:
        self._cache = cache
        self._one_of_many = "PROMETHEUS_MULTIPROC_DIR" in os.environ
        self._counted_hits = self._counted_misses = 0
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "gsh_requests", "Requests answered", ["method", "route", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "gsh_request_seconds",
            "Time to answer",
            ["method", "route", "status"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._hits = Counter("gsh_cache_hits", "Curve points found in the cache", registry=self._registry)
        self._misses = Counter("gsh_cache_misses", "Curve points evaluated", registry=self._registry)
        self._children: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        key = (method, route, status)
        if key not in self._children:
            self._children[key] = self._requests.labels(*key), self._seconds.labels(*key)
        count, duration = self._children[key]
        count.inc()
        duration.observe(seconds)
        if self._one_of_many:  # another worker may be scraped before this one is
            self._observe_cache()

    def exposition(self) -> bytes:
        """All metrics, in Prometheus' text format."""
        self._observe_cache()
        registry = self._registry
        if self._one_of_many:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)

    def _observe_cache(self) -> None:
        hits, misses = self._cache.hits, self._cache.misses
        if hits != self._counted_hits:
            self._hits.inc(hits - self._counted_hits)
            self._counted_hits = hits
        if misses != self._counted_misses:
            self._misses.inc(misses - self._counted_misses)
            self._counted_misses = misses


class MetricsMiddleware:
    """Times every request; logs a line for each where that is asked for."""

    def __init__(self, app: ASGIApp, metrics: Metrics, access_log: bool) -> None:
        self._app = app
        self._metrics = metrics
        self._access_log = access_log

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
            seconds = time.perf_counter() - started
            method = scope["method"] if scope["method"] in _METHODS else "other"
            route = getattr(scope.get("route"), "path", "none")
            self._metrics.observe(method, route, status, seconds)
            if self._access_log:
                logger.info(
                    "request", extra={"method": method, "route": route, "status": status, "seconds": round(seconds, 6)}
                )
