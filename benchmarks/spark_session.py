"""A local session of Spark. It needs pyspark alone, so that environments of other libraries can use it."""

import importlib.util
import os
import sys
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

__all__ = ["CORES", "Stage", "cpu_seconds", "has_spark", "local_session", "stages"]

ROOT = Path(__file__).parents[1]

CORES = min(os.cpu_count() or 2, 8)


def has_spark(module: str) -> bool:
    """Whether this Python has pyspark. If not, the module runs in build/spark-env in place of this process."""
    if importlib.util.find_spec("pyspark") is not None:
        return True
    python = ROOT / "build" / "spark-env" / "bin" / "python"
    if python.exists():
        os.execv(python, [str(python), "-m", module, *sys.argv[1:]])
    print(f"{module}: needs build/spark-env, which `make spark-test` builds")
    return False


def local_session(folder: str) -> Any:
    """One process with all cores. Its files go to the folder."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{CORES}]").config("spark.driver.memory", "6g")
    for name in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
        builder = builder.config(name, "false")
    builder = builder.config("spark.sql.shuffle.partitions", "32")
    builder = builder.config("spark.local.dir", folder).config("spark.sql.warehouse.dir", f"{folder}/warehouse")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


class Stage(NamedTuple):
    """A stage of a query: the CPU time of its tasks, without compilation, and what they shuffled."""

    number: int
    cpu: float
    read: int
    """Rows that came from a shuffle."""
    written: int
    """Rows that went to one."""


def stages(spark: Any) -> list[Stage]:
    """All stages that Spark has run, and still knows."""
    gateway = spark.sparkContext._gateway
    none = gateway.jvm.java.util.ArrayList()
    found = spark._jsc.sc().statusStore().stageList(none, False, False, gateway.new_array(gateway.jvm.double, 0), none)
    each = (found.apply(place) for place in range(found.size()))
    return [
        Stage(it.stageId(), it.executorCpuTime() / 1e9, it.shuffleReadRecords(), it.shuffleWriteRecords())
        for it in each
    ]


def cpu_seconds() -> float:
    """Of this process and of all below it: Java, and the Python of its tasks. From /proc, so on Linux only."""
    below: dict[int, list[tuple[int, int]]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            fields = (path / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended; its parent counts its time
        below.setdefault(int(fields[1]), []).append((int(path.name), sum(map(int, fields[11:15]))))

    def ticks(process: int) -> int:
        return sum(own + ticks(child) for child, own in below.get(process, []))

    return ticks(os.getpid()) / os.sysconf("SC_CLK_TCK") + process_time()
