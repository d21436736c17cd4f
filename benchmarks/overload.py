"""How long do other clients wait, and how much memory does the service use, during an attack?

Each attack runs in a process of its own against a fresh service. Meanwhile another client asks `/account/exact`, one
request after the other, each with numbers that were not asked before. A folder may be named to measure the service of
another checkout: ``python -m benchmarks.overload FOLDER``.
"""

import http.client
import json
import multiprocessing
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.synchronize import Event
from pathlib import Path

from benchmarks.markdown import table
from benchmarks.server import Server, serving
from benchmarks.setting import MECHANISM

MIB = 1024**2
SECONDS = 12.0
JSON = {"Content-Type": "application/json"}


def half_open(port: int, stop: Event) -> None:
    """1 500 connections with half a head, 30 unfinished bodies of 40 MiB, and a header of 60 MiB."""
    held = []
    for number in range(1500):
        with suppress(OSError):
            held.append(connected(port))
            if number % 2:
                held[-1].sendall(b"GET /healthz HTTP/1.1\r\nHost: loc")
    with ThreadPoolExecutor(31) as threads:
        for _ in range(30):
            threads.submit(unfinished, port, held)
        threads.submit(long_header, port, held)
    stop.wait(SECONDS)


def unfinished(port: int, held: list[socket.socket]) -> None:
    with suppress(OSError):
        connection = connected(port)
        held.append(connection)
        head = b"POST /release HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
        connection.sendall(head + b"%d\r\n\r\n" % (40 * MIB))
        connection.sendall(b" " * (40 * MIB - 1))


def long_header(port: int, held: list[socket.socket]) -> None:
    with suppress(OSError):
        connection = connected(port)
        held.append(connection)
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: ")
        connection.sendall(b"x" * (60 * MIB))


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def frontier(port: int, stop: Event) -> None:
    """Frontiers of 10 000 σ with 20 columns whose noise scales with σ, again and again."""
    columns = {
        "names": [f"c{j}" for j in range(20)],
        "relative_covariance": [[1.0 if i == j else 0.01 for j in range(20)] for i in range(20)],
        "sensitivity": {"kind": "box", "lower": [0] * 20, "upper": [1] * 20},
    }
    mechanism = {"c_u": 10, "tau": 1, "sigma": [100 + k for k in range(10_000)], "aggregates": columns}
    repeated(port, "/calibrate", {"mechanism": mechanism, "epsilon": 1, "delta": 1e-6}, stop)


def unknown_fields(port: int, stop: Event) -> None:
    """Bodies of 2 MiB with 150 000 unknown fields."""
    repeated(port, "/account/exact", {f"f{k}": 1 for k in range(150_000)}, stop)


def previews(port: int, stop: Event) -> None:
    """Previews of 900 mechanisms with columns."""
    columns = {
        "names": ["a", "b", "c"],
        "covariance": [[400, 1, 0], [1, 400, 0], [0, 0, 100]],
        "sensitivity": {"kind": "box", "lower": [0, 0, 0], "upper": [1, 1, 1]},
    }
    ask(port, "/budgets/web", {"epsilon": 1, "delta": 1e-4}, "PUT")
    planned = [MECHANISM | {"sigma": 2228 + k, "aggregates": columns} for k in range(900)]
    repeated(port, "/budgets/web/preview", {"mechanism": planned}, stop)


def large_releases(port: int, stop: Event) -> None:
    """Releases of 190 000 groups as JSON, all of them dropped."""
    groups = {"keys": list(range(190_000)), "counts": [1] * 190_000}
    repeated(port, "/release", {"mechanism": MECHANISM, "groups": groups}, stop)


def wrong_replays(port: int, stop: Event) -> None:
    """Altered replays of a paid release, 32 at a time."""
    ask(port, "/budgets/web", {"epsilon": 1, "delta": 1e-4}, "PUT")

    def body(count: int) -> dict[str, object]:
        return {"mechanism": MECHANISM, "budget": "web", "groups": {"keys": ["a"], "counts": [count]}}

    ask(port, "/release", body(70_000), key="week-46")
    with ThreadPoolExecutor(32) as threads:
        count = 0
        while not stop.is_set():
            list(threads.map(lambda k: ask(port, "/release", body(k), key="week-46"), range(count, count + 32)))
            count += 32


def repeated(port: int, path: str, body: object, stop: Event) -> None:
    while not stop.is_set():
        with suppress(OSError, http.client.HTTPException):
            ask(port, path, body)


def ask(port: int, path: str, body: object, method: str = "POST", key: str | None = None) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request(method, path, json.dumps(body), JSON if key is None else JSON | {"Idempotency-Key": key})
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def nothing(_port: int, stop: Event) -> None:
    """No attack."""
    stop.wait(SECONDS)


ATTACKS: tuple[Callable[[int, Event], None], ...] = (
    nothing,
    half_open,
    large_releases,
    frontier,
    unknown_fields,
    previews,
    wrong_replays,
)


def main() -> None:
    folder = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else Path(__file__).parents[1]
    rows = []
    for attack in ATTACKS:
        with (
            tempfile.TemporaryDirectory() as place,
            serving("app", ledger=f"{place}/ledger.sqlite3", folder=folder) as server,
        ):
            ask(server.port, "/account/exact", {"mechanism": MECHANISM, "epsilon": 1})
            stop = multiprocessing.Event()
            attacker = multiprocessing.Process(target=attack, args=(server.port, stop))
            attacker.start()
            try:
                waits, others, peak = waited(server)
            finally:
                stop.set()
                attacker.join()
            cuts = statistics.quantiles(waits, n=100)
            times = [f"{1000 * each:,.1f}" for each in (statistics.median(waits), cuts[98], max(waits))]
            rows.append(((attack.__doc__ or "").strip(), *times, str(others), f"{peak / 1e6:,.0f}"))
    print("## Overload: what others wait for /account/exact, and the most memory of all processes\n")
    print(table(("meanwhile", "p50, ms", "p99, ms", "worst, ms", "not 200", "peak, MB"), rows))


def waited(server: Server) -> tuple[list[float], int, int]:
    """The seconds that each request took, how many were not answered with 200, and the most memory seen meanwhile."""
    end, number, waits, others, peak = time.monotonic() + SECONDS, 0, [], 0, 0
    port = server.port
    while time.monotonic() < end:
        number += 1
        if number % 50 == 0:
            peak = max(peak, server.memory())
        started = time.perf_counter()
        try:
            status = ask(port, "/account/exact", {"mechanism": MECHANISM, "epsilon": 0.3 + number * 1e-7})
        except (OSError, http.client.HTTPException):
            status = 0
        waits.append(time.perf_counter() - started)
        others += status != 200
    return waits, others, peak


if __name__ == "__main__":
    main()
