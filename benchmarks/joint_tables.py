"""Several tables in one release, against other ways to account for them: ``python -m benchmarks.joint_tables``.

docs/math/joint-tables.md has these numbers. Goals are printed next to measured times, never asserted.
"""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from flint import arb
from scipy.integrate import quad
from scipy.special import ndtr, ndtri

from benchmarks.markdown import places_up, table
from benchmarks.timing import duration, medians
from gsh.accounting import gaussian
from gsh.accounting.accountings import EXACT, at_epsilon
from gsh.accounting.calibration.compared_tables import PricedTables, WayName, compare_tables
from gsh.accounting.calibration.draft import Draft, Target
from gsh.accounting.calibration.shares import Shares, TableDraft, calibrate_tables, largest_hazard, largest_square
from gsh.accounting.calibration.target import calibrate
from gsh.accounting.mechanism import Joint, Mechanism, Release, mechanisms_of
from gsh.accounting.numerics.balls import at_precision

TARGET = Target(1.0, 1e-6)
CASE_STUDY = Target(0.349, 1e-5)
LEVELS = {"country": 1, "URL": 16, "URL × country": 16}
SHARES: dict[str, Shares] = {"equal": [1, 1, 1], "∝ C": [1, 16, 16], "∝ √C": "balanced"}
WAYS: dict[WayName, str] = {
    "shares": "one release, by shares",
    "composition": "composition",
    "zcdp": "zCDP",
    "separate": "a certificate for each, (w_k ε, w_k δ)",
}
PUBLIC_SHARES = (0.5, 0.8, 0.9, 0.95, 0.99)
LARGE = 10**15
_NEW = 5000
"""More releases than the library keeps frontiers of."""


def main() -> None:
    for title, tabulate in (
        (f"σ / τ* at ({TARGET.epsilon:g}, {TARGET.delta:g}), τ = 1, C = {tuple(LEVELS.values())}", prices),
        ("What one release by shares saves, σ / τ* of the table by URL", savings),
        ("r(u): the part of δ that public tables with the share u of S* cost alone", public_parts),
        ("Other shares of noise than of thresholds: w = (0.05, 0.95), v = (0.9, 0.1)", other_shares),
        ("What tables cost that are chosen after seeing the others, two equal shares", adaptive),
        ("Times", times),
    ):
        print(f"## {title}\n\n{tabulate()}\n")


def drafts(c_us: Sequence[int] = tuple(LEVELS.values())) -> list[TableDraft]:
    return [TableDraft(Draft(c_u=c_u, tau=1, tau_star=None, sigma=None)) for c_u in c_us]


@functools.cache
def compared(name: str) -> dict[WayName, PricedTables | None]:
    return compare_tables(drafts(), SHARES[name], TARGET)


def prices() -> str:
    """The third table needs what the second one needs."""
    rows = []
    for way, text in WAYS.items():
        cells = [text]
        for name in SHARES:
            price = compared(name)[way]
            assert price is not None
            cells += [_pair(each) for each in price.tables[:2] if isinstance(each, Mechanism)]
        rows.append(cells)
    alone = [_pair(calibrate(EXACT, each.draft, TARGET).mechanism) for each in drafts()[:2]]
    rows.append(["that table alone, with all of the target", *alone * len(SHARES)])
    header = ["way", *(f"{name}: {level}" for name in SHARES for level in ("country", "URL"))]
    return table(header, rows)


def _pair(mechanism: Mechanism) -> str:
    return f"{places_up(mechanism.sigma, 3)} / {places_up(mechanism.tau_star, 2)}"


def savings() -> str:
    rows = []
    for way, text in list(WAYS.items())[1:]:
        cells = [f"against: {text}"]
        for name in SHARES:
            price = compared(name)[way]
            assert price is not None
            sigma, tau_star = price.sigma_ratios[1], price.tau_star_ratios[1]
            assert tau_star is not None
            cells.append(f"{100 * (1 - 1 / sigma):.1f} % / {100 * (1 - 1 / tau_star):.1f} %")
        rows.append(cells)
    return table(("", *SHARES), rows)


def public_parts() -> str:
    rows = []
    for target in (TARGET, CASE_STUDY):
        parts = (_public_part(share, target) for share in PUBLIC_SHARES)
        rows.append([f"({target.epsilon:g}, {target.delta:g})", *(f"{part:.3g}" for part in parts)])
    return table(("r(u) at u =", *map(str, PUBLIC_SHARES)), rows)


def _public_part(share: float, target: Target) -> float:
    """f(√(u S*), ε)/δ."""
    square = share * float(largest_square(target))
    return float(at_precision(200, lambda: gaussian.delta(arb(square).sqrt(), arb(target.epsilon)))) / target.delta


def other_shares() -> str:
    """Two tables with w_k of S* and v_k of D*. If the first is the parent, the worst cut cannot occur: the ends can."""
    square, hazard = float(largest_square(TARGET)), float(largest_hazard(TARGET))
    tables = []
    for noise, threshold in zip((0.05, 0.95), (0.9, 0.1), strict=True):
        sigma = 1 / math.sqrt(noise * square)
        tables.append(Mechanism(c_u=1, tau_star=1 - sigma * ndtri(-math.expm1(-threshold * hazard)), sigma=sigma))
    point = at_epsilon(EXACT, Joint(tables), TARGET.epsilon)
    ends = max(point.delta_infinite, point.delta_gaussian or 0.0)
    cost, truth = (f"{delta / TARGET.delta:.3f} δ" for delta in (point.delta, ends))
    return f"{cost}; if the first table is the parent of the second, {truth}."


def adaptive() -> str:
    """Rows of the first table are above τ. Those of the second are at τ unless the first output was telling."""
    square, hazard = (float(whole(TARGET)) / 2 for whole in (largest_square, largest_hazard))
    mu = math.sqrt(square)

    def weighted(loss: float) -> float:
        density = math.exp(-((loss - square / 2) ** 2) / (2 * square)) / math.sqrt(2 * math.pi * square)
        return density * max(-math.expm1(-hazard), _gaussian(mu, TARGET.epsilon - loss))

    spread = 12 * mu
    cost = quad(weighted, square / 2 - spread, square / 2 + spread, limit=2000, epsabs=1e-16, epsrel=1e-9)[0]
    return f"{cost / TARGET.delta:.3f} δ; in one release they cost δ."


def _gaussian(mu: float, epsilon: float) -> float:
    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))


def times() -> str:
    """The cost does not depend on any C_k."""
    one = calibrate(EXACT, drafts()[1].draft, TARGET).mechanism
    three = calibrate_tables(drafts(), "balanced", TARGET).release
    large = calibrate_tables(drafts((LARGE, 16 * LARGE, 16 * LARGE)), "balanced", TARGET).release
    new = itertools.cycle([_scaled(three, 1 + n * 1e-9) for n in range(_NEW)])
    calls: dict[str, Callable[[], object]] = {
        "δ of one table": functools.partial(at_epsilon, EXACT, one, TARGET.epsilon),
        "δ of 3 tables": functools.partial(at_epsilon, EXACT, three, TARGET.epsilon),
        "δ of 3 tables, new parameters each time": lambda: at_epsilon(EXACT, next(new), TARGET.epsilon),
        "δ of 3 tables, C_k times 10¹⁵": functools.partial(at_epsilon, EXACT, large, TARGET.epsilon),
        "calibration of one table": functools.partial(calibrate, EXACT, drafts()[1].draft, TARGET),
        "calibration of 3 tables": functools.partial(calibrate_tables, drafts(), "balanced", TARGET),
        "calibration of 3 tables, C_k times 10¹⁵": functools.partial(
            calibrate_tables, drafts((LARGE, 16 * LARGE, 16 * LARGE)), "balanced", TARGET
        ),
        "comparison of 3 tables": functools.partial(compare_tables, drafts(), "balanced", TARGET),
    }
    goals = {
        "δ of 3 tables": "< 100 µs",
        "δ of 3 tables, new parameters each time": "< 100 µs",
        "calibration of 3 tables": "< 1 ms",
    }
    measured = medians(calls, rounds=7)
    rows = []
    for name, seconds in measured.items():
        first = measured["δ of one table" if name.startswith("δ") else "calibration of one table"]
        rows.append((name, duration(seconds), f"{seconds / first:.1f}", goals.get(name, "")))
    return table(("what", "median", "ratio to one table", "goal"), rows)


def _scaled(release: Release, factor: float) -> Joint:
    """The same tables with other noise and thresholds."""
    secret = [table for table in mechanisms_of(release) if isinstance(table, Mechanism)]
    return Joint([replace(each, sigma=each.sigma * factor, tau_star=each.tau_star * factor) for each in secret])


if __name__ == "__main__":
    main()
