"""Work in two steps: some facts first, then the result, unless the work is stopped between them.

A worker reads a request once and keeps it between the steps, while the ledger decides whether the budget can
pay. The decision goes to the second step.
"""

import asyncio
from collections.abc import Coroutine, Generator
from concurrent.futures import CancelledError, Future, InvalidStateError
from typing import Any, Generic, TypeVar

from app.errors import Busy

__all__ = ["Steps", "StepsHere"]

F = TypeVar("F")
T = TypeVar("T")

# A worker waits no longer for a decision: others need it, even if the ledger is slow.
_DECISION_SECONDS = 5.0


class Steps(Generic[F, T]):
    """A generator in a worker. Call ``facts``, then ``finish`` or not, and in any case ``stop``."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._facts: asyncio.Future[F] = self._loop.create_future()
        self._decision: Future[Any] = Future()

    def follow(self, work: Coroutine[Any, Any, T]) -> None:
        """``work`` runs the generator, and calls ``ask`` from a thread with what it yields."""
        self._running = asyncio.create_task(work)
        self._running.add_done_callback(lambda _done: self._decision.cancel())

    def ask(self, facts: F) -> Any:
        """In a thread: what the generator goes on with; None if it does not go on."""
        self._loop.call_soon_threadsafe(self._set_facts, facts)
        try:
            return self._decision.result(_DECISION_SECONDS)
        except CancelledError:
            return None
        except TimeoutError:
            return None if self._decision.cancel() else self._decision.result()

    async def facts(self) -> F:
        """What the generator yields, or its exception."""
        either: set[asyncio.Future[Any]] = {self._running, self._facts}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not self._facts.done():
            self._running.result()
        return self._facts.result()

    async def finish(self, decision: object) -> T:
        """What the generator returns, after it got the decision. Raises Busy if the worker stopped waiting."""
        if not self._decide(decision):
            raise Busy
        return await self._running

    async def stop(self) -> None:
        """End the work, if it has not ended. A worker that waits for the decision stays alive for the next task."""
        if not self._facts.done() or not self._decide(None):
            self._running.cancel()
        await asyncio.wait({self._running})
        if not self._running.cancelled():
            self._running.exception()  # it was raised before, or nothing awaits it

    def _set_facts(self, facts: F) -> None:
        if not self._facts.done():
            self._facts.set_result(facts)

    def _decide(self, decision: object) -> bool:
        """Whether the decision was still open."""
        try:
            self._decision.set_result(decision)
        except InvalidStateError:
            return False
        return True


class StepsHere(Generic[F, T]):
    """The same for a generator that is fast enough for the event loop."""

    def __init__(self, steps: Generator[F, Any, T]) -> None:
        self._steps = steps

    async def facts(self) -> F:
        return next(self._steps)

    async def finish(self, decision: object) -> T:
        try:
            self._steps.send(decision)
        except StopIteration as stop:
            result: T = stop.value
            return result
        raise RuntimeError("a generator in two steps yields once")

    async def stop(self) -> None:
        self._steps.close()
