"""Heavy work of a request, so that it does not stall other requests.

Long series of cheap evaluations stay on the event loop, in slices. All other heavy work goes to a worker pool. Both end
when the client hangs up, and at their deadline. ``work_bounds`` refuses work that would never end in time.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Generator, Iterable
from typing import Any, Generic, ParamSpec, TypeVar

from fastapi import Request
from starlette.exceptions import HTTPException

from app.errors import DeadlinePassed
from app.workers.pool import WorkerPool
from app.workers.steps import Steps

__all__ = ["RequestWorkers", "StepsInPool", "in_pool", "in_slices"]

F = TypeVar("F")
P = ParamSpec("P")
T = TypeVar("T")

_SLICE_SECONDS = 0.001


class RequestWorkers:
    """A worker pool as one request uses it: a worker is stopped if the client hangs up."""

    def __init__(self, request: Request, pool: WorkerPool) -> None:
        self._request = request
        self.pool = pool

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of a function from a worker. The body must be read."""
        return await in_pool(self._request, self.pool, function, *args, **kwargs)

    def begin(
        self, function: Callable[P, Generator[F, Any, T]], *args: P.args, **kwargs: P.kwargs
    ) -> "StepsInPool[F, T]":
        """Start a generator in two steps in a worker. The body must be read."""
        return StepsInPool(self._request, self.pool.begin(function, *args, **kwargs))


class StepsInPool(Generic[F, T]):
    """A generator in a worker, in two steps; the worker is stopped if the client hangs up."""

    def __init__(self, request: Request, steps: Steps[F, T]) -> None:
        self._request = request
        self._steps = steps

    async def facts(self) -> F:
        return await _while_connected(self._request, self._steps.facts())

    async def finish(self, decision: object) -> T:
        return await _while_connected(self._request, self._steps.finish(decision))

    async def stop(self) -> None:
        await self._steps.stop()


async def in_pool(request: Request, pool: WorkerPool, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of a function from a worker. The worker is stopped if the client hangs up. The body must be read."""
    return await _while_connected(request, pool.run(function, *args, **kwargs))


async def in_slices(request: Request, results: Iterable[T], seconds: float) -> list[T]:
    """All results of a lazy series. Other requests get a turn every millisecond."""
    collected: list[T] = []
    series = iter(results)
    if not _slice(series, collected):
        await _while_connected(request, _further_slices(series, collected, seconds))
    return collected


async def _further_slices(series: Iterable[T], collected: list[T], seconds: float) -> None:
    ends = time.perf_counter() + seconds
    while not _slice(series, collected):
        if time.perf_counter() > ends:
            raise DeadlinePassed(seconds)
        await asyncio.sleep(0)


def _slice(series: Iterable[T], collected: list[T]) -> bool:
    """Collect for a millisecond; whether the series has ended."""
    ends = time.perf_counter() + _SLICE_SECONDS
    for result in series:
        collected.append(result)
        if time.perf_counter() > ends:
            return False
    return True


async def _while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of ``work``. It is cancelled if the client hangs up, or if this call is cancelled."""
    task, gone = asyncio.create_task(work), asyncio.create_task(_disconnected(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise HTTPException(400)  # the client has gone, so this is not a 5xx in the metrics
        return task.result()
    finally:
        task.cancel()
        gone.cancel()
        del task  # its exception would keep this frame, and this frame would keep the exception


async def _disconnected(request: Request) -> None:
    for _ in range(2):  # a request without a body still has an empty one
        if (await request.receive())["type"] == "http.disconnect":
            return
    await asyncio.Event().wait()
