"""Tests inside an environment that has Spark: ``build/spark-env`` and ``build/spark35-env``. One session for all.

In other environments they are not collected; ``make spark-test`` runs them in theirs.
"""

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

if importlib.util.find_spec("pyspark") is None:
    collect_ignore_glob = ["test_*.py"]
elif TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

from tests.app.process import ROOT, Service
from tests.gsh.spark.job import INTERPRETED, SHORT_LIFE

# Executors run this Python, and import functions of the tests.
if importlib.util.find_spec("pyspark") is not None:
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith("tests/gsh/spark/"):
            item.add_marker("spark")


@pytest.fixture(scope="session")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the session writes event logs and its temporary files."""
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="session")
def spark(logs: Path) -> Iterator["SparkSession"]:
    from pyspark.sql import SparkSession  # noqa: PLC0415

    (logs / "events").mkdir()
    settings = {
        "spark.broadcast.compress": "false",  # the tests search files for secrets
        **SHORT_LIFE,
        **INTERPRETED,
        "spark.driver.memory": "1g",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": f"file://{logs}/events",
        "spark.eventLog.enabled": "true",
        "spark.local.dir": f"{logs}/local",
        "spark.shuffle.compress": "false",
        "spark.shuffle.spill.compress": "false",
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",  # Spark 3.5 asks who wrote dates before 1582
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": f"{logs}/warehouse",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    # Three attempts for each task: by default a local Spark does not try again. More cores would start more workers.
    builder = SparkSession.builder.master("local[1,3]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def compiled(spark: "SparkSession") -> Iterator[None]:
    """Spark compiles queries, as it does by default."""
    spark.conf.set("spark.sql.codegen.wholeStage", "true")
    spark.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    yield
    for name, value in INTERPRETED.items():
        spark.conf.set(name, value)


@pytest.fixture
def read(spark: "SparkSession", tmp_path: Path) -> Callable[[pa.Table], "DataFrame"]:
    """Events as a DataFrame. Spark 3.5 makes none of an Arrow table."""
    numbers = iter(range(100))

    def frame(table: pa.Table) -> Any:
        path = tmp_path / f"events-{next(numbers)}.parquet"
        pq.write_table(table, path)
        return spark.read.parquet(str(path))

    return frame


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(temporary=tmp_path_factory.mktemp("service")) as running:
        yield running
