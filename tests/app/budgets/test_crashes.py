"""Races and crashes on both databases: no charge is lost or doubled, and no answer is sent without a charge."""

import os
import random
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import httpx
import psycopg
import pytest

from app.ledger.databases import Connections
from app.ledger.opening import is_postgres, open_ledger
from app.ledger.state import Settings
from gsh.accounting.budget_limits import Limit
from gsh.accounting.composition import NOTHING, cost_of
from gsh.accounting.mechanism import Mechanism
from tests.app.budgets.test_budgets import LIMIT, Bank
from tests.app.client import CASE_STUDY, problem_errors
from tests.app.crashes import (
    BODY,
    MECHANISM,
    SECRET,
    Notebook,
    Swarm,
    check_ledger,
    open_turn,
    period_turn,
    release,
    release_turn,
    table_turn,
)
from tests.app.process import PATIENCE, ROOT, Service, environment
from tests.postgres import Postgres, postgres_server
from tests.surroundings import some_of

pytestmark = pytest.mark.crash

AT = "2026-11-16T12:00:00Z"
KILLS = some_of(104)
LEVELS = {"company": None, "division": "company", "web": "division"}
WEEKLY: Settings = {"parent": "division", "renews": "week"}


def make_budget(place: str, fitting: int | None = None) -> None:
    """One whose root fits so many releases of the swarm exactly, or more than it will ever make."""
    ledger = open_ledger(place, SECRET)
    with closing(ledger):
        for name, parent in LEVELS.items():
            ledger.put_budget(name, Limit(1000.0, 0.5), "", AT, settings={"parent": parent})
        ledger.put_budget("views", Limit(1000.0, 0.5), "", AT, settings=WEEKLY)
        if fitting is not None:
            mechanism = Mechanism(**MECHANISM)  # type: ignore[arg-type]
            cost = cost_of(mechanism)
            low, high = 0.0, 1000.0
            while Limit(high, 1e-6).how_many_fit(NOTHING, mechanism, cost) != fitting:
                middle = (low + high) / 2
                fits = Limit(middle, 1e-6).how_many_fit(NOTHING, mechanism, cost) >= fitting
                low, high = (low, middle) if fits else (middle, high)
            ledger.put_budget("company", Limit(high, 1e-6), "", AT, reason="to the last release")


class Rebooted:
    """A service on a fixed port that is killed and restarted."""

    def __init__(self, place: str, workers: int) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"
        self._loaded = subprocess.Popen(
            [sys.executable, "-m", "tests.app.prefork", str(self._port), str(workers)],
            cwd=ROOT,
            env=environment(ledger=place, ledger_secret=SECRET),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.start()

    def start(self) -> None:
        """Until it listens."""
        assert self._loaded.stdin
        self._loaded.stdin.write("\n")
        self._loaded.stdin.flush()
        self._process = int(self.wait_for_line("process ").removeprefix("process "))

    def wait_for_line(self, start: str) -> str:
        assert self._loaded.stdout
        return next(line for line in self._loaded.stdout if line.startswith(start))

    def kill(self) -> None:
        """The whole service, parent, workers and all, at once."""
        os.killpg(self._process, signal.SIGKILL)

    def close(self) -> None:
        self.kill()
        self._loaded.communicate(timeout=PATIENCE)

    def workers(self) -> list[int]:
        children = Path(f"/proc/{self._process}/task/{self._process}/children").read_text()
        return [int(child) for child in children.split()]


def test_64_clients_on_4_workers_share_a_budget_to_the_last_release(ledger_url: str) -> None:
    """Exactly the fitting number succeeds, and a repeated request gets the same answer.

    A slow machine may tell a client that the service is busy. The client asks again.
    """
    fitting, clients = 40, 64
    make_budget(ledger_url, fitting)
    notebook = Notebook()
    with closing(Rebooted(ledger_url, workers=4)) as service:
        for _ in range(4):
            service.wait_for_line("serving")
        gate = threading.Barrier(clients)

        def run(number: int) -> None:
            gate.wait(PATIENCE)
            for _ in range(2):
                while (answer := release(service.url, str(number))).status_code == 503:
                    pass
                notebook.note(str(number), answer)

        threads = [threading.Thread(target=run, args=(number,)) for number in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        verified = httpx.get(f"{service.url}/budgets/web/verify", timeout=PATIENCE).json()
        assert verified["intact"] is True

    assert notebook.statuses == {200: 2 * fitting, 409: 2 * (clients - fitting)}
    assert notebook.problems == {"/problems/budget-exceeded"}
    assert check_ledger(ledger_url, notebook) == len(notebook.answers) == fitting


@pytest.fixture
def rebooted(ledger_url: str) -> Iterator[Rebooted]:
    make_budget(ledger_url)
    service = Rebooted(ledger_url, workers=2)
    yield service
    service.close()


def test_killed_at_random_moments_nothing_is_lost_doubled_or_seen_unpaid(rebooted: Rebooted, ledger_url: str) -> None:
    """Many kill -9, of single workers and of the whole service, while clients release and retry.

    They release groups, each time in another week, whose budget the first charge makes, and tables whose answers are
    stored in parts; and they open and commit releases made elsewhere. All of it is charged to two budgets above too.
    """
    lots, notebook = random.Random(5), Notebook()
    swarm = Swarm(rebooted.url, 5, notebook, [period_turn, open_turn, table_turn, period_turn, release_turn])
    kills = whole = 0
    while kills < KILLS:
        # A moment is a number of answers, and then a spin of random length: any place in the next request.
        if kills % 8 == 7:
            notebook.wait_for(1, "table")  # so that tables have their turn: they take longest
        else:
            notebook.wait_for(lots.randrange(1, 8))
        for _ in range(lots.randrange(20_000)):
            pass
        workers = rebooted.workers()
        if kills % 8 == 3:
            rebooted.kill()
            rebooted.start()
            whole += 1
        elif workers:
            with suppress(ProcessLookupError):
                os.kill(lots.choice(workers), signal.SIGKILL)
        else:
            continue
        kills += 1
    swarm.stop()

    assert whole == KILLS // 8
    assert set(notebook.statuses) <= {200, 201, 409, 503}
    assert notebook.problems <= {"/problems/already-committed", "/problems/busy", "/problems/ledger-unavailable"}
    charges = check_ledger(ledger_url, notebook)
    opened = notebook.seeds.keys() | notebook.commits.keys()
    assert charges == len(notebook.answers) + len(opened)
    assert charges > KILLS / 2
    assert min(len(notebook.commits), notebook.kinds["table"]) > KILLS / 10


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    """A server that a test may stop."""
    with postgres_server() as server:
        yield server


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_while_postgres_is_down_nothing_is_released_and_then_it_goes_on(
    own_postgres: Postgres, tmp_path: Path, mode: str
) -> None:
    """Under load, requests get a 503 problem document at once. `immediate` is a crash of the server."""
    place, notebook = own_postgres.make_database(), Notebook()
    make_budget(place)
    with Service(temporary=tmp_path, ledger=place, ledger_secret=SECRET) as service:
        swarm = Swarm(service.url, 8, notebook)
        for _ in range(3):
            notebook.wait_for_status(200)
            own_postgres.stop(mode)
            notebook.wait_for_status(503)
            down = service.get("/budgets/web")
            assert (down.status_code, down.json()["type"]) == (503, "/problems/ledger-unavailable")
            assert service.post("/account/exact", {"mechanism": CASE_STUDY, "epsilon": 1}).status_code == 200
            own_postgres.start()
            notebook.wait_for_status(200)
        swarm.stop()

    assert set(notebook.statuses) == {200, 503}
    assert notebook.problems == {"/problems/ledger-unavailable"}
    assert check_ledger(place, notebook) == len(notebook.answers)


def test_when_the_disk_is_full_nothing_is_released_and_then_it_goes_on(tmp_path: Path) -> None:
    """No file of the service may grow, as on a full disk. Later the limit is lifted."""
    place, notebook = str(tmp_path / "ledger.sqlite3"), Notebook()
    make_budget(place)
    with Service(temporary=tmp_path / "..", ledger=place, ledger_secret=SECRET) as service:
        notebook.note("before", release(service.url, "before"))
        resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        for number in range(5):
            notebook.note(f"during-{number}", release(service.url, f"during-{number}"))
        resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        for number in range(5):
            notebook.note(f"during-{number}", release(service.url, f"during-{number}"))

    assert notebook.statuses == {200: 6, 503: 5}
    assert notebook.problems == {"/problems/ledger-unavailable"}
    assert check_ledger(place, notebook) == 6


def test_a_database_that_may_only_be_read_is_503_and_nothing_is_released(ledger_url: str) -> None:
    """Budgets can still be read. Stored answers are not available, because guesses could not be counted."""
    make_budget(ledger_url)
    bank = Bank(ledger_url)
    paid_before = bank.request("POST", "/release", json=BODY, headers={"idempotency-key": "before"})
    assert paid_before.status_code == 200
    ledger_pool = bank.app.state.services.ledger_pool
    ledger_pool._writing._threads.submit(_only_reading, ledger_pool._connections, ledger_url).result()

    refused = bank.request("POST", "/release", json=BODY, headers={"idempotency-key": "after"})

    problem_errors(refused, 503, "ledger-unavailable")
    problem_errors(bank.put("web", LIMIT), 503, "ledger-unavailable")
    assert bank.budget()["spent"]["releases"] == 1
    for body in (BODY, BODY | {"epsilon": 1}):
        again = bank.request("POST", "/release", json=body, headers={"idempotency-key": "before"})
        problem_errors(again, 503, "ledger-unavailable")
    bank.app.state.services.ledger_pool.close()


def _only_reading(connections: Connections, place: str) -> None:
    """From now on, for each database in its own way."""
    if is_postgres(place):
        with psycopg.connect(place, autocommit=True) as connection:
            name = place.rpartition("/")[2]
            connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on".encode())
        connections.close()
    else:
        with connections.reading() as execute:
            execute("PRAGMA query_only = ON")
