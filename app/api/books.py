"""The ledger, asked from the event loop: every call is made in a thread, for databases make one wait."""

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from app.api.problems import Busy
from app.ledger.errors import LedgerUnavailable
from app.ledger.opening import connections_of, is_postgres, open_ledger
from app.ledger.store import Ledger

__all__ = ["Books"]

T = TypeVar("T")

logger = logging.getLogger("app.ledger")

_MOST_WAITING = 512


class Books:
    """Opens the ledger when it is first asked, or asked again after it could not be opened."""

    def __init__(self, place: str, secret: str) -> None:
        self._place = place
        self._secret = secret
        self._connections = connections_of(place)
        self._threads = ThreadPoolExecutor(self._connections.threads, thread_name_prefix="ledger")
        self._opening = threading.Lock()
        self._ledger: Ledger | None = None
        self._room = _MOST_WAITING

    @property
    def exists(self) -> bool:
        """Whether there is a ledger, without making one; a server is taken to have one."""
        return self._ledger is not None or is_postgres(self._place) or Path(self._place).exists()

    async def start(self) -> None:
        """Make and migrate the ledger; where that fails now, requests will be told 503 until it succeeds."""
        try:
            await self.ask(lambda _ledger: None)
        except LedgerUnavailable:
            logger.warning("the ledger is unavailable")

    async def ask(self, work: Callable[[Ledger], T]) -> T:
        """What ``work`` says of the ledger."""
        if self._room == 0:
            raise Busy
        self._room -= 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._work, work)
        finally:
            self._room += 1

    def close(self) -> None:
        self._threads.shutdown(wait=True)
        self._connections.close()

    def _work(self, work: Callable[[Ledger], T]) -> T:
        with self._opening:
            if self._ledger is None:
                self._ledger = open_ledger(self._place, self._secret, self._connections)
            ledger = self._ledger
        return work(ledger)
