"""``python -m benchmarks.published_means``: means and ratios from raw events, compared with what is true of the events.

A year of made-up flights: travellers, routes of very different sizes, and minutes of delay, of which some are missing.
Noise comes from the operating system: another run prints other numbers in the last digit.
"""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

import gsh
from benchmarks.markdown import table

__all__ = ["ASKED", "flights", "main", "measured"]

Doubles = NDArray[np.float64]

ASKED: dict[str, Any] = {
    "user": "traveller",
    "by": "route",
    "c_u": 2,
    "events": {"flights": 3},
    "sums": {"late": (0, 3)},
    "means": {"delay": (0, 60)},
    "units": {"delay": 1.0},
    "ratios": {"late_share": ("late", "flights")},
}
ROUTES = 400
SALT = "0" * 32
LEVEL = 0.95


def flights(travellers: int = 40_000, seed: int = 2013) -> pa.Table:
    """Flights with the route, whether they were late, and the delay in minutes; one in twenty delays is missing."""
    random = np.random.default_rng(seed)
    rows = 3 * travellers
    routes = np.minimum(random.zipf(1.2, rows), ROUTES)
    delay = random.gamma(0.8, 12 + routes % 7 * 6)
    return pa.table(
        {
            "traveller": random.integers(0, travellers, rows),
            "route": np.char.add("R", routes.astype(str)),
            "late": (delay > 15).astype(np.int64),
            "delay": pa.array(delay, mask=random.random(rows) < 0.05),
        }
    )


class Measured(NamedTuple):
    """How many intervals there were, and the shares of them that cover the bounded numbers, and those of raw events."""

    groups: int
    bounded: dict[str, float]
    raw: dict[str, float]


def measured(events: pa.Table, releases: int, *, is_rounded: bool) -> Measured:
    """Publish the events so many times, and compare the counts, the means and the ratios.

    The bounds keep the same records each time. A second mechanism, with nearly no noise, shows the bounded numbers.
    """
    columns = gsh.Aggregates(
        names=["late", "flights", "delay_centred"],
        covariance=np.diag([1e-6] * 3).tolist(),
        sensitivity=gsh.box(lower=[0, 0, -30], upper=[3, 3, 30]),
    )
    clear = gsh.Mechanism(c_u=2, tau=1, tau_star=1.5, sigma=1e-3, aggregates=columns)
    true = _rows(gsh.publish(events, **ASKED, mechanism=clear, _salt=SALT))
    raw = _raw(events)
    hits: dict[str, list[bool]] = {f"{of} {name}": [] for of in ("bounded", "raw") for name in _NAMES}
    groups = 0
    for _ in range(releases):
        found = gsh.publish(events, **ASKED, epsilon=1, delta=1e-6, round=is_rounded, _salt=SALT)
        ends = {"count": found.intervals(LEVEL).counts}
        ends |= {"delay_mean": found.means(level=LEVEL)["delay"], "late_share": found.ratios(level=LEVEL)["late_share"]}
        for place, route in enumerate(found.table["route"].to_pylist()):
            groups += 1
            for name, each in ends.items():
                for of, truth in (("bounded", true[route]), ("raw", raw[route])):
                    # What shows the bounded numbers is off by its own noise, far below a thousandth of an interval.
                    off = 1e-2 if name == "count" else 1e-4
                    hits[f"{of} {name}"].append(each.low[place] - off <= truth[name] <= each.high[place] + off)
    shares = {name: float(np.mean(each)) for name, each in hits.items()}
    return Measured(groups, *({name: shares[f"{of} {name}"] for name in _NAMES} for of in ("bounded", "raw")))


_NAMES = ("count", "delay_mean", "late_share")


def _rows(found: gsh.Published) -> dict[str, dict[str, float]]:
    return {row["route"]: {name: row[name] for name in _NAMES} for row in found.table.to_pylist()}


def _raw(events: pa.Table) -> dict[str, dict[str, float]]:
    """The same numbers of all events: every traveller of a route, and the mean of what they had in it."""
    filled = events.set_column(3, "delay", pc.fill_null(events["delay"], 0.0))
    grouped = filled.group_by(["route", "traveller"]).aggregate([("delay", "sum"), ("late", "sum"), ("late", "count")])
    totals = grouped.group_by("route").aggregate(
        [("traveller", "count"), ("delay_sum", "sum"), ("late_sum", "sum"), ("late_count", "sum")]
    )
    return {
        row["route"]: {
            "count": row["traveller_count"],
            "delay_mean": row["delay_sum_sum"] / row["traveller_count"],
            "late_share": row["late_sum_sum"] / row["late_count_sum"],
        }
        for row in totals.to_pylist()
    }


def example(events: pa.Table) -> str:
    """The largest, the middle and the smallest route of one publication, next to the means of all raw records."""
    found, raw = gsh.publish(events, **ASKED, epsilon=1, delta=1e-6, round=True), _raw(events)
    rows = sorted(found.table.to_pylist(), key=lambda row: -row["count"])
    shown = [
        (
            row["route"],
            str(row["count"]),
            f"{row['delay_mean']:.1f} ({row['delay_mean_low']:.1f} … {row['delay_mean_high']:.1f})",
            f"{raw[row['route']]['delay_mean']:.1f}",
            f"{row['late_share']:.3f} ({row['late_share_low']:.3f} … {row['late_share_high']:.3f})",
            f"{raw[row['route']]['late_share']:.3f}",
        )
        for row in (rows[0], rows[len(rows) // 2], rows[-1])
    ]
    return table(("route", "count", "delay_mean", "of all records", "late_share", "of all records"), shown)


def main() -> None:
    events = flights()
    print(example(events), end="\n\n")
    rows = []
    for is_rounded in (False, True):
        found = measured(events, 50, is_rounded=is_rounded)
        for of, shares in (("bounded", found.bounded), ("raw", found.raw)):
            cells = [f"{shares[name]:.3f}" for name in _NAMES]
            rows.append(("rounded" if is_rounded else "as drawn", of, str(found.groups), *cells))
    print(table(("numbers", "compared with", "groups", "count", "mean delay", "share of late flights"), rows))


if __name__ == "__main__":
    main()
