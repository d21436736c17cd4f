"""How long does one request keep the others waiting? The largest gap of a clock that ticks on the same event loop.

    python -m benchmarks.stalls

Each row is a request that could hold up the loop, the largest gap while it was answered, and the ratio to the gap of
an idle loop. A gap below 50 ms is not noticeable.
"""

import asyncio
import gc
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from app.main import create_app
from app.settings import Settings
from benchmarks.setting import DELTA, EPSILON, MECHANISM, OUTLINE_BODY

__all__ = ["main"]

TARGET = {"epsilon": EPSILON, "delta": DELTA}


def columns(count: int, name: str = "covariance") -> dict[str, Any]:
    return {
        "names": [f"c{k}" for k in range(count)],
        name: [[1.0 + (i == j) for j in range(count)] for i in range(count)],
        "sensitivity": {"kind": "l2", "bound": 0.00001},
    }


def requests() -> dict[str, tuple[str, bytes]]:
    """Every request by name: its path and its body."""
    sigmas = [2300 + k / 10 for k in range(2000)]
    relative = OUTLINE_BODY | {"sigma": sigmas[:50], "aggregates": columns(4, "relative_covariance")}
    vectors = columns(2) | {"sensitivity": {"kind": "vectors", "vectors": [[0.00001, 0.00002]] * 100_000}}
    bodies: dict[str, tuple[str, Any]] = {
        "150 000 unknown fields": (
            "/account/exact",
            {"mechanism": MECHANISM, "epsilon": 1} | {f"x{k}": 0 for k in range(150_000)},
        ),
        "100 000 vectors": ("/account/exact", {"mechanism": MECHANISM | {"aggregates": vectors}, "epsilon": 1}),
        "4 columns, Euclidean bound": (
            "/account/exact",
            {"mechanism": MECHANISM | {"aggregates": columns(4)}, "epsilon": 1},
        ),
        "μ that is a double": (
            "/account/exact",
            {"mechanism": {"c_u": 10**18, "tau": 1, "tau_star": 1e9, "sigma": 1e8}, "epsilon": 700},
        ),
        "a curve of 10 000": ("/account/exact", {"mechanism": MECHANISM, "epsilon": [k / 1e4 for k in range(10_000)]}),
        "a frontier of 2 000": ("/calibrate", TARGET | {"mechanism": OUTLINE_BODY | {"sigma": sigmas}}),
        "a frontier of 50, relative": ("/calibrate", TARGET | {"mechanism": relative}),
        "σ at a τ*": ("/calibrate", TARGET | {"mechanism": OUTLINE_BODY | {"tau_star": 20000}}),
        "a comparison": ("/compare", TARGET | {"mechanism": OUTLINE_BODY}),
        "a preview of 900, 4 columns": (
            "/budgets/web/preview",
            {"mechanism": [MECHANISM | {"aggregates": columns(4)}] * 900},
        ),
        "a preview of 900, 10 columns": (
            "/budgets/web/preview",
            {"mechanism": [MECHANISM | {"aggregates": columns(10)}] * 900},
        ),
    }
    return {name: (path, json.dumps(body).encode()) for name, (path, body) in bodies.items()}


async def largest_gap(until: "asyncio.Task[Any]") -> tuple[float, float]:
    """In seconds, by the clock and by what the loop's thread computed; a busy machine adds to the first."""
    gap, work, last, last_work = 0.0, 0.0, time.perf_counter(), time.thread_time()
    while not until.done():
        await asyncio.sleep(0.001)
        now, now_work = time.perf_counter(), time.thread_time()
        gap, last = max(gap, now - last), now
        work, last_work = max(work, now_work - last_work), now_work
    return gap, work


async def measure(folder: str) -> None:
    app = create_app(Settings(ledger=str(Path(folder) / "ledger.sqlite3")))
    transport = httpx.ASGITransport(app)
    headers = {"content-type": "application/json"}
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=None) as http:
        await http.put("/budgets/web", json={"epsilon": 1.0, "delta": 1e-4})
        await http.post("/compare", json=TARGET | {"mechanism": {"c_u": 1, "tau": 1}})  # the first worker is there
        gc.collect()
        gc.freeze()  # as the service does when it starts
        idle, _ = await largest_gap(asyncio.create_task(asyncio.sleep(0.5)))
        sys.stdout.write("| request | status | seconds | largest gap, ms | of it work, ms | ratio to idle |\n")
        sys.stdout.write("|---|---|---|---|---|---|\n")
        for name, (path, content) in requests().items():
            started = time.perf_counter()
            task = asyncio.create_task(http.post(path, content=content, headers=headers))
            gap, work = await largest_gap(task)
            status, seconds = task.result().status_code, time.perf_counter() - started
            sys.stdout.write(
                f"| {name} | {status} | {seconds:.2f} | {gap * 1e3:.1f} | {work * 1e3:.1f} | {gap / idle:.1f} |\n"
            )
            sys.stdout.flush()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(folder))


if __name__ == "__main__":
    main()
