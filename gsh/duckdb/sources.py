"""Events as DuckDB reads them: files, tables of a connection, relations, and frames with the Arrow interface.

Types never depend on the data. Files without types (CSV and JSON) are read as the plan declares, and else users and
group keys as strings, sums without a unit as integers, and sums with a unit as doubles.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from gsh.accounting.errors import InvalidParameter
from gsh.duckdb.workspace import FRACTION, INTERRUPTED, Workspace, literal, reading
from gsh.events.dialects import DIALECTS
from gsh.events.errors import EventsError
from gsh.events.kinds import Kind
from gsh.events.plan import Plan
from gsh.events.published import OnProgress, Progress
from gsh.events.query_text import default_kinds
from gsh.library.groups import ArrowTable

__all__ = ["Events", "Source", "open_source", "restored", "stored", "types_of"]

Events: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | ArrowTable

_PACKED = {".gz", ".zst"}
_READERS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
_TYPES: Mapping[Kind, str] = {
    "string": "VARCHAR",
    "integer": "BIGINT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamp_ns": "TIMESTAMP_NS",
    "timestamptz": "TIMESTAMPTZ",
    "uuid": "UUID",
}
_KINDS: Mapping[str, Kind] = {
    "VARCHAR": "string",
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"), "integer"),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"), "integer"),
    **dict.fromkeys(("FLOAT", "DOUBLE"), "double"),
    "BOOLEAN": "boolean",
    "DATE": "date",
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"), "timestamp"),
    "TIMESTAMP_NS": "timestamp_ns",
    "TIMESTAMP WITH TIME ZONE": "timestamptz",
    "UUID": "uuid",
}
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")
_IDENTIFIER = DIALECTS["duckdb"].identifier
_BYTES_OF_A_LINE = 40
"""Of CSV and JSON, to guess how many events there are: rather too many."""


@dataclass(frozen=True, slots=True)
class Source:
    """Events, as a subquery with the columns of the plan."""

    sql: str
    kinds: Mapping[str, Kind]
    rows: int | None
    """How many events there are, at least roughly; None if nobody knows before they are read."""
    is_repeatable: bool
    """Whether they can be read again."""


@reading
def open_source(
    space: Workspace,
    events: Events,
    plan: Plan,
    connection: duckdb.DuckDBPyConnection | None = None,
    tell: OnProgress = lambda _progress: None,
) -> Source:
    """The events with the columns of the plan, whose kinds are checked first."""
    if connection is not None:
        if not isinstance(events, str):
            raise InvalidParameter("events", "must be the name of a table of the connection")
        return _from_relation(space, _table(connection, events), plan, tell)
    if isinstance(events, duckdb.DuckDBPyRelation):
        return _from_relation(space, events, plan, tell)
    if isinstance(events, str | os.PathLike) or (
        isinstance(events, Sequence) and events and all(isinstance(each, str | os.PathLike) for each in events)
    ):
        return _from_files(space, [events] if isinstance(events, str | os.PathLike) else list(events), plan)
    if isinstance(events, Sequence) or not hasattr(events, "__arrow_c_stream__"):
        detail = "must be paths, a relation of DuckDB or a frame with the Arrow stream interface: "
        raise InvalidParameter("events", f"{detail}{type(events).__name__} is none of them")
    return _from_arrow(space, events, plan, tell)


def _from_files(space: Workspace, paths: Sequence[str | os.PathLike[str]], plan: Plan) -> Source:
    names = [_found(os.fspath(path)) for path in paths]
    readers = {_reader(name) for name in names}
    if len(readers) != 1:
        raise InvalidParameter("events", "must be files of one format")
    (reader,) = readers
    listed = f"[{', '.join(map(literal, names))}]"
    if reader == "parquet":
        # The types of folders such as day=2026-11-16 must not depend on their names.
        scan = f"read_parquet({listed}, hive_types_autocast = 0)"
        schema = _schema(space, scan)
        rows = _number(space, f"SELECT SUM(num_rows) FROM parquet_file_metadata({listed})")
        return _source(scan, plan, schema, rows, is_repeatable=True)
    declared = default_kinds(plan)
    if reader == "csv":
        scan = f"read_csv({listed}, header = true, all_varchar = true)"
    else:
        every = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in plan.columns)
        scan = f"read_json({listed}, format = 'newline_delimited', columns = {{{every}}})"
    names_of = scan if reader == "csv" else f"read_json({listed}, format = 'newline_delimited')"
    found = _schema(space, names_of)
    if reader == "json" and not set(plan.columns) <= set(found):  # a column may begin late in a file
        found = _schema(space, names_of.replace("format", "sample_size = -1, format", 1))
    schema = {name: declared.get(name) for name in found}
    rows = _number(space, f"SELECT SUM(size) FROM read_blob({listed})") // _BYTES_OF_A_LINE
    return _source(scan, plan, schema, rows, is_repeatable=True, declared=declared)


def _found(path: str) -> str:
    """A folder stands for all Parquet files in it."""
    if os.path.isdir(path):
        return str(Path(path) / "**" / "*.parquet")
    if "://" not in path and not any(mark in path for mark in "*?[") and not os.path.exists(path):
        raise InvalidParameter("events", f"must be files that exist: there is no {path}")
    return path


def _reader(path: str) -> str:
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in _PACKED:
        suffixes.pop()
    found = _READERS.get(suffixes[-1] if suffixes else "")
    if found is None:
        raise InvalidParameter("events", f"must be files whose names end with one of {', '.join(_READERS)}")
    return found


def _table(connection: duckdb.DuckDBPyConnection, name: str) -> duckdb.DuckDBPyRelation:
    try:
        return connection.table(name)
    except duckdb.CatalogException:
        raise InvalidParameter("events", "must be the name of a table or view of the connection") from None


def _from_relation(space: Workspace, relation: duckdb.DuckDBPyRelation, plan: Plan, tell: OnProgress) -> Source:
    types = {str(name): str(kind) for name, kind in zip(relation.columns, relation.types, strict=True)}
    plan.kinds_in({name: _kind(kind) for name, kind in types.items()})
    needed = {name: types[name] for name in plan.columns}
    reader = pa.RecordBatchReader.from_stream(relation.select(stored(needed)))
    return _from_stream(space, reader, plan, tell, needed)


def _from_stream(
    space: Workspace, reader: pa.RecordBatchReader, plan: Plan, tell: OnProgress, types: Mapping[str, str] | None = None
) -> Source:
    """A stream goes to the private folder first, batch by batch: a query over another engine would not hear Ctrl-C."""
    path, rows = space.folder / "stream.parquet", 0
    fault: BaseException | None = None
    with pq.ParquetWriter(path, reader.schema, compression="lz4") as writer:
        try:
            for batch in reader:
                tell(Progress("reading", rows))
                writer.write_batch(batch)
                rows += len(batch)
        except (pa.ArrowException, OSError) as error:
            interrupted = INTERRUPTED in str(error)
            fault = KeyboardInterrupt() if interrupted else EventsError("events", "must be readable to their end")
    if fault is not None:
        raise fault
    chosen = "*" if types is None else restored(types)
    scan = f"(SELECT {chosen} FROM read_parquet({literal(path)}))"
    return _source(scan, plan, _schema(space, scan), rows, is_repeatable=True)


def stored(types: Mapping[str, str]) -> str:
    """Columns as they go to Parquet. It has no integers of 128 bits, and Arrow no enumerations that grow."""
    return ", ".join(
        f"CAST({_IDENTIFIER(name)} AS VARCHAR) AS {_IDENTIFIER(name)}"
        if kind.startswith(("HUGEINT", "ENUM", "UUID"))
        else _IDENTIFIER(name)
        for name, kind in types.items()
    )


def restored(types: Mapping[str, str]) -> str:
    """The same columns with the types that they had."""
    return ", ".join(f"CAST({_IDENTIFIER(name)} AS {kind}) AS {_IDENTIFIER(name)}" for name, kind in types.items())


def types_of(space: Workspace, source: str) -> dict[str, str]:
    """The types of columns, as DuckDB writes them."""
    described = space.connection.sql(f"DESCRIBE SELECT * FROM {source}").fetchall()
    return {str(row[0]): str(row[1]) for row in described}


def _from_arrow(space: Workspace, frame: ArrowTable, plan: Plan, tell: OnProgress) -> Source:
    if not hasattr(frame, "__len__"):
        return _from_stream(space, pa.RecordBatchReader.from_stream(frame), plan, tell)
    table = pa.table(frame)
    space.connection.register("_gsh_events", table)
    return _source("_gsh_events", plan, _schema(space, "_gsh_events"), len(table), is_repeatable=True)


def _number(space: Workspace, query: str) -> int:
    ((number,),) = space.connection.execute(query).fetchall()
    return int(number or 0)


def _schema(space: Workspace, scan: str) -> dict[str, Kind | None]:
    return {name: _kind(kind) for name, kind in types_of(space, scan).items()}


def _kind(kind: str) -> Kind | None:
    if kind.startswith("ENUM("):
        return "string"
    decimal = _DECIMAL.fullmatch(kind)
    if decimal is not None:
        return "integer" if decimal[2] == "0" else f"decimal({decimal[1]},{decimal[2]})"
    return _KINDS.get(kind)


def _source(
    scan: str,
    plan: Plan,
    schema: Mapping[str, Kind | None],
    rows: int | None,
    *,
    is_repeatable: bool,
    declared: Mapping[str, Kind] | None = None,
) -> Source:
    kinds = plan.kinds_in(schema)
    casts = dict(plan.types) if declared is None else declared
    columns = [
        f"{_cast(name, casts[name])} AS {_IDENTIFIER(name)}" if name in casts else _IDENTIFIER(name)
        for name in plan.columns
    ]
    return Source(f"(SELECT {', '.join(columns)} FROM {scan})", kinds, rows, is_repeatable)


def _cast(name: str, kind: Kind) -> str:
    """The column as a kind. A number with a fraction is no integer: DuckDB would round it, and not as a plan does."""
    value = _IDENTIFIER(name)
    cast = f"CAST({value} AS {_TYPES.get(kind, kind)})"
    if kind != "integer":
        return cast
    is_whole = f"regexp_full_match(trim(CAST({value} AS VARCHAR)), '[+-]?[0-9]+([.]0*)?')"
    return f"CASE WHEN {value} IS NULL OR {is_whole} THEN {cast} ELSE error({literal(FRACTION + name)}) END"
