"""Three tables in one publish on Spark, in comparison with a publish for each of them.

They take turns, and of each the least clock time and the least CPU time count: other programs can only add to them.
CPU time is that of Java and of Python together, so that it has what Java spends on compiling. The parts have the CPU
time of the tasks of Spark alone, stage by stage: what is left if compiling and planning take no time.

    python -m benchmarks.publish_spark_tables 1e6 4       so many events, and rounds after one that warms up
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.markdown import table
from benchmarks.publish_spark import C_U, COUNTRIES, DELTA, EPSILON, PARTITIONS, made_up
from benchmarks.spark_session import CORES, cpu_seconds, has_spark, local_session, stages

COLUMNS = {"time": "time", "cpu": "CPU time", "reading": "tasks: read, and shuffle by user"}
COLUMNS |= {"bounding": "tasks: bound each table, and shuffle by key", "noise": "tasks: add up, noise, files"}
Used = dict[str, float]
"""Seconds of each of these."""


def main() -> None:
    if not has_spark("benchmarks.publish_spark_tables"):
        return
    size = int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    with tempfile.TemporaryDirectory(prefix="gsh-bench-") as folder:
        compare(Path(folder), size, rounds)


def compare(folder: Path, size: int, rounds: int) -> None:
    """Print the least times of one publish and of three, and their ratios."""
    import gsh  # noqa: PLC0415

    made_up(folder / "events.parquet", size)
    spark = local_session(str(folder))
    events, numbers = spark.read.parquet(str(folder / "events.parquet")), iter(range(1000))
    shared: dict[str, Any] = {"user": "user_id", "epsilon": EPSILON, "delta": DELTA, "partitions": PARTITIONS}
    countries = [f"C{number}" for number in range(COUNTRIES)]
    asked: dict[str, dict[str, Any]] = {
        "by_country": {"by": "country", "public_keys": countries, "c_u": 1},
        "by_url": {"by": "url", "c_u": C_U},
        "detail": {"by": ["url", "country"], "sums": {"likes": (0, 1), "seconds": (0, 600)}, "c_u": C_U},
    }
    calls: dict[str, dict[str, Any]] = {name: own | shared for name, own in asked.items()}
    calls["together"] = shared | {"tables": {name: gsh.Table(**own) for name, own in asked.items()}}
    least: dict[str, Used] = {}
    for number in range(1 + rounds):
        for name, given in calls.items():
            place = folder / f"published-{next(numbers)}"
            used = _used(spark, lambda: gsh.spark.publish(events, to=place, **given))  # noqa: B023
            if number:
                before = least.get(name, used)
                least[name] = {part: min(before[part], used[part]) for part in COLUMNS}
    one = least.pop("together")
    print(f"\nSpark {spark.version}, {CORES} cores, {size:.0e} events, the least of {rounds}\n")
    print(table(["three tables", "one publish", "three publishes", "ratio"], []))
    for part, title in COLUMNS.items():
        ours, theirs = one[part], sum(each[part] for each in least.values())
        print(f"| {title} | {ours:.1f} s | {theirs:.1f} s | {ours / theirs:.2f} |")
    spark.stop()


def _used(spark: Any, call: Callable[[], object]) -> Used:
    """What a call used. A stage that shuffles rows of the events reads them; one that shuffles these again bounds."""
    known = {stage.number for stage in stages(spark)}
    start, before = perf_counter(), cpu_seconds()
    call()
    used = dict.fromkeys(COLUMNS, 0.0) | {"time": perf_counter() - start, "cpu": cpu_seconds() - before}
    for stage in stages(spark):
        if stage.number not in known:
            part = "noise" if not stage.written else "bounding" if stage.read else "reading"
            used[part] += stage.cpu
    return used


if __name__ == "__main__":
    main()
