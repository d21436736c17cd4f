"""How long the accounting takes, in process: ``python -m benchmarks.accounting``.

Goals are printed next to the measured times, never asserted. Ratios compare times of one run that took turns.
"""

import functools
import math
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from time import perf_counter

from benchmarks.markdown import table
from benchmarks.setting import C_U, DELTA, EPSILON, TARGET, TAU, best
from benchmarks.timing import duration, medians
from gsh.accounting import theorem
from gsh.accounting.accountings import ADD_DELTAS, EXACT, Accounting, at_delta, at_epsilon
from gsh.accounting.calibration.draft import Draft
from gsh.accounting.calibration.target import calibrate
from gsh.accounting.column_costs import Capped
from gsh.accounting.curve_cache import CurveCache, Variable
from gsh.accounting.mechanism import Mechanism

SIZES = {"1": 1, "100": 100, f"{C_U}": C_U, "10⁶": 10**6, "10¹⁸": 10**18}
POINTS = 1000
SCAN = "the paper's scan"


def main() -> None:
    for title, tabulate in (
        (f"One certified δ at ε = {EPSILON}, each mechanism calibrated to ({EPSILON}, {DELTA})", one_delta),
        (f"One certified δ at ε = {EPSILON} with caps on columns, C_u = {C_U}", capped_delta),
        (f"A curve of {POINTS} points, case study, exact", curves),
        (f"Calibration to ({EPSILON}, {DELTA}), C_u = {C_U}", calibrations),
        ("A fresh interpreter, best of 3", imports),
    ):
        print(f"## {title}\n\n{tabulate()}\n")


def one_delta() -> str:
    """The cost does not depend on C_u; the scan's does."""
    calls: dict[str, Callable[[], object]] = {}
    for name, c_u in SIZES.items():
        mechanism = calibrate(EXACT, Draft(c_u, TAU, None, None), TARGET).mechanism
        calls[f"closed form, C_u = {name}"] = functools.partial(at_epsilon, EXACT, mechanism, EPSILON)
    calls[f"{SCAN}, C_u = {C_U}"] = functools.partial(theorem.evaluate, best(), EPSILON)
    times = medians(calls)
    first = next(iter(times.values()))
    same = times[f"closed form, C_u = {C_U}"]
    rows = []
    for name, seconds in times.items():
        scan = name.startswith(SCAN)
        goal = f"≥ 100 × the closed form; it is {seconds / same:.0f} ×" if scan else "≤ 100 µs, ratio near 1"
        rows.append((name, duration(seconds), f"{seconds / first:.2f}", goal))
    return table(("evaluation", "median", "ratio to the first", "goal"), rows)


def capped_delta() -> str:
    """With caps, each corner is one evaluation more. Without the lemma, branch and bound takes several."""
    bare = replace(best(), mu_0=1e-4)
    capped = {
        count: replace(best(), capped=tuple(Capped(10 ** (k + 1), 0.001 * 10 ** (-k / 2)) for k in range(count)))
        for count in (1, 3)
    }
    # Noise and threshold cost about the same here, so the worst split is not obvious.
    close = replace(capped[3], sigma=300.0, tau_star=1200.0)
    calls = {
        "no caps": functools.partial(at_epsilon, EXACT, bare, EPSILON),
        "1 cap": functools.partial(at_epsilon, EXACT, capped[1], EPSILON),
        "3 caps": functools.partial(at_epsilon, EXACT, capped[3], EPSILON),
        "3 caps, C_u = 10¹⁸": functools.partial(at_epsilon, EXACT, replace(capped[3], c_u=10**18), EPSILON),
        "3 caps, ε = 0.01": functools.partial(at_epsilon, EXACT, close, 0.01),
        "ε(δ), 3 caps": functools.partial(at_delta, EXACT, capped[3], 2 * DELTA),
    }
    goals = {"3 caps": "< 150 µs", "3 caps, C_u = 10¹⁸": "as with 51914"}
    return against_first(medians(calls), goals)


def curves() -> str:
    """By ε and by δ, and from a cache that holds the points."""
    mechanism = best()
    epsilons = [0.1 + 0.4 * k / POINTS for k in range(POINTS)]
    deltas = [math.exp(math.log(1.01e-5) + k / POINTS * math.log(900)) for k in range(POINTS)]
    cache = CurveCache(2 * POINTS)

    def direct(evaluate: Callable[[Accounting, Mechanism, float], object], values: list[float]) -> None:
        for value in values:
            evaluate(EXACT, mechanism, value)

    def cached(variable: Variable, values: list[float]) -> None:
        for value in values:
            cache.point(EXACT, mechanism, variable, value)

    times = medians(
        {
            "by ε": lambda: direct(at_epsilon, epsilons),
            "by δ": lambda: direct(at_delta, deltas),
            "by ε, from the cache": lambda: cached("epsilon", epsilons),
        },
        rounds=7,
    )
    return against_first(times, {"by ε": "< 100 ms"})


def calibrations() -> str:
    sigma, tau_star = 2396.0, 15200.0
    drafts = {
        "σ and τ*": Draft(C_U, TAU, None, None),
        "τ* at σ = 2396": Draft(C_U, TAU, None, sigma),
        "σ at τ* = 15200": Draft(C_U, TAU, tau_star, None),
        "C_u at σ = 2396, τ* = 15200": Draft(None, TAU, tau_star, sigma),
    }
    calls: dict[str, Callable[[], object]] = {
        f"{name}, {accounting.name}": functools.partial(calibrate, accounting, draft, TARGET)
        for accounting in (EXACT, ADD_DELTAS)
        for name, draft in drafts.items()
        if accounting is EXACT or name != "σ and τ*"
    }
    return against_first(medians(calls, rounds=9), {})


def imports() -> str:
    """The time of a start: the interpreter, the accounting core, the whole service."""
    rows = []
    for name, statement, goal in (
        ("the interpreter alone", "pass", ""),
        ("import gsh.accounting.calibration.target", "import gsh.accounting.calibration.target", ""),
        ("import app.main", "import app.main", "< 2 s"),
    ):
        times = [start(statement) for _ in range(3)]
        measured = [seconds for seconds in times if seconds is not None]
        rows.append((name, duration(min(measured)) if measured else "n/a", goal))
    return table(("start", "best", "goal"), rows)


def start(statement: str) -> float | None:
    """Seconds from launching an interpreter to its end, or None if it fails."""
    begun = perf_counter()
    done = subprocess.run([sys.executable, "-c", statement], capture_output=True, check=False, timeout=60)
    return perf_counter() - begun if done.returncode == 0 else None


def against_first(times: Mapping[str, float], goals: Mapping[str, str]) -> str:
    first = next(iter(times.values()))
    rows = [(name, duration(seconds), f"{seconds / first:.2f}", goals.get(name, "")) for name, seconds in times.items()]
    return table(("what", "median", "ratio to the first", "goal"), rows)


if __name__ == "__main__":
    main()
