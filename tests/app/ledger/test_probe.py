"""Whether the ledger answers: asked once a second for everyone, and not waited for if it hangs."""

import asyncio
from typing import cast

import pytest

from app.ledger.errors import LedgerUnavailable
from app.ledger.pool import LedgerPool, LedgerProbe


class Pool:
    """A ledger that answers, fails or hangs."""

    def __init__(self) -> None:
        self.asked = 0
        self.answers = asyncio.Event()
        self.answers.set()
        self.error: Exception | None = None

    async def probe(self) -> None:
        self.asked += 1
        await self.answers.wait()
        if self.error is not None:
            raise self.error


def probe_of(pool: Pool, clock: list[float], patience: float = 60.0) -> LedgerProbe:
    return LedgerProbe(cast(LedgerPool, pool), patience=patience, clock=lambda: clock[0])


def test_a_flood_of_probes_is_one_question_a_second() -> None:
    async def scenario() -> None:
        pool, clock = Pool(), [0.0]
        probe = probe_of(pool, clock)
        assert set(await asyncio.gather(*(probe.fault() for _ in range(1000)))) == {None}
        clock[0] = 1.0
        assert await probe.fault() is None
        assert pool.asked == 1
        clock[0] = 1.1
        pool.error = LedgerUnavailable("no disk")
        assert set(await asyncio.gather(*(probe.fault() for _ in range(1000)))) == {"no disk"}
        assert pool.asked == 2

    asyncio.run(scenario())


def test_a_ledger_that_hangs_is_asked_once_and_not_waited_for() -> None:
    async def scenario() -> None:
        pool, clock = Pool(), [0.0]
        probe = probe_of(pool, clock, patience=0.0)
        pool.answers.clear()
        for second in range(40):
            clock[0] = float(second)
            assert await probe.fault() == "it did not answer within 0 seconds"
        assert pool.asked == 1
        pool.answers.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        clock[0] = 41.0
        assert await probe_of(pool, clock).fault() is None

    asyncio.run(scenario())


def test_a_cut_off_question_is_a_fault_and_is_asked_again() -> None:
    async def scenario() -> None:
        pool, clock = Pool(), [0.0]
        pool.answers.clear()
        probe = probe_of(pool, clock)
        waiting = asyncio.create_task(probe.fault())
        await asyncio.sleep(0)
        assert probe._question is not None
        probe._question.cancel()
        assert await waiting == "the question was cut off"
        clock[0] = 2.0
        pool.answers.set()
        assert await probe.fault() is None

    asyncio.run(scenario())


def test_an_error_that_is_none_of_the_ledger_is_raised() -> None:
    async def scenario() -> None:
        pool = Pool()
        pool.error = ArithmeticError()
        with pytest.raises(ArithmeticError):
            await probe_of(pool, [0.0]).fault()

    asyncio.run(scenario())
