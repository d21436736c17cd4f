"""What a running service does for its ledger by itself: it notes heads, purges old answers, and overwrites seeds."""

import asyncio
import itertools
import json
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from app.errors import Busy
from app.ledger.auditing.heads import ACCESS_KEYS, Heads, HeadsFile, Note
from app.ledger.clock import after, now
from app.ledger.errors import LedgerUnavailable, reason_of
from app.ledger.pool import LedgerPool
from app.ledger.signing.signer import Signer
from app.ledger.store import Ledger

__all__ = ["HeadNotes", "Tidying"]

heads_logger = logging.getLogger("app.heads")
ledger_logger = logging.getLogger("app.ledger")

_MINUTE, _HOUR = 60.0, 3600.0
_DAY = 24 * _HOUR
_STOP_SECONDS = 5.0
# A release is charged within seconds after its answer is written. If its process died, nothing charges it.
_ABANDONED_SECONDS = 6 * _HOUR


class HeadNotes:
    """Notes the heads of all budgets and the seal of the access keys: each hour, at the start and at the stop.

    Notes go to a file, or to the log. Then the ledger remembers which heads were logged. Of several processes only one
    notes each change. A checkpoint of all heads follows on them, if the service has a key.
    """

    def __init__(
        self,
        ledger_pool: LedgerPool,
        file: str,
        signer: Signer,
        *,
        clock: Callable[[], str] = now,
        wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._ledger_pool = ledger_pool
        self._file = HeadsFile(Path(file)) if file else None
        self._signer = signer
        self._clock = clock
        self._wait = wait
        self._works = False

    async def run(self) -> None:
        """Note now, and then every hour."""
        while True:
            await self.note()
            await self._wait(_HOUR)

    async def stop(self) -> None:
        """Note once more, unless the last attempt failed."""
        if self._works:
            await asyncio.wait({asyncio.ensure_future(self.note())}, timeout=_STOP_SECONDS)

    async def note(self) -> None:
        """Note what has changed. A failure is logged, and the next hour tries again.

        If the attempt before failed too, the log already has the reason.
        """
        worked, self._works = self._works, False
        unsigned = None
        try:
            await self._signer.ready()
        except (Busy, LedgerUnavailable) as error:
            unsigned = error
        try:
            noted, notes, checkpoint = await self._ledger_pool.audit(self._changes)
        except Busy:
            heads_logger.warning("the heads were not noted: too many verifications wait")
        except LedgerUnavailable as error:
            if worked:
                heads_logger.warning("the heads were not noted: %s", error)
        except OSError as error:
            heads_logger.error("the heads were not noted: GSH_HEADS_FILE: %s", reason_of(error))
        else:
            self._works = True
            self._log(noted, notes)
            if unsigned is not None:
                heads_logger.warning("the heads were noted without a signature: %s", unsigned)
            if checkpoint is not None:
                heads_logger.info("checkpoint", extra={"checkpoint": json.loads(checkpoint)})

    def _changes(self, ledger: Ledger) -> tuple[Heads, list[Note], str | None]:
        """The heads that were noted before, new notes, and a checkpoint for the log."""
        at = self._clock()

        def checkpoint() -> str | None:
            return ledger.checkpoints.make(at, self._signer.sealed_now)

        if self._file is not None:
            return *self._file.note(ledger.heads.read, at, checkpoint), None
        noted, notes = ledger.heads.claim(at)
        return noted, notes, checkpoint() if notes else None

    def _log(self, noted: Heads, notes: list[Note]) -> None:
        for note in notes:
            if self._file is None:
                heads_logger.info("head", extra={"at": note.at} | note.fields)
            before = noted.get(note.name)
            if note.name != ACCESS_KEYS and before is not None and note.head.size <= before.size:
                heads_logger.error(
                    "a history is not a continuation of what was noted: run python -m app.verify", extra=note.fields
                )


class Tidying:
    """Each hour: purges the answers whose retention period has passed, and answers that were never charged.

    Each minute: overwrites deleted seeds, if a reader of the database was in the way when they were deleted. Every
    process may do it: what one has done, the others find done.
    """

    def __init__(self, ledger_pool: LedgerPool, answer_days: int | None, clock: Callable[[], str] = now) -> None:
        self._ledger = ledger_pool
        self._answer_days = answer_days
        self._clock = clock

    async def run(self) -> None:
        """Until it is cancelled. At first a minute passes: a service that starts has other work."""
        for minute in itertools.count(1):
            await asyncio.sleep(_MINUTE)
            try:
                await self._ledger.ask(Ledger.purge_seeds_if_left)
                if minute % 60 == 1:
                    await self.once()
            except (LedgerUnavailable, Busy) as error:
                ledger_logger.warning("the ledger was not tidied: %s", error)

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
                ledger_logger.info("erased %d answers that were kept for %d days", erased, self._answer_days)
        abandoned = after(at, -_ABANDONED_SECONDS)
        while await self._ledger.ask(lambda ledger: ledger.remove_abandoned(abandoned)):
            pass
