"""create_app: the service with all its parts connected. Run as a program, it prints the OpenAPI document."""

import asyncio
import gc
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from app.accounting import account, bound, calibrate, compare, intervals, real_releases, utility
from app.budgets import budgets
from app.http import health, problems
from app.http.auth import Authorizer
from app.http.bodies import BodyQuotas
from app.http.dispatch import Application, Dispatcher
from app.http.json_route import DeclaredRoute
from app.http.metrics import Metrics, MetricsMiddleware
from app.http.middleware import GuardMiddleware
from app.http.protocol import ConnectionBounds
from app.http.services import Services
from app.ledger.head_notes import HeadNotes
from app.ledger.pool import LedgerPool, LedgerProbe
from app.ledger.tidying import Tidying
from app.openapi import document as openapi
from app.releases import charges, open_releases, release, releases, table
from app.releases.making import ReleaseRules, Releases
from app.releases.payments import Payments
from app.settings import Settings
from app.version import VERSION
from app.web import endpoints as pages
from app.web import problem_pages
from app.workers.fork_server import FORK_SERVER
from app.workers.places import Places
from app.workers.pool import WorkerPool
from gsh.accounting.curve_cache import CurveCache
from gsh.histogram import quantiles

__all__ = ["WORKER_MODULES", "create_app"]

WORKER_MODULES = (
    "app.main",
    "app.workers.warm_up",
    "gsh.accounting.theorem",
    "gsh.accuracy.totals",
    "gsh.accuracy.utility",
)
"""What worker processes need, and is imported before they are forked: also SciPy, which the service itself does not."""

_GC_THRESHOLDS = (20_000, 20, 20)
_MOST_DOWNLOADS = 64


def create_app(settings: Settings | None = None) -> FastAPI:
    """The service; settings come from the environment unless given."""
    settings = settings or Settings()
    cache = CurveCache(settings.cache_size)
    # Measured: a release of the largest table takes at most four times its size of memory. What a library asks for
    # without using it counts as well.
    process_memory = 6 * max(settings.max_table_bytes, settings.max_release_bytes)
    workers, queue = settings.pool_processes, settings.heavy_queue
    asked = (account, bound, calibrate, compare, intervals, utility)
    paid_for = (releases, open_releases, budgets, charges)
    heavy = (*asked, release, table, *paid_for)
    FORK_SERVER.preload(WORKER_MODULES)
    accounting = WorkerPool("gsh-accounting", workers, queue, process_memory, settings.heavy_seconds)
    release_workers = WorkerPool("gsh-releases", workers, queue, process_memory, settings.release_seconds)
    conversions = WorkerPool("gsh-conversions", workers, queue, process_memory, settings.release_seconds)
    ledger_pool = LedgerPool(settings.ledger, settings.ledger_secret.get_secret_value())
    metrics = Metrics(cache)
    authorizer = Authorizer(ledger_pool, open_access=settings.open_access, account_keys=settings.account_keys)
    bounds = ConnectionBounds(
        settings.max_head_bytes, settings.head_seconds, settings.body_seconds, settings.max_connections, metrics
    )
    most_epsilon, most_delta = settings.most_epsilon, settings.most_delta
    rules = ReleaseRules(
        settings.require_budget,
        settings.least_sigma,
        None if most_epsilon is None or most_delta is None else (most_epsilon, most_delta),
    )
    notes = HeadNotes(ledger_pool, settings.heads_file)
    services = Services(
        settings=settings,
        cache=cache,
        accounting=accounting,
        release_workers=release_workers,
        conversions=conversions,
        downloads=Places(_MOST_DOWNLOADS),
        metrics=metrics,
        ledger_pool=ledger_pool,
        authorizer=authorizer,
        ledger_probe=LedgerProbe(ledger_pool),
    )

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[dict[str, ConnectionBounds]]:
        await ledger_pool.start()
        tidying = asyncio.create_task(Tidying(ledger_pool, settings.answer_days).run())
        quantiles.table()  # made and proven now, so that the first release does not wait for it
        # All objects made so far stay. The collector need not visit them, and the cache's values form no cycles.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*_GC_THRESHOLDS)
        noting = asyncio.create_task(notes.run())
        yield {"connection_bounds": bounds}
        tidying.cancel()
        services.close_pools()
        noting.cancel()
        await notes.stop()
        ledger_pool.close()

    app = Application(
        title=openapi.TITLE,
        summary=openapi.SUMMARY,
        description=openapi.DESCRIPTION,
        servers=openapi.SERVERS,
        openapi_tags=openapi.TAGS,
        version=VERSION,
        lifespan=lifespan,
        openapi_url=None,  # the pages' router has it, declared like every other route
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False},  # /metrics has all measurements
    )
    app.state.services = services
    app.state.releases = Releases(Payments(ledger_pool), rules)
    for module in (*heavy, real_releases, health, problem_pages, pages):
        app.router.routes.extend(module.router.routes)  # with include_router each request would be matched twice
    app.router.route_class = DeclaredRoute
    app.router.middleware_stack = Dispatcher(app.router, authorizer, BodyQuotas(settings))
    app.add_middleware(GuardMiddleware)
    app.add_middleware(
        MetricsMiddleware, metrics=metrics, access_log=settings.access_log, untimed={"/release", "/release/table"}
    )
    problems.install(app)
    openapi.complete(app)
    return app


if __name__ == "__main__":
    sys.stdout.write(json.dumps(create_app(Settings()).openapi(), indent=2, ensure_ascii=False) + "\n")
