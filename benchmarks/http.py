"""How much of a no-op's throughput does POST /account/exact keep?

The no-op is FastAPI's usual way to answer the same body: once on uvicorn's own protocol, and once on the service's,
which bounds what clients send and sends an answer as one packet. Rounds alternate between the servers, so that all see
the same machine; each figure is the median of the rounds.
"""

import itertools
import statistics

from benchmarks.load import posts, throughput
from benchmarks.markdown import table
from benchmarks.server import serving
from benchmarks.setting import EPSILON, MECHANISM

ROUNDS, SECONDS = 15, 1.0
NOOP = ("uvicorn", "benchmarks.noop:app", "--no-access-log", "--log-level", "warning")
GOALS = {"uncached": "≥ 0.8", "cached": "≥ 0.9"}


def main() -> None:
    bounded = (*NOOP, "--http", "app.http.protocol:BoundedProtocol")
    with serving("app") as service, serving(*NOOP) as noop, serving(*bounded) as bounded_noop:
        servers = ((noop, "/noop"), (bounded_noop, "/noop"), (service, "/account/exact"))
        fresh = itertools.count()
        rates: dict[str, list[list[float]]] = {kind: [] for kind in GOALS}
        for _ in range(ROUNDS):
            # Neither the mechanism nor the ε has been seen before.
            many = [
                {"mechanism": MECHANISM | {"sigma": 2228 + k * 1e-9}, "epsilon": 0.3 + k * 1e-9}
                for k in itertools.islice(fresh, 15_000)
            ]
            for kind, bodies in (("uncached", many), ("cached", [{"mechanism": MECHANISM, "epsilon": EPSILON}])):
                rates[kind].append([throughput(server.port, posts(path, bodies), SECONDS) for server, path in servers])
        hits_and_misses = [
            line for line in service.get("/metrics").splitlines() if line.startswith("gsh_cache") and "_total" in line
        ]
    rows = []
    for kind, goal in GOALS.items():
        medians = [f"{statistics.median(column):,.0f}" for column in zip(*rates[kind], strict=True)]
        shares = [statistics.median(each[2] / each[n] for each in rates[kind]) for n in range(2)]
        rows.append((kind, *medians, *(f"{share:.2f}" for share in shares), goal))
    print("## HTTP: one worker, 16 keep-alive connections, the client on the other core\n")
    titles = ("no-op, 1/s", "no-op on our protocol, 1/s", "service, 1/s", "of the no-op", "of that on our protocol")
    print(table(("request", *titles, "goal"), rows))
    print(f"\n{'; '.join(hits_and_misses)}\n")


if __name__ == "__main__":
    main()
