"""The service's counters for Prometheus: requests and latency by route and status, refusals, cache hits and misses,
whether the ledger answers, and how much of the budgets is used.

Labels are bounded and never depend on what was posted: route templates, known methods, statuses. How long a release
takes depends on how many groups were posted, also on those that are dropped. So its duration is not measured.
"""

import logging
import os
import time
from collections.abc import Collection, Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.ledger.pace import Standing
from gsh.accounting.curve_cache import CurveCache

__all__ = ["Metrics", "MetricsMiddleware"]

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
        self._refusals = Counter(
            "gsh_access_refusals", "Requests refused by access control", ["reason"], registry=self._registry
        )
        self._connections = Counter(
            "gsh_connection_refusals",
            "Connections closed before a complete request",
            ["status"],
            registry=self._registry,
        )
        # The answer of the last worker that asked: all of them have the same ledger.
        self._ledger_up = Gauge(
            "gsh_ledger_up",
            "Whether the ledger answers: 1 or 0",
            registry=self._registry,
            multiprocess_mode="mostrecent",
        )
        self._budgets = _Budgets()
        if not self._one_of_many:
            self._registry.register(self._budgets)
        self._children: dict[tuple[str, str, int], tuple[Counter, Histogram | None]] = {}

    def observe(self, method: str, route: str, status: int, seconds: float | None) -> None:
        """One request; ``seconds`` is None if its duration must not be known."""
        key = (method, route, status)
        children = self._children.get(key)
        if children is None:
            timed = None if seconds is None else self._seconds.labels(*key)
            children = self._children[key] = self._requests.labels(*key), timed
        count, duration = children
        count.inc()
        if duration is not None and seconds is not None:
            duration.observe(seconds)
        if self._one_of_many:  # another worker may be scraped before this one is
            self._observe_cache()

    def refuse(self, reason: str) -> None:
        """One request that access control refused."""
        self._refusals.labels(reason).inc()

    def refuse_connection(self, status: int) -> None:
        """One connection that was closed before a complete request."""
        self._connections.labels(status).inc()

    def show_ledger(self, *, is_up: bool) -> None:
        """Whether the ledger answers now."""
        self._ledger_up.set(is_up)

    def show_budgets(self, standings: Sequence[Standing], *, by_name: bool) -> None:
        """How much of each budget is used now; without names, of the one that is used most."""
        self._budgets.standings, self._budgets.by_name = standings, by_name

    def exposition(self) -> bytes:
        """All metrics, in Prometheus' text format."""
        self._observe_cache()
        registry = self._registry
        if self._one_of_many:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
            registry.register(self._budgets)
        return generate_latest(registry)

    def _observe_cache(self) -> None:
        hits, misses = self._cache.hits, self._cache.misses
        if hits != self._counted_hits:
            self._hits.inc(hits - self._counted_hits)
            self._counted_hits = hits
        if misses != self._counted_misses:
            self._misses.inc(misses - self._counted_misses)
            self._counted_misses = misses


class _Budgets(Collector):
    """Gauges of the budgets. They are read from the ledger, so each worker has those of all."""

    standings: Sequence[Standing] = ()
    by_name: bool = False

    def collect(self) -> Iterator[GaugeMetricFamily]:
        labels = ["budget"] if self.by_name else []
        used = GaugeMetricFamily("gsh_budget_used", "Used share of a cap, from 0 to 1", labels=[*labels, "cap"])
        left = GaugeMetricFamily("gsh_budget_days_left", "Days until a budget ends at its present rate", labels=labels)
        for each in self.standings if self.by_name else _foremost(self.standings):
            name = [each.budget] if self.by_name else []
            used.add_metric([*name, "mu_squared"], each.mu_squared)
            used.add_metric([*name, "hazard"], each.hazard)
            if each.days_left is not None:
                left.add_metric(name, each.days_left)
        yield used
        yield left


def _foremost(standings: Sequence[Standing]) -> list[Standing]:
    """The largest used shares and the fewest days of all budgets."""
    if not standings:
        return []
    noise, threshold = max(each.mu_squared for each in standings), max(each.hazard for each in standings)
    days = [each.days_left for each in standings if each.days_left is not None]
    return [Standing("", noise, threshold, min(days, default=None))]


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
