"""What Spark lacks is said before anything is charged or written."""

import venv
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import gsh
from gsh.errors import EventsError
from tests.app.process import Service
from tests.gsh.spark.views import RELEASE, entries, views

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Read = Callable[[pa.Table], "DataFrame"]


@pytest.mark.long
def test_workers_without_packages_are_found_before_the_charge(
    spark: "SparkSession", read: Read, service: Service, tmp_path: Path
) -> None:
    """Their Python has none. With another Python the same release is made, and the folder around it too."""
    venv.create(tmp_path / "bare", with_pip=False)
    to = tmp_path / "not" / "there" / "published"
    with gsh.Client(service.url) as client:
        client.budgets.put("needs", epsilon=100, delta=0.5)
        paid = {"service": client, "budget": "needs", "once": "needs-W46", "to": to}
        spark.conf.set("spark.sql.execution.pyspark.python", str(tmp_path / "bare" / "bin" / "python"))
        try:
            with pytest.raises(EventsError, match="spark: executors must have this package") as error:
                gsh.spark.publish(read(views()), **paid, **RELEASE)
        finally:
            spark.conf.unset("spark.sql.execution.pyspark.python")
        assert error.value.__context__ is None
        assert entries(service, "needs", "needs-W46") == {}
        assert list(to.parent.iterdir()) == []

        made = gsh.spark.publish(read(views()), **paid, **RELEASE)

    assert made.groups > 0
    assert entries(service, "needs", "needs-W46") == {"charge": 1, "committed": 1}
