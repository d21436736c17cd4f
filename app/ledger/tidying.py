"""Once an hour: purge the answers whose retention period has passed, and answers that were never charged.

Once a minute: overwrite deleted seeds, if a reader of the database was in the way when they were deleted.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable

from app.errors import Busy
from app.ledger.clock import after, now
from app.ledger.errors import LedgerUnavailable
from app.ledger.pool import LedgerPool
from app.ledger.store import Ledger

__all__ = ["Tidying"]

logger = logging.getLogger("app.ledger")

_MINUTE, _HOUR = 60.0, 3600.0
_DAY = 24 * _HOUR
# A release is charged within seconds after its answer is written. If its process died, nothing charges it.
_ABANDONED_SECONDS = 6 * _HOUR


class Tidying:
    """Every process may do it: what one has done, the others find done."""

    def __init__(self, ledger_pool: LedgerPool, answer_days: int | None, clock: Callable[[], str] = now) -> None:
        self._ledger = ledger_pool
        self._answer_days = answer_days
        self._clock = clock

    async def run(self) -> None:
        """Until it is cancelled. At first a minute passes: a service that starts has other work."""
        for minute in itertools.count(1):
            await asyncio.sleep(_MINUTE)
            try:
                await self._ledger.ask(Ledger.forget_again)
                if minute % 60 == 1:
                    await self.once()
            except (LedgerUnavailable, Busy) as error:
                logger.warning("the ledger was not tidied: %s", error)

    async def once(self) -> None:
        """Step by step, so that charges have their turn."""
        at = self._clock()
        if self._answer_days is not None:
            outdated = after(at, -self._answer_days * _DAY)

            def erase(ledger: Ledger) -> int:
                return ledger.erase_answers(outdated, at)

            erased = 0
            while more := await self._ledger.ask(erase):
                erased += more
            if erased:
                logger.info("erased %d answers that were kept for %d days", erased, self._answer_days)
        abandoned = after(at, -_ABANDONED_SECONDS)
        while await self._ledger.ask(lambda ledger: ledger.remove_abandoned(abandoned)):
            pass
