"""The ledger for the event loop. Every call runs in a thread, because databases make their callers wait.

Charges, readings and verifications have threads of their own, so a reader never waits for a writer.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from app.errors import Busy
from app.ledger.clock import now
from app.ledger.errors import LedgerUnavailable
from app.ledger.opening import connections_of, exists, open_ledger
from app.ledger.pace import Standing
from app.ledger.store import Ledger
from app.places import Places

__all__ = ["BudgetWatch", "LedgerPool", "LedgerProbe"]

T = TypeVar("T")

logger = logging.getLogger("app.ledger")

_MOST_WAITING = 512
_READERS = 2


class _Threads:
    """Some threads, and a bound on how many calls may run or wait."""

    def __init__(self, threads: int, name: str) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._places = Places(_MOST_WAITING)

    async def run(self, work: Callable[[], T]) -> T:
        with self._places.taken():
            context = copy_context()  # the log lines of the thread name the request
            return await asyncio.get_running_loop().run_in_executor(self._threads, context.run, work)

    def close(self) -> None:
        self._threads.shutdown(wait=True)


class LedgerPool:
    """Opens the ledger at its first use, and tries again at the next use if that failed."""

    def __init__(self, place: str, secret: str) -> None:
        self._place = place
        self._secret = secret
        self._connections = connections_of(place)
        self._writing = _Threads(self._connections.threads, "ledger-writing")
        self._reading = _Threads(_READERS, "ledger-reading")
        self._fetching = _Threads(_READERS, "ledger-fetching")
        self._admitting = _Threads(1, "ledger-admitting")
        self._deciding = _Threads(1, "ledger-deciding")
        self._auditing = _Threads(1, "ledger-auditing")
        self._probing = _Threads(1, "ledger-probing")
        self._opening = threading.Lock()
        self._ledger: Ledger | None = None

    @property
    def exists(self) -> bool:
        """Whether there is a ledger, without making one."""
        return self._ledger is not None or exists(self._place)

    async def start(self) -> None:
        """Make and migrate the ledger. If that fails now, requests get 503 until it succeeds."""
        try:
            await self.ask(lambda _ledger: None)
        except LedgerUnavailable as error:
            logger.warning("the ledger is unavailable: %s", error)

    async def ask(self, work: Callable[[Ledger], T]) -> T:
        """The result of ``work``, which may write to the ledger."""
        return await self._writing.run(lambda: self._work(work))

    async def read(self, work: Callable[[Ledger], T]) -> T:
        """The result of ``work``, which only reads, and little."""
        return await self._reading.run(lambda: self._work(work))

    async def fetch(self, work: Callable[[Ledger], T]) -> T:
        """The result of ``work``, which reads or hashes much: a whole answer, or a whole request."""
        return await self._fetching.run(lambda: self._work(work))

    async def admit(self, work: Callable[[Ledger], T]) -> T:
        """The result of ``work``, which reads access keys. Admission never waits for the work of admitted requests."""
        return await self._admitting.run(lambda: self._work(work))

    async def decide(self, work: Callable[[Ledger], T]) -> T:
        """The result of ``work``, which reads two rows. A worker waits for it, so it never waits for other readers."""
        return await self._deciding.run(lambda: self._work(work))

    async def audit(self, work: Callable[[Ledger], T]) -> T:
        """The result of ``work``, which reads a whole history: one at a time, so other readers find a free thread."""
        return await self._auditing.run(lambda: self._work(work))

    async def probe(self) -> None:
        """Read one row, in a thread of its own: it may hang while the ledger does. An error says what is wrong."""
        await self._probing.run(self._probe)

    def close(self) -> None:
        reading = (self._reading, self._fetching, self._admitting, self._deciding, self._auditing, self._probing)
        for threads in (self._writing, *reading):
            threads.close()
        self._connections.close()

    def _probe(self) -> None:
        self._work(lambda _ledger: None)
        with self._connections.reading() as execute:
            execute(self._connections.statements.fact, ("secret",))

    def _work(self, work: Callable[[Ledger], T]) -> T:
        ledger = self._ledger
        if ledger is None:
            with self._opening:  # the first thread opens it for all
                ledger = self._ledger = self._ledger or open_ledger(self._place, self._secret, self._connections)
        return work(ledger)


_FRESH_SECONDS = 1.0
_PATIENCE = 1.0


class LedgerProbe:
    """Asks the ledger at most once a second, and gives all callers the same answer."""

    def __init__(
        self, ledger_pool: LedgerPool, *, patience: float = _PATIENCE, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ledger_pool = ledger_pool
        self._patience = patience
        self._clock = clock
        self._asked_at = float("-inf")
        self._question: asyncio.Task[str | None] | None = None

    async def fault(self) -> str | None:
        """Why the ledger does not answer, for the log; None if it does."""
        if self._question is None or (self._question.done() and self._clock() - self._asked_at > _FRESH_SECONDS):
            self._asked_at = self._clock()
            self._question = asyncio.create_task(self._ask())
        question = self._question
        if not question.done():
            await asyncio.wait({question}, timeout=max(0.0, self._asked_at + self._patience - self._clock()))
        if not question.done():
            return f"it did not answer within {self._patience:g} seconds"
        return "the question was cut off" if question.cancelled() else question.result()

    async def _ask(self) -> str | None:
        try:
            await self._ledger_pool.probe()
        except LedgerUnavailable as error:
            return str(error)
        return None


_WATCH_SECONDS = 15.0


class BudgetWatch:
    """What the metrics show of all budgets: read at most four times a minute, and waited for at most a second."""

    def __init__(self, ledger_pool: LedgerPool, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._ledger_pool = ledger_pool
        self._clock = clock
        self._read_at = float("-inf")
        self._reading: asyncio.Task[None] | None = None
        self._standings: list[Standing] = []

    async def standings(self) -> list[Standing]:
        """Those that were read last."""
        reading = self._reading
        if reading is None or (reading.done() and self._clock() - self._read_at > _WATCH_SECONDS):
            self._read_at = self._clock()
            self._reading = reading = asyncio.create_task(self._read())
        if not reading.done():
            await asyncio.wait({reading}, timeout=_PATIENCE)
        return self._standings

    async def _read(self) -> None:
        try:
            self._standings = await self._ledger_pool.audit(lambda ledger: ledger.standings(now()))
        except (LedgerUnavailable, Busy) as error:
            logger.warning("the metrics of budgets are not up to date: %s", error)
