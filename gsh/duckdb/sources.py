"""Events as DuckDB reads them: files, tables of a connection, relations, datasets of pyarrow, and Arrow frames.

Types never depend on the data. Files without types (CSV and JSON) are read as the plan declares, and else users and
group keys as strings, sums without a unit as integers, and sums with a unit as doubles, or as decimals if the unit is a
power of ten.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from gsh.duckdb.files import names_in, scan_of
from gsh.duckdb.workspace import INTERRUPTED, Workspace, digits_in, literal, literal_path, reading
from gsh.errors import EventsError, InvalidParameter
from gsh.events.dialects import DIALECTS
from gsh.events.kinds import NESTED, Kind, digits, family
from gsh.events.published import OnProgress, Progress
from gsh.events.tables import AnyPlan
from gsh.library.groups import ArrowTable

__all__ = ["Events", "Source", "casted", "columns_of", "open_source", "restored", "stored"]

T = TypeVar("T")


@runtime_checkable
class ArrowDataset(Protocol):
    """A pyarrow.dataset: files of one schema, wherever pyarrow can read."""

    schema: Any

    def scanner(self, *, columns: list[str]) -> Any: ...


Events: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | ArrowTable | ArrowDataset

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


@dataclass(frozen=True, slots=True)
class Source:
    """Events, as a subquery with the columns of the plan."""

    sql: str
    kinds: Mapping[str, Kind]
    rows: int
    """How many events there are; of texts roughly."""
    is_text: bool = False
    """Whether a column can be read only with all others, as in CSV and JSON."""


@reading
def open_source(
    space: Workspace,
    events: Events,
    plan: AnyPlan,
    connection: duckdb.DuckDBPyConnection | None = None,
    report: OnProgress = lambda _progress: None,
) -> Source:
    """The events with the columns of the plan, whose kinds are checked first."""
    if connection is not None:
        if not isinstance(events, str):
            raise InvalidParameter("events", "must be the name of a table of the connection")
        return _from_relation(space, _table(connection, events), plan, report)
    if isinstance(events, duckdb.DuckDBPyRelation):
        return _from_relation(space, events, plan, report)
    if isinstance(events, str | os.PathLike) or (
        isinstance(events, Sequence) and events and all(isinstance(each, str | os.PathLike) for each in events)
    ):
        return _from_files(space, [events] if isinstance(events, str | os.PathLike) else list(events), plan)
    if isinstance(events, ArrowDataset):
        return _from_dataset(space, events, plan, report)
    if isinstance(events, Sequence) or not hasattr(events, "__arrow_c_stream__"):
        detail = "must be paths, a relation of DuckDB, a pyarrow.dataset, or a frame with the Arrow stream interface"
        raise InvalidParameter("events", f"{detail}, not {type(events).__name__}")
    return _from_arrow(space, events, plan, report)


@reading
def columns_of(space: Workspace, path: str) -> dict[str, Kind | None]:
    """The columns of files, and their kinds; None for a column without a type, or of a type that no plan can use."""
    scan, names = names_in(space, path)
    return dict.fromkeys(names) if scan is None else _schema(space, scan)


def _from_files(space: Workspace, paths: Sequence[str | os.PathLike[str]], plan: AnyPlan) -> Source:
    scan = scan_of(space, paths, plan)
    if scan.is_typed:
        return _source(scan.sql, plan, _schema(space, scan.sql), scan.rows)
    declared = plan.default_kinds()
    names = scan.names or [name for name, _ in space.described(scan.sql)]
    plan.kinds_in({name: declared.get(name) for name in names}, may_list=False)
    return replace(_source(scan.sql, plan, declared, scan.rows, declared), is_text=True)


def _table(connection: duckdb.DuckDBPyConnection, name: str) -> duckdb.DuckDBPyRelation:
    try:
        return connection.table(name)
    except duckdb.CatalogException:
        raise InvalidParameter("events", "must be the name of a table or view of the connection") from None


def _from_relation(space: Workspace, relation: duckdb.DuckDBPyRelation, plan: AnyPlan, report: OnProgress) -> Source:
    types = {str(name): str(kind) for name, kind in zip(relation.columns, relation.types, strict=True)}
    plan.kinds_in({name: _kind(kind) for name, kind in types.items()})
    needed = {name: types[name] for name in plan.columns}
    return _from_stream(space, relation.select(stored(needed)), plan, report, needed)


def _from_dataset(space: Workspace, dataset: ArrowDataset, plan: AnyPlan, report: OnProgress) -> Source:
    """Only the columns of the plan are read, from wherever pyarrow reads: object stores too."""
    space.connection.register("_gsh_columns", dataset.schema.empty_table())
    plan.kinds_in(_schema(space, "_gsh_columns"))
    return _from_stream(space, _converted(dataset.scanner(columns=list(plan.columns)).to_reader), plan, report)


def _from_stream(
    space: Workspace, stream: ArrowTable, plan: AnyPlan, report: OnProgress, types: Mapping[str, str] | None = None
) -> Source:
    """A stream goes to the private folder first, batch by batch: a query over it would not stop at Ctrl-C."""
    path = space.folder / "stream.parquet"

    def spooled() -> int:
        rows = 0
        with (
            pa.RecordBatchReader.from_stream(stream) as reader,
            pq.ParquetWriter(path, reader.schema, compression="lz4") as writer,
        ):
            for batch in reader:
                report(Progress("reading", rows))
                writer.write_batch(batch)
                rows += len(batch)
        return rows

    rows = _converted(spooled)
    chosen = "*" if types is None else restored(types)
    scan = f"(SELECT {chosen} FROM read_parquet({literal(literal_path(path))}, hive_partitioning = false))"
    return _source(scan, plan, _schema(space, scan), rows)


def _converted(convert: Callable[[], T]) -> T:
    """Errors of other engines and frames quote cells, so their text is neither shown nor kept."""
    fault: BaseException
    try:
        return convert()
    except Exception as error:
        interrupted = INTERRUPTED in str(error)
        fault = KeyboardInterrupt() if interrupted else EventsError("events", "must be readable to their end as Arrow")
    raise fault


def stored(types: Mapping[str, str]) -> str:
    """Columns as they go to Parquet: under names that clash with nothing, as types that Parquet and Arrow have.

    Parquet has no integers of 128 bits, and Arrow no enumerations that grow.
    """
    return ", ".join(
        f"CAST({_IDENTIFIER(name)} AS VARCHAR) AS c{place}"
        if kind.startswith(("HUGEINT", "ENUM", "UUID"))
        else f"{_IDENTIFIER(name)} AS c{place}"
        for place, (name, kind) in enumerate(types.items())
    )


def restored(types: Mapping[str, str]) -> str:
    """The same columns with the names and the types that they had."""
    return ", ".join(
        f"CAST(c{place} AS {kind}) AS {_IDENTIFIER(name)}" for place, (name, kind) in enumerate(types.items())
    )


def _from_arrow(space: Workspace, frame: ArrowTable, plan: AnyPlan, report: OnProgress) -> Source:
    if not hasattr(frame, "__len__"):
        return _from_stream(space, frame, plan, report)
    table = _converted(lambda: pa.table(frame))
    space.connection.register("_gsh_events", table)
    return _source("_gsh_events", plan, _schema(space, "_gsh_events"), len(table))


def _schema(space: Workspace, scan: str) -> dict[str, Kind | None]:
    return {name: _kind(kind) for name, kind in space.described(scan)}


def _kind(kind: str) -> Kind | None:
    if kind.startswith("ENUM("):
        return "string"
    if kind.startswith(("STRUCT(", "MAP(", "UNION(")) or kind.endswith("]"):
        return NESTED
    decimal = _DECIMAL.fullmatch(kind)
    if decimal is not None:
        return "integer" if decimal[2] == "0" else f"decimal({decimal[1]},{decimal[2]})"
    return _KINDS.get(kind)


def _source(
    scan: str,
    plan: AnyPlan,
    schema: Mapping[str, Kind | None],
    rows: int,
    declared: Mapping[str, Kind] | None = None,
) -> Source:
    kinds = plan.kinds_in(schema)
    casts = dict(plan.types) if declared is None else declared
    columns = [
        f"{casted(name, casts[name])} AS {_IDENTIFIER(name)}" if name in casts else _IDENTIFIER(name)
        for name in plan.columns
    ]
    return Source(f"(SELECT {', '.join(columns)} FROM {scan})", kinds, rows)


def casted(name: str, kind: Kind, into: str | None = None) -> str:
    """The column as a kind. A number with more digits after the point than the kind has is an error.

    DuckDB would round it, and not as a plan does. ``into`` is a type of DuckDB for the kind.
    """
    value = _IDENTIFIER(name)
    cast = f"CAST({value} AS {into or _TYPES.get(kind, kind)})"
    if family(kind) not in ("integer", "decimal"):
        return cast
    most = digits(kind)[1] if family(kind) == "decimal" else 0
    shape = rf"[+-]?([0-9]+([.][0-9]{{0,{most}}}0*)?{'' if most == 0 else f'|[.][0-9]{{1,{most}}}0*'})"
    is_exact = f"regexp_full_match(trim(CAST({value} AS VARCHAR)), '{shape}')"
    return f"CASE WHEN {value} IS NULL OR {is_exact} THEN {cast} ELSE error({literal(digits_in(name, most))}) END"
