"""Worker pools: tasks run in parallel up to a limit, can be stopped, and leave nothing in the worker."""

import asyncio
import gc
import os
import weakref
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from app.errors import Busy, DeadlinePassed, TooLarge
from app.workers.memory import resident
from app.workers.pool import WorkerPool
from tests.app.process import PATIENCE, held_by, wait_for_end
from tests.app.workers.tasks import (
    Meeting,
    Refused,
    exit_at_once,
    fail_with_a_mapped_file,
    freed_and_kept,
    hang_without_memory,
    length_and_reverse,
    pid,
    take_all_memory,
)

MakePool = Callable[..., WorkerPool]


@pytest.fixture
def make_pool() -> Iterator[MakePool]:
    made: list[WorkerPool] = []

    def make(workers: int = 1, queue: int = 0, seconds: float = PATIENCE, memory: int = 2**30) -> WorkerPool:
        made.append(WorkerPool("gsh-test", workers=workers, queue=queue, memory=memory, seconds=seconds))
        return made[-1]

    yield make
    for pool in made:
        pool.close()


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), PATIENCE))  # type: ignore[arg-type]


def test_a_task_runs_in_another_process_and_the_next_in_the_same(make_pool: MakePool) -> None:
    async def scenario() -> None:
        pool = make_pool()
        first = await pool.run(pid)
        assert first != os.getpid()
        assert await pool.run(pid) == first

    run(scenario)


@pytest.mark.parametrize("length", [0, 1, 2**16, 2**16 + 1, 2**24])
def test_bytes_of_any_length_go_there_and_back(make_pool: MakePool, length: int) -> None:
    content = os.urandom(length)

    async def scenario() -> None:
        assert await make_pool().run(length_and_reverse, content) == content[::-1]

    run(scenario)


def test_a_full_queue_is_busy_and_a_free_place_is_not(make_pool: MakePool, tmp_path: Path) -> None:
    async def scenario() -> None:
        pool, meeting = make_pool(workers=1, queue=1), Meeting(tmp_path)
        first = asyncio.create_task(pool.run(meeting.attend))
        await meeting.begins()
        second = asyncio.create_task(pool.run(pid))
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await pool.run(pid)
        with pytest.raises(Busy):
            pool.check_room()
        await meeting.goes_on()
        assert await first == await second == await pool.run(pid)

    run(scenario)


def test_as_many_tasks_run_at_once_as_there_are_workers(make_pool: MakePool, tmp_path: Path) -> None:
    async def scenario() -> None:
        pool, meetings = make_pool(workers=3), [Meeting(tmp_path, f"m{k}") for k in range(3)]
        tasks = [asyncio.create_task(pool.run(meeting.attend)) for meeting in meetings]
        for meeting in meetings:
            await meeting.begins()
        for meeting in meetings:
            await meeting.goes_on()
        assert len(set(await asyncio.gather(*tasks))) == 3

    run(scenario)


def test_a_cancelled_task_ends_its_worker_and_no_other(make_pool: MakePool, tmp_path: Path) -> None:
    async def scenario() -> None:
        pool, one, other = make_pool(workers=2), Meeting(tmp_path, "one"), Meeting(tmp_path, "other")
        staying = asyncio.create_task(pool.run(other.attend))
        await other.begins()
        worker = await pool.run(pid)
        task = asyncio.create_task(pool.run(one.attend))
        await one.begins()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(wait_for_end, worker)
        await other.goes_on()
        assert await staying != worker
        assert await pool.run(pid) != worker

    run(scenario)


def test_a_task_that_waits_in_the_queue_can_be_cancelled_and_is_never_begun(
    make_pool: MakePool, tmp_path: Path
) -> None:
    async def scenario() -> None:
        pool, meeting = make_pool(workers=1, queue=1), Meeting(tmp_path)
        first = asyncio.create_task(pool.run(meeting.attend))
        await meeting.begins()
        queued = asyncio.create_task(pool.run(exit_at_once))
        await asyncio.sleep(0)
        queued.cancel()
        with pytest.raises(asyncio.CancelledError):
            await queued
        pool.check_room()
        await meeting.goes_on()
        assert await first == await pool.run(pid)

    run(scenario)


def test_a_task_past_its_deadline_is_stopped_with_an_error(make_pool: MakePool, tmp_path: Path) -> None:
    """The task would never end by itself."""

    async def scenario() -> None:
        pool, meeting = make_pool(seconds=0.01), Meeting(tmp_path)
        with pytest.raises(DeadlinePassed):
            await pool.run(meeting.attend)
        pool.check_room()

    run(scenario)


def test_a_worker_that_dies_is_replaced(make_pool: MakePool) -> None:
    async def scenario() -> None:
        pool = make_pool()
        with pytest.raises(Busy):
            await pool.run(exit_at_once)
        worker = await pool.run(pid)
        os.kill(worker, 9)
        await asyncio.to_thread(wait_for_end, worker)
        assert await pool.run(pid) != worker

    run(scenario)


def test_closing_a_pool_ends_its_workers(make_pool: MakePool) -> None:
    async def scenario() -> None:
        pool = make_pool()
        worker = await pool.run(pid)
        pool.close()
        await asyncio.to_thread(wait_for_end, worker)

    run(scenario)


def test_a_failure_is_returned_without_traceback_and_leaves_nothing_in_memory(
    make_pool: MakePool, tmp_path: Path
) -> None:
    """Frames and cycles could keep a file open in the worker, or an exception in memory here."""
    path = tmp_path / "upload"
    path.write_bytes(b"x" * 5000)

    async def scenario() -> None:
        pool = make_pool()
        worker = await pool.run(pid)
        gc.disable()
        try:
            with pytest.raises(Refused) as caught:
                await pool.run(fail_with_a_mapped_file, str(path))
            assert (caught.value.__context__, caught.value.__cause__) == (None, None)
            failure = weakref.ref(caught.value)
            del caught
            path.unlink()
            assert await pool.run(pid) == worker  # by now it has tidied up
            assert held_by(worker) == []
            assert failure() is None
        finally:
            gc.enable()

    run(scenario)


@pytest.mark.parametrize("task", [take_all_memory, hang_without_memory])
def test_a_worker_without_memory_ends_and_the_next_task_has_another(
    make_pool: MakePool, task: Callable[[], object]
) -> None:
    """Also a worker that does not say so, and long before its deadline."""

    async def scenario() -> None:
        pool = make_pool(memory=2**26, seconds=1000 * PATIENCE)
        first = await pool.run(pid)
        with pytest.raises(TooLarge):
            await pool.run(task)
        wait_for_end(first)
        assert await pool.run(pid) != first

    run(scenario)


def test_a_worker_gives_memory_back_after_a_task(make_pool: MakePool) -> None:
    async def scenario() -> None:
        pool = make_pool()
        before = await pool.run(resident)
        assert await pool.run(freed_and_kept) > before + 2**26
        assert await pool.run(resident) < before + 2**25

    run(scenario)
