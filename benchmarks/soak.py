"""Ten minutes of mixed load with faults: does anything grow, fail or get lost?

``make soak``, or ``make soak SECONDS=60`` to try it. One service with two workers and PostgreSQL. Twelve clients in
processes of their own account, calibrate, release, repeat, read, send nonsense and hang up in the middle of an upload.
Every ten seconds there is a fault: PostgreSQL is restarted, or a worker process of a pool is killed. Each row is a
minute. It exits with 1 if an answer is a 5xx other than 503, if the service closes a connection without an answer, if a
charge is lost or doubled, or if memory or descriptors grow.
"""

import itertools
import multiprocessing
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.queues import Queue
from pathlib import Path
from queue import Empty

from benchmarks.markdown import table
from benchmarks.server import Server, serving
from benchmarks.soak_clients import CLOSED, HUNG_UP, Note, client
from tests.app.budgets.test_crashes import make_budget
from tests.app.crashes import SECRET, Notebook, check_ledger
from tests.app.process import family
from tests.postgres import Postgres, postgres_server

CLIENTS, MINUTE, FAULT_SECONDS = 12, 60.0, 10.0
STATUSES = ("requests", "4xx", "503", "other 5xx", "closed", "hung up")
COLUMNS = ("minute", *STATUSES, "p50, ms", "p99, ms", "MB", "descriptors")
MOST_GROWTH = 1.25
"""The last minute may take a quarter more memory and descriptors than the second one: pools fill in the first."""


def main() -> int:
    seconds = float(os.environ.get("SECONDS") or 600)
    if not 10 <= seconds <= 3600:
        sys.exit("SECONDS: must be from 10 to 3600")
    with postgres_server() as database, tempfile.TemporaryDirectory(prefix="gsh-soak-") as folder:
        place = database.make_database()
        make_budget(place)
        os.environ["TMPDIR"] = folder
        print(f"## {seconds:.0f} seconds of mixed load with faults\n")
        with serving("app", ledger=place, ledger_secret=SECRET, workers=2) as server:
            soak = Soak(server, database)
            soak.run(seconds)
        charges = check_ledger(place, soak.notebook)
    wrong = soak.faults_of_the_service()
    if charges < len(soak.notebook.answers):
        wrong.append(f"{len(soak.notebook.answers)} releases were seen, and {charges} charged")
    verdict = "; ".join(wrong) or "each release was charged once, and is the same whenever it is read"
    print(f"\n{soak.restarts} restarts of PostgreSQL, {soak.kills} killed workers, {charges:,} charges: {verdict}")
    return 1 if wrong else 0


class Soak:
    """Clients, faults, and a row for each minute."""

    def __init__(self, server: Server, database: Postgres) -> None:
        self._server, self._database = server, database
        self._lots = random.Random(17)
        self.notebook = Notebook()
        self.restarts = self.kills = 0
        self._statuses: Counter[int] = Counter()
        self._usage: list[tuple[int, int]] = []

    def run(self, seconds: float) -> None:
        context = multiprocessing.get_context("spawn")
        stop, notes = context.Event(), context.Queue()
        clients = [
            context.Process(target=client, args=(self._server.port, number, stop, notes)) for number in range(CLIENTS)
        ]
        for each in clients:
            each.start()
        notes.get()  # the first answer: the clients have started
        print(table(COLUMNS, ()), flush=True)
        try:
            started = time.monotonic()
            faults = itertools.cycle((self._restart, self._kill, self._kill))
            for minute in itertools.count(1):
                end = min(started + minute * MINUTE, started + seconds)
                self._minute(minute, end, notes, faults)
                if end >= started + seconds:
                    break
        finally:
            stop.set()
            self._end(clients, notes)

    def faults_of_the_service(self) -> list[str]:
        """What must not happen, and did."""
        wrong = [f"{count} answers with {status}" for status, count in self._statuses.items() if status in WRONG]
        if self._statuses[CLOSED]:
            wrong.append(f"{self._statuses[CLOSED]} connections were closed without an answer")
        for name, column in zip(("memory", "descriptors"), zip(*self._usage[1:], strict=True), strict=False):
            if column[-1] > MOST_GROWTH * column[0]:
                wrong.append(f"{name} grew from {column[0]:,} to {column[-1]:,}")
        return wrong

    def _minute(self, minute: int, end: float, notes: "Queue[Note]", faults: Iterator[Callable[[], None]]) -> None:
        taken: list[float] = []
        statuses: Counter[int] = Counter()
        usage = []
        next_fault = time.monotonic() + FAULT_SECONDS / 2
        while (now := time.monotonic()) < end:
            if now > next_fault:
                usage.append((self._server.memory(), descriptors_of(self._server)))
                next(faults)()
                next_fault = now + FAULT_SECONDS
            with suppress(Empty):
                note = notes.get(timeout=0.1)
                statuses[note.status] += 1
                self._note(note)
                if note.is_timed:
                    taken.append(note.seconds)
        usage.append((self._server.memory(), descriptors_of(self._server)))
        # The median of the minute: at any moment there may be tables in memory.
        memory, descriptors = (int(statistics.median(column)) for column in zip(*usage, strict=True))
        self._usage.append((memory, descriptors))
        self._statuses += statuses
        print(row(minute, statuses, sorted(taken), memory, descriptors), flush=True)

    def _note(self, note: Note) -> None:
        if note.key is not None and note.status == 200:
            self.notebook.answers[note.key].add(note.content)

    def _end(self, clients: list[multiprocessing.process.BaseProcess], notes: "Queue[Note]") -> None:
        """Read what the clients still tell, and wait for their end."""
        is_over = False
        while not is_over:
            is_over = not any(each.is_alive() for each in clients)
            with suppress(Empty):
                while True:
                    note = notes.get(timeout=0.1)
                    self._statuses[note.status] += 1
                    self._note(note)
        for each in clients:
            each.join()
            if each.exitcode != 0:
                raise RuntimeError("a client has failed")

    def _restart(self) -> None:
        self._database.stop(self._lots.choice(("fast", "immediate")))
        self._database.start()
        self.restarts += 1

    def _kill(self) -> None:
        """A worker process of a pool. The request that it works on gets 503, or is made again."""
        workers = [pid for pid in family(self._server.process.pid) if name_of(pid).startswith("gsh-")]
        if workers:
            with suppress(ProcessLookupError):
                os.kill(self._lots.choice(workers), signal.SIGKILL)
                self.kills += 1


WRONG = set(range(500, 600)) - {503}


def name_of(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def descriptors_of(server: Server) -> int:
    """The open files of all the service's processes."""
    total = 0
    for pid in family(server.process.pid):
        with suppress(OSError):
            total += len(os.listdir(f"/proc/{pid}/fd"))
    return total


def row(minute: int, statuses: Counter[int], taken: list[float], memory: int, descriptors: int) -> str:
    """A line of the table."""
    of_kind = [
        sum(statuses.values()),
        sum(count for status, count in statuses.items() if 400 <= status < 500),
        statuses[503],
        sum(count for status, count in statuses.items() if status in WRONG),
        statuses[CLOSED],
        statuses[HUNG_UP],
    ]
    quantiles = [f"{1e3 * taken[int(share * len(taken))]:,.1f}" if taken else "" for share in (0.5, 0.99)]
    cells = [str(minute), *(f"{count:,}" for count in of_kind), *quantiles, f"{memory / 1e6:,.0f}", str(descriptors)]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
