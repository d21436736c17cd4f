"""create_app: the service with all its parts connected. Run as a program, it prints the OpenAPI document."""

import asyncio
import gc
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI

from app import openapi
from app.access import access_keys
from app.accounting import account, bound, calibrate, compare, engine, intervals, real_releases, utility
from app.approvals import approvals
from app.budgets import budgets
from app.errors import Busy
from app.http import health
from app.http.auth import Authorizer
from app.http.bodies import BodyQuotas
from app.http.dispatch import Application, Dispatcher
from app.http.json_route import DeclaredRoute
from app.http.metrics import Metrics, MetricsMiddleware
from app.http.middleware import GuardMiddleware
from app.http.problems import handlers
from app.http.protocol import ConnectionBounds
from app.http.services import Services
from app.ledger.errors import LedgerError
from app.ledger.pool import BudgetWatch, LedgerPool, LedgerProbe
from app.ledger.signing.signer import KeyPlace, Signer
from app.ledger.upkeep import HeadNotes, Tidying
from app.places import Places
from app.proof import keys as signing_keys
from app.proof import verified_files
from app.releases import bundles, engines, release, releases, table
from app.releases.making import ReleaseRules, Releases
from app.releases.payments import Payments
from app.settings import Settings
from app.version import VERSION
from app.web import endpoints as pages
from app.web import guide, not_found, problem_pages
from app.workers.fork_server import FORK_SERVER
from app.workers.pool import WorkerPool
from gsh.accounting.curve_cache import CurveCache
from gsh.histogram import quantiles

__all__ = ["ENDPOINTS", "WORKER_MODULES", "create_app"]

WORKER_MODULES = (
    "app.main",
    "app.workers.warm_up",
    "gsh.accounting.theorem",
    "gsh.accuracy.totals",
    "gsh.accuracy.utility",
)
"""What worker processes need, and is imported before they are forked: also SciPy, which the service itself does not."""

ENDPOINTS = (
    *(account, engine, bound, calibrate, compare, intervals, utility),
    *(release, table, releases, budgets, engines, bundles, approvals, access_keys),
    *(signing_keys, verified_files),
    *(real_releases, health, problem_pages, pages, guide),
)
"""Each has a router. Their order is the order of the OpenAPI document."""

_GC_THRESHOLDS = (20_000, 20, 20)
_MOST_DOWNLOADS = 64


def create_app(settings: Settings | None = None) -> FastAPI:
    """The service; settings come from the environment unless given."""
    settings = settings or Settings()
    cache = CurveCache(settings.cache_size)
    # Measured: a release of the largest table takes at most four times its size of memory. What a library asks for
    # without using it counts as well.
    process_memory = 6 * max(settings.max_table_bytes, settings.max_release_bytes)
    FORK_SERVER.preload(WORKER_MODULES)

    def worker_pool(name: str, seconds: float) -> WorkerPool:
        return WorkerPool(
            name, workers=settings.pool_processes, queue=settings.heavy_queue, memory=process_memory, seconds=seconds
        )

    ledger_pool = LedgerPool(settings.ledger, settings.ledger_secret.get_secret_value())
    metrics = Metrics(cache)
    authorizer = Authorizer(ledger_pool, open_access=settings.open_access, account_keys=settings.account_keys)
    bounds = ConnectionBounds(
        head_bytes=settings.max_head_bytes,
        head_seconds=settings.head_seconds,
        body_seconds=settings.body_seconds,
        connections=settings.max_connections,
        metrics=metrics,
    )
    most_epsilon, most_delta = settings.most_epsilon, settings.most_delta
    rules = ReleaseRules(
        require_budget=settings.require_budget,
        least_sigma=settings.least_sigma,
        most=None if most_epsilon is None or most_delta is None else (most_epsilon, most_delta),
    )
    signer = Signer(
        ledger_pool, KeyPlace(settings.ledger, settings.signing_key_file), settings.issuer, settings.public_url
    )
    notes = HeadNotes(ledger_pool, settings.heads_file, signer)
    services = Services(
        settings=settings,
        cache=cache,
        accounting=worker_pool("gsh-accounting", settings.heavy_seconds),
        release_workers=worker_pool("gsh-releases", settings.release_seconds),
        conversions=worker_pool("gsh-conversions", settings.release_seconds),
        verifications=WorkerPool(
            "gsh-verify",
            workers=1,
            queue=settings.heavy_queue,
            memory=verified_files.memory_of(settings.max_verify_bytes),
            seconds=settings.heavy_seconds,
        ),
        downloads=Places(_MOST_DOWNLOADS),
        metrics=metrics,
        ledger_pool=ledger_pool,
        authorizer=authorizer,
        ledger_probe=LedgerProbe(ledger_pool),
        signer=signer,
        budget_watch=BudgetWatch(ledger_pool),
    )

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[dict[str, ConnectionBounds]]:
        await ledger_pool.start()
        tidying = asyncio.create_task(Tidying(ledger_pool, settings.answer_days).run())
        with suppress(LedgerError, Busy):  # the first request that needs the keys tries again
            await signer.ready()
        quantiles.polynomials()  # made and proven now, so that the first release does not wait for it
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
    for module in ENDPOINTS:
        app.router.routes.extend(module.router.routes)  # with include_router each request would be matched twice
    app.router.route_class = DeclaredRoute
    app.router.middleware_stack = Dispatcher(app.router, authorizer, BodyQuotas(settings))
    app.add_middleware(GuardMiddleware)
    app.add_middleware(
        MetricsMiddleware, metrics=metrics, access_log=settings.access_log, untimed={"/release", "/release/table"}
    )
    handlers.install(app)
    not_found.install(app)
    openapi.complete(app)
    return app


if __name__ == "__main__":
    sys.stdout.write(json.dumps(create_app(Settings()).openapi(), indent=2, ensure_ascii=False) + "\n")
