"""Three instances behind nginx on one PostgreSQL: is a budget spent exactly, and how fast is it?

``python -m benchmarks.cluster``. 64 clients race for a budget that fits N releases. Meanwhile every instance is stopped
and started again, one after the other, and PostgreSQL is stopped twice, once as in a crash. Needs nginx.
"""

import itertools
import os
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path

import httpx
import psycopg

from app.ledger.access.access_keys import new_key
from app.ledger.clock import now
from app.ledger.opening import open_ledger
from benchmarks.instances import Cluster, cluster
from benchmarks.load import posts, throughput
from benchmarks.markdown import table
from benchmarks.setting import MECHANISM
from tests.app.budgets.test_crashes import make_budget
from tests.app.crashes import BODY, SECRET, Notebook, check_ledger, release
from tests.postgres import Postgres, postgres_server

FITTING, ASKED, CLIENTS = 600, 900, 64
ROUNDS, SECONDS = 5, 2.0
DEADLINE = 300.0


def main() -> None:
    with postgres_server() as server, tempfile.TemporaryDirectory(prefix="gsh-cluster-") as folder:
        Path(folder).chmod(0o755)
        print(f"## Three instances behind nginx, one PostgreSQL, {os.cpu_count()} cores for all of it\n")
        print(table(("", ""), race(server, Path(folder))))
        print(f"\n## Throughput of three instances and of one, both behind nginx, {CLIENTS} connections\n")
        print(table(("request", "one, 1/s", "three, 1/s", "ratio"), rates(server, Path(folder))))


def access_key(place: str) -> str:
    """One that may do everything. Behind a proxy, nothing goes without."""
    key, kept = new_key(frozenset({"release", "admin", "account"}), frozenset(), "benchmark", now(), None)
    with closing(open_ledger(place, SECRET)) as ledger:
        ledger.keys.add(kept)
    return key


def race(server: Postgres, folder: Path) -> list[tuple[str, str]]:
    """The facts of a race, with all faults."""
    place = server.make_database()
    make_budget(place, FITTING)
    key = access_key(place)
    with cluster(folder / "race", 3, ledger=place, ledger_secret=SECRET) as instances:
        racing = Race(instances, key)
        faults: tuple[Callable[[], None], ...] = (
            lambda: instances.restart(0),
            lambda: restart(server, "immediate"),
            lambda: instances.restart(1),
            lambda: restart(server, "fast"),
            lambda: instances.restart(2),
        )
        seconds = racing.run(faults)
        connections = connected(place)
    notebook = racing.notebook
    charges = check_ledger(place, notebook)
    refused = racing.refused
    if not (charges == len(notebook.answers) == FITTING and len(refused) == ASKED - FITTING):
        raise RuntimeError(f"{charges} charges, {len(notebook.answers)} answers and {len(refused)} refusals")
    return [
        ("releases asked for", f"{ASKED:,}"),
        ("releases that fit", f"{FITTING:,}"),
        ("released, charged, and the same whenever asked again", f"{charges:,}"),
        ("refused with 409", f"{len(refused):,}"),
        ("requests", f"{sum(racing.statuses.values()):,}"),
        ("answered 503, and asked again", f"{racing.statuses[503]:,}"),
        ("other 5xx, and connections that broke", "0: either ends the race"),
        ("restarts of instances, of PostgreSQL", "3, 2"),
        ("connections to PostgreSQL per instance", f"{connections / 3:.1f}"),
        ("seconds", f"{seconds:.0f}"),
    ]


def restart(server: Postgres, mode: str) -> None:
    server.stop(mode)
    server.start()


def connected(place: str) -> int:
    """The connections of all instances to the database."""
    with psycopg.connect(place) as connection:
        row = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'gsh'").fetchone()
    assert row is not None
    return int(row[0])


class Race:
    """Clients that share a list of idempotency keys. Each repeats a request until it is answered, and then once more.

    New keys are given out in lots, one for each fault and one for the end. A client that finds no new key repeats an
    old one, until the fault is over. So each fault meets releases that are new.
    """

    def __init__(self, instances: Cluster, access: str) -> None:
        self._url = instances.url
        self._headers = {"authorization": f"Bearer {access}"}
        self.notebook = Notebook()
        self.refused: set[str] = set()
        self.statuses: Counter[int] = Counter()
        self._keys: Iterator[int] = iter(range(ASKED))
        self._given = self._lot = 0
        self._lock = threading.Lock()
        self._failed: list[BaseException] = []
        self._deadline = time.monotonic() + DEADLINE

    def run(self, faults: Iterable[Callable[[], None]]) -> float:
        """The seconds of the race."""
        started = time.perf_counter()
        threads = [threading.Thread(target=self._client, daemon=True) for _ in range(CLIENTS)]
        all_faults = list(faults)
        self._lot = ASKED // (len(all_faults) + 1)
        for thread in threads:
            thread.start()
        for number, fault in enumerate(all_faults):
            self.notebook.wait_for(CLIENTS)
            fault()
            self._lot = ASKED * (number + 2) // (len(all_faults) + 1)
        for thread in threads:
            thread.join()
        for error in self._failed:
            raise error
        return time.perf_counter() - started

    def _client(self) -> None:
        try:
            with httpx.Client(headers=self._headers, timeout=60, verify=False) as http:
                while (key := self._next()) is not None:
                    for _ in range(2):
                        self._until_answered(key, http)
        except BaseException as error:
            self._failed.append(error)
            raise

    def _next(self) -> str | None:
        with self._lock:
            if self._given < self._lot:
                self._given += 1
                return str(next(self._keys))
            return None if self._lot == ASKED else str(self._given // 2)

    def _until_answered(self, key: str, http: httpx.Client) -> None:
        while time.monotonic() < self._deadline:
            try:
                response = release(self._url, key, http)
            except httpx.HTTPError as error:
                raise RuntimeError("a connection broke") from error
            with self._lock:
                self.statuses[response.status_code] += 1
            if response.status_code in {200, 409}:
                if response.status_code == 409 and response.json()["type"] != "/problems/budget-exceeded":
                    continue  # another request with this key is not finished
                self.refused.update({key} if response.status_code == 409 else ())
                self.notebook.note(key, response)
                return
            if response.status_code != 503:
                raise RuntimeError(f"status {response.status_code}")
        raise TimeoutError(f"no answer for release {key}")


def rates(server: Postgres, folder: Path) -> list[tuple[str, str, str, str]]:
    """Answers per second, in turns."""
    place = server.make_database()
    make_budget(place)
    head = f"Authorization: Bearer {access_key(place)}\r\n"
    fresh = itertools.count()
    settings = {"ledger": place, "ledger_secret": SECRET}
    with cluster(folder / "one", 1, **settings) as one, cluster(folder / "three", 3, **settings) as three:
        kinds: dict[str, Callable[[], list[bytes]]] = {
            "/account/exact, uncached": lambda: accounting(head, fresh),
            "/release, one budget": lambda: releases(head, fresh),
        }
        rows = []
        for name, make in kinds.items():
            pairs = [[throughput(each.port, make(), SECONDS, CLIENTS) for each in (one, three)] for _ in range(ROUNDS)]
            medians = [statistics.median(column) for column in zip(*pairs, strict=True)]
            ratio = statistics.median(second / first for first, second in pairs)
            rows.append((name, *(f"{median:,.0f}" for median in medians), f"{ratio:.2f}"))
        return rows


def accounting(head: str, fresh: Iterator[int]) -> list[bytes]:
    bodies = ({"mechanism": MECHANISM, "epsilon": 0.3 + k * 1e-9} for k in itertools.islice(fresh, 20_000))
    return posts("/account/exact", bodies, itertools.repeat(head))


def releases(head: str, fresh: Iterator[int]) -> list[bytes]:
    heads = (f"{head}Idempotency-Key: {k}\r\n" for k in itertools.islice(fresh, 10_000))
    return posts("/release", itertools.repeat(BODY), heads)


if __name__ == "__main__":
    main()
