"""Publishing on Spark: against the same query by hand without noise, its parts, other libraries.

``make spark-bench`` makes the environments: build/spark-env, build/pipelinedp-env (pipeline-dp 0.3.1) and
build/tumult-env (tmlt.analytics 0.21).

    python -m benchmarks.publish_spark 3e6 --alone      up to so many events, without the other libraries
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.markdown import table
from benchmarks.publish_spark_parts import parts
from benchmarks.spark_session import CORES, cpu_seconds, has_spark, local_session, stages

ROOT = Path(__file__).parents[1]
SIZES = (1_000_000, 3_000_000, 10_000_000, 30_000_000)
COMPARED = 1_000_000
PER_USER, URLS, COUNTRIES = 15, 200_000, 20
C_U, EPSILON, DELTA, PARTITIONS = 16, 1.0, 1e-6, 16
PEERS = {"PipelineDP": "build/pipelinedp-env", "Tumult Analytics": "build/tumult-env"}


def main() -> None:
    if not has_spark("benchmarks.publish_spark"):
        return
    most = int(float(sys.argv[1])) if len(sys.argv) > 1 else SIZES[-1]
    with tempfile.TemporaryDirectory(prefix="gsh-bench-") as folder:
        times = _own(Path(folder), [size for size in SIZES if size <= most])
        if COMPARED in times and "--alone" not in sys.argv:
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
    import gsh  # noqa: PLC0415
    from gsh.events.plan import make_plan  # noqa: PLC0415
    from gsh.spark.aggregates import aggregates, by_user  # noqa: PLC0415

    spark = local_session(str(folder))
    numbers = iter(range(1000))

    asked: dict[str, Any] = {
        "user": "user_id",
        "by": ["url", "country"],
        "sums": {"likes": (0, 1), "seconds": (0, 600)},
        "c_u": C_U,
        "partitions": PARTITIONS,
    }

    def published(events: Any) -> None:
        to = folder / f"published-{next(numbers)}"
        gsh.spark.publish(events, **asked, epsilon=EPSILON, delta=DELTA, to=to)

    def bounded(events: Any) -> None:
        """Of what is published, the part without noise and commit."""
        plan = make_plan(**asked, salt="0" * 32)
        written(aggregates(by_user(events, plan), plan))

    def written(rows: Any) -> None:
        rows.write.parquet(str(folder / f"by-hand-{next(numbers)}"))

    def as_sql(events: Any) -> None:
        events.createOrReplaceTempView("events")
        written(spark.sql(_BY_HAND))

    print(f"\npublish on Spark {spark.version}, {CORES} cores, {PER_USER} events a user, C_u = {C_U}, two sums\n")
    columns = ["events", "by hand in SQL", "by hand, two shuffles", "bounding alone", "gsh.spark.publish"]
    columns += ["ratio to the faster one by hand", "in CPU time", "in CPU time of tasks", "time, relative to linear"]
    print(table(columns, []))
    times = {}
    for size in sizes:
        path = folder / f"events-{size}.parquet"
        made_up(path, size)
        events = spark.read.parquet(str(path))
        # The first calls also start Python and compile. The large ones take long, and one of each will do.
        rounds, warm = (3 if size <= 3_000_000 else 1), (1 if size == sizes[0] else 0)
        calls = as_sql, lambda events: written(_two_shuffles(events)), bounded, published
        found = _in_turn(spark, [lambda call=call: call(events) for call in calls], rounds, warm)  # noqa: B023
        times[size] = found[3][0]
        growth = times[size] / times[sizes[0]] / (size / sizes[0])
        shown = [f"{seconds:.1f} s ({cpu:.1f} s CPU, {tasks:.1f} s of tasks)" for seconds, cpu, tasks in found]
        to_hand = [each[3] / min(each[:2]) for each in zip(*found, strict=True)]
        ratios = [f"{ratio:.2f}" for ratio in (*to_hand, growth)]
        print(f"| {' | '.join([f'{size:.0e}', *shown, *ratios])} |", flush=True)
    print(f"\n{sizes[-1] / times[sizes[-1]] / CORES:,.0f} events per second and core at {sizes[-1]:.0e} events\n")
    parts(spark, folder)
    spark.stop()
    return times


_BY_HAND = f"""
    SELECT url, country, COUNT(*) AS count, SUM(likes) AS likes, SUM(seconds) AS seconds
    FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY xxhash64(user_id, url, country, 'salt')) AS place
          FROM (SELECT user_id, url, country, LEAST(SUM(likes), 1) AS likes, LEAST(SUM(seconds), 600) AS seconds
                FROM events WHERE user_id IS NOT NULL GROUP BY user_id, url, country))
    WHERE place <= {C_U} GROUP BY url, country
"""


def _two_shuffles(events: Any) -> Any:
    """The same with a shuffle by user that serves grouping and lots: Spark plans three for the SQL."""
    from pyspark.sql import Window  # noqa: PLC0415
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    by_user = events.where("user_id IS NOT NULL").repartition("user_id").groupBy("user_id", "url", "country")
    rows = by_user.agg(F.expr("LEAST(SUM(likes), 1) AS likes"), F.expr("LEAST(SUM(seconds), 600) AS seconds"))
    lots = Window.partitionBy("user_id").orderBy(F.expr("xxhash64(user_id, url, country, 'salt')"))
    kept = rows.withColumn("place", F.row_number().over(lots)).where(F.col("place") <= C_U)
    return kept.groupBy("url", "country").agg(
        F.count(F.lit(1)).alias("count"), F.sum("likes").alias("likes"), F.sum("seconds").alias("seconds")
    )


def _in_turn(
    spark: Any, calls: Sequence[Callable[[], None]], rounds: int, warm: int
) -> list[tuple[float, float, float]]:
    """Least seconds, CPU seconds, and those of tasks of calls that take turns; those that warm up are not counted.

    Other programs only add to them. CPU seconds have what Java spends on compiling, and those of tasks do not.
    """
    times: list[list[tuple[float, float, float]]] = [[] for _ in calls]
    for number in range(warm + rounds):
        for call, seconds in zip(calls, times, strict=True):
            known, start, used = {stage.number for stage in stages(spark)}, perf_counter(), cpu_seconds()
            call()
            clock, cpu = perf_counter() - start, cpu_seconds() - used
            tasks = sum(stage.cpu for stage in stages(spark) if stage.number not in known)
            if number >= warm:
                seconds.append((clock, cpu, tasks))
    least = [[min(each) for each in zip(*one, strict=True)] for one in times]
    return [(clock, cpu, tasks) for clock, cpu, tasks in least]


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
        command = [python, "-m", "benchmarks.publish_peers", name, events]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"| {name} | failed: {done.stderr.splitlines()[-1]} | | |")
            continue
        said = json.loads(done.stdout.splitlines()[-1])
        ratio = said["seconds"] / times[COMPARED]
        print(f"| {name} | {said['seconds']:.1f} s | {ratio:.1f} | {said['groups']} |", flush=True)


if __name__ == "__main__":
    main()
