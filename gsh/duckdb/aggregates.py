"""The aggregates of a plan on DuckDB: the bounding query, and its sums as numbers."""

import pyarrow as pa
import pyarrow.compute as pc

from gsh.duckdb.buckets import PARTIAL, Query, answered
from gsh.duckdb.sources import Source
from gsh.duckdb.workspace import Workspace
from gsh.errors import sum_too_large
from gsh.events.bounding import bounding_query
from gsh.events.dialects import DIALECTS
from gsh.events.plan import COUNT, Plan
from gsh.events.published import OnProgress

__all__ = ["aggregated"]

_MOST_UNITS = 2**53
_IDENTIFIER = DIALECTS["duckdb"].identifier


def aggregated(
    space: Workspace, source: Source, plan: Plan, progress: OnProgress, buckets: int | None = None
) -> pa.Table:
    """The true aggregates: the key columns, the counts, and the sums as numbers. ``buckets`` is for tests."""
    query = Query(
        whole=lambda scan: bounding_query(plan, source.kinds, "duckdb", scan),
        partial=lambda scan: bounding_query(plan, source.kinds, "duckdb", scan, is_partial=True),
        total=_total(plan),
    )
    return _numbers(answered(space, source, plan, query, progress, buckets), plan)


def _total(plan: Plan) -> str:
    keys = list(map(_IDENTIFIER, plan.by))
    numbers = [_IDENTIFIER(name) for name in (COUNT, *(column.name for column in plan.sums))]
    added = [f"SUM({number}) AS {number}" for number in numbers]
    having = f" HAVING SUM({_IDENTIFIER(COUNT)}) >= {plan.tau}" if plan.tau > 1 else ""
    return f"SELECT {', '.join([*keys, *added])} FROM {PARTIAL} GROUP BY {', '.join(keys)}{having}"


def _numbers(table: pa.Table, plan: Plan) -> pa.Table:
    """Counts as integers, and sums from units to numbers: exactly, because units are powers of two."""
    table = table.set_column(len(plan.by), COUNT, table[COUNT].cast(pa.int64()))
    for place, column in enumerate(plan.sums, len(plan.by) + 1):
        units = table[column.name]
        extremes = pc.min_max(units).as_py()
        if max(-int(extremes["min"] or 0), int(extremes["max"] or 0)) > _MOST_UNITS:
            raise sum_too_large(column.name)
        whole = units.cast(pa.int64())
        if column.scale != 1:
            whole = pc.multiply(whole.cast(pa.float64()), column.scale)
        table = table.set_column(place, column.name, whole)
    for place, name in enumerate(plan.by):
        kind = table.schema.field(name).type
        if pa.types.is_timestamp(kind) and kind.tz is not None:
            table = table.set_column(place, name, table[name].cast(pa.timestamp(kind.unit, "UTC")))
    return table.combine_chunks()
