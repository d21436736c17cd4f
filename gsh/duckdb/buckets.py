"""Queries over events on DuckDB, within the memory limit.

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

from gsh.duckdb.sources import Source, restored, stored
from gsh.duckdb.workspace import Workspace, literal, literal_path, reading
from gsh.events.dialects import DIALECTS
from gsh.events.plan import Plan
from gsh.events.published import OnProgress, Progress

__all__ = ["PARTIAL", "Query", "answered"]

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
