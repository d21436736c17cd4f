"""How many charges a second does the ledger make, and what does a budget add to a release?

``python -m benchmarks.ledger``. Each client is a process of its own. "Bare" is the three
statements that write a charge, in one transaction that is on the disk when it returns, and nothing else. A charge takes
two transactions: the second one stores the key of the answer.
"""

import asyncio
import http.client
import json
import multiprocessing
import sqlite3
import statistics
import tempfile
import uuid
from collections.abc import Awaitable, Callable
from contextlib import closing
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path
from time import perf_counter

import psycopg

from app.ledger.answers import Answer, Staged
from app.ledger.charges import Charge
from app.ledger.opening import connections_of, is_postgres, open_ledger
from app.ledger.pool import LedgerPool
from app.ledger.releases import Notes, RecordedRelease
from app.ledger.store import Ledger
from app.releases.payments import Payments
from benchmarks.markdown import table
from benchmarks.release import as_stream, histogram
from benchmarks.server import serving
from benchmarks.timing import duration
from gsh.accounting.budget_limits import Limit
from gsh.accounting.composition import cost_of
from gsh.accounting.mechanism import Mechanism
from tests.postgres import postgres_server

SECRET = "thirty-two characters at least, or more"
AT = "2026-11-16T12:00:00Z"
SECONDS, ROUNDS, CLIENTS, RELEASES = 1.5, 5, (1, 4, 16), 200
MECHANISM = Mechanism(c_u=1, tau=1, tau_star=2000.0, sigma=200.0)
COST = cost_of(MECHANISM)
CONTENT = b"x" * 1000
JSON = "application/json"
NOTES = Notes("5f0c66f2-1d5c-4d5e-9a6b-3b1f0c8f7a10", certificate="{" + " " * 1500 + "}", provenance="{}")
DEEPEST, DEPTH_ROUNDS = 8, 500
ROWS = 1_300_000
"""Of an answer of 96 MB."""


def main() -> None:
    print("## Ledger: charges per second, one budget, an answer of 1 kB\n")
    with postgres_server() as server, tempfile.TemporaryDirectory() as folder:
        places = {"SQLite": str(Path(folder) / "ledger.sqlite3"), "PostgreSQL": server.make_database()}
        bare = {"SQLite": str(Path(folder) / "bare.sqlite3"), "PostgreSQL": server.make_database()}
        rates(places, bare)
        print("\n## A charge to a budget with ancestors\n")
        depths({"SQLite": str(Path(folder) / "depths.sqlite3"), "PostgreSQL": server.make_database()})
        print("\n## Small charges while a large answer is stored\n")
        waits({"SQLite": str(Path(folder) / "waits.sqlite3"), "PostgreSQL": server.make_database()})
        print("\n## Releases of two groups over HTTP, one after the other\n")
        latencies({"SQLite": str(Path(folder) / "http.sqlite3"), "PostgreSQL": server.make_database()})


def rates(places: dict[str, str], bare_places: dict[str, str]) -> None:
    rows = []
    for name, place in places.items():
        bare_place = bare_places[name]
        for each in (place, bare_place):
            prepare(each)
        for clients in CLIENTS:
            # In turns, because the speed of a disk that others use changes from second to second.
            pairs = [
                (measure(bare_client, bare_place, clients), measure(ledger_client, place, clients))
                for _ in range(ROUNDS)
            ]
            bare, ours = (statistics.median(rates) for rates in zip(*pairs, strict=True))
            rows.append((name, str(clients), f"{bare:,.0f}", f"{ours:,.0f}", f"{ours / bare:.2f}"))
    print(table(("store", "clients", "bare, 1/s", "charges, 1/s", "of bare"), rows))
    print("\nGoal: SQLite at no less than 0.5 of the bare statements.")


def prepare(place: str) -> None:
    ledger = open_ledger(place, SECRET)
    ledger.put_budget("web", Limit(1e6, 0.5), "", AT)
    ledger.close()


Client = Callable[[str, int], int]


def measure(client: Client, place: str, clients: int) -> float:
    """Commits per second of so many processes."""
    context = multiprocessing.get_context("spawn")
    gate = context.Barrier(clients)
    with context.Pool(clients, initializer=_share, initargs=(gate,)) as pool:
        counts = pool.starmap(_run, [(client.__name__, place, number) for number in range(clients)], chunksize=1)
    return sum(counts) / SECONDS


_gate: list[Barrier] = []


def _share(gate: Barrier) -> None:
    _gate.append(gate)


def _run(client: str, place: str, number: int) -> int:
    made: int = globals()[client](place, number)
    return made


def bare_client(place: str, number: int) -> int:
    """The three statements that write a charge, with the values of one, and neither questions nor arithmetic."""
    connections, cost = connections_of(place), COST
    sql = connections.statements
    release = {"c_u": 1, "mu_0": 0.0, "sigma": 200.0, "tau": 1, "tau_star": 2000.0}
    hashes = dict.fromkeys(("answer", "request", "client", "content_hash", "certificate_sha256"), "0" * 64)
    payload = json.dumps(
        hashes | {"key": "k" * 24, "release": release, "s": cost.mu_squared, "d": cost.hazard, "state": "made"}
    )
    spent = (f"{12345}/{2**60}", f"{12345}/{2**1000}")
    caps = (*spent, "user", None, *spent, *[None] * 5)
    columns = (1e6, 0.5, cost.mu_squared, cost.hazard, "", *spent, 1, None, 1, "0" * 64, *caps)
    with connections.reading():  # connects
        pass
    start = int(perf_counter() * 1e9) * 100 + number
    _gate[0].wait()
    made, until = 0, perf_counter() + SECONDS
    while perf_counter() < until:
        entry = start + made * 100
        key = f"bare-{entry}"
        answer = (key, "0" * 64, "0" * 64, "application/json", len(CONTENT), CONTENT)
        with connections.transaction() as execute:
            execute(sql.set_budget, (*columns, "web"))
            execute(
                sql.add_entry,
                ("web", entry, "charge", AT, payload, "0" * 64, cost.mu_squared, cost.hazard, *answer),
            )
            told = (NOTES.release_id, "", "[]", NOTES.certificate, NOTES.provenance, None)
            execute(sql.add_release, (key, "web", entry, AT, "made", *told, "0" * 64, None, 2, "0" * 64))
        made += 1
    connections.close()
    return made


def ledger_client(place: str, number: int) -> int:
    """Whole charges: checked, chained, and stored with their answer and its key."""
    ledger = open_ledger(place, SECRET)
    start = int(perf_counter() * 1e9)
    _gate[0].wait()
    made, until = 0, perf_counter() + SECONDS
    while perf_counter() < until:
        charge(ledger, f"{start}-{number}-{made}")
        made += 1
    ledger.close()
    return made


def charge(ledger: Ledger, key: str, budget: str = "web") -> None:
    """With an answer of 1 kB, which is encrypted, and whose key is stored in a second transaction."""
    staging = ledger.staging(Answer(JSON, lambda: [CONTENT]), AT)
    staging.step()
    staged: Staged = staging.finish()
    ledger.charge(charge_of(key, budget), AT, lambda _budget, _number: staged)


def charge_of(key: str, budget: str = "web") -> Charge:
    return Charge(budget, key, "r", "client", MECHANISM, COST, "c", notes=NOTES)


def depths(places: dict[str, str]) -> None:
    """A charge at each depth, in turns, because the speed of a disk that others use changes."""
    rows = []
    for name, place in places.items():
        with closing(open_ledger(place, SECRET)) as ledger:
            parent = None
            for depth in range(1, DEEPEST + 1):
                ledger.put_budget(f"at-{depth}", Limit(1e6, 0.5), "", AT, settings={"parent": parent})
                parent = f"at-{depth}"
            times: dict[int, list[float]] = {depth: [] for depth in (1, 3, DEEPEST)}
            for _ in range(DEPTH_ROUNDS):
                for depth, measured in times.items():
                    started = perf_counter()
                    charge(ledger, str(uuid.uuid4()), f"at-{depth}")
                    measured.append(perf_counter() - started)
        medians = {depth: statistics.median(measured) for depth, measured in times.items()}
        rows += [(name, str(depth), duration(each), f"{each / medians[1]:.2f}") for depth, each in medians.items()]
    print(table(("store", "levels", "median", "of one level"), rows))
    print("\nGoal: three levels take at most 1.5 times as long as one.")


def waits(places: dict[str, str]) -> None:
    """The times of small charges, one after the other: by the process that stores a large answer, or by another one."""
    content = as_stream(histogram(ROWS, "URL and country", 0))
    rows = []
    for name, place in places.items():
        prepare(place)
        for where, client in (("the same process", _charge_here), ("another process", _charge_there)):
            for stored in (b"", content):
                before = size_of(place)
                waited = sorted(asyncio.run(_stored_meanwhile(place, stored, client)))
                growth = (size_of(place) - before) / len(content)
                times = [duration(waited[int(share * len(waited))]) for share in (0.5, 0.99)] + [duration(waited[-1])]
                told = ("96 MB", f"{growth:.2f}") if stored else ("nothing", "")
                rows.append((name, where, *told, f"{len(waited):,}", *times))
    header = ("store", "charges from", "stored meanwhile", "growth, MB/MB", "charges", "median", "p99", "worst")
    print(table(header, rows))
    print("\nGoal: at most 100 ms.")


Charging = Callable[[str, Payments, asyncio.Event, asyncio.Event], Awaitable[list[float]]]


async def _stored_meanwhile(place: str, content: bytes, client: Charging) -> list[float]:
    """The times of a client's charges, while an answer is stored, or while nothing is."""
    pool, begun, is_stored = LedgerPool(place, SECRET), asyncio.Event(), asyncio.Event()
    payments = Payments(pool)
    charging = asyncio.ensure_future(client(place, payments, begun, is_stored))
    await begun.wait()
    if content:
        chunks = [content[start : start + 2**20] for start in range(0, len(content), 2**20)]
        await payments._pay(charge_of(str(uuid.uuid4())), Answer("x/y", lambda: chunks), _never)
    else:
        await asyncio.sleep(SECONDS)
    is_stored.set()
    times = await charging
    pool.close()
    return times


async def _charge_here(_place: str, payments: Payments, begun: asyncio.Event, is_stored: asyncio.Event) -> list[float]:
    times = []
    begun.set()
    while not is_stored.is_set():
        started = perf_counter()
        await payments._pay(charge_of(str(uuid.uuid4())), Answer(JSON, lambda: [CONTENT]), _never)
        times.append(perf_counter() - started)
    return times


async def _charge_there(place: str, _payments: Payments, begun: asyncio.Event, is_stored: asyncio.Event) -> list[float]:
    context = multiprocessing.get_context("spawn")
    ready, stop, told = context.Event(), context.Event(), context.Queue()
    other = context.Process(target=_charge_until, args=(place, ready, stop, told))
    other.start()
    await asyncio.to_thread(ready.wait)
    begun.set()
    await is_stored.wait()
    stop.set()
    times: list[float] = await asyncio.to_thread(told.get)
    other.join()
    return times


def _never(_ledger: Ledger, _release: RecordedRelease) -> Answer:
    raise AssertionError("every idempotency key is new")


def _charge_until(place: str, ready: Event, stop: Event, told: "Queue[list[float]]") -> None:
    ledger, times = open_ledger(place, SECRET), []
    ready.set()
    while not stop.is_set():
        started = perf_counter()
        charge(ledger, str(uuid.uuid4()))
        times.append(perf_counter() - started)
    ledger.close()
    told.put(times)


def size_of(place: str) -> int:
    """The bytes of a database, without the log that is emptied now and then."""
    if is_postgres(place):
        with psycopg.connect(place) as connection:
            connection.execute("CHECKPOINT")
            row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
            assert row is not None
            return int(row[0])
    with closing(sqlite3.connect(place)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return Path(place).stat().st_size


def latencies(places: dict[str, str]) -> None:
    body = {
        "mechanism": {"c_u": 1, "tau": 1, "tau_star": 2000, "sigma": 200},
        "groups": {"keys": ["a", "b"], "counts": [10**6, 10**6]},
    }
    rows = []
    for name, place in places.items():
        ledger = open_ledger(place, SECRET)
        ledger.put_budget("web", Limit(1e6, 0.5), "", AT)
        ledger.close()
        with serving("app", ledger=place, ledger_secret=SECRET) as server:
            without = [post(server.port, body, None) for _ in range(RELEASES)]
            paid = [post(server.port, body | {"budget": "web"}, str(number)) for number in range(RELEASES)]
            again = [post(server.port, body | {"budget": "web"}, str(number)) for number in range(RELEASES)]
        for kind, times in (("without a budget", without), ("with a budget", paid), ("the same again", again)):
            rows.append((name, kind, duration(statistics.median(times)), duration(sorted(times)[int(0.99 * RELEASES)])))
    print(table(("store", "release", "median", "p99"), rows))


def post(port: int, body: object, key: str | None) -> float:
    headers = {"Content-Type": "application/json"} | ({} if key is None else {"Idempotency-Key": key})
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.connect()
    start = perf_counter()
    connection.request("POST", "/release", json.dumps(body), headers)
    answer = connection.getresponse()
    answer.read()
    seconds = perf_counter() - start
    connection.close()
    if answer.status != 200:
        raise RuntimeError(answer.status)
    return seconds


if __name__ == "__main__":
    main()
