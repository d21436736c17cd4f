"""Run the weekly job under dbt and Dagster, and let it fail after the charge. Neither is a dependency of the tests.

``python -m tests.orchestrated DBT DAGSTER`` needs the programs ``dbt`` (with dbt-duckdb) and ``dagster``, each from an
environment that has duckdb and this package too.
"""

import json
import os
import queue
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import httpx

from examples.weekly_job import RETRIES
from tests.app.process import PATIENCE, ROOT, Service
from tests.interrupted import Proxy

EXAMPLES = ROOT / "examples"
WEEK = "2026-W46"


def main() -> None:
    dbt, dagster = sys.argv[1:]
    with _service() as (service, folder):
        _run_dbt(dbt, service, folder)
        _run_dagster(dagster, service, folder)
        entries = service.get("/budgets/web/charges").json()["entries"]
        charges = Counter(entry["details"]["idempotency_key"] for entry in entries if entry["kind"] == "charge")
        print("charges in the history:", ", ".join(f"{key} {times}" for key, times in charges.items()))
        if sorted(charges.values()) != [1, 1]:
            sys.exit("each of the two jobs must be charged once")


@contextmanager
def _service() -> Iterator[tuple[Service, Path]]:
    with tempfile.TemporaryDirectory() as name, Service(temporary=Path(name)) as service:
        httpx.put(f"{service.url}/budgets/web", json={"epsilon": 10, "delta": 1e-4}, timeout=PATIENCE)
        yield service, Path(name)


def _run_dbt(dbt: str, service: Service, folder: Path) -> None:
    """Killed after the charge, and run twice more."""
    command = [dbt, "run", "--project-dir", str(EXAMPLES / "dbt"), "--profiles-dir", str(EXAMPLES / "dbt")]
    command += ["--vars", json.dumps({"week": WEEK, "budget": "web"})]
    warehouse = folder / "warehouse.duckdb"
    started: queue.Queue[subprocess.Popen[bytes]] = queue.Queue()
    with Proxy(service.url, ["answered"], lambda: started.get().kill()) as proxy:
        paths = {"WAREHOUSE": warehouse, "DBT_TARGET_PATH": folder / "target", "DBT_LOG_PATH": folder / "logs"}
        settings = {"SERVICE": proxy.url, **{name: str(path) for name, path in paths.items()}}
        for run in range(3):
            process = _start(command, settings)
            started.put(process)
            said = process.communicate()[0].decode()
            print(f"dbt, run {run + 1}: exit code {process.returncode}; {_table(warehouse)}")
            if run and process.returncode:
                sys.exit(said)


def _run_dagster(dagster: str, service: Service, folder: Path) -> None:
    """The first attempt of the step loses every answer."""
    with Proxy(service.url, ["answered"] * (1 + RETRIES.most)) as proxy:
        given = {"week": WEEK, "budget": "web", "folder": str(folder / "published"), "service": proxy.url}
        config = folder / "run.json"
        config.write_text(json.dumps({"ops": {"private_views": {"config": given}}}))
        command = [dagster, "job", "execute", "-f", str(EXAMPLES / "dagster_job.py"), "-j", "weekly_views"]
        (folder / "dagster").mkdir()
        process = _start([*command, "-c", str(config)], {"DAGSTER_HOME": str(folder / "dagster")})
        said = process.communicate()[0].decode()
    events = [each for each in ("STEP_UP_FOR_RETRY", "STEP_RESTARTED", "RUN_SUCCESS") if each in said]
    files = sorted(path.name for path in (folder / "published").iterdir())
    print(f"dagster: exit code {process.returncode}; {', '.join(events)}; {', '.join(files)}")
    if process.returncode:
        sys.exit(said)


def _start(command: list[str], settings: dict[str, str]) -> subprocess.Popen[bytes]:
    settings = {**os.environ, "PYTHONPATH": str(EXAMPLES), **settings}
    return subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def _table(warehouse: Path) -> str:
    """Whether the warehouse has the private table, and which."""
    with duckdb.connect(str(warehouse)) as database:
        if not database.sql("FROM duckdb_tables() WHERE table_name = 'private_views'").fetchall():
            return "no table"
        found = database.sql(
            "SELECT COUNT(*), md5(string_agg(v::VARCHAR, '' ORDER BY url, country)) FROM private_views v"
        )
        rows, digest = found.fetchall()[0]
        return f"{rows} rows, md5 {digest}"


if __name__ == "__main__":
    main()
