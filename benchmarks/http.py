"""How much of a no-op's throughput does POST /account/exact keep, on the same server settings?

Rounds alternate between the servers, so that both see the same machine; the figure is the median of the rounds.
"""

import itertools
import statistics
from typing import Any

from benchmarks.load import posts, throughput
from benchmarks.markdown import table
from benchmarks.server import serving
from benchmarks.setting import EPSILON, MECHANISM

ROUNDS, SECONDS = 15, 1.0


def main() -> None:
    noop = ["uvicorn", "benchmarks.noop:app", "--no-access-log", "--log-level", "warning"]
    with serving("app") as service, serving(*noop) as nothing:
        one = [{"mechanism": MECHANISM, "epsilon": EPSILON}]
        fresh = itertools.count()
        rounds = []
        for _ in range(ROUNDS):
            # Neither the mechanism nor the ε has been seen before.
            many = [
                {"mechanism": MECHANISM | {"sigma": 2228 + k * 1e-9}, "epsilon": 0.3 + k * 1e-9}
                for k in itertools.islice(fresh, 15_000)
            ]
            rounds.append([pair(nothing.port, service.port, bodies) for bodies in (many, one)])
        hits_and_misses = [
            line for line in service.get("/metrics").splitlines() if line.startswith("gsh_cache") and "_total" in line
        ]
    rows = []
    for name, pairs, goal in zip(("uncached", "cached"), zip(*rounds, strict=True), ("≥ 0.8", "≥ 0.9"), strict=True):
        noops, rates = zip(*pairs, strict=True)
        medians = [f"{statistics.median(column):,.0f}" for column in (noops, rates)]
        share = statistics.median(rate / noop for noop, rate in pairs)
        rows.append((name, *medians, f"{share:.2f}", goal))
    print("## HTTP: one worker, 16 keep-alive connections, the client on the other core\n")
    print(table(("request", "no-op, 1/s", "service, 1/s", "of the no-op", "goal"), rows))
    print(f"\n{'; '.join(hits_and_misses)}")
    print("The no-op uses FastAPI's general handler. The service replaces it by its own (app/api/json_route.py).\n")


def pair(noop_port: int, service_port: int, bodies: list[Any]) -> tuple[float, float]:
    """Answers per second of the no-op and of the service, to the same bodies."""
    return (
        throughput(noop_port, posts("/noop", bodies), SECONDS),
        throughput(service_port, posts("/account/exact", bodies), SECONDS),
    )


if __name__ == "__main__":
    main()
