"""Note the heads of all budgets and the seal of the access keys each hour, at the start and at the stop.

They go to a file, or to the log. Of several processes only one notes each change.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from app.errors import Busy
from app.ledger.clock import now
from app.ledger.errors import LedgerUnavailable, reason_of
from app.ledger.heads import ACCESS_KEYS, Heads, HeadsFile, Note
from app.ledger.pool import LedgerPool
from app.ledger.store import Ledger

__all__ = ["HeadNotes"]

logger = logging.getLogger("app.heads")

_HOUR = 3600.0
_STOP_SECONDS = 5.0


class HeadNotes:
    """Without a file, notes are log lines, and the ledger remembers which heads were logged."""

    def __init__(
        self,
        ledger_pool: LedgerPool,
        file: str,
        *,
        clock: Callable[[], str] = now,
        wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._ledger_pool = ledger_pool
        self._file = HeadsFile(Path(file)) if file else None
        self._clock = clock
        self._wait = wait
        self._works = False

    async def run(self) -> None:
        """Note now, and then every hour."""
        while True:
            await self.note()
            await self._wait(_HOUR)

    async def stop(self) -> None:
        """Note for the last time, unless that is likely to wait in vain."""
        if self._works:
            await asyncio.wait({asyncio.ensure_future(self.note())}, timeout=_STOP_SECONDS)

    async def note(self) -> None:
        """Note what has changed. A failure is logged, and the next hour tries again.

        If the ledger was not there before either, the log says so already.
        """
        worked, self._works = self._works, False
        try:
            noted, notes = await self._ledger_pool.audit(self._changes)
        except Busy:
            logger.warning("the heads were not noted: too many verifications wait")
        except LedgerUnavailable as error:
            if worked:
                logger.warning("the heads were not noted: %s", error)
        except OSError as error:
            logger.error("the heads were not noted: GSH_HEADS_FILE: %s", reason_of(error))
        else:
            self._works = True
            self._log(noted, notes)

    def _changes(self, ledger: Ledger) -> tuple[Heads, list[Note]]:
        if self._file is None:
            return ledger.heads.claim(self._clock())
        return self._file.note(ledger.heads.read, self._clock())

    def _log(self, noted: Heads, notes: list[Note]) -> None:
        for note in notes:
            if self._file is None:
                logger.info("head", extra={"at": note.at} | note.fields)
            before = noted.get(note.name)
            if note.name != ACCESS_KEYS and before is not None and note.head.size <= before.size:
                logger.error(
                    "a history is not a continuation of what was noted: run python -m app.verify", extra=note.fields
                )
