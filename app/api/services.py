"""What endpoints share: the settings, the cache, the threads for heavy work, the metrics, and the ledger."""

from dataclasses import dataclass
from typing import Protocol, TypeVar

from fastapi import Request

from app.accounting.curves import CurveCache
from app.api.access import Gate
from app.api.books import Books
from app.api.workload import Workshop
from app.metrics import Metrics
from app.settings import Settings

__all__ = ["Services", "services_of"]

T_co = TypeVar("T_co", covariant=True)


class _Described(Protocol[T_co]):
    """A schema that becomes a value of the core, at some cost where its covariance is wide."""

    @property
    def is_wide(self) -> bool: ...

    def to_domain(self) -> T_co: ...


@dataclass(frozen=True, slots=True)
class Services:
    settings: Settings
    cache: CurveCache
    workshop: Workshop
    metrics: Metrics
    books: Books
    gate: Gate

    async def to_domain(self, schema: _Described[T_co]) -> T_co:
        """The value that a schema describes, made in another process if that takes long."""
        return await self.workshop.in_process(schema.to_domain) if schema.is_wide else schema.to_domain()


def services_of(request: Request) -> Services:
    services: Services = request.app.state.services
    return services
