"""Three tables in one publish on Spark, in comparison with a publish for each of them.

They take turns, and of each the least clock time and the least CPU time count: other programs can only add to them. CPU
time is that of Java and of Python together, so that it has what Java spends on compiling.

    python -m benchmarks.publish_spark_tables 1e6 4       so many events, and rounds after one that warms up
"""

import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.markdown import table
from benchmarks.publish_spark import C_U, COUNTRIES, DELTA, EPSILON, PARTITIONS, made_up
from benchmarks.spark_session import CORES, cpu_seconds, has_spark, local_session

Used = tuple[float, float]
"""Seconds of the clock, and of all processors."""


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
            start, before = perf_counter(), cpu_seconds()
            gsh.spark.publish(events, to=folder / f"published-{next(numbers)}", **given)
            used = perf_counter() - start, cpu_seconds() - before
            if number:
                least[name] = _least(least.get(name, used), used)
    one, apart = least.pop("together"), least.values()
    three = sum(seconds for seconds, _ in apart), sum(cpu for _, cpu in apart)
    print(f"\nSpark {spark.version}, {CORES} cores, {size:.0e} events, the least of {rounds}\n")
    print(table(["three tables", "one publish", "three publishes", "ratio"], []))
    for name, ours, theirs in zip(("time", "CPU time"), one, three, strict=True):
        print(f"| {name} | {ours:.1f} s | {theirs:.1f} s | {ours / theirs:.2f} |")
    spark.stop()


def _least(one: Used, other: Used) -> Used:
    return min(one[0], other[0]), min(one[1], other[1])


if __name__ == "__main__":
    main()
