"""Does the ledger answer? Asked at most once a second, and never waited for longer than a second."""

import asyncio
import time
from collections.abc import Callable

from app.ledger.errors import LedgerUnavailable
from app.ledger.pool import LedgerPool

__all__ = ["LedgerProbe"]

_FRESH_SECONDS = 1.0
_PATIENCE = 1.0


class LedgerProbe:
    """One question at a time, for everyone who asks: a flood of probes is no flood for the ledger."""

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
