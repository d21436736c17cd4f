"""Queries over events on DuckDB, within the memory limit: the aggregates of plans, with their sums as numbers.

A window over all users does not fit the memory for long. So many events are first spooled to the private folder, in
buckets by a hash of the user. Each bucket has all events of its users, so it can be answered by itself, and the partial
answers add up to the answer. Few events are answered at once. Both ways give the same.

Several tables share one pass: the events, or those of a bucket, are added up once (gsh/duckdb/coded.py), and each
table is answered from there.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from gsh.duckdb.coded import Coded
from gsh.duckdb.public_keys import KeysTable
from gsh.duckdb.sources import Source, restored, stored
from gsh.duckdb.workspace import Workspace, literal, literal_path, reading
from gsh.errors import sum_too_large
from gsh.events.bounding import bounding_query
from gsh.events.dialects import DIALECTS
from gsh.events.plan import Plan
from gsh.events.published import OnProgress, Progress
from gsh.events.tables import in_table

__all__ = ["Query", "aggregated", "aggregated_tables", "answered"]

_PARTIAL = "_gsh_partial"
"""The tables with the answers of all buckets."""

_READ = "_gsh_read"
"""The table with events that were texts."""

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
    total: Callable[[str], str]
    """It makes the answer of all partial rows; the argument is the table that has them."""


Prepared: TypeAlias = Callable[[str], AbstractContextManager[str]]
"""What makes tables of a scan of the events, and gives what the queries read in its place."""


@reading
def answered(
    space: Workspace,
    source: Source,
    user: str,
    queries: Sequence[Query],
    progress: OnProgress,
    buckets: int | None = None,
    prepared: Prepared = nullcontext,
) -> list[pa.Table]:
    """The answers, at once or in buckets, from one pass over the events. ``buckets`` is for tests."""
    if buckets is None and _is_small(space, source):
        try:
            with _reported(space, progress, "bounding"), prepared(source.sql) as scan:
                return [space.connection.sql(query.whole(scan)).to_arrow_table() for query in queries]
        except duckdb.OutOfMemoryException:
            pass  # it may fit in buckets
    return _in_buckets(space, source, user, queries, progress, buckets or _buckets(space, source), prepared)


def _is_small(space: Workspace, source: Source) -> bool:
    return source.rows <= _AT_ONCE * space.memory / 2**30


def _buckets(space: Workspace, source: Source) -> int:
    return min(max(2, 1 + int(source.rows / (_IN_BUCKET * space.memory / 2**30))), _MOST_BUCKETS)


def _in_buckets(
    space: Workspace,
    source: Source,
    user: str,
    queries: Sequence[Query],
    progress: OnProgress,
    buckets: int,
    prepared: Prepared,
) -> list[pa.Table]:
    folder = space.folder / "events"
    types = dict(space.described(source.sql))
    with _reported(space, progress, "spooling"):
        _spool(space, source, user, types, folder, buckets)
    run = space.connection.execute
    is_made = False
    for bucket in range(buckets):
        progress(Progress("bounding", bucket, buckets))
        files = folder / f"_bucket={bucket}"
        if not files.is_dir():
            continue
        read = f"read_parquet({literal(f'{literal_path(files)}/*.parquet')}, hive_partitioning = false)"
        with prepared(f"(SELECT {restored(types)} FROM {read})") as scan:
            for place, query in enumerate(queries):
                name = f"{_PARTIAL}{place}"
                run(f"{f'INSERT INTO {name}' if is_made else f'CREATE TABLE {name} AS'} {query.partial(scan)}")
        is_made = True
        shutil.rmtree(files)
    if not is_made:  # no event has a user
        with prepared(f"(SELECT * FROM {source.sql} LIMIT 0)") as scan:
            return [space.connection.sql(query.whole(scan)).to_arrow_table() for query in queries]
    shutil.rmtree(folder)
    with _reported(space, progress, "adding up"):
        totals = [query.total(f"{_PARTIAL}{place}") for place, query in enumerate(queries)]
        found = [space.connection.sql(total).to_arrow_table() for total in totals]
    for place in range(len(queries)):  # there may be a second pass
        run(f"DROP TABLE {_PARTIAL}{place}")
    return found


@contextmanager
def _reported(space: Workspace, progress: OnProgress, stage: str) -> Iterator[None]:
    """A stage that is one query, in percent."""
    progress(Progress(stage, 0, 100))
    with space.watched(lambda share: progress(Progress(stage, int(100 * share), 100))):
        yield


def _spool(space: Workspace, source: Source, by: str, types: Mapping[str, str], folder: Path, buckets: int) -> None:
    user = _IDENTIFIER(by)
    query = f"SELECT {stored(types)}, hash({user}) % {buckets} AS _bucket FROM {source.sql} WHERE {user} IS NOT NULL"
    options = "FORMAT parquet, COMPRESSION lz4, PARTITION_BY (_bucket), ROW_GROUP_SIZE 122880"
    folder.mkdir(mode=0o700)
    space.connection.execute(f"COPY ({query}) TO {literal(folder)} ({options}, OVERWRITE_OR_IGNORE)")


_MOST_UNITS = 2**53
_IDENTIFIER = DIALECTS["duckdb"].identifier


def aggregated(
    space: Workspace,
    source: Source,
    plan: Plan,
    progress: OnProgress,
    buckets: int | None = None,
    keys: KeysTable | None = None,
) -> pa.Table:
    """The true aggregates: the key columns, the counts, and the sums as numbers. ``buckets`` is for tests."""
    (table,) = answered(space, source, plan.user, [_query(plan, source, keys)], progress, buckets)
    return _numbers(table, plan)


def aggregated_tables(
    space: Workspace,
    source: Source,
    plans: Mapping[str, Plan],
    progress: OnProgress,
    buckets: int | None = None,
    keys: Mapping[str, KeysTable] = MappingProxyType({}),
) -> dict[str, pa.Table]:
    """The true aggregates of several tables, from one pass over the events."""
    coded = Coded.of(list(plans.values()), source)
    queries = [_coded_query(plan, coded, keys.get(name)) for name, plan in plans.items()]
    if source.is_text and buckets is None and _is_small(space, source):
        source = _read(space, source)
    tables = answered(space, source, coded.user, queries, progress, buckets, lambda scan: coded.made(space, scan))
    found = {}
    for (name, plan), table in zip(plans.items(), tables, strict=True):
        with in_table(name):
            found[name] = _numbers(table, plan)
    return found


@reading
def _read(space: Workspace, source: Source) -> Source:
    """Texts are read once, and then by columns."""
    space.connection.execute(f"CREATE TEMP TABLE {_READ} AS SELECT * FROM {source.sql}")
    return replace(source, sql=_READ, is_text=False)


def _query(plan: Plan, source: Source, keys: KeysTable | None) -> Query:
    def bounding(scan: str, is_partial: bool) -> str:
        listed = scan if keys is None else keys.listed(scan)
        return bounding_query(plan, source.kinds, "duckdb", listed, is_partial=is_partial)

    return _completed(plan, keys, bounding)


def _coded_query(plan: Plan, coded: Coded, keys: KeysTable | None) -> Query:
    return _completed(plan, keys, lambda base, is_partial: coded.query(base, plan, keys, is_partial=is_partial))


def _completed(plan: Plan, keys: KeysTable | None, bounding: Callable[[str, bool], str]) -> Query:
    def completed(query: str) -> str:
        return query if keys is None else keys.completed(query, plan)

    return Query(
        whole=lambda scan: completed(bounding(scan, False)),
        partial=lambda scan: bounding(scan, True),
        total=lambda partial: completed(_total(plan, partial)),
    )


def _total(plan: Plan, partial: str) -> str:
    keys = list(map(_IDENTIFIER, plan.by))
    added = [f"SUM({number}) AS {number}" for number in map(_IDENTIFIER, plan.roles.numbers)]
    having = f" HAVING SUM({_IDENTIFIER(plan.count)}) >= {plan.tau}" if plan.tau > 1 else ""
    return f"SELECT {', '.join([*keys, *added])} FROM {partial} GROUP BY {', '.join(keys)}{having}"


def _numbers(table: pa.Table, plan: Plan) -> pa.Table:
    """Counts as integers, and measures from units to numbers: exactly."""
    table = table.set_column(len(plan.by), plan.count, table[plan.count].cast(pa.int64()))
    for place, column in enumerate(plan.measures, len(plan.by) + 1):
        units = table[column.column]
        extremes = pc.min_max(units).as_py()
        if max(-int(extremes["min"] or 0), int(extremes["max"] or 0)) > _MOST_UNITS:
            raise sum_too_large(column.pointer)
        table = table.set_column(place, column.column, column.numbers(units.combine_chunks()))
    for place, name in enumerate(plan.by):
        kind = table.schema.field(name).type
        if pa.types.is_timestamp(kind) and kind.tz is not None:
            table = table.set_column(place, name, table[name].cast(pa.timestamp(kind.unit, "UTC")))
    return table.combine_chunks()
