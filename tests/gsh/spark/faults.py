"""Faults: tasks and executors that fail, and bugs in the code of the driver and of the executors.

The functions that run on executors import what they need there.
"""

import dataclasses
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Function = Callable[[Iterator[Any]], Iterator[Any]]


def keeping(more: int) -> Callable[..., Any]:
    """A bug in the driver: the bounding keeps so many groups of each user more than C_u."""
    from gsh.spark.aggregates import _kept  # noqa: PLC0415

    return lambda rows, plan, kinds: _kept(rows, dataclasses.replace(plan, c_u=plan.c_u + more), kinds)


def threshold_too_low(function: Function) -> Function:
    """A bug in the executors: they compare noisy counts with τ* − 1."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        from gsh.spark import noise  # noqa: PLC0415

        correct = noise.noise_of

        def faulty(mechanism: str, rounded: tuple[float, ...] | None = None) -> Any:
            made = noise.Noise(correct(mechanism, rounded)._mechanism, rounded)
            made._mechanism = dataclasses.replace(made._mechanism, tau_star=made._mechanism.tau_star - 1)
            return made

        noise.noise_of = faulty  # type: ignore[assignment]
        try:
            yield from function(batches)
        finally:
            noise.noise_of = correct

    return run


def failing_once(marker: str) -> Function:
    """After the last row of a partition its task fails: of all tasks, one, and once."""
    return _once(marker, _fail)


def killing_once(marker: str) -> Function:
    """After the last row of a partition its executor is killed, once."""
    return _once(marker, _kill_executor)


def waiting_once(marker: str, other: str) -> Function:
    """The first task to come here waits until a second copy of it has ended: Spark has to start one."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext  # noqa: PLC0415

        context = TaskContext.get()
        assert context is not None
        yield from batches
        if context.partitionId() != 0:
            return
        if _is_first(marker):
            os.mkfifo(f"{other}.fifo")
            with open(f"{other}.fifo") as fifo:  # blocks until the other copy opens it
                fifo.read()
        else:
            _is_first(other)
            with open(f"{other}.fifo", "w"):
                pass

    return run


def _once(marker: str, fault: Callable[[], None]) -> Function:
    def run(batches: Iterator[Any]) -> Iterator[Any]:
        seen = False
        for batch in batches:
            seen = seen or len(batch) > 0
            yield batch
        if seen and _is_first(marker):
            fault()

    return run


def _is_first(marker: str) -> bool:
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def _fail() -> None:
    raise RuntimeError("a planted fault")


def _kill_executor() -> None:
    """The process of Java above this worker and its daemon."""
    process = os.getppid()
    while Path(f"/proc/{process}/comm").read_text().strip() != "java":
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(process, signal.SIGKILL)
