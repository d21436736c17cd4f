"""How many charges a second does the ledger make, and what does a budget add to a release?

``python -m benchmarks.ledger``. Each client is a process of its own. "Bare" is the two
statements that write a charge, in transactions that are on the disk when they return, and nothing else.
"""

import http.client
import json
import multiprocessing
import statistics
import tempfile
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path
from time import perf_counter

from app.ledger.answers import Answer
from app.ledger.charges import Charge
from app.ledger.opening import connections_of, open_ledger
from benchmarks.markdown import table
from benchmarks.server import serving
from benchmarks.timing import duration
from gsh.accounting.budget_limits import Limit
from gsh.accounting.composition import cost_of
from gsh.accounting.mechanism import Mechanism
from tests.postgres import postgres_server

SECRET = "thirty-two characters at least, or more"
AT = "2026-11-16T12:00:00Z"
SECONDS, CLIENTS, RELEASES = 3.0, (1, 4, 16), 200
MECHANISM = Mechanism(1, 1, 2000.0, 200.0)
CONTENT = b"x" * 1000


def main() -> None:
    print("## Ledger: charges per second, one budget, an answer of 1 kB\n")
    with postgres_server() as server, tempfile.TemporaryDirectory() as folder:
        places = {"SQLite": str(Path(folder) / "ledger.sqlite3"), "PostgreSQL": server.make_database()}
        bare = {"SQLite": str(Path(folder) / "bare.sqlite3"), "PostgreSQL": server.make_database()}
        rates(places, bare)
        print("\n## Releases of two groups over HTTP, one after the other\n")
        latencies({"SQLite": str(Path(folder) / "http.sqlite3"), "PostgreSQL": server.make_database()})


def rates(places: dict[str, str], bare_places: dict[str, str]) -> None:
    rows = []
    for name, place in places.items():
        bare_place = bare_places[name]
        for each in (place, bare_place):
            prepare(each)
        for clients in CLIENTS:
            bare, ours = measure(bare_client, bare_place, clients), measure(ledger_client, place, clients)
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
    """The two statements that write a charge, with the values of one, and neither questions nor arithmetic."""
    connections, cost = connections_of(place), cost_of(MECHANISM)
    sql = connections.statements
    release = {"c_u": 1, "mu_0": 0.0, "sigma": 200.0, "tau": 1, "tau_star": 2000.0}
    payload = json.dumps(
        {"answer": "0" * 64, "key": "k" * 24, "release": release, "s": cost.mu_squared, "d": cost.hazard}
    )
    columns = (
        1e6,
        0.5,
        cost.mu_squared,
        cost.hazard,
        "",
        f"{12345}/{2**60}",
        f"{12345}/{2**1000}",
        1,
        None,
        1,
        "0" * 64,
    )
    hull = (f"{12345}/{2**60}", f"{12345}/{2**1000}")
    with connections.reading():  # connects
        pass
    start = int(perf_counter() * 1e9) * 100 + number
    _gate[0].wait()
    made, until = 0, perf_counter() + SECONDS
    while perf_counter() < until:
        place_in_history = start + made * 100
        answer = (f"bare-{place_in_history}", "0" * 64, "0" * 64, "application/json", len(CONTENT), CONTENT)
        entry = ("web", place_in_history, "charge", AT, payload, "0" * 64, cost.mu_squared, cost.hazard, *answer)
        with connections.transaction() as execute:
            execute(sql.set_budget, (*columns, *hull, "web"))
            execute(sql.add_entry, entry)
        made += 1
    connections.close()
    return made


def ledger_client(place: str, number: int) -> int:
    """Whole charges: checked, chained, and stored with their answer."""
    ledger, cost = open_ledger(place, SECRET), cost_of(MECHANISM)
    start = int(perf_counter() * 1e9)
    _gate[0].wait()
    made, until = 0, perf_counter() + SECONDS
    while perf_counter() < until:
        asked = Charge("web", f"{start}-{number}-{made}", "r", "client", MECHANISM, cost)
        ledger.charge(asked, AT, lambda _budget, _number: Answer("application/json", lambda: [CONTENT]))
        made += 1
    ledger.close()
    return made


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
