"""How much memory and how many connections does one instance of deploy/kubernetes take?

``python -m benchmarks.sizing``. The settings are those of deploy/kubernetes/settings.env. Files in /tmp are measured
too, because there they are in memory.
"""

import itertools
import os
import tempfile
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from app.ledger.opening import open_ledger
from app.settings import Settings
from benchmarks.cluster import connected
from benchmarks.ledger import size_of
from benchmarks.load import posts, throughput
from benchmarks.markdown import table
from benchmarks.release import as_arrow, histogram, send
from benchmarks.server import Server, serving
from benchmarks.setting import MECHANISM
from tests.app.budgets.test_crashes import make_budget
from tests.app.crashes import BODY, SECRET
from tests.app.process import family
from tests.postgres import postgres_server

SETTINGS = Path(__file__).parents[1] / "deploy" / "kubernetes" / "settings.env"
MIB = 2**20
SECONDS = 5.0


def main() -> None:
    settings = settings_of(SETTINGS) | {"host": "127.0.0.1", "require_budget": False}
    most = int(settings["max_table_bytes"])  # type: ignore[call-overload]
    with postgres_server() as database, tempfile.TemporaryDirectory(prefix="gsh-sizing-") as folder:
        place = database.make_database()
        make_budget(place)
        empty = size_of(place)
        os.environ["TMPDIR"] = folder
        with serving("app", ledger=place, ledger_secret=SECRET, **settings) as server:
            exact = posts("/account/exact", ({"mechanism": MECHANISM, "epsilon": k * 1e-6} for k in range(50_000)))
            heads = (f"Idempotency-Key: {k}\r\n" for k in range(50_000))
            small = posts("/release", itertools.repeat(BODY), heads)
            large = as_arrow(table_of(most), 0)
            work: dict[str, Callable[[], object]] = {
                "nothing, after the start": lambda: None,
                "/account/exact, uncached, 16 connections": lambda: throughput(server.port, exact, SECONDS),
                "/release of two groups, charged, 16 connections": lambda: throughput(server.port, small, SECONDS),
                f"/release/table of {len(large[1]) / MIB:.0f} MiB": lambda: send(server.port, large),
                "two such tables at a time": lambda: together(server, large, 2),
                "nothing, afterwards": lambda: None,
            }
            rows = [(name, *measured(server, each)) for name, each in work.items()]
            connections, each_charge = connected(place), (size_of(place) - empty) / charges(place)
        with serving("app", ledger=place, ledger_secret=SECRET, **settings | {"workers": 4}) as server:
            rows.append(("nothing, with GSH_WORKERS=4", *measured(server, lambda: None)))
    print("## One instance with the settings of deploy/kubernetes\n")
    cells = [(name, f"{memory / MIB:,.0f}", f"{files / MIB:,.0f}") for name, memory, files in rows]
    print(table(("what it does", "most memory of its processes, MiB", "most in /tmp, MiB"), cells))
    print(
        f"\nConnections to PostgreSQL: {connections}. Growth of the database for each charge: {each_charge:,.0f} bytes."
    )


def charges(place: str) -> int:
    with closing(open_ledger(place, SECRET)) as ledger:
        return ledger.verify("web")[0].spent.releases


def settings_of(path: Path) -> dict[str, object]:
    """The settings in a file of variables, by name."""
    lines = (line for line in path.read_text().splitlines() if line.startswith("GSH_"))
    found: dict[str, object] = {
        name.removeprefix("GSH_").lower(): value for name, value in (line.split("=", 1) for line in lines)
    }
    assert found.keys() <= Settings.model_fields.keys()
    return found


def table_of(most: int) -> object:
    """A histogram by URL and country that is a little smaller than ``most`` bytes as an Arrow stream."""
    rows = 100_000
    each = len(as_arrow(histogram(rows, "URL and country", 0), 0)[1]) / rows
    return histogram(int(0.95 * most / each), "URL and country", 0)


def together(server: Server, post: object, count: int) -> None:
    threads = [threading.Thread(target=send, args=(server.port, post)) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def measured(server: Server, work: Callable[[], object]) -> tuple[int, int]:
    """The most memory, and the most bytes in files without a name, while something is done."""
    done, samples = threading.Event(), [sample(server)]

    def watch() -> None:
        while not done.wait(0.05):
            samples.append(sample(server))

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        work()
    finally:
        done.set()
        watching.join()
    return max(memory for memory, _ in samples), max(files for _, files in samples)


def sample(server: Server) -> tuple[int, int]:
    files: dict[tuple[int, int], int] = {}
    for pid in family(server.process.pid):
        with suppress(OSError):
            for entry in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    if "(deleted)" in os.readlink(entry):
                        found = entry.stat()
                        files[found.st_dev, found.st_ino] = found.st_blocks * 512
    return server.memory(), sum(files.values())


if __name__ == "__main__":
    main()
