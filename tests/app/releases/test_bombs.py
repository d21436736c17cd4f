"""Requests that are small and take much memory: some of those of benchmarks.bombs, at a small limit."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from benchmarks.bombs import json_bombs, table_bombs
from tests.app.process import PATIENCE, Service, family, fork_server_of

LIMIT = 2**24
WANTED = [
    "parquet, 4000 times a text of 1048576, ZSTD",
    "parquet, a page of 16777216 bytes, ZSTD",
    "parquet, a page of 67108864 bytes, ZSTD",
    "parquet, one list of 1000000 nulls",
    "parquet, a page that claims 134217727 bytes",
    "arrow, a text of 67108864 bytes, zstd",
    "arrow, 100000 rows in one run of 1048576",
    "arrow, 100000 views of one text of 1048576",
    "arrow, 10000 batches of no row",
    "csv, quotes only, gzip",
    "csv, 300 columns, gzip",
    "json, keys of lists of lists",
    "json, counts of zeros",
    "json, published lists,",
    "json, one text of emoji",
]
BOMBS = {bomb.name: bomb for bomb in (*table_bombs(LIMIT), *json_bombs(LIMIT // 2))}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    settings = {"max_table_bytes": LIMIT, "max_release_bytes": LIMIT // 2, "max_intervals_bytes": LIMIT // 8}
    texts = {name: str(value) for name, value in settings.items()}
    with Service(temporary=tmp_path_factory.mktemp("bombs"), **texts) as made:
        yield made


@pytest.mark.parametrize("name", WANTED)
def test_no_worker_takes_more_than_four_tables_and_200_mb(service: Service, name: str) -> None:
    """A worker that ends at its bound is not there to be asked: then the next one has taken nothing."""
    (bomb,) = (bomb for each, bomb in BOMBS.items() if each.startswith(name))
    response = httpx.post(service.url + bomb.path, content=bomb.make(), headers=bomb.headers, timeout=PATIENCE)

    assert response.status_code in {200, 413, 422}
    assert max(map(peak, family(fork_server_of(service.pid)))) <= 4 * LIMIT + 200 * 10**6


def peak(process: int) -> int:
    """The largest resident size that a process ever had."""
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    return int(kilobytes) * 1024


def test_no_process_of_the_service_writes_core_dumps(service: Service) -> None:
    """They would have posted tables and the ledger's secret in them."""
    for process in family(service.pid):
        limits = Path(f"/proc/{process}/limits").read_text()
        (most,) = re.findall(r"(?m)^Max core file size +(\d+) +\d+ ", limits)
        assert int(most) <= 1
        assert int(Path(f"/proc/{process}/coredump_filter").read_text(), 16) == 0
