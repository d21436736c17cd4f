"""Clients that record their answers, and the check of the ledger afterwards."""

import base64
import hashlib
import json
import random
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx
import pyarrow as pa
import pytest

from app.ledger.answers import AnswerPlace, part_of
from app.ledger.opening import open_ledger
from app.ledger.releases import RecordedRelease
from app.ledger.state import Entry
from app.ledger.store import Ledger
from tests.app.process import PATIENCE
from tests.gsh.histogram.uploads import as_stream

__all__ = [
    "BODY",
    "MECHANISM",
    "SECRET",
    "Notebook",
    "Swarm",
    "check_ledger",
    "commit",
    "digest_of",
    "open_release",
    "open_turn",
    "period_turn",
    "release",
    "release_turn",
    "table_turn",
]

SECRET = "thirty-two characters at least, or more"
MECHANISM = {"c_u": 1, "tau": 1, "tau_star": 2000.0, "sigma": 200.0}
BODY = {"mechanism": MECHANISM, "budget": "web", "groups": {"keys": ["a", "b"], "counts": [100000, 200000]}}
ROWS = 25_000


@dataclass
class Notebook:
    """All that any client saw, by key: answers, seeds and commits; and the other statuses."""

    answers: dict[str, set[bytes]] = field(default_factory=lambda: defaultdict(set))
    seeds: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    commits: dict[str, set[tuple[str, int, str]]] = field(default_factory=lambda: defaultdict(set))
    statuses: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    problems: set[str] = field(default_factory=set)
    kinds: Counter[str] = field(default_factory=Counter)
    noted: threading.Condition = field(default_factory=threading.Condition)

    def wait_for(self, more: int, kind: str | None = None) -> None:
        """Until so many more answers are noted, of any status, or of a kind of request."""

        def count() -> int:
            return sum(self.statuses.values()) if kind is None else self.kinds[kind]

        with self.noted:
            goal = count() + more
            assert self.noted.wait_for(lambda: count() >= goal, timeout=PATIENCE)

    def wait_for_status(self, status: int) -> None:
        """Until another answer of this status is noted."""
        with self.noted:
            goal = self.statuses[status] + 1
            assert self.noted.wait_for(lambda: self.statuses[status] >= goal, timeout=PATIENCE)

    def note(self, key: str, response: httpx.Response, kind: str = "release") -> None:
        with self.noted:
            self.noted.notify_all()
            self.statuses[response.status_code] += 1
            if response.status_code not in {200, 201}:
                self.problems.add(response.json()["type"])
                return
            self.kinds[kind] += 1
            if kind in {"release", "table"}:
                self.answers[key].add(digest_of(response.content))
                return
            shown = response.json()
            assert shown["key"] == key
            if "seed" in shown:
                assert kind == "open", "a seed after the commit was acknowledged"
                self.seeds[key].add(shown["seed"])
            if shown["committed"] is not None:
                told = shown["committed"]
                self.commits[key].add((told["digest"], told["rows"], told["at"]))


Asking = Callable[[], httpx.Response]
Turn = Callable[["Swarm", str, random.Random, httpx.Client], None]
"""What a client does with a new key, until it is done."""


def release_turn(swarm: "Swarm", key: str, lots: random.Random, http: httpx.Client) -> None:
    """A small release; some are asked for again, though they were answered."""
    for _ in range(1 + (lots.random() < 0.3)):
        swarm.until_answered(key, "release", lambda: release(swarm.url, key, http))


def period_turn(swarm: "Swarm", key: str, lots: random.Random, http: httpx.Client) -> None:
    """A release in a week that no budget is there for: clients with the same turn make it at the same time."""
    turn = int(key.rpartition("-")[2])
    period = f"{1000 + turn // 52}-W{1 + turn % 52:02}"
    for _ in range(1 + (lots.random() < 0.3)):
        swarm.until_answered(key, "release", lambda: release(swarm.url, key, http, budget="views", period=period))


def table_turn(swarm: "Swarm", key: str, lots: random.Random, http: httpx.Client) -> None:
    """A release of one table or of two, whose answer is stored in parts. Each attempt has its rows in another order."""
    contents = swarm.several if int(key.rpartition("-")[2]) % 2 else swarm.tables
    for _ in range(1 + (lots.random() < 0.3)):
        swarm.until_answered(key, "table", lambda: release_table(swarm.url, key, lots.choice(contents), http))


def open_turn(swarm: "Swarm", key: str, lots: random.Random, http: httpx.Client) -> None:
    """A release made elsewhere: opened, perhaps again, and mostly committed; after that there is no seed."""
    for _ in range(1 + (lots.random() < 0.5)):
        swarm.until_answered(key, "open", lambda: open_release(swarm.url, key, http))
    if lots.random() < 0.8:
        rows = lots.randrange(1000)
        swarm.until_answered(key, "commit", lambda: commit(swarm.url, key, rows, http))
        swarm.until_answered(key, "another commit", lambda: commit(swarm.url, key, rows + 1, http), status=409)
        swarm.until_answered(key, "open again", lambda: open_release(swarm.url, key, http))


class Swarm:
    """Threads that each release with keys of their own, and retry the same request until it is answered."""

    def __init__(self, url: str, clients: int, notebook: Notebook, turns: Sequence[Turn] = (release_turn,)) -> None:
        self.url = url
        self.notebook = notebook
        self.several = [tables(number) for number in range(3)] if table_turn in turns else []
        self.tables = [table(number) for number in range(3)] if table_turn in turns else []
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(number, turns[number % len(turns)]), daemon=True)
            for number in range(clients)
        ]
        self._failed: list[BaseException] = []
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Each client ends with the request that it is trying, answered."""
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()
        for error in self._failed:
            raise error

    def until_answered(self, key: str, kind: str, ask: Asking, status: int = 200) -> None:
        """Until there is an answer: a connection may be refused, or break at any byte."""
        while True:
            with suppress(httpx.HTTPError):
                response = ask()
                self.notebook.note(key, response, kind)
                if response.status_code in {status, 201, 409}:
                    return

    def _run(self, number: int, turn: Turn) -> None:
        lots = random.Random(number)
        turns = 0
        try:
            with httpx.Client(verify=False, timeout=PATIENCE) as http:
                while not self._stop.is_set():
                    turn(self, f"{number}-{turns}", lots, http)
                    turns += 1
        except BaseException as error:
            self._failed.append(error)
            raise


def release(url: str, key: str, http: httpx.Client | None = None, **changed: str) -> httpx.Response:
    return _posted(f"{url}/release", BODY | changed, key, http)


def table(order: int) -> bytes:
    """The parts of a form with the same rows in some order. The answer has more than a megabyte, in two parts."""
    rows = list(range(ROWS))
    random.Random(order).shuffle(rows)
    content = as_stream(pa.table({"url": [f"https://example.com/{row:016}" for row in rows], "users": [10**6] * ROWS}))
    request = {"mechanism": MECHANISM, "budget": "web", "key_columns": ["url"], "count_column": "users"}
    part = b'--frontier\r\nContent-Disposition: form-data; name="%s"; filename="%s"\r\n\r\n'
    first, second = part % (b"request", b"request"), part % (b"table", b"table")
    return first + json.dumps(request).encode() + b"\r\n" + second + content + b"\r\n--frontier--\r\n"


def tables(order: int) -> bytes:
    """The same for two tables in one release, in some order; the second one has public groups."""
    lots, rows = random.Random(order), list(range(ROWS))
    lots.shuffle(rows)
    content = as_stream(pa.table({"url": [f"https://example.com/{row:016}" for row in rows], "users": [10**6] * ROWS}))
    columns = {"key_columns": ["url"], "count_column": "users"}
    public = {"mechanism": {"c_u": 1, "sigma": MECHANISM["sigma"]}, "public_keys": ["a", "b", "c"]}
    described = [{"name": "one", "mechanism": MECHANISM, **columns}, {"name": "two", **public, **columns}]
    request = {"budget": "web", "tables": described}
    part = b'--frontier\r\nContent-Disposition: form-data; name="%s"; filename="%s"\r\n\r\n'
    parts = [
        part % (b"table", b"one") + content,
        part % (b"table", b"two") + as_stream(pa.table({"url": ["b"], "users": [5]})),
    ]
    lots.shuffle(parts)
    first = part % (b"request", b"request") + json.dumps(request).encode()
    return b"\r\n".join([first, *parts, b"--frontier--\r\n"])


def release_table(url: str, key: str, content: bytes, http: httpx.Client) -> httpx.Response:
    headers = {"idempotency-key": key, "content-type": "multipart/form-data; boundary=frontier"}
    return http.post(f"{url}/release/table", content=content, headers=headers)


def open_release(url: str, key: str, http: httpx.Client | None = None) -> httpx.Response:
    return _posted(f"{url}/releases", {"mechanism": MECHANISM, "budget": "web"}, key, http)


def commit(url: str, key: str, rows: int, http: httpx.Client | None = None) -> httpx.Response:
    """Of an output with so many rows; another number is another output."""
    body = {"digest": hashlib.sha256(f"{key} {rows}".encode()).hexdigest(), "rows": rows}
    return _posted(f"{url}/releases/{key}/commit", body, None, http)


def _posted(address: str, body: Any, key: str | None, http: httpx.Client | None) -> httpx.Response:
    headers = {"content-type": "application/json"} | ({} if key is None else {"idempotency-key": key})
    content = json.dumps(body)
    if http is None:
        return httpx.post(address, content=content, headers=headers, timeout=PATIENCE, verify=False)
    return http.post(address, content=content, headers=headers)


def check_ledger(place: str, notebook: Notebook) -> int:
    """Nothing was seen without its charge, none was charged twice, all is as stored; the number of charges.

    An answer that was never charged cannot be read: what it needs is nowhere.
    """
    with closing(open_ledger(place, SECRET)) as ledger:
        histories = {name: ledger.history(name, None, 10**6) for name in ledger.names()}
        entries = [entry for history in histories.values() for entry in history]
        charges = [entry.details["key"] for entry in entries if entry.kind == "charge" and "key" in entry.details]
        releases = {release.key: release for release in ledger.releases([], None, 10**6)}
        assert len(charges) == len(set(charges))
        assert releases.keys() == set(charges)
        _check_levels(ledger, histories)
        for key, seen in notebook.answers.items():
            assert seen == {digest_of(b"".join(ledger.content(releases[key])))}, key
        for key, seeds in notebook.seeds.items():
            seed = ledger.seed(releases[key])
            assert seeds == ({base64.b64encode(seed).decode()} if seed else {*list(seeds)[:1]}), key
        _check_commits(notebook, releases, [entry for entry in entries if entry.kind == "committed"])
        _check_parts(ledger, releases)
        return len(charges)


def _check_levels(ledger: Ledger, histories: dict[str, list[Entry]]) -> None:
    """Each budget has the charges of its history; one with others below it has exactly theirs."""
    budgets = {name: ledger.standing(name) for name in histories}
    for name, budget in budgets.items():
        assert ledger.verify(name)[1] is None, name
        assert budget.spent.releases == sum(entry.kind == "charge" for entry in histories[name])
        assert budget.spent.releases > 0 or budget.period_of is None, "a period without a charge"
        below = [each.spent for each in budgets.values() if each.parent == name]
        if below:
            sums = [(each.mu_squared, each.hazard, each.releases) for each in below]
            spent = (budget.spent.mu_squared, budget.spent.hazard, budget.spent.releases)
            assert spent == tuple(map(sum, zip(*sums, strict=True))), name


def _check_commits(notebook: Notebook, releases: dict[str, RecordedRelease], entries: list[Entry]) -> None:
    """Each commit that was acknowledged is recorded, once, and there is no other."""
    recorded = {entry.details["key"]: (entry.details["sha256"], entry.details["rows"], entry.at) for entry in entries}
    assert len(recorded) == len(entries)
    assert recorded.keys() == {key for key, release in releases.items() if release.state == "committed"}
    for key, seen in notebook.commits.items():
        assert seen == {recorded[key]}, key


def _check_parts(ledger: Ledger, releases: dict[str, RecordedRelease]) -> None:
    """Parts belong to a charge, or else no key opens them, and they are listed and removed. Small answers have none."""
    placed = {release.place.answer: release.place for release in releases.values() if release.place is not None}
    keys = [place.key for place in placed.values()]
    staged, parts = _answers(ledger, "staged"), _answers(ledger, "parts")
    assert not staged & placed.keys()
    assert parts <= staged | placed.keys()
    for answer in staged & parts:
        for key in keys[:20]:
            with ledger._connections.reading() as execute, pytest.raises((OSError, ValueError, pa.ArrowException)):
                part_of(execute, ledger._sql, AnswerPlace(answer, key), 0)
    while ledger.remove_abandoned("9999"):
        pass
    assert (_answers(ledger, "staged"), _answers(ledger, "parts")) == (set(), parts & placed.keys())
    assert ledger.verify("web")[1] is None


def _answers(ledger: Ledger, table: str) -> set[str]:
    with ledger._connections.reading() as execute:
        return {answer for (answer,) in execute(f"SELECT DISTINCT answer FROM {table}")}


def digest_of(content: bytes) -> bytes:
    """Notes of large answers are short."""
    return content if len(content) < 10_000 else hashlib.sha256(content).digest()
