"""One heavy request must not stall the others; and when too many wait already, the next is told 503."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from app.accounting import theorem
from tests.api.client import CASE_STUDY, Client, Json, problem_errors

pytestmark = pytest.mark.slow

THEOREM: Json = {"mechanism": CASE_STUDY, "epsilon": 0.349, "theorem": True}
EPSILONS = [k / 10_000 for k in range(10_000)]
SIGMAS = [2300 + k for k in range(300)]
WIDE = {
    "names": [f"column {k}" for k in range(60)],
    "covariance": [[1.0 + (i == j) for j in range(60)] for i in range(60)],
    "sensitivity": {"kind": "l1", "bound": 0.001},
}

TIED = WIDE | {
    "sensitivity": {"kind": "vectors", "vectors": [[0.001 * (i == j) for j in range(60)] for i in range(60)] * 15}
}
NORM = WIDE | {"sensitivity": {"kind": "l2", "bound": 0.001}}

LONG_REQUESTS: dict[str, tuple[str, Json]] = {
    "a curve": ("/account/exact", {"mechanism": CASE_STUDY, "epsilon": EPSILONS}),
    "a curve by δ": ("/account/add-deltas", {"mechanism": CASE_STUDY, "delta": [(k + 1) / 5001 for k in range(5000)]}),
    "a frontier": (
        "/calibrate",
        {"mechanism": {"c_u": 51914, "tau": 1, "sigma": SIGMAS}, "epsilon": 0.349, "delta": 1e-05},
    ),
    "a wide covariance": ("/account/exact", {"mechanism": CASE_STUDY | {"aggregates": WIDE}, "epsilon": 1}),
    "a bound on the norm": ("/account/exact", {"mechanism": CASE_STUDY | {"aggregates": NORM}, "epsilon": 1}),
    "vectors that tie": ("/account/exact", {"mechanism": CASE_STUDY | {"aggregates": TIED}, "epsilon": 1}),
    "the theorem": ("/account/exact", THEOREM | {"mechanism": CASE_STUDY | {"c_u": 10**6}}),
    "a large release": (
        "/release",
        {"mechanism": CASE_STUDY, "groups": {"keys": list(range(50_000)), "counts": [10**6] * 50_000}},
    ),
}

PATIENCE = 60
"""Seconds after which a stopped thread gives up, so that a failure is not a hang."""


@dataclass
class Gate:
    """Stops a thread within the theorem's scan until it is told to go on."""

    entered: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    opened: threading.Event = field(default_factory=threading.Event)

    def guard(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*arguments: Any) -> Any:
            self.entered.release()
            assert self.opened.wait(PATIENCE)
            return work(*arguments)

        return guarded

    async def wait_until_entered(self) -> None:
        assert await asyncio.to_thread(self.entered.acquire, timeout=PATIENCE)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate()
    monkeypatch.setattr(theorem, "evaluate", gate.guard(theorem.evaluate))
    yield gate
    gate.opened.set()


@pytest.mark.parametrize(("path", "body"), LONG_REQUESTS.values(), ids=LONG_REQUESTS)
def test_a_long_request_lets_a_short_one_pass(path: str, body: Json) -> None:
    """Both run in one event loop, the long one first; the order in which they are answered tells."""
    answered: list[str] = []

    async def ask(name: str, request: Any) -> None:
        response = await request
        assert response.status_code == 200, response.text
        answered.append(name)

    async def scenario(http: httpx.AsyncClient) -> None:
        await asyncio.gather(
            ask("long", http.post(path, json=body)),
            ask("short", http.get("/healthz")),
            ask("short", http.post("/account/exact", json={"mechanism": CASE_STUDY, "epsilon": 0.349})),
        )

    Client(cache_size=0).together(scenario)

    assert answered == ["short", "short", "long"]


def test_503_when_all_threads_are_taken_and_nobody_may_wait(gate: Gate) -> None:
    """The refused request is told when to come back, others are served, and afterwards there is room again."""

    async def scenario(http: httpx.AsyncClient) -> None:
        first = asyncio.create_task(http.post("/account/exact", json=THEOREM))
        await gate.wait_until_entered()

        refused = await http.post("/account/exact", json=THEOREM)
        problem_errors(refused, 503, "busy")
        assert int(refused.headers["retry-after"]) >= 1
        assert (await http.get("/healthz")).status_code == 200
        assert (await http.post("/account/exact", json=THEOREM | {"theorem": False})).status_code == 200

        gate.opened.set()
        assert (await first).status_code == 200
        assert (await http.post("/account/exact", json=THEOREM)).status_code == 200

    Client(heavy_threads=1, heavy_queue=0).together(scenario)


def test_503_only_when_the_queue_is_full(gate: Gate) -> None:
    async def scenario(http: httpx.AsyncClient) -> None:
        first = asyncio.create_task(http.post("/account/exact", json=THEOREM))
        await gate.wait_until_entered()

        statuses: list[int] = []

        async def ask() -> None:
            statuses.append((await http.post("/account/exact", json=THEOREM)).status_code)
            gate.opened.set()

        await asyncio.gather(*(ask() for _ in range(5)))
        assert (await first).status_code == 200
        assert sorted(statuses) == [200, 200, 503, 503, 503]
        assert statuses[:3] == [503, 503, 503]

    Client(heavy_threads=1, heavy_queue=2).together(scenario)


def test_as_many_scans_run_at_once_as_there_are_threads(gate: Gate) -> None:
    async def scenario(http: httpx.AsyncClient) -> None:
        running = [asyncio.create_task(http.post("/account/exact", json=THEOREM)) for _ in range(3)]
        for _ in running:
            await gate.wait_until_entered()
        problem_errors(await http.post("/account/exact", json=THEOREM), 503, "busy")
        gate.opened.set()
        assert [response.status_code for response in await asyncio.gather(*running)] == [200, 200, 200]

    Client(heavy_threads=3, heavy_queue=0).together(scenario)


def test_a_scan_that_fails_gives_its_place_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError

    client = Client(heavy_threads=1, heavy_queue=0)
    with monkeypatch.context() as broken:
        broken.setattr(theorem, "evaluate", fail)
        statuses = [client.post("/account/exact", THEOREM).status_code for _ in range(3)]

    assert statuses == [500, 500, 500]
    assert client.post("/account/exact", THEOREM).status_code == 200


def test_many_at_once_get_what_each_alone_gets() -> None:
    """Sixty concurrent requests of all kinds, threads and event loop together."""
    bodies = [
        {"mechanism": CASE_STUDY | {"c_u": 100 * (k + 1)}, "epsilon": 0.1 + k / 100, "theorem": k % 2 == 0}
        for k in range(60)
    ]

    async def scenario(http: httpx.AsyncClient) -> list[httpx.Response]:
        return await asyncio.gather(*(http.post("/account/exact", json=body) for body in bodies))

    together = Client(cache_size=0, heavy_threads=4, heavy_queue=100).together(scenario)
    alone = Client(cache_size=0)
    assert [response.json() for response in together] == [alone.answer("/account/exact", body) for body in bodies]
