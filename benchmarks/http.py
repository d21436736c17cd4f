"""How much of a no-op's throughput does POST /account/exact keep, on the same server settings?

Rounds alternate between the servers, so that both see the same machine; the figure is the median of the rounds.
"""

import itertools
import statistics

from benchmarks.load import posts, throughput
from benchmarks.markdown import table
from benchmarks.server import serving

ROUNDS, SECONDS = 15, 1.0
MECHANISM = {"c_u": 51914, "tau": 1, "tau_star": 13948, "sigma": 2228}


def main() -> None:
    noop = ["uvicorn", "benchmarks.noop:app", "--no-access-log", "--log-level", "warning"]
    with serving("app") as service, serving(*noop) as nothing:
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
                    throughput(nothing.port, posts("/noop", one), SECONDS),
                    throughput(service.port, posts("/account/exact", many), SECONDS),
                    throughput(service.port, posts("/account/exact", one), SECONDS),
                )
            )
        hits_and_misses = [
            line for line in service.get("/metrics").splitlines() if line.startswith("gsh_cache") and "_total" in line
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


if __name__ == "__main__":
    main()
