"""How much of a no-op's throughput does POST /account/exact keep, on the same server settings?

Rounds alternate between the servers, so that both see the same machine; the figure is the median of the rounds.
"""

import itertools
import json
import os
import socket
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.request import urlopen

from benchmarks.load import posts, throughput
from benchmarks.markdown import table

ROUNDS, SECONDS = 15, 1.0
MECHANISM = {"c_u": 51914, "tau": 1, "tau_star": 13948, "sigma": 2228}


def main() -> None:
    service = [sys.executable, "-m", "app"]
    noop = [sys.executable, "-m", "uvicorn", "benchmarks.noop:app", "--no-access-log", "--log-level", "warning"]
    with serving(service) as service_port, serving(noop) as noop_port:
        one = [{"mechanism": MECHANISM, "epsilon": 0.349}]
        fresh = itertools.count()
        rounds = []
        for _ in range(ROUNDS):
            # Neither the mechanism nor the ε has been seen before.
            many = [
                {"mechanism": MECHANISM | {"sigma": 2228 + k * 1e-9}, "epsilon": 0.3 + k * 1e-9}
                for k in itertools.islice(fresh, 15_000)
            ]
            rounds.append(
                (
                    throughput(noop_port, posts("/noop", one), SECONDS),
                    throughput(service_port, posts("/account/exact", many), SECONDS),
                    throughput(service_port, posts("/account/exact", one), SECONDS),
                )
            )
        hits_and_misses = [
            line
            for line in _get(service_port, "/metrics").splitlines()
            if line.startswith("gsh_cache") and "_total" in line
        ]
    rows = []
    for name, column, goal in (("no-op", 0, "1"), ("uncached", 1, "≥ 0.8"), ("cached", 2, "≥ 0.9")):
        rate = statistics.median(row[column] for row in rounds)
        share = statistics.median(row[column] / row[0] for row in rounds)
        rows.append((name, f"{rate:,.0f}", f"{share:.2f}", goal))
    print("## HTTP: one worker, 16 keep-alive connections, the client on the other core\n")
    print(table(("request", "requests/s", "of the no-op", "goal"), rows))
    print(f"\n{'; '.join(hits_and_misses)}")
    print(
        "The no-op goes through FastAPI's general handler, which the service replaces by its own (app/api/route.py).\n"
    )


@contextmanager
def serving(command: list[str]) -> Iterator[int]:
    """A server process on a free port, stopped at the end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    if "uvicorn" in command:
        command = [*command, "--port", str(port)]
    process = subprocess.Popen(command, env=os.environ | {"GSH_PORT": str(port)}, stdout=subprocess.DEVNULL)
    try:
        _wait_for(port, process)
        yield port
    finally:
        process.terminate()
        process.wait(timeout=30)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        try:
            json.loads(_get(port, "/openapi.json"))
            return
        except OSError:
            continue
    raise RuntimeError("the server did not start")


def _get(port: int, path: str) -> str:
    with urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        body: bytes = answer.read()
    return body.decode()


if __name__ == "__main__":
    main()
