"""One heavy request must not stall the others. If the queue is full, the next request gets 503."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.app.client import CASE_STUDY, Client, Json, problem_errors
from tests.app.workers.tasks import Meeting, pid

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

BOX = {
    "names": [f"column {k}" for k in range(20)],
    "covariance": [[1.0 + (i == j) for j in range(20)] for i in range(20)],
    "sensitivity": {"kind": "box", "lower": [0] * 20, "upper": [0.001] * 20},
}
"""A million corners: some seconds of work."""
SLOW: Json = {
    "mechanism": {
        "c_u": 51914,
        "tau": 1,
        "sigma": [2300 + k for k in range(100)],
        "aggregates": {name: value for name, value in BOX.items() if name != "covariance"}
        | {"relative_covariance": BOX["covariance"]},
    },
    "epsilon": 0.349,
    "delta": 1e-05,
}

COLUMNS = {
    "names": ["a", "b", "c"],
    "covariance": [[400, 1, 0], [1, 400, 0], [0, 0, 100]],
    "sensitivity": {"kind": "box", "lower": [0, 0, 0], "upper": [1, 1, 1]},
}
LONG_REQUESTS: dict[str, tuple[str, Json]] = {
    "a preview": (
        "/budgets/web/preview",
        {"mechanism": [CASE_STUDY | {"sigma": 2300 + k, "aggregates": COLUMNS} for k in range(900)]},
    ),
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


def with_budget(place: Path, **settings: Any) -> Client:
    client = Client(ledger=str(place / "ledger.sqlite3"), **settings)
    assert client.request("PUT", "/budgets/web", json={"epsilon": 1, "delta": 1e-4}).status_code == 200
    return client


@pytest.mark.parametrize(("path", "body"), LONG_REQUESTS.values(), ids=LONG_REQUESTS)
def test_a_short_request_is_answered_before_a_long_one(path: str, body: Json, tmp_path: Path) -> None:
    """Both run in one event loop, and the long one starts first. The order of the answers decides."""
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

    with_budget(tmp_path, cache_size=0).together(scenario)

    assert answered == ["short", "short", "long"]


def test_a_request_is_503_if_all_workers_are_busy_and_the_queue_is_full(tmp_path: Path) -> None:
    """The refused request gets Retry-After, light requests are served, and later the queue is free again."""
    client, meeting = Client(pool_processes=1, heavy_queue=0), Meeting(tmp_path)

    async def scenario(http: httpx.AsyncClient) -> None:
        first = asyncio.create_task(client.app.state.services.accounting.run(meeting.attend))
        await meeting.begins()

        refused = await http.post("/account/exact", json=THEOREM)
        problem_errors(refused, 503, "busy")
        assert int(refused.headers["retry-after"]) >= 1
        assert (await http.get("/healthz")).status_code == 200
        assert (await http.post("/account/exact", json=THEOREM | {"theorem": False})).status_code == 200

        await meeting.goes_on()
        await first
        assert (await http.post("/account/exact", json=THEOREM)).status_code == 200

    client.together(scenario)


def test_accounting_does_not_wait_for_releases(tmp_path: Path) -> None:
    """All release workers are busy and their queue is full. Its duration must not affect other requests."""
    client, meeting = with_budget(tmp_path, pool_processes=1, heavy_queue=0), Meeting(tmp_path)

    async def scenario(http: httpx.AsyncClient) -> None:
        release = asyncio.create_task(client.app.state.services.release_workers.run(meeting.attend))
        await meeting.begins()

        for path, body in LONG_REQUESTS.values():
            assert (await http.post(path, json=body)).status_code == (503 if path == "/release" else 200)
        await meeting.goes_on()
        await release

    client.together(scenario)


def test_a_request_past_its_deadline_is_503() -> None:
    wide = {"mechanism": CASE_STUDY | {"aggregates": BOX}, "epsilon": 1}
    client = Client(heavy_seconds=0.001)

    response = client.post("/account/exact", wide)

    assert problem_errors(response, 503, "deadline-passed") == {}
    assert "0.001 seconds" in response.json()["detail"]
    curve = client.post("/account/exact", {"mechanism": CASE_STUDY, "epsilon": EPSILONS})
    assert problem_errors(curve, 503, "deadline-passed") == {}


def is_computing(process: int) -> bool:
    """Whether the kernel reports it as running. A worker without a task waits."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "R"


@pytest.mark.parametrize("kind", ["in a worker", "in slices"])
def test_work_stops_when_the_client_hangs_up(kind: str) -> None:
    """The worker is killed in the middle of a minute's work, and a series is left where it is."""
    # Short enough to be read by the service itself, and with more points than a slice has time for.
    series = [k / 1000 for k in range(2000)]
    body = SLOW if kind == "in a worker" else {"mechanism": CASE_STUDY, "epsilon": series}
    path = "/calibrate" if kind == "in a worker" else "/account/exact"
    content = json.dumps(body).encode()
    client = Client(cache_size=0, max_work=10**9)
    pool = client.app.state.services.accounting
    sent: list[Any] = []

    async def scenario(_http: httpx.AsyncClient) -> None:
        worker = await pool.run(pid)
        while is_computing(worker):  # it tidies up after a task
            await asyncio.sleep(0)
        messages = iter([{"type": "http.request", "body": content, "more_body": False}])

        async def receive() -> Any:
            for message in messages:
                return message
            await asyncio.sleep(0)
            while kind == "in a worker" and not is_computing(worker):
                await asyncio.sleep(0)
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        await client.app(request_scope(path, len(content)), receive, send)
        assert (await pool.run(pid) == worker) == (kind == "in slices")

    client.together(scenario)

    assert sent[0]["status"] == 400


def request_scope(path: str, length: int) -> Json:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"content-type", b"application/json"), (b"content-length", str(length).encode())],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
    }


def test_concurrent_requests_get_the_same_answers_as_single_ones() -> None:
    """Sixty concurrent requests of all kinds, workers and event loop together."""
    bodies = [
        {"mechanism": CASE_STUDY | {"c_u": 100 * (k + 1)}, "epsilon": 0.1 + k / 100, "theorem": k % 2 == 0}
        for k in range(60)
    ]

    async def scenario(http: httpx.AsyncClient) -> list[httpx.Response]:
        return await asyncio.gather(*(http.post("/account/exact", json=body) for body in bodies))

    together = Client(cache_size=0, pool_processes=4, heavy_queue=100).together(scenario)
    alone = Client(cache_size=0)
    assert [response.json() for response in together] == [alone.answer("/account/exact", body) for body in bodies]
