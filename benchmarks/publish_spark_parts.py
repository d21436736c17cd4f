"""Rates of the parts of publishing on Spark, each in one process or one task: what a plan on paper needs.

Those in Python are per second of a core, whatever else the machine does; that of the task is per second of the clock.

python -m benchmarks.publish_spark_parts groups.arrow      the noise of a partition alone, as JSON
"""

import json
import subprocess
import sys
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.markdown import table

GROUPS = 1_000_000
ROWS = 20_000_000
BATCH = 10_000
"""Rows of a batch that Spark sends to Python."""
SUMS = {"likes": (0, 1), "seconds": (0, 600)}


def parts(spark: Any, folder: Path) -> None:
    """Print the rates of the noise, of the digest, and of the task of one large group."""
    from gsh.spark.places import Place  # noqa: PLC0415

    groups = folder / "groups.arrow"
    made_up_groups(groups)
    command = [sys.executable, "-m", "benchmarks.publish_spark_parts", str(groups)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    noise = json.loads(done.stdout)
    place = folder / "digested"
    place.mkdir()
    with pa.memory_map(str(groups)) as file:
        pq.write_table(pa.ipc.open_stream(file).read_all(), place / "part-00000-000.parquet")
    start = process_time()
    Place(place).digest(str(place))
    digest = GROUPS / (process_time() - start)
    rate = f"{noise['rate']:,.0f} groups per second of a core"
    memory = f"{noise['peak'] / 2**20:,.0f} MiB at the peak, {noise['before'] / 2**20:,.0f} MiB before"
    print(table(["part", "rate", "memory"], []))
    print(f"| noise, {GROUPS:.0e} groups in a partition | {rate} | {memory} |")
    print(f"| digest on the driver | {digest:,.0f} rows per second of a core | |")
    print(f"| one group of {ROWS:.0e} users, in one task | {_one_group(spark):,.0f} rows per second | |", flush=True)


def made_up_groups(path: Path) -> None:
    """Groups with two parts of a key and two sums, as Spark sends them to Python."""
    lots = np.random.default_rng(2)
    counts = 1 + (lots.pareto(1.1, GROUPS) * 3).astype(np.int64) % 10_000
    columns = {
        "url": pa.array([f"https://example.org/{number // 20}" for number in range(GROUPS)]),
        "country": pa.array([f"C{number % 20}" for number in range(GROUPS)]),
        "count": counts,
        "likes": counts // 2,
        "seconds": counts * 100,
    }
    groups = pa.table(columns).take(lots.permutation(GROUPS))
    with pa.ipc.new_stream(str(path), groups.schema) as stream:
        stream.write_table(groups.combine_chunks(), max_chunksize=BATCH)


def noise_alone(path: str) -> dict[str, float]:
    """Groups per second of the noise function, and the largest memory of this process in bytes."""
    import gsh  # noqa: PLC0415
    from gsh.events.plan import make_plan  # noqa: PLC0415
    from gsh.spark.noise import noise_function  # noqa: PLC0415

    plan = make_plan(user="user_id", by=["url", "country"], sums=SUMS, c_u=16, salt="0" * 32, partitions=1)
    mechanism = gsh.calibrate(c_u=16, epsilon=1, delta=1e-6, sums=SUMS).mechanism
    function = noise_function(plan, mechanism, bytes(32))
    with open(path, "rb") as file:
        list(function(iter(pa.ipc.open_stream(file).read_next_batch() for _ in range(1))))  # compile
    before = _peak()
    with open(path, "rb") as file:
        start = process_time()
        rows = sum(batch.num_rows for batch in function(iter(pa.ipc.open_stream(file))))
        rate = GROUPS / (process_time() - start)
    return {"rate": rate, "before": before, "peak": _peak(), "rows": rows}


def _one_group(spark: Any) -> float:
    """All rows of one group go to one task, which adds them up."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    rows = spark.range(ROWS).select(F.lit("https://example.org/1").alias("url"), (F.col("id") % 600).alias("seconds"))
    shuffled = rows.repartition(1, "url").groupBy("url").agg(F.count(F.lit(1)), F.sum("seconds"))
    start = perf_counter()
    shuffled.collect()
    return ROWS / (perf_counter() - start)


def _peak() -> int:
    """Not ru_maxrss: that begins with the memory of the parent process."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    print(json.dumps(noise_alone(sys.argv[1])))
