"""How much memory does a client need for ten million groups?

``python -m benchmarks.client``, or with another number of groups. A service on loopback keeps every group, so that the
answer is as long as the table. Each client is a process of its own: it has the table in memory, or its path, and then
its peak is reset. The memory of a process that has only loaded the libraries is not counted.
"""

import importlib
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import gsh
from benchmarks.markdown import table as markdown
from benchmarks.server import serving

GROUPS = 10**7
MEGABYTE = 10**6
MECHANISM = gsh.Mechanism(c_u=1, tau=1, tau_star=1000, sigma=20)
GOAL = 1.5


def main(groups: int) -> None:
    print(f"## Memory of a client: {groups:,} groups by URL and country, all of them kept\n")
    with (
        tempfile.TemporaryDirectory() as name,
        serving("app", ledger=Path(name) / "ledger.sqlite3") as server,
    ):
        folder = Path(name)
        size = write(folder, groups)
        url = f"http://127.0.0.1:{server.port}"
        with gsh.Client(url) as client:
            client.budgets.put("memory", epsilon=1000, delta=0.5)
        rows = []
        for source in SOURCES:
            command = [sys.executable, "-m", "benchmarks.client", url, source, name]
            measured = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)
            cells = [f"{measured[each] / MEGABYTE:,.0f}" for each in ("before", "peak")]
            ratio = measured["peak"] / measured["size"]
            rows.append((source, f"{measured['size'] / MEGABYTE:,.0f}", *cells, f"{ratio:.2f}", measured["seconds"]))
    print(markdown(("table", "size, MB", "before, MB", "peak, MB", f"ratio (goal: {GOAL})", "seconds"), rows))
    print(f"\nThe table takes {size / MEGABYTE:,.0f} MB as Arrow. The size of a data frame is what it takes itself.")


def write(folder: Path, groups: int) -> int:
    """The table as files. Its size in memory."""
    number = pa.array(np.random.default_rng(groups).permutation(groups))
    urls = pc.binary_join_element_wise("https://www.example.com/articles/", pc.cast(number, pa.string()), "")
    countries = pa.array(np.array(["BR", "DE", "FR", "US"])[number.to_numpy() % 4])
    table = pa.table({"url": urls, "country": countries, "users": np.full(groups, 10**6)})
    pq.write_table(table, folder / "table.parquet")
    with pa.ipc.new_file(folder / "table.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=1 << 20)
    return int(table.nbytes)


def _read(folder: Path) -> pa.Table:
    with pa.OSFile(str(folder / "table.arrow")) as file:
        return pa.ipc.open_file(file).read_all()


SOURCES: dict[str, Callable[[Path], Any]] = {
    "pyarrow table": _read,
    "polars frame": lambda folder: importlib.import_module("polars").from_arrow(_read(folder)),
    "pandas frame": lambda folder: _read(folder).to_pandas(),
    "path of Parquet": lambda folder: folder / "table.parquet",
    "path of Arrow": lambda folder: folder / "table.arrow",
    "stream": lambda folder: pq.ParquetFile(folder / "table.parquet").iter_batches(),
}
"""A stream is read twice as often as others: once to keep it, and once to send it."""


def measure(url: str, source: str, folder: Path) -> None:
    """In a process of its own: the peak while a table is released, in bytes above the libraries alone."""
    for library in ("pandas", "polars", "gsh.client"):
        importlib.import_module(library)
    libraries = _memory("VmRSS")
    table = SOURCES[source](folder)
    if source == "stream":
        table = pa.RecordBatchReader.from_batches(pq.read_schema(folder / "table.parquet"), table)
    pa.default_memory_pool().release_unused()
    before = _memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins again
    begin = perf_counter()
    with gsh.Client(url) as client:
        once = source.replace(" ", "-")
        released = client.release(table, MECHANISM, users="users", keys=["url", "country"], budget="memory", once=once)
    seconds = perf_counter() - begin
    peak = _memory("VmHWM")
    size = _size(table) if hasattr(table, "shape") else pq.read_table(folder / "table.parquet").nbytes
    assert len(released) == pq.read_metadata(folder / "table.parquet").num_rows
    measured = {"size": size, "before": before - libraries, "peak": peak - libraries, "seconds": f"{seconds:.0f}"}
    print(json.dumps(measured))


def _size(table: Any) -> int:
    """The memory that a table or a data frame takes itself."""
    if isinstance(table, pa.Table):
        return int(table.nbytes)
    usage = getattr(table, "memory_usage", None)
    return int(usage(deep=True).sum()) if usage else int(pa.table(table).nbytes)


def _memory(name: str) -> int:
    (kilobytes,) = re.findall(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(kilobytes) * 1024


if __name__ == "__main__":
    if len(sys.argv) == 4:
        measure(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
    else:
        main(int(sys.argv[1]) if len(sys.argv) == 2 else GROUPS)
