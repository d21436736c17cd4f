"""``python -m benchmarks.publish_tables``: three tables in one publish against three publishes, on DuckDB.

They take turns on the same made-up events, in one run: at once in memory, and in buckets on the disk.
"""

import sys
import tempfile
from pathlib import Path

import duckdb

import gsh
from benchmarks.markdown import table
from benchmarks.timing import duration, medians
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
            times = medians(
                {
                    "three": lambda buckets=buckets: _three(path, buckets),
                    "one": lambda buckets=buckets: _together(path, buckets),
                },
                rounds=rounds,
            )
            ratio = times["one"] / times["three"]
            rows.append((name, duration(times["three"]), duration(times["one"]), f"{ratio:.2f}"))
        print(f"\n{events} events, DuckDB {duckdb.__version__}\n")
        print(table(("", "three publishes", "one publish of three tables", "ratio"), rows))


def _three(path: Path, buckets: int | None) -> None:
    for each in _TABLES.values():
        plan = {"by": each.by, "c_u": each.c_u, "sums": each.sums}
        gsh.publish(path, user="user_id", **plan, epsilon=1, delta=1e-6, memory_limit=_LIMIT, _buckets=buckets)


def _together(path: Path, buckets: int | None) -> None:
    target = {"epsilon": 1, "delta": 1e-6, "memory_limit": _LIMIT}
    gsh.publish(path, user="user_id", tables=_TABLES, **target, _buckets=buckets)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 62_000)
