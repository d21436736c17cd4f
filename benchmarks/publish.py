"""``python -m benchmarks.publish [--large]``: publishing with DuckDB against a query by hand, and how it grows.

The query by hand has the same bounds and lots (MD5 of salt, user and key without lengths), and no noise. They take
turns on the same events. Growth is measured in processes of their own, with a memory limit of 4 GB: 10⁶ and 10⁷ events,
and 10⁸ with ``--large``, which needs room on the disk where TMPDIR says.
"""

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time

import duckdb

import gsh
from benchmarks.markdown import table
from benchmarks.timing import duration, medians
from gsh.events.demo import write_demo

__all__ = ["main"]

_USERS = 62_000
"""About 10⁶ events."""
_LIMIT = "4GB"
_PLAN = {"user": "user_id", "by": ["url", "country"], "sums": {"likes": (0, 1)}, "c_u": 16}
_BY_HAND = """
WITH per_user AS NOT MATERIALIZED (
    SELECT user_id, url, country, LEAST(GREATEST(SUM(COALESCE(likes, 0)), 0), 1) AS likes
    FROM '{}' WHERE user_id IS NOT NULL GROUP BY user_id, url, country
), ranked AS NOT MATERIALIZED (
    SELECT *, ROW_NUMBER() OVER (
        PARTITION BY user_id ORDER BY md5(concat_ws('|', 'salt', user_id, url, country))) AS place
    FROM per_user
)
SELECT url, country, COUNT(*) AS users, SUM(likes) AS likes FROM ranked WHERE place <= 16 GROUP BY url, country
"""


def main(*, is_large: bool = False) -> None:
    with tempfile.TemporaryDirectory(prefix="gsh-benchmark-") as folder:
        small = Path(folder) / "1.parquet"
        events = write_demo(small, _USERS)
        times = medians({"by hand": lambda: _by_hand(small), "publish": lambda: _publish(small)}, rounds=5)
        rows = [(name, duration(seconds), f"{seconds / times['by hand']:.2f}") for name, seconds in times.items()]
        print(f"\n{events} events, DuckDB {duckdb.__version__}\n")
        print(table(("", "time", "ratio to the query by hand"), rows))
        _print_growth(small, events, (1, 10, 100) if is_large else (1, 10))


def _by_hand(path: Path) -> None:
    with duckdb.connect() as connection:
        connection.sql(_BY_HAND.format(path)).to_arrow_table()


def _publish(path: Path) -> None:
    gsh.publish(path, **_PLAN, epsilon=1, delta=1e-6, memory_limit=_LIMIT)


def _print_growth(small: Path, events: int, factors: tuple[int, ...]) -> None:
    rows: list[tuple[str, ...]] = []
    first: dict[str, float] = {}
    for factor in factors:
        path = small.with_name(f"{factor}.parquet")
        if factor > 1:
            _copied(small, path, factor)
        command = [sys.executable, "-m", "benchmarks.publish", "--one", str(path)]
        measured = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        first = first or measured
        times = [f"{duration(measured[of])}, {measured[of] / (first[of] * factor):.2f}" for of in ("seconds", "cpu")]
        rows.append((str(events * factor), *times, f"{measured['bytes'] / 2**30:.2f} GiB"))
        if factor > 1:
            path.unlink()
    print(f"\nMemory limit {_LIMIT}\n")
    columns = ("events", "time, ratio to linear growth", "time of all cores, ratio", "largest memory of the process")
    print(table(columns, rows))


def _copied(small: Path, path: Path, factor: int) -> None:
    """As many events of as many more users."""
    with duckdb.connect(config={"memory_limit": _LIMIT}) as connection:
        connection.execute("SET preserve_insertion_order = false")
        connection.execute("SET enable_progress_bar = false")
        query = f"SELECT * REPLACE (user_id || '-' || n AS user_id) FROM '{small}', range({factor}) AS t(n)"
        connection.execute(f"COPY ({query}) TO '{path}' (COMPRESSION zstd)")


def _one(path: Path) -> None:
    start, cpu = perf_counter(), process_time()
    _publish(path)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": perf_counter() - start, "cpu": process_time() - cpu, "bytes": used}))


if __name__ == "__main__":
    if "--one" in sys.argv:
        _one(Path(sys.argv[-1]))
    else:
        main(is_large="--large" in sys.argv)
