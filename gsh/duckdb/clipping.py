"""What C_u and clips do to sums, from the true values: for the owner's eyes. It is not private.

x is what a user adds to a group, in all records. C_u keeps some of the pairs of a user and a group, and [l, u] clips x:

    bias      (Σ over kept pairs of min(max(x, l), u) − Σ over all pairs of x)/Σ |x|
    noise     s w/w₀, on the sum of one group;  w = max(|l|, |u|), or (u − l)/2 of a mean

The calibrated noise of a column is in proportion to w, and s is that at the given bounds, with w₀. A cap on the groups
of a column removes more than the bias says.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from gsh.duckdb.aggregates import Query
from gsh.duckdb.sources import Source
from gsh.events.bounding import ranked_query
from gsh.events.plan import Plan
from gsh.library.measures import MOST_UNITS, Measure

__all__ = ["Clip", "clips_of", "clips_query"]

_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""The given bounds, and others around them."""


@dataclass(frozen=True, slots=True)
class Clip:
    """Bounds on what one user adds to one group in a column, and what they do together with C_u."""

    column: str
    lower: float
    upper: float
    clipped: float
    """The share of kept pairs whose value is outside of the bounds."""
    bias: float
    """How much the total of all groups changes, as a share of the total of absolute values."""
    noise: float
    """The standard deviation of the noise on the sum of one group."""


def clips_query(plans: Sequence[Plan], source: Source) -> Query:
    """One row: of all pairs, and of those that each plan keeps."""
    plan = plans[0]
    unclipped = replace(plan, measures=tuple(each.between(-MOST_UNITS, MOST_UNITS) for each in plan.measures))
    found = {f"pairs{p}": f"COUNT(*) FILTER (_place <= {each.c_u})" for p, each in enumerate(plans)}
    for j in range(1, len(plan.measures) + 1):
        found |= {f"total{j}": f"SUM(_sum{j})", f"size{j}": f"SUM(ABS(_sum{j}))"}
    for p, each in enumerate(plans):
        for k, (j, clip) in enumerate(_asked(each)):
            kept, value = f"FILTER (_place <= {each.c_u})", f"_sum{j}"
            within = f"LEAST(GREATEST({value}, {clip.least}), {clip.most})"
            found[f"outside{p}_{k}"] = f"SUM(CASE WHEN {value} <> {within} THEN 1 ELSE 0 END) {kept}"
            found[f"within{p}_{k}"] = f"SUM({within}) {kept}"
    numbers = ", ".join(f"{sql} AS {name}" for name, sql in found.items())

    def partial(scan: str) -> str:
        return f"SELECT {numbers} FROM ({ranked_query(unclipped, source.kinds, 'duckdb', scan)}) AS _pairs"

    def total(parts: str) -> str:
        return f"SELECT {', '.join(f'CAST(SUM({name}) AS DOUBLE) AS {name}' for name in found)} FROM {parts}"

    return Query(whole=lambda scan: total(f"({partial(scan)}) AS _parts"), partial=partial, total=total)


def clips_of(plans: Sequence[Plan], deviations: Sequence[Sequence[float]], table: pa.Table) -> list[tuple[Clip, ...]]:
    """The clips at each C_u, from the row of the query. ``deviations`` are those of the columns, by plan."""
    row = {name: number or 0.0 for name, number in table.to_pylist()[0].items()}
    return [
        tuple(
            Clip(
                column=clip.name,
                lower=clip.lower,
                upper=clip.upper,
                clipped=row[f"outside{p}_{k}"] / (row[f"pairs{p}"] or 1),
                bias=(row[f"within{p}_{k}"] - row[f"total{j}"]) / (row[f"size{j}"] or 1),
                noise=of_columns[j - 1] * _reach(clip) / _reach(plan.measures[j - 1]),
            )
            for k, (j, clip) in enumerate(_asked(plan))
        )
        for p, (plan, of_columns) in enumerate(zip(plans, deviations, strict=True))
    ]


def _asked(plan: Plan) -> list[tuple[int, Measure]]:
    """The bounds of each measure, and others around them; with the place of the measure."""
    found: list[tuple[int, Measure]] = []
    for j, measure in enumerate(plan.measures, 1):
        for factor in _FACTORS:
            lower, upper = _widened(measure.lower, measure.upper, factor)
            clip = replace(measure, lower=lower, upper=upper)
            if measure.kind == "events":
                clip = replace(clip, upper=float(clip.most))
            if clip.least <= clip.most and _reach(clip) > 0 and clip not in (each for _, each in found):
                found.append((j, clip))
    return found


def _widened(lower: float, upper: float, factor: float) -> tuple[float, float]:
    """The bounds, wider by a factor. The one that is nearer to 0 stays, if 0 is not between them."""
    if lower >= 0:
        return lower, lower + factor * (upper - lower)
    if upper <= 0:
        return upper - factor * (upper - lower), upper
    return factor * lower, factor * upper


def _reach(measure: Measure) -> float:
    return max(map(abs, measure.range))
