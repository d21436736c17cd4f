"""``python -m benchmarks.publish_tables``: three tables in one publish against three publishes, on DuckDB.

They take turns on the same made-up events, in one run: at once in memory, and in buckets on the disk. The least of each
counts: what else the machine does only adds to it.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time

import duckdb

import gsh
from benchmarks.markdown import table
from benchmarks.timing import duration
from gsh.events.demo import write_demo

__all__ = ["main"]

_LIMIT = "4GB"
_TABLES = {
    "by_country": gsh.Table(by=["country"], c_u=4, sums={"likes": (0, 4)}),
    "by_url": gsh.Table(by=["url"], c_u=16, sums={"likes": (0, 1)}),
    "detail": gsh.Table(by=["url", "country"], c_u=16, sums={"likes": (0, 1)}),
}


def main(users: int = 62_000, rounds: int = 5) -> None:
    with tempfile.TemporaryDirectory(prefix="gsh-benchmark-") as folder:
        path = Path(folder) / "events.parquet"
        events = write_demo(path, users)
        rows = []
        for name, buckets in (("at once", None), ("in 4 buckets", 4)):
            three, one = _turns(path, buckets, rounds)
            best = [[min(turn[each] for turn in times) for each in (0, 1)] for times in (three, one)]
            ratios = [f"{new / old:.2f}" for old, new in zip(*best, strict=True)]
            rows.append((name, *(duration(clock) for clock, _ in best), *ratios))
        print(f"\n{events} events, DuckDB {duckdb.__version__}\n")
        columns = ("", "three publishes", "one publish of three tables", "ratio", "ratio of the time of all cores")
        print(table(columns, rows))


def _turns(path: Path, buckets: int | None, rounds: int) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """The times by the clock and of all cores, of both ways in turn. The first turn warms up."""
    _together(path, buckets)
    turns = [(_timed(_three, path, buckets), _timed(_together, path, buckets)) for _ in range(rounds)]
    return [three for three, _ in turns], [one for _, one in turns]


def _timed(publish: Callable[[Path, int | None], None], path: Path, buckets: int | None) -> tuple[float, float]:
    start, cpu = perf_counter(), process_time()
    publish(path, buckets)
    return perf_counter() - start, process_time() - cpu


def _three(path: Path, buckets: int | None) -> None:
    for each in _TABLES.values():
        plan = {"by": each.by, "c_u": each.c_u, "sums": each.sums}
        gsh.publish(path, user="user_id", **plan, epsilon=1, delta=1e-6, memory_limit=_LIMIT, _buckets=buckets)


def _together(path: Path, buckets: int | None) -> None:
    target = {"epsilon": 1, "delta": 1e-6, "memory_limit": _LIMIT}
    gsh.publish(path, user="user_id", tables=_TABLES, **target, _buckets=buckets)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 62_000)
