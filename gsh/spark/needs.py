"""What publishing needs on the driver and on the executors, tried before anything is charged.

A small job goes the way of the noise: through ``mapInArrow``, to a Python process of an executor, with the modules of
the noise. What is missing there would be missing in the release too. It has no data, so its errors may be quoted.
Once it has passed, it is not run again in the same session with the same Python.
"""

import platform
from collections.abc import Iterator
from importlib import metadata
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from gsh.errors import EventsError

__all__ = ["check_needs"]

_PACKAGE = "gaussian-sparse-histogram"
_HOW = "docs/publish-spark.md, Ship it to a cluster, says how"
_SIGNS = (
    ("PYTHON_VERSION_MISMATCH", "executors must run the Python version of the driver: set PYSPARK_PYTHON"),
    ("Cannot run program", "executors must have the Python that PYSPARK_PYTHON names"),
    ("No module named", "executors must have this package and what it needs, in the Python that PYSPARK_PYTHON names"),
)
_PYTHON = "spark.sql.execution.pyspark.python"
_passed: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()
"""The Pythons of the executors with which the check has passed, by session."""


def check_needs(events: DataFrame) -> None:
    """Raise an error that says what is missing, if the noise could not be drawn on this Spark."""
    python = events.sparkSession.conf.get(_PYTHON, "") or ""
    passed = _passed.setdefault(events.sparkSession, set())
    if python not in passed:
        _check(events)
        passed.add(python)


def _check(events: DataFrame) -> None:
    package = _PACKAGE

    def versions(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # It goes to the executors by value: there this module may be missing.
        import importlib.metadata  # noqa: PLC0415
        import platform  # noqa: PLC0415

        import pyarrow  # noqa: PLC0415

        import gsh.spark.noise  # noqa: F401, PLC0415

        python = ".".join(platform.python_version_tuple()[:2])
        found = {"python": [python], "gsh": [importlib.metadata.version(package)]}
        for _ in batches:
            yield pyarrow.RecordBatch.from_pydict(found)

    fault, rows = "", []
    try:
        rows = _on_executors(events, versions)
    except ImportError as error:  # PySpark asks for pandas and for PyArrow on the driver
        fault = f"the driver must have what PySpark needs: {error}; pip install '{_PACKAGE}[spark]'"
    except Exception as error:
        known = (detail for sign, detail in _SIGNS if sign in str(error))
        fault = next(known, f"executors must run Python: {str(error).strip().splitlines()[-1][:300]}")
    mine = (".".join(platform.python_version_tuple()[:2]), metadata.version(_PACKAGE))
    others = {(row["python"], row["gsh"]) for row in rows} - {mine}
    if others:
        theirs = ", ".join(f"Python {python} with version {version}" for python, version in sorted(others))
        fault = (
            f"executors must have the versions of the driver: there is {theirs}, here Python {mine[0]} with {mine[1]}"
        )
    if fault:  # outside the handler: Spark's error would stay as the context of this one
        raise EventsError("spark", f"{fault}; {_HOW}")


def _on_executors(events: DataFrame, function: Any) -> list[Any]:
    """The rows that a function gives in a task for each core of the cluster."""
    return list(events.sparkSession.range(64).mapInArrow(function, "python string, gsh string").collect())
