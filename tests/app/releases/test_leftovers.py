"""After its answer, no data of a request is open, mapped or on disk. /proc of a real service shows it."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.app.process import PATIENCE, ROOT, Service, environment, fork_server_of, held_by, wait_for_end, worker_of
from tests.app.releases.test_release_table import REQUEST, STREAM, form
from tests.gsh.histogram.uploads import as_stream

pytestmark = pytest.mark.slow

LENGTH = 200_000
LARGE = as_stream(pa.table({"k": np.arange(LENGTH), "users": np.full(LENGTH, 10**6)}))
LARGE_REQUEST = REQUEST | {"key_columns": ["k"]}
TWICE = as_stream(pa.table({"k": np.zeros(LENGTH, np.int64), "users": np.full(LENGTH, 10**6)}))
DAMAGED = LARGE[: len(LARGE) // 2]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    temporary = tmp_path_factory.mktemp("spool")
    with Service(temporary=temporary, max_table_groups="300000") as running:
        assert post(running, STREAM, REQUEST) == 200  # so there is a worker to look at
        yield running


def post(service: Service, table: bytes, request: object) -> int:
    files = form(table, request)  # type: ignore[arg-type]
    return httpx.post(service.url + "/release/table", files=files, timeout=PATIENCE).status_code


EACH = {name: LARGE_REQUEST[name] for name in ("mechanism", "count_column", "key_columns")}
SEVERAL_REQUEST = json.dumps({"tables": [{"name": name, **EACH} for name in ("one", "two")]}).encode()


def post_several(service: Service, *tables: tuple[str, bytes]) -> int:
    """Two tables in one release."""
    files = [("request", (None, SEVERAL_REQUEST)), *(("table", table) for table in tables)]
    return httpx.post(service.url + "/release/table", files=files, timeout=PATIENCE).status_code


SMALL = as_stream(pa.table({"k": np.arange(10), "users": np.full(10, 10**6)}))
SEVERAL = {
    "a release": ((("one", LARGE[:]), ("two", SMALL)), 200),
    "the second is damaged": ((("one", SMALL), ("two", DAMAGED)), 422),
    "the first is damaged": ((("one", DAMAGED), ("two", SMALL)), 422),
    "the second is missing": ((("one", LARGE),), 422),
    "the first comes twice": ((("one", LARGE), ("one", LARGE)), 422),
    "too many groups together": ((("one", LARGE), ("two", LARGE)), 413),
}


@pytest.mark.parametrize(("tables", "status"), SEVERAL.values(), ids=SEVERAL)
def test_nothing_of_several_tables_is_held(
    service: Service, tables: tuple[tuple[str, bytes], ...], status: int
) -> None:
    assert post_several(service, *tables) == status

    check_nothing_is_held(service)


def check_nothing_is_held(service: Service) -> None:
    """Checked soon after the answer, without another request that would make the worker free its memory."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and (held_by(worker_of(service.pid)) or held_by(service.pid)):
        os.sched_yield()
    assert held_by(worker_of(service.pid)) == []
    assert held_by(service.pid) == []


OUTCOMES = {
    "a release": (LARGE, LARGE_REQUEST, 200),
    "keys that repeat": (TWICE, LARGE_REQUEST, 422),
    "a damaged table": (DAMAGED, LARGE_REQUEST, 422),
    "no table": (b"no table" * 1000, LARGE_REQUEST, 422),
    "a column that is missing": (LARGE, REQUEST, 422),
    "too many groups": (
        as_stream(pa.table({"k": np.arange(300_001), "users": np.full(300_001, 1)})),
        LARGE_REQUEST,
        413,
    ),
    "a wrong request": (STREAM, {"count_column": 1}, 422),
}


@pytest.mark.parametrize(("table", "request_part", "status"), OUTCOMES.values(), ids=OUTCOMES)
def test_nothing_of_a_request_is_held_after_its_answer(
    service: Service, table: bytes, request_part: object, status: int
) -> None:
    assert post(service, table, request_part) == status

    check_nothing_is_held(service)


def test_nothing_is_held_after_a_table_that_needs_too_much_memory(tmp_path: Path) -> None:
    """Ten gigabytes from a few kilobytes."""
    length = 10**5
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(length, np.int32)), pa.array(["x" * length]))
    sink = io.BytesIO()
    pq.write_table(pa.table({"k": texts, "users": np.full(length, 1)}), sink, store_schema=False)
    with Service(temporary=tmp_path, max_table_bytes=str(10**7)) as service:
        assert post(service, sink.getvalue(), LARGE_REQUEST) == 413
        check_nothing_is_held(service)


PART = b'--x\r\nContent-Disposition: form-data; name="%b"\r\n\r\n'
BOTH = json.dumps({"tables": [{"name": name, **LARGE_REQUEST} for name in ("one", "two")]}).replace(
    '"epsilon": 1, ', ""
)
SECOND = PART % b'table"; filename="one' + SMALL + b"\r\n" + PART % b'table"; filename="two'


@pytest.mark.parametrize(
    "start", [PART % b"table", PART % b"request" + SEVERAL_REQUEST + b"\r\n" + SECOND], ids=["one", "second of two"]
)
def test_nothing_is_held_after_an_upload_that_is_cut_off(service: Service, start: bytes) -> None:
    def half() -> Iterator[bytes]:
        yield start + LARGE
        while b"request" in start and not held_by(service.pid):  # without a request it is refused
            os.sched_yield()
        raise ConnectionError

    with pytest.raises(ConnectionError):
        httpx.post(
            service.url + "/release/table",
            content=half(),
            headers={"content-type": "multipart/form-data; boundary=x"},
            timeout=PATIENCE,
        )

    while held_by(service.pid):  # until the service has seen that the connection is closed
        assert service.get("/healthz").status_code == 200
    check_nothing_is_held(service)


FULL_DISK = """
import resource, runpy, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2 * 1024**2, 2 * 1024**2))
runpy.run_module("app", run_name="__main__", alter_sys=True)
"""


def test_a_full_spool_is_503_and_is_freed(tmp_path: Path) -> None:
    """No file may grow past two megabytes: neither the upload of the first nor the answer of the second fits."""
    with Service("-c", FULL_DISK, temporary=tmp_path) as service:
        for _ in range(3):
            assert post(service, LARGE, LARGE_REQUEST) == 503
        assert held_by(service.pid) == []
        assert post(service, STREAM, REQUEST) == 200
        check_nothing_is_held(service)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_folder_for_temporary_files_that_is_missing_is_one_line_at_start(tmp_path: Path, workers: str) -> None:
    """No file can be created in any of the usual folders."""
    limited = f"""
import runpy, sys, tempfile
tempfile._candidate_tempdir_list = lambda: [{str(tmp_path / "missing")!r}]
runpy.run_module("app", run_name="__main__", alter_sys=True)
"""
    finished = subprocess.run(
        [sys.executable, "-c", limited],
        cwd=ROOT,
        env=environment(port="0", workers=workers, ledger=str(tmp_path / "ledger.sqlite3")),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert (finished.returncode, finished.stdout) == (2, "")
    (line,) = finished.stderr.splitlines()
    assert line.startswith("TMPDIR: ")


def test_a_folder_for_temporary_files_that_disappears_is_503(tmp_path: Path) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    with Service(temporary=folder) as service:
        assert post(service, STREAM, REQUEST) == 200
        moved = folder.rename(tmp_path / "elsewhere")
        assert post(service, STREAM, REQUEST) == 503
        assert service.get("/healthz").status_code == 200
        moved.rename(folder)
        assert post(service, STREAM, REQUEST) == 200


COMPARE = {"mechanism": {"c_u": 3, "tau": 1}, "epsilon": 1, "delta": 1e-6}


def test_heavy_requests_are_served_after_the_fork_server_was_killed(tmp_path: Path) -> None:
    """Its workers live on. A new fork server makes the next worker."""
    with Service(temporary=tmp_path) as service:
        assert service.post("/compare", COMPARE).status_code == 200
        worker, fork_server = worker_of(service.pid, "accounting"), fork_server_of(service.pid)
        os.kill(fork_server, signal.SIGKILL)
        wait_for_end(fork_server)
        assert service.post("/compare", COMPARE).status_code == 200
        os.kill(worker, signal.SIGKILL)
        wait_for_end(worker)
        assert service.post("/compare", COMPARE).status_code == 200
