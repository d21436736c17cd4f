"""Files of events as scans of DuckDB: Parquet, CSV and JSON lines.

Nothing about a file is guessed from its records: one record could change how those of all other users are read. CSV
has a header, commas (tabs in .tsv), and double quotes that are doubled inside quotes (RFC 4180). An empty cell is a
missing one.
"""

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow as pa

from gsh.duckdb.workspace import Workspace, literal, literal_path
from gsh.errors import InvalidParameter
from gsh.events.folders import folder_columns
from gsh.events.tables import AnyPlan

__all__ = ["Scan", "local_files", "names_in", "scan_of"]

_PACKED = {".gz", ".zst"}
_READERS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
_SCHEMES = ("file", "s3", "s3a", "s3n", "gs", "gcs", "r2", "http", "https", "hf", "az", "azure", "abfs", "abfss")
"""Those of DuckDB and of its extensions httpfs and azure."""
_BYTES_OF_A_LINE = 40
"""Of CSV and JSON, to guess how many events there are: rather too many."""
_HEADER_BYTES = 2**20
_FIRST_LINES = 20_480


class Scan(NamedTuple):
    """A table function of DuckDB that reads the files."""

    sql: str
    rows: int
    """How many events there are; of texts at most."""
    is_typed: bool
    """Whether the columns have types. If not, all are texts."""
    names: frozenset[str] | None = None
    """The columns, if the scan itself does not know them."""


def scan_of(space: Workspace, paths: Sequence[str | os.PathLike[str]], plan: AnyPlan) -> Scan:
    """All files of some paths, patterns and folders, which have one format."""
    patterns = [_pattern(os.fspath(path)) for path in paths]
    readers = {_reader(pattern) for pattern in patterns}
    if len(readers) != 1:
        raise InvalidParameter("events", "must be files of one format")
    (reader,) = readers
    files = [name for path, pattern in zip(paths, patterns, strict=True) for name in _matches(space, path, pattern)]
    listed = f"[{', '.join(map(literal, patterns))}]"
    if reader == "parquet":
        return _parquet(space, files, listed, plan)
    rows = space.number(f"SELECT SUM(size) FROM read_blob({listed})") // _BYTES_OF_A_LINE
    if reader == "json":
        return _json(space, files, listed, plan, rows)
    return _csv(files, listed, plan, rows, "\t" if reader == "tsv" else ",")


def local_files(events: object) -> list[str]:
    """The paths, patterns and folders of local events, and the files that they stand for. None is opened."""
    paths = [events] if isinstance(events, str | os.PathLike) else events if isinstance(events, Sequence) else []
    texts = [os.fspath(path) for path in paths if isinstance(path, str | os.PathLike)]
    local = [text.removeprefix("file://") for text in texts if text.startswith("file://") or "://" not in text]
    patterns = [_pattern(path) if os.path.exists(path) else path for path in local]
    with duckdb.connect() as connection:
        found = [connection.execute("FROM glob($1)", [pattern]).fetchall() for pattern in patterns]
    return [*local, *(str(name) for names in found for (name,) in names)]


def names_in(space: Workspace, path: str) -> tuple[str | None, list[str]]:
    """A scan that has the types of the columns; or else, of texts, their names alone."""
    pattern = _pattern(path)
    reader = _reader(pattern)
    files = _matches(space, path, pattern)
    if reader == "parquet":
        return f"read_parquet({literal(pattern)}, {_hive([])})", []
    if reader == "json":
        lines = f"(FROM read_ndjson_objects({literal(literal_path(files[0]))}, hive_partitioning = false) LIMIT 1000)"
        return None, sorted(_members(space, lines))
    return None, list(_header(files[0], "\t" if reader == "tsv" else ","))


def _matches(space: Workspace, path: str | os.PathLike[str], pattern: str) -> list[str]:
    """The files of a pattern. DuckDB takes a scheme that it does not have for a name of a folder."""
    given = os.fspath(path)
    scheme, mark, _ = given.partition("://")
    if mark and scheme not in _SCHEMES:
        detail = f"must be files that DuckDB can read: {scheme}:// is not among {', '.join(_SCHEMES)}"
        others = "give a pyarrow.dataset, or use Spark (docs/publish.md, Object stores)"
        raise InvalidParameter("events", f"{detail}; {others}")
    found = [str(name) for (name,) in space.connection.execute("FROM glob($1)", [pattern]).fetchall()]
    if not found:
        detail = f"nothing matches {given}"
        if os.path.isdir(given):
            others = f"{given.rstrip('/')}/*.csv"
            detail = f"there is no Parquet file in {given}; for others give a pattern, such as {others}"
        raise InvalidParameter("events", f"must be files that exist: {detail}")
    return found


def _members(space: Workspace, part: str) -> frozenset[str]:
    keys = f"SELECT DISTINCT unnest(json_keys(json)) FROM {part} WHERE json_type(json) = 'OBJECT'"
    return frozenset(str(name) for (name,) in space.connection.execute(keys).fetchall())


def _pattern(path: str) -> str:
    """The name of an existing file is not a pattern. A folder means all Parquet files in it."""
    if os.path.isdir(path):
        return f"{literal_path(path)}/**/*.parquet"
    if os.path.exists(path):
        return literal_path(path)
    if "://" not in path and not any(mark in path for mark in "*?["):
        raise InvalidParameter("events", f"must be files that exist: there is no {path}")
    return path


def _reader(path: str) -> str:
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in _PACKED:
        suffixes.pop()
    found = _READERS.get(suffixes[-1] if suffixes else "")
    if found is None:
        detail = f"must be files whose names end with one of {', '.join(_READERS)}"
        if "://" in path:
            detail += f"; the folder of a store needs a pattern, such as {path.rstrip('/')}/**/*.parquet"
        raise InvalidParameter("events", detail)
    return found


def _hive(from_folders: Sequence[str]) -> str:
    """The options for columns that folders name. Their types must not depend on their values: they are texts."""
    return f"hive_partitioning = {bool(from_folders)}, hive_types_autocast = 0"


def _parquet(space: Workspace, files: Sequence[str], listed: str, plan: AnyPlan) -> Scan:
    def columns(files: Sequence[str]) -> list[str]:
        paths = ", ".join(literal(literal_path(file)) for file in files)
        every = f"read_parquet([{paths}], hive_partitioning = false, union_by_name = true)"
        return [name for name, _ in space.described(every)]

    options = _hive(folder_columns(files, plan, columns))
    rows = space.number(f"SELECT SUM(num_rows) FROM parquet_file_metadata({listed})")
    return Scan(f"read_parquet({listed}, {options})", rows, is_typed=True)


def _csv(files: Sequence[str], listed: str, plan: AnyPlan, rows: int, delimiter: str) -> Scan:
    headers = {_header(file, delimiter) for file in files}
    if len(headers) != 1:
        raise InvalidParameter("events", "must be files that exist, with the same header line")
    (names,) = headers
    if len({name.lower() for name in names}) != len(names) or not names or not all(names):
        raise InvalidParameter("events", "must have a header line with a name for each column, each of them once")
    if any(mark in name for name in names for mark in "\r\n\0"):  # DuckDB may take the whole file for a header
        raise InvalidParameter("events", "must have a header line without NUL, and without line ends inside quotes")
    from_folders = folder_columns(files, plan, lambda _files: names)
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in names)
    options = (
        f"auto_detect = false, header = true, columns = {{{columns}}}, delim = {literal(delimiter)}, quote = '\"', "
        f"escape = '\"', comment = '', skip = 0, nullstr = '', strict_mode = true, {_hive(from_folders)}"
    )
    return Scan(f"read_csv({listed}, {options})", rows, is_typed=False)


def _header(file: str, delimiter: str) -> tuple[str, ...]:
    if "://" in file:
        raise InvalidParameter("events", "must be local files, unless they are Parquet")
    with pa.input_stream(file, compression="detect") as stream:
        start = stream.read(_HEADER_BYTES).decode("utf-8-sig", errors="replace")
    return tuple(next(csv.reader(io.StringIO(start, newline=""), delimiter=delimiter), ()))


def _json(space: Workspace, files: Sequence[str], listed: str, plan: AnyPlan, rows: int) -> Scan:
    """Records are objects. A member that a record does not have is missing; one that no record has is a mistake."""
    lines = f"read_ndjson_objects({listed}, hive_partitioning = false)"

    from_folders = folder_columns(files, plan, lambda _files: _members(space, lines))
    names = frozenset(from_folders)
    for part in (f"(FROM {lines} LIMIT {_FIRST_LINES})", lines):
        if set(plan.columns) <= names:
            break
        names |= _members(space, part)
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in plan.columns if name not in from_folders)
    options = f"format = 'newline_delimited', records = 'true', columns = {{{columns}}}, {_hive(from_folders)}"
    return Scan(f"read_json({listed}, {options})", rows, is_typed=False, names=names)
