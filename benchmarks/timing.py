"""Times measured side by side, so that their ratios survive a busy machine."""

import statistics
from collections.abc import Callable, Mapping
from time import perf_counter

__all__ = ["duration", "medians"]

_SHORTEST_BATCH = 2e-3


def medians(calls: Mapping[str, Callable[[], object]], rounds: int = 15) -> dict[str, float]:
    """Median seconds for one run of each call. They take turns: what slows one round down slows all of them."""
    batches = {name: _batch(call) for name, call in calls.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            samples[name].append(_seconds(call, batches[name]))
    return {name: statistics.median(times) for name, times in samples.items()}


def duration(seconds: float) -> str:
    """Three significant digits in the unit that reads best."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def _batch(call: Callable[[], object]) -> int:
    """How many runs make a time that the clock can tell; the first run, which may be slower, is not counted."""
    call()
    return max(1, round(_SHORTEST_BATCH / max(_seconds(call, 1), 1e-9)))


def _seconds(call: Callable[[], object], runs: int) -> float:
    start = perf_counter()
    for _ in range(runs):
        call()
    return (perf_counter() - start) / runs
