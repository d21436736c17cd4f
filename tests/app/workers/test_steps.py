"""Work in two steps: the same worker does both, and between them it can be stopped, cancelled or left alone."""

import asyncio
from pathlib import Path

import pytest

from app.errors import Busy, DeadlinePassed
from app.workers import steps as module
from app.workers.steps import StepsHere
from tests.app.process import wait_for_end
from tests.app.workers.tasks import Meeting, Refused, failing_at, in_two_steps, meeting_in_two_steps, pid
from tests.app.workers.test_pool import MakePool, make_pool, run

__all__ = ["make_pool"]


def test_one_worker_does_both_steps(make_pool: MakePool) -> None:
    content = b"x" * 10**6

    async def scenario() -> None:
        pool = make_pool()
        steps = pool.begin(in_two_steps, content)
        first = await steps.facts()
        assert await steps.finish("go") == (first, content, "go")
        await steps.stop()
        assert await pool.run(pid) == first

    run(scenario)


def test_a_worker_that_is_stopped_between_the_steps_does_the_next_task(make_pool: MakePool) -> None:
    async def scenario() -> None:
        pool = make_pool()
        steps = pool.begin(failing_at, 2)  # its second step would end the process
        first = await steps.facts()
        await steps.stop()
        await steps.stop()
        pool.check_room()
        assert await pool.run(pid) == first

    run(scenario)


def test_stopped_in_its_first_step_it_is_killed(make_pool: MakePool, tmp_path: Path) -> None:
    async def scenario() -> None:
        pool, first, last = make_pool(), Meeting(tmp_path, "first"), Meeting(tmp_path, "last")
        worker = await pool.run(pid)
        steps = pool.begin(meeting_in_two_steps, first, last)
        await first.begins()
        await steps.stop()
        await asyncio.to_thread(wait_for_end, worker)
        assert await pool.run(pid) != worker

    run(scenario)


def test_cancelled_in_its_last_step_it_is_killed(make_pool: MakePool, tmp_path: Path) -> None:
    async def scenario() -> None:
        pool, first, last = make_pool(), Meeting(tmp_path, "first"), Meeting(tmp_path, "last")
        steps = pool.begin(meeting_in_two_steps, first, last)
        await first.begins()
        await first.goes_on()
        worker = await steps.facts()
        finishing = asyncio.create_task(steps.finish("go"))
        await last.begins()
        finishing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await finishing
        await steps.stop()
        await asyncio.to_thread(wait_for_end, worker)
        assert await pool.run(pid) != worker

    run(scenario)


@pytest.mark.parametrize("step", [0, 1])
def test_a_failure_of_either_step_is_raised(make_pool: MakePool, step: int) -> None:
    async def scenario() -> None:
        steps = make_pool().begin(failing_at, step)
        if step == 1:
            await steps.facts()
        with pytest.raises(Refused):
            await (steps.finish("go") if step == 1 else steps.facts())
        await steps.stop()

    run(scenario)


def test_a_worker_that_dies_in_its_last_step_is_busy(make_pool: MakePool) -> None:
    async def scenario() -> None:
        pool = make_pool()
        steps = pool.begin(failing_at, 2)
        await steps.facts()
        with pytest.raises(Busy):
            await steps.finish("go")
        await steps.stop()
        await pool.run(pid)

    run(scenario)


def test_a_full_queue_is_busy(make_pool: MakePool) -> None:
    async def scenario() -> None:
        pool = make_pool(workers=1, queue=0)
        held = pool.begin(in_two_steps, b"")
        await held.facts()
        refused = pool.begin(in_two_steps, b"")
        with pytest.raises(Busy):
            await refused.facts()
        await refused.stop()
        await held.finish("go")
        await held.stop()

    run(scenario)


def test_a_worker_does_not_wait_long_for_a_decision(make_pool: MakePool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the ledger did not answer: other tasks get the worker, and this one is Busy."""
    monkeypatch.setattr(module, "_DECISION_SECONDS", 0.0)

    async def scenario() -> None:
        pool = make_pool(workers=1, queue=1)
        steps = pool.begin(in_two_steps, b"")
        worker = await steps.facts()
        assert await pool.run(pid) == worker
        with pytest.raises(Busy):
            await steps.finish("go")
        await steps.stop()

    run(scenario)


def test_the_deadline_of_the_pool_covers_both_steps(make_pool: MakePool, tmp_path: Path) -> None:
    async def scenario() -> None:
        pool, first, last = make_pool(seconds=0.01), Meeting(tmp_path, "first"), Meeting(tmp_path, "last")
        steps = pool.begin(meeting_in_two_steps, first, last)
        with pytest.raises(DeadlinePassed):
            await steps.facts()
        await steps.stop()
        pool.check_room()

    run(scenario)


@pytest.mark.parametrize("finishes", [True, False])
def test_on_the_event_loop_it_is_the_same(finishes: bool) -> None:
    async def scenario() -> None:
        steps = StepsHere(in_two_steps(b"x"))
        first = await steps.facts()
        if finishes:
            assert await steps.finish("go") == (first, b"x", "go")
        await steps.stop()

    run(scenario)
