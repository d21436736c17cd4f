"""Queries over events on DuckDB, within the memory limit: the aggregates of a plan, with its sums as numbers.

A window over all users does not fit the memory for long. So many events are first spooled to the private folder, in
buckets by a hash of the user. Each bucket has all events of its users, so it can be answered by itself, and the partial
answers add up to the answer. Few events are answered at once. Both ways give the same.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from gsh.duckdb.sources import Source, restored, stored
from gsh.duckdb.workspace import Workspace, literal, literal_path, reading
from gsh.errors import sum_too_large
from gsh.events.bounding import bounding_query
from gsh.events.dialects import DIALECTS
from gsh.events.plan import COUNT, Plan
from gsh.events.published import OnProgress, Progress

__all__ = ["PARTIAL", "Query", "aggregated", "answered"]

PARTIAL = "_gsh_partial"
"""The table with the answers of all buckets."""

_AT_ONCE = 1_000_000
"""Events that are answered at once, for each GiB of the memory limit."""
_IN_BUCKET = 500_000
"""Events of a bucket, for each GiB of the memory limit, on average."""
_MOST_BUCKETS = 256


@dataclass(frozen=True, slots=True)
class Query:
    """A query that can be answered for disjoint sets of users, each by itself."""

    whole: Callable[[str], str]
    """Over all events; the argument is the scan that reads them."""
    partial: Callable[[str], str]
    """Over the events of some users."""
    total: str
    """It makes the answer of the rows in ``PARTIAL``."""


@reading
def answered(
    space: Workspace, source: Source, plan: Plan, query: Query, progress: OnProgress, buckets: int | None = None
) -> pa.Table:
    """The answer, at once or in buckets. ``buckets`` is for tests."""
    if buckets is None and _is_small(space, source):
        try:
            with _told(space, progress, "bounding"):
                return space.connection.sql(query.whole(source.sql)).to_arrow_table()
        except duckdb.OutOfMemoryException:
            pass  # it may fit in buckets
    return _in_buckets(space, source, plan, query, progress, buckets or _buckets(space, source))


def _is_small(space: Workspace, source: Source) -> bool:
    return source.rows <= _AT_ONCE * space.memory / 2**30


def _buckets(space: Workspace, source: Source) -> int:
    return min(max(2, 1 + int(source.rows / (_IN_BUCKET * space.memory / 2**30))), _MOST_BUCKETS)


def _in_buckets(
    space: Workspace, source: Source, plan: Plan, query: Query, progress: OnProgress, buckets: int
) -> pa.Table:
    folder = space.folder / "events"
    types = dict(space.described(source.sql))
    with _told(space, progress, "spooling"):
        _spool(space, source, plan, types, folder, buckets)
    run = space.connection.execute
    is_made = False
    for bucket in range(buckets):
        progress(Progress("bounding", bucket, buckets))
        files = folder / f"_bucket={bucket}"
        if not files.is_dir():
            continue
        read = f"read_parquet({literal(f'{literal_path(files)}/*.parquet')}, hive_partitioning = false)"
        partial = query.partial(f"(SELECT {restored(types)} FROM {read})")
        run(f"{f'INSERT INTO {PARTIAL}' if is_made else f'CREATE TABLE {PARTIAL} AS'} {partial}")
        is_made = True
        shutil.rmtree(files)
    if not is_made:  # no event has a user
        return space.connection.sql(query.whole(f"(SELECT * FROM {source.sql} LIMIT 0)")).to_arrow_table()
    with _told(space, progress, "adding up"):
        return space.connection.sql(query.total).to_arrow_table()


@contextmanager
def _told(space: Workspace, progress: OnProgress, stage: str) -> Iterator[None]:
    """A stage that is one query, in percent."""
    progress(Progress(stage, 0, 100))
    with space.watched(lambda share: progress(Progress(stage, int(100 * share), 100))):
        yield


def _spool(space: Workspace, source: Source, plan: Plan, types: Mapping[str, str], folder: Path, buckets: int) -> None:
    user = DIALECTS["duckdb"].identifier(plan.user)
    query = f"SELECT {stored(types)}, hash({user}) % {buckets} AS _bucket FROM {source.sql} WHERE {user} IS NOT NULL"
    options = "FORMAT parquet, COMPRESSION lz4, PARTITION_BY (_bucket), ROW_GROUP_SIZE 122880"
    folder.mkdir(mode=0o700)
    space.connection.execute(f"COPY ({query}) TO {literal(folder)} ({options}, OVERWRITE_OR_IGNORE)")


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
