"""The bounding query on DuckDB, within the memory limit.

A window over all users does not fit the memory for long. So many events are first spooled to the private folder, in
buckets by a hash of the user. Each bucket has all events of its users, so it can be bounded by itself, and the partial
aggregates of the buckets add up to the aggregates. Few events are bounded at once. Both ways give the same.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from gsh.duckdb.sources import Source, restored, stored, types_of
from gsh.duckdb.workspace import Workspace, literal, reading
from gsh.events.bounding import bounding_query
from gsh.events.dialects import DIALECTS
from gsh.events.errors import EventsError
from gsh.events.plan import COUNT, Plan
from gsh.events.published import OnProgress, Progress

__all__ = ["aggregated"]

_AT_ONCE = 1_000_000
"""Events that are bounded at once, for each GiB of the memory limit."""
_IN_BUCKET = 500_000
"""Events of a bucket, for each GiB of the memory limit, on average."""
_MOST_BUCKETS = 256
_DEFAULT_BUCKETS = 64
_MOST_UNITS = 2**53
_IDENTIFIER = DIALECTS["duckdb"].identifier


@reading
def aggregated(
    space: Workspace, source: Source, plan: Plan, progress: OnProgress, buckets: int | None = None
) -> pa.Table:
    """The true aggregates: the key columns, the counts, and the sums as numbers. ``buckets`` is for tests."""
    if buckets is None and _is_small(space, source):
        try:
            return _at_once(space, source, plan, progress)
        except duckdb.OutOfMemoryException:
            if not source.is_repeatable:
                raise
    return _in_buckets(space, source, plan, progress, buckets or _buckets(space, source))


def _is_small(space: Workspace, source: Source) -> bool:
    return source.rows is not None and source.rows <= _AT_ONCE * space.memory / 2**30


def _buckets(space: Workspace, source: Source) -> int:
    if source.rows is None:
        return _DEFAULT_BUCKETS
    return min(max(2, 1 + int(source.rows / (_IN_BUCKET * space.memory / 2**30))), _MOST_BUCKETS)


def _at_once(space: Workspace, source: Source, plan: Plan, progress: OnProgress) -> pa.Table:
    progress(Progress("bounding", 0, 1))
    query = bounding_query(plan, source.kinds, "duckdb", source.sql)
    return _numbers(space.connection.sql(query).to_arrow_table(), plan)


def _in_buckets(space: Workspace, source: Source, plan: Plan, progress: OnProgress, buckets: int) -> pa.Table:
    folder = space.folder / "events"
    progress(Progress("spooling", 0, source.rows))
    types = types_of(space, source.sql)
    _spool(space, source, plan, types, folder, buckets)
    run = space.connection.execute
    is_made = False
    for bucket in range(buckets):
        progress(Progress("bounding", bucket, buckets))
        files = folder / f"_bucket={bucket}"
        if not files.is_dir():
            continue
        read = f"read_parquet({literal(files / '*.parquet')}, hive_partitioning = false)"
        scan = f"(SELECT {restored(types)} FROM {read})"
        query = bounding_query(plan, source.kinds, "duckdb", scan, is_partial=True)
        run(f"{'INSERT INTO _gsh_partial' if is_made else 'CREATE TABLE _gsh_partial AS'} {query}")
        is_made = True
        shutil.rmtree(files)
    if not is_made:  # no event has a user
        empty = bounding_query(plan, source.kinds, "duckdb", f"(SELECT * FROM {source.sql} LIMIT 0)")
        return _numbers(space.connection.sql(empty).to_arrow_table(), plan)
    progress(Progress("adding up"))
    return _numbers(space.connection.sql(_total(plan)).to_arrow_table(), plan)


def _spool(space: Workspace, source: Source, plan: Plan, types: Mapping[str, str], folder: Path, buckets: int) -> None:
    user = _IDENTIFIER(plan.user)
    query = f"SELECT {stored(types)}, hash({user}) % {buckets} AS _bucket FROM {source.sql} WHERE {user} IS NOT NULL"
    options = "FORMAT parquet, COMPRESSION lz4, PARTITION_BY (_bucket), ROW_GROUP_SIZE 122880"
    folder.mkdir(mode=0o700)
    space.connection.execute(f"COPY ({query}) TO {literal(folder)} ({options}, OVERWRITE_OR_IGNORE)")


def _total(plan: Plan) -> str:
    keys = list(map(_IDENTIFIER, plan.by))
    numbers = [_IDENTIFIER(name) for name in (COUNT, *(column.name for column in plan.sums))]
    added = [f"SUM({number}) AS {number}" for number in numbers]
    having = f" HAVING SUM({_IDENTIFIER(COUNT)}) >= {plan.tau}" if plan.tau > 1 else ""
    return f"SELECT {', '.join([*keys, *added])} FROM _gsh_partial GROUP BY {', '.join(keys)}{having}"


def _numbers(table: pa.Table, plan: Plan) -> pa.Table:
    """Counts as integers, and sums from units to numbers: exactly, because units are powers of two."""
    table = table.set_column(len(plan.by), COUNT, table[COUNT].cast(pa.int64()))
    for place, column in enumerate(plan.sums, len(plan.by) + 1):
        units = table[column.name]
        extremes = pc.min_max(units).as_py()
        if max(-int(extremes["min"] or 0), int(extremes["max"] or 0)) > _MOST_UNITS:
            raise EventsError(f"sums/{column.name}", "must stay within 2^53 units in every group: take a larger unit")
        whole = units.cast(pa.int64())
        if column.scale != 1:
            whole = pc.multiply(whole.cast(pa.float64()), column.scale)
        table = table.set_column(place, column.name, whole)
    for place, name in enumerate(plan.by):
        kind = table.schema.field(name).type
        if pa.types.is_timestamp(kind) and kind.tz is not None:
            table = table.set_column(place, name, table[name].cast(pa.timestamp(kind.unit, "UTC")))
    return table.combine_chunks()
