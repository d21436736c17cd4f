"""What endpoints of all rooms share: settings, cache, worker pools, metrics, the ledger and the authorizer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, Protocol, TypeVar

from fastapi import Request

from app.http.auth import Authorizer
from app.http.metrics import Metrics
from app.http.workload import in_pool
from app.ledger.pool import BudgetWatch, LedgerPool, LedgerProbe
from app.ledger.signing.signer import Signer
from app.places import Places
from app.settings import Settings
from app.workers.pool import WorkerPool
from app.workers.work_bounds import AT_ONCE
from gsh.accounting.curve_cache import CurveCache

__all__ = ["Services", "services_of"]

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class _Described(Protocol[T_co]):
    """A schema of a value of the library."""

    def to_domain(self) -> T_co: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    settings: Settings
    cache: CurveCache
    accounting: WorkerPool
    """The worker pool for accounting."""
    release_workers: WorkerPool
    """The worker pool for releases. Another one: how long accounting waits must not reveal how large a release is."""
    conversions: WorkerPool
    """The worker pool for stored answers in another format: they cost nothing, and must not keep releases waiting."""
    verifications: WorkerPool
    """The worker pool for files that anybody sends: neither accounting nor releases wait for it."""
    downloads: Places
    """For answers that are being sent: each is a file until the client has read it."""
    metrics: Metrics
    ledger_pool: LedgerPool
    authorizer: Authorizer
    ledger_probe: LedgerProbe
    budget_watch: BudgetWatch
    signer: Signer

    async def to_domain(self, request: Request, schema: _Described[T_co], work: float, pool: WorkerPool) -> T_co:
        """The value that a schema describes. A worker makes it if its ``work`` takes long."""
        return await in_pool(request, pool, schema.to_domain) if work > AT_ONCE else schema.to_domain()

    async def made(self, request: Request, work: float, make: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What a function makes. A worker of the pool for accounting makes it if its ``work`` takes long."""
        return (
            await in_pool(request, self.accounting, make, *args, **kwargs) if work > AT_ONCE else make(*args, **kwargs)
        )

    def close_pools(self) -> None:
        self.accounting.close()
        self.release_workers.close()
        self.conversions.close()
        self.verifications.close()


def services_of(request: Request) -> Services:
    services: Services = request.app.state.services
    return services
