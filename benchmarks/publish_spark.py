"""Publishing on Spark: against the same query by hand without noise, its growth, and other libraries on Spark.

``make spark-bench`` makes the environments: build/spark-env, build/pipelinedp-env (pipeline-dp 0.3.1) and
build/tumult-env (tmlt.analytics 0.21).
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.markdown import table

ROOT = Path(__file__).parents[1]
SIZES = (1_000_000, 3_000_000, 10_000_000, 30_000_000)
COMPARED = 1_000_000
PER_USER, URLS, COUNTRIES = 15, 200_000, 20
C_U, EPSILON, DELTA, PARTITIONS = 16, 1.0, 1e-6, 16
PEERS = {"PipelineDP": "build/pipelinedp-env", "Tumult Analytics": "build/tumult-env"}


def main() -> None:
    try:
        import pyspark  # noqa: F401, PLC0415
    except ModuleNotFoundError:
        python = ROOT / "build" / "spark-env" / "bin" / "python"
        if not python.exists():
            print("publishing on Spark: needs build/spark-env, which `make test` builds")
            return
        os.execv(python, [str(python), "-m", "benchmarks.publish_spark", *sys.argv[1:]])
    most = int(float(sys.argv[1])) if len(sys.argv) > 1 else SIZES[-1]
    with tempfile.TemporaryDirectory(prefix="gsh-bench-") as folder:
        times = _own(Path(folder), [size for size in SIZES if size <= most])
        _peers(Path(folder), times)


def made_up(path: Path, rows: int) -> None:
    """Events with the skew of real ones: few URLs have most of the views."""
    lots = np.random.default_rng(1)
    urls = pa.array([f"https://example.org/{number}" for number in range(URLS)])
    countries = pa.array([f"C{number}" for number in range(COUNTRIES)])
    with pq.ParquetWriter(path, pa.schema(_TYPES)) as file:
        for start in range(0, rows, 1_000_000):
            size = min(1_000_000, rows - start)
            places = (lots.pareto(1.1, size) * 20).astype(np.int64) % URLS
            columns = {
                "user_id": lots.integers(0, rows // PER_USER + 1, size),
                "url": urls.take(pa.array(places)),
                "country": countries.take(pa.array(lots.integers(0, COUNTRIES, size))),
                "likes": lots.integers(0, 2, size),
                "seconds": lots.integers(0, 300, size),
            }
            file.write_table(pa.table(columns), row_group_size=250_000)


_TYPES = [(name, pa.int64()) for name in ("user_id", "url", "country", "likes", "seconds")]
_TYPES[1:3] = [(name, pa.string()) for name in ("url", "country")]


def _own(folder: Path, sizes: list[int]) -> dict[int, float]:
    """The seconds of ``gsh.spark.publish`` for each number of events."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    import gsh  # noqa: PLC0415

    os.environ["PYSPARK_PYTHON"] = sys.executable
    cores = min(os.cpu_count() or 2, 8)
    builder = SparkSession.builder.master(f"local[{cores}]").config("spark.driver.memory", "6g")
    for name in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
        builder = builder.config(name, "false")
    spark = builder.config("spark.sql.shuffle.partitions", "32").config("spark.local.dir", str(folder)).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    numbers = iter(range(1000))

    def published(events: Any) -> None:
        gsh.spark.publish(
            events,
            user="user_id",
            by=["url", "country"],
            sums={"likes": (0, 1), "seconds": (0, 600)},
            c_u=C_U,
            epsilon=EPSILON,
            delta=DELTA,
            partitions=PARTITIONS,
            to=folder / f"published-{next(numbers)}",
        )

    def by_hand(events: Any) -> None:
        events.createOrReplaceTempView("events")
        spark.sql(_BY_HAND).write.parquet(str(folder / f"by-hand-{next(numbers)}"))

    print(f"\npublish on Spark {spark.version}, {cores} cores, {PER_USER} events a user, C_u = {C_U}, two sums\n")
    print(table(["events", "by hand, no noise", "gsh.spark.publish", "ratio", "time, relative to linear"], []))
    times = {}
    for size in sizes:
        path = folder / f"events-{size}.parquet"
        made_up(path, size)
        events = spark.read.parquet(str(path))
        # The first calls also start Python and compile. The large ones take long, and one of each will do.
        rounds, warm = (3 if size <= 3_000_000 else 1), (1 if size == sizes[0] else 0)
        ours, theirs = _alternating(lambda: published(events), lambda: by_hand(events), rounds, warm)  # noqa: B023
        times[size] = ours
        growth = ours / times[sizes[0]] / (size / sizes[0])
        print(f"| {size:.0e} | {theirs:.1f} s | {ours:.1f} s | {ours / theirs:.2f} | {growth:.2f} |", flush=True)
    print(f"\n{sizes[-1] / times[sizes[-1]] / cores:,.0f} events per second and core at {sizes[-1]:.0e} events")
    spark.stop()
    return times


_BY_HAND = f"""
    SELECT url, country, COUNT(*) AS count, SUM(likes) AS likes, SUM(seconds) AS seconds
    FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY xxhash64(user_id, url, country, 'salt')) AS place
          FROM (SELECT user_id, url, country, LEAST(SUM(likes), 1) AS likes, LEAST(SUM(seconds), 600) AS seconds
                FROM events WHERE user_id IS NOT NULL GROUP BY user_id, url, country))
    WHERE place <= {C_U} GROUP BY url, country
"""


def _alternating(one: Callable[[], None], other: Callable[[], None], rounds: int, warm: int) -> tuple[float, float]:
    """Median seconds of two calls that take turns; those that warm up are not counted."""
    times: dict[bool, list[float]] = {True: [], False: []}
    for number in range(warm + rounds):
        for is_one, call in ((True, one), (False, other)):
            start = perf_counter()
            call()
            if number >= warm:
                times[is_one].append(perf_counter() - start)
    return statistics.median(times[True]), statistics.median(times[False])


def _peers(folder: Path, times: dict[int, float]) -> None:
    """Other libraries, on the same events. Each in an environment of its own: they need older versions of Spark."""
    events = folder / f"events-{COMPARED}.parquet"
    print(f"\n{COMPARED:.0e} events, two sums, ({EPSILON:g}, {DELTA:g})\n")
    print(table(["library", "time", "relative to gsh.spark.publish", "published groups"], []))
    for name, environment in PEERS.items():
        python = ROOT / environment / "bin" / "python"
        if not python.exists():
            print(f"| {name} | {environment} does not exist | | |")
            continue
        program = ROOT / "benchmarks" / "publish_peers.py"
        done = subprocess.run([python, "-P", program, name, events], capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"| {name} | failed: {done.stderr.splitlines()[-1]} | | |")
            continue
        said = json.loads(done.stdout.splitlines()[-1])
        ratio = said["seconds"] / times[COMPARED]
        print(f"| {name} | {said['seconds']:.1f} s | {ratio:.1f} | {said['groups']} |", flush=True)


if __name__ == "__main__":
    main()
