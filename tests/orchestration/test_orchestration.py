"""dbt, Dagster and Airflow run the commands of examples/README.md. A run that is killed is not paid twice."""

import os
import queue
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import duckdb
import httpx
import pyarrow as pa
import pytest

import gsh
from tests.app.process import PATIENCE, Service
from tests.install.environments import ROOT, Bare, console_blocks
from tests.interrupted import Proxy

pytestmark = pytest.mark.long

ADDRESS = "http://127.0.0.1:8000"
PRINTED, OTHER = "2026-11-09", "2026-11-02"
TOOLS = ("dbt", "dagster", "airflow")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(temporary=tmp_path_factory.mktemp("service")) as running:
        limit = {"epsilon": 20, "delta": 1e-3}
        assert httpx.put(f"{running.url}/budgets/web", json=limit, timeout=PATIENCE).status_code == 200
        yield running


def charges(service: Service) -> Counter[str]:
    entries = service.get("/budgets/web/charges?limit=1000").json()["entries"]
    return Counter(entry["details"]["idempotency_key"] for entry in entries if entry["kind"] == "charge")


def published(checkout: Path, tool: str, week: str) -> pa.Table | None:
    """The private table that the tool has written."""
    if tool != "dbt":
        path = checkout / "published" / f"web-{tool}-views-{week}.parquet"
        return gsh.read(path).table.replace_schema_metadata() if path.exists() else None
    warehouse = checkout / "warehouse.duckdb"
    if not warehouse.exists():
        return None
    with duckdb.connect(str(warehouse), read_only=True) as database:
        tables = database.sql("SELECT table_name FROM duckdb_tables()").fetchall()
        is_there = ("private_views",) in tables
        return database.sql("FROM private_views ORDER BY ALL").to_arrow_table() if is_there else None


@pytest.mark.parametrize("tool", TOOLS)
def test_a_run_that_is_killed_after_the_charge_is_paid_once(service: Service, tmp_path: Path, tool: str) -> None:
    (block,) = (each for each in console_blocks(ROOT / "examples" / "README.md") if f"venv {tool}-env" in each)
    bare = Bare(tmp_path)

    bare.run(block.replace(ADDRESS, service.url))

    assert charges(service)[f"web-{tool}-views-{PRINTED}"] == 1
    first = published(bare.checkout, tool, PRINTED)
    assert first is not None
    assert len(first) > 50
    (bare.checkout / "warehouse.duckdb").unlink(missing_ok=True)

    lines = block.replace("\\\n", " ").splitlines()
    exports = [line for line in lines if line.startswith("export ")]
    again = "\n".join([*exports, f"exec {lines[-1]}"]).replace(PRINTED, OTHER)
    (bare.checkout / "events" / f"{PRINTED}.parquet").rename(bare.checkout / "events" / f"{OTHER}.parquet")
    started: queue.Queue[subprocess.Popen[str]] = queue.Queue()
    with Proxy(
        service.url, ["answered"], lambda: os.killpg(started.get(timeout=PATIENCE).pid, signal.SIGKILL)
    ) as proxy:
        process = bare.start(again.replace(ADDRESS, proxy.url))
        started.put(process)
        process.communicate(timeout=PATIENCE)
    assert (process.returncode, proxy.reached) == (-signal.SIGKILL, ["answered"])
    assert charges(service)[f"web-{tool}-views-{OTHER}"] == 1
    assert published(bare.checkout, tool, OTHER) is None

    tables = []
    for _ in range(2):
        bare.run(again.replace(ADDRESS, service.url))
        tables.append(published(bare.checkout, tool, OTHER))

    assert tables[0] is not None
    assert tables[0].equals(tables[1])
    assert not tables[0].equals(first)  # other noise
    assert charges(service)[f"web-{tool}-views-{OTHER}"] == 1
