"""Real faults: drivers and executors are killed, and tasks run twice. The same rows, one charge, one commit."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pyspark
import pytest

import gsh
from tests.app.process import ROOT, Service
from tests.gsh.spark.job import STEPS
from tests.gsh.spark.views import TABLES, entries, rows_in, views

Job = Callable[..., dict[str, Any]]

pytestmark = pytest.mark.long
"""Each test starts drivers. test_exactly_once.py has the same steps inside one driver."""

PATIENCE = 3600
"""Seconds until a driver counts as hanging, on a busy machine too."""
CLUSTER = {"spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
HOME = str(Path(pyspark.__file__).parent)
CLASSIC = "local[2]"


class Release:
    """One release, and the jobs that make it. Each job reads the events in another order."""

    def __init__(self, folder: Path, service: Service, name: str) -> None:
        self.to, self._service, self.name = folder / "published", service, name
        self._folder, self._runs = folder, 0
        with gsh.Client(service.url) as client:
            client.budgets.put(name, epsilon=100, delta=0.5)

    def run(self, code: int = 0, *, late: int = 0, to: Path | None = None, **given: Any) -> dict[str, Any]:
        self._runs += 1
        events = self._folder / f"events-{self._runs}.parquet"
        pq.write_table(views(self._runs, late), events)
        named = {"events": str(events), "to": str(to or self.to), "url": self._service.url}
        named |= {"budget": self.name, "once": f"{self.name}-W46"}
        command = [sys.executable, "-m", "tests.gsh.spark.job", json.dumps(named | given)]
        settings = {**os.environ, "SPARK_HOME": HOME, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
        done = subprocess.run(
            command, cwd=ROOT, env=settings, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert done.returncode == code, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1]) if code >= 0 else {}

    def entries(self) -> dict[str, int]:
        return dict(entries(self._service, self.name, f"{self.name}-W46"))

    def staged(self, to: Path | None = None) -> dict[str, bytes]:
        """The rows of the complete attempt."""
        folder = to or self.to
        (finished,) = folder.parent.glob(f".{folder.name}.*.staging/finished.json")
        return rows_in(finished.parent / json.loads(finished.read_text())["attempt"])


@pytest.fixture
def release(tmp_path: Path, service: Service, request: pytest.FixtureRequest) -> Release:
    name = re.sub(r"\W+", "-", request.node.name.removeprefix("test_").replace("_", "-")).strip("-")[-50:].lstrip("-")
    return Release(tmp_path, service, name)


@pytest.mark.parametrize("step", STEPS)
def test_a_driver_killed_after_any_step_publishes_once(release: Release, tmp_path: Path, step: str) -> None:
    release.run(-signal.SIGKILL, master=CLASSIC, die=step)
    done = STEPS.index(step)
    assert release.entries() == ({"charge": 1, "committed": 1} if done >= STEPS.index("commit") else {"charge": 1})
    assert release.to.exists() == (step == "place")
    if done < STEPS.index("finish"):  # the rows of a run elsewhere, to which nothing happens before its commit
        clean = tmp_path / "clean"
        release.run(-signal.SIGKILL, master=CLASSIC, die="finish", to=clean)
        expected = release.staged(clean)
    else:
        expected = rows_in(release.to) if step == "place" else release.staged()
    assert len(expected) > 1

    made = release.run(master=CLASSIC)

    assert made["is_replayed"] == (done >= STEPS.index("commit"))
    assert release.entries() == {"charge": 1, "committed": 1}
    assert made["groups"] > 5
    assert not list(release.to.parent.glob(".published*"))
    assert rows_in(release.to) == expected


@pytest.mark.parametrize("step", STEPS)
def test_a_driver_killed_after_any_step_publishes_all_tables_once(release: Release, step: str) -> None:
    release.run(-signal.SIGKILL, master=CLASSIC, die=step, tables=True)
    is_committed = STEPS.index(step) >= STEPS.index("commit")
    assert release.entries() == ({"charge": 1, "committed": 1} if is_committed else {"charge": 1})
    assert release.to.exists() == (step == "place")
    staged = release.staged() if step in ("finish", "commit", "certify") else {}

    made = release.run(master=CLASSIC, tables=True)

    assert made["is_replayed"] == is_committed
    assert release.entries() == {"charge": 1, "committed": 1}
    assert {name.partition("/")[0] for name in rows_in(release.to)} == set(TABLES["tables"])
    assert not staged or rows_in(release.to) == staged
    assert not list(release.to.parent.glob(".published*"))


@pytest.mark.skipif(pyspark.__version__ < "4", reason="from pip, Spark Connect works from version 4 on")
@pytest.mark.parametrize("tables", [False, True])
def test_spark_connect_gives_the_rows_of_classic_spark(release: Release, tables: bool) -> None:
    """The second run would stop if its rows were others."""
    release.run(-signal.SIGKILL, master=CLASSIC, die="finish", tables=tables)
    staged = release.staged()
    release.run(tables=tables)

    assert rows_in(release.to) == staged


@pytest.mark.skipif(pyspark.__version__ < "4", reason="from pip, Spark Connect works from version 4 on")
def test_spark_connect_names_the_column_of_a_sum_beyond_doubles(release: Release) -> None:
    """The bound from below is so large that a few users are enough."""
    found = release.run(1, changes={"sums": {"likes": (2**51, 2**52)}, "units": None})

    assert found["error"] == "sums/likes: must stay within 2^53 units in every group: take a larger unit"
    assert release.entries() == {"charge": 1}


def test_an_executor_that_is_killed_changes_nothing(release: Release, tmp_path: Path) -> None:
    release.run(-signal.SIGKILL, master=CLASSIC, die="finish")
    staged = release.staged()
    marker = tmp_path / "killed"

    release.run(master="local-cluster[2,1,1024]", settings=CLUSTER, fault=["killing_once", str(marker)])

    assert marker.exists()
    assert rows_in(release.to) == staged
    assert release.entries() == {"charge": 1, "committed": 1}


def test_a_task_that_runs_twice_at_once_changes_nothing(release: Release, tmp_path: Path) -> None:
    """Speculation for real: two hosts, and a task that waits until Spark has run a copy of it."""
    release.run(-signal.SIGKILL, master=CLASSIC, die="finish")
    staged = release.staged()
    first, copy = tmp_path / "first", tmp_path / "copy"
    speculation = {
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.minTaskRuntime": "100ms",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.quantile": "0.3",
        "spark.executor.cores": "1",
        "spark.cores.max": "2",
    }
    with standalone() as master:
        release.run(master=master, settings=CLUSTER | speculation, fault=["waiting_once", str(first), str(copy)])

    assert first.exists()
    assert copy.exists()
    assert rows_in(release.to) == staged
    assert release.entries() == {"charge": 1, "committed": 1}


def test_other_events_under_the_same_name_stop_the_job(release: Release) -> None:
    release.run(-signal.SIGKILL, master=CLASSIC, die="finish")
    found = release.run(1, master=CLASSIC, late=3)

    assert found["error"].startswith("events: must be the events of the earlier run")
    assert not release.to.exists()
    assert release.entries() == {"charge": 1}


def test_the_example_runs_with_spark_submit(service: Service, tmp_path: Path) -> None:
    """Twice: the second run finds the release."""
    with gsh.Client(service.url) as client:
        client.budgets.put("example", epsilon=100, delta=0.5)
    to = tmp_path / "published"
    command = [f"{HOME}/bin/spark-submit", "--master", "local[2]", "--conf", "spark.sql.shuffle.partitions=2"]
    command += [str(ROOT / "examples" / "spark_job.py"), "--week", "2026-W46", "--to", str(to), "--partitions", "2"]
    command += ["--service", service.url, "--budget", "example"]
    settings = {**os.environ, "SPARK_HOME": HOME, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    settings["PYSPARK_DRIVER_PYTHON"] = sys.executable
    said = []
    for _ in range(2):
        done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        said.append(done.stdout.splitlines()[-1])

    assert said[0] == said[1]
    assert re.match(rf"\d+ groups published in {to}, \(ε, δ\) = \(1, 1e-06\); paid by the budget example;", said[0])
    assert entries(service, "example", "web-spark-views-2026-W46") == {"charge": 1, "committed": 1}


@contextmanager
def standalone() -> Iterator[str]:
    """A master, and two workers on two addresses of loopback."""
    script = [f"{HOME}/bin/spark-class"]
    settings = {**os.environ, "SPARK_HOME": HOME, "SPARK_NO_DAEMONIZE": "1", "PYTHONPATH": str(ROOT)}
    settings.pop("SPARK_LOCAL_IP", None)
    with ExitStack() as running:

        def start(*arguments: str) -> subprocess.Popen[str]:
            command = [*script, *arguments]
            process = subprocess.Popen(
                command, env=settings, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
            )
            running.callback(process.wait)
            running.callback(process.terminate)
            return process

        def said(process: subprocess.Popen[str], pattern: str) -> str:
            assert process.stderr is not None
            return next(found[0] for line in process.stderr if (found := re.findall(pattern, line)))

        deploy, web = "org.apache.spark.deploy", ("--webui-port", "0")
        master = start(f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", "0", *web)
        url = said(master, r"spark://127\.0\.0\.1:\d+")
        for host in ("127.0.0.2", "127.0.0.3"):
            worker = start(f"{deploy}.worker.Worker", "--host", host, "--cores", "1", "--memory", "1g", *web, url)
            said(worker, "(Successfully registered)")
        yield url
