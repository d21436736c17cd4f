"""How fast are releases over HTTP, how much memory do they take, and do other requests notice?

``python -m benchmarks.release``. Requests go over loopback, from this process to one worker, each over a connection of
its own; every group is kept, so the answer is as long as the request.
"""

import http.client
import io
import itertools
import json
import multiprocessing
import statistics
import tempfile
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from app.ledger.opening import open_ledger
from benchmarks.markdown import table as markdown
from benchmarks.server import serving
from benchmarks.setting import EPSILON, MECHANISM
from benchmarks.timing import duration, medians
from gsh.accounting.budget_limits import Limit
from gsh.accounting.mechanism import Mechanism
from gsh.histogram.entropy import operating_system
from gsh.histogram.formats import Limits, read_table, write_table
from gsh.histogram.noise import Noise
from gsh.histogram.roles import Roles
from gsh.histogram.tables import CheckedTable, check_table

KEPT = 10**6
SIZES = (10**4, 10**5, 10**6)
ROUNDS = 5
MEGABYTE = 10**6
SECRET = "thirty-two characters at least, or more"
NAMES = ["likes", "shares"]
COLUMNS = {
    "names": NAMES,
    "covariance": [[4e6, 5e5], [5e5, 1e6]],
    "sensitivity": {"kind": "box", "lower": [0, 0], "upper": [1, 1]},
}
Post = tuple[str, bytes, str]


def main() -> None:
    with serving("app", max_release_groups=10**6, max_release_bytes=10**9) as server:
        print("## Releases over HTTP: one worker, every group kept\n")
        rates(server.port)
        print("\n## Other requests meanwhile: POST /account/exact, one after the other\n")
        responsiveness(server.port)
    print("\n## A request that comes again: a million rows by URL and country, SQLite\n")
    replays()
    print("\n## The digest of the content, by which a retry is recognised: a million rows, in this process\n")
    digests()
    print("\n## Memory: the peaks of all the service's processes, added up\n")
    memory()


def rates(port: int) -> None:
    """Median groups per second by format, size, key and number of columns."""
    rows = []
    for key, further in (("integer", 0), ("URL and country", 0), ("URL and country", 2)):
        for size in SIZES:
            groups = histogram(size, key, further)
            cells = [key, str(1 + further), f"{size:,}"]
            for post in (as_json(groups, further), as_arrow(groups, further), as_parquet(groups, further)):
                send(port, post)  # the first one starts the process that makes large releases
                seconds = statistics.median(send(port, post) for _ in range(ROUNDS))
                cells.append(f"{size / seconds:,.0f}")
            rows.append(cells)
    print(markdown(("key", "columns", "groups", "JSON, groups/s", "Arrow, groups/s", "Parquet, groups/s"), rows))
    print("\nGoals for a million groups by Arrow: 1,500,000 groups/s by integer, 500,000 by URL and country.")


def responsiveness(port: int) -> None:
    """The latency of small requests, alone and while a million groups are released over and over."""
    post = as_arrow(histogram(10**6, "URL and country", 0), 0)
    send(port, post)
    alone = latencies(port, 2000, lambda: False)
    # A process of its own, so that only the service is shared.
    load = multiprocessing.get_context("spawn").Process(target=send_often, args=(port, post, 8))
    load.start()
    meanwhile = latencies(port, 2000, load.is_alive)
    load.join()
    rows = [
        (name, f"{len(times):,}", *(duration(quantile(times, q)) for q in (0.5, 0.99)), duration(max(times)))
        for name, times in (("alone", alone), ("with a million groups", meanwhile))
    ]
    print(markdown(("/account/exact", "requests", "median", "p99", "slowest"), rows))


def replays() -> None:
    """A release that a budget pays for, and the same request again, compared with a release without a budget."""
    groups = histogram(10**6, "URL and country", 0)
    shuffled = groups.take(np.random.default_rng(1).permutation(groups.num_rows))
    free = {"Arrow": as_arrow(groups, 0), "Parquet": as_parquet(groups, 0)}
    paid, reordered = as_arrow(groups, 0, budget="web"), as_arrow(shuffled, 0, budget="web")
    keys = map(str, itertools.count())
    with tempfile.TemporaryDirectory() as folder:
        place = f"{folder}/ledger.sqlite3"
        ledger = open_ledger(place, SECRET)
        ledger.put_budget("web", Limit(1e6, 0.5), "", "2026-11-16T12:00:00Z")
        ledger.close()
        with serving("app", ledger=place, ledger_secret=SECRET) as server:
            port, columnar = server.port, as_parquet(shuffled, 0, budget="web")
            send(port, paid, "again")
            calls: dict[tuple[str, str], Callable[[], float]] = {
                ("Arrow", "without a budget"): lambda: send(port, free["Arrow"]),
                ("Arrow", "paid"): lambda: send(port, paid, next(keys)),
                ("Arrow", "again, the same bytes"): lambda: send(port, paid, "again"),
                ("Arrow", "again, in another order"): lambda: send(port, reordered, "again"),
                ("Parquet", "without a budget"): lambda: send(port, free["Parquet"]),
                ("Parquet", "again, in another order"): lambda: send(port, columnar, "again"),
            }
            times: dict[tuple[str, str], list[float]] = {call: [] for call in calls}
            for _ in range(ROUNDS):  # in turns: what slows one round down slows all
                for name, call in calls.items():
                    times[name].append(call())
    rows = []
    for (kind, name), taken in times.items():
        first = times[kind, "without a budget"]
        ratios = statistics.median(taken) / statistics.median(first), min(taken) / min(first)
        rows.append((kind, name, duration(statistics.median(taken)), *(f"{ratio:.2f}" for ratio in ratios)))
    print(markdown(("format", "release", "median", "of one without a budget", "the same, fastest"), rows))
    print("\nGoal: at most 1.2 for a request that comes again. The stored answer is Arrow.")


def digests() -> None:
    """Reading, checking and digesting a table, compared with its whole release."""
    noise = Noise(
        Mechanism(c_u=MECHANISM["c_u"], tau=MECHANISM["tau"], tau_star=MECHANISM["tau_star"], sigma=MECHANISM["sigma"])
    )
    rows = []
    for key in ("integer", "URL and country"):
        groups = histogram(10**6, key, 0)
        content = pa.py_buffer(as_stream(groups))
        roles = Roles(tuple(groups.schema.names[:-1]), "users", ())

        def checked(content: pa.Buffer = content, roles: Roles = roles) -> CheckedTable:
            return check_table(noise, read_table(content, Limits(10**6, 10**9))[1], roles)

        def released(checked: Callable[[], CheckedTable] = checked) -> None:
            write_table("arrow", checked().release(operating_system), "{}", io.BytesIO())

        def digested(checked: Callable[[], CheckedTable] = checked) -> bytes:
            return checked().digest()

        times = medians({"released": released, "digested": digested}, ROUNDS)
        ratio = times["digested"] / times["released"]
        rows.append((key, duration(times["released"]), duration(times["digested"]), f"{ratio:.2f}"))
    print(markdown(("key", "release", "digest", "digest / release (goal: at most 1)"), rows))


def memory() -> None:
    """The peak for ten million groups, compared with four times the table and 200 MB."""
    rows = []
    for key in ("integer", "URL and country"):
        groups = histogram(10**7, key, 0)
        size = groups.nbytes
        for name, make in (("Arrow", as_arrow), ("Parquet", as_parquet)):
            post = make(groups, 0)
            with serving("app") as server:
                seconds = send(server.port, post)
                peak = server.peak_memory()
            rows.append(
                (
                    key,
                    name,
                    f"{10**7 / seconds:,.0f}",
                    f"{size / MEGABYTE:,.0f}",
                    f"{peak / MEGABYTE:,.0f}",
                    f"{(4 * size + 200 * MEGABYTE) / MEGABYTE:,.0f}",
                )
            )
    print(markdown(("key", "format", "groups/s", "table, MB", "peak, MB", "goal: at most, MB"), rows))


def histogram(size: int, key: str, further: int) -> pa.Table:
    """Groups in no order, as a hash aggregation would leave them."""
    draw = np.random.default_rng(size)
    number = draw.permutation(size)
    if key == "integer":
        columns: dict[str, Any] = {"key": number * 7919}
    else:
        host = draw.zipf(1.3, size) % 20_000
        urls = [
            f"https://www.site{h}.example.com/articles/{n % 1000}/story-{n}" for h, n in zip(host, number, strict=True)
        ]
        countries = np.array(["BR", "CN", "DE", "FR", "GB", "IN", "JP", "US"])[draw.integers(0, 8, size)]
        columns = {"url": pa.array(urls, pa.string()), "country": pa.array(countries)}
    columns["users"] = np.full(size, KEPT)
    return pa.table(columns | {name: draw.normal(size=size) for name in NAMES[:further]})


def as_json(groups: pa.Table, further: int) -> Post:
    keys = [groups[name].to_pylist() for name in groups.schema.names[: groups.num_columns - 1 - further]]
    posted = {
        "keys": keys[0] if len(keys) == 1 else list(zip(*keys, strict=True)),
        "counts": groups["users"].to_pylist(),
        "values": {name: groups[name].to_pylist() for name in NAMES[:further]},
    }
    return "/release", json.dumps(request(further) | {"groups": posted}).encode(), "application/json"


def as_arrow(groups: pa.Table, further: int, **fields: object) -> Post:
    return form(groups, further, as_stream(groups), **fields)


def as_stream(groups: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, groups.schema) as writer:
        writer.write_table(groups)
    return sink.getvalue()


def as_parquet(groups: pa.Table, further: int, **fields: object) -> Post:
    sink = io.BytesIO()
    pq.write_table(groups, sink)
    return form(groups, further, sink.getvalue(), **fields)


def form(groups: pa.Table, further: int, content: bytes, **fields: object) -> Post:
    keys = groups.schema.names[: groups.num_columns - 1 - further]
    asked = json.dumps(request(further) | {"count_column": "users", "key_columns": keys} | fields).encode()
    part = b'--frontier\r\nContent-Disposition: form-data; name="%s"; filename="%s"\r\n\r\n'
    pieces = (
        part % (b"request", b"request"),
        asked,
        b"\r\n",
        part % (b"table", b"table"),
        content,
        b"\r\n--frontier--\r\n",
    )
    return "/release/table", b"".join(pieces), "multipart/form-data; boundary=frontier"


def request(further: int) -> dict[str, Any]:
    return {"mechanism": MECHANISM | ({"aggregates": COLUMNS} if further else {}), "epsilon": EPSILON}


def send(port: int, post: Post, key: str | None = None) -> float:
    """Seconds from connecting until the whole answer is there."""
    path, content, media_type = post
    headers = {"Content-Type": media_type} | ({} if key is None else {"Idempotency-Key": key})
    started = perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    connection.request("POST", path, content, headers)
    answer = connection.getresponse()
    received = answer.read()
    seconds = perf_counter() - started
    connection.close()
    if answer.status != 200:
        raise RuntimeError(received[:1000])
    return seconds


def send_often(port: int, post: Post, times: int) -> None:
    for _ in range(times):
        send(port, post)


def latencies(port: int, at_least: int, go_on: Callable[[], bool]) -> list[float]:
    """Of requests that the cache has no answer to, over one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    times: list[float] = []
    for number in itertools.count():
        if number >= at_least and not go_on():
            break
        body = json.dumps({"mechanism": MECHANISM | {"sigma": 2229 + number * 1e-9}, "epsilon": EPSILON})
        started = perf_counter()
        connection.request("POST", "/account/exact", body, {"Content-Type": "application/json"})
        connection.getresponse().read()
        times.append(perf_counter() - started)
    connection.close()
    return times


def quantile(times: list[float], share: float) -> float:
    return sorted(times)[int(share * len(times))]


if __name__ == "__main__":
    main()
