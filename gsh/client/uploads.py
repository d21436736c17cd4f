"""Sends tables to the service batch by batch, as an Arrow IPC stream in a form; never the whole table at once.

A table is anything with the Arrow stream interface, or the path of a Parquet, Arrow or CSV file. Only its names are
checked here, before anything is sent. The service checks the rest.
"""

import itertools
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from gsh.client.operations import Body
from gsh.errors import InvalidGroups, renamed
from gsh.histogram.csv_format import CsvType, csv_batches
from gsh.histogram.file_formats import ARROW, EXTENSIONS, JSON, Format
from gsh.histogram.roles import Roles
from gsh.histogram.tables import check_columns
from gsh.library.groups import ArrowTable, unnamed_index

__all__ = ["SentTable", "TableSource", "form"]

TableSource: TypeAlias = ArrowTable | str | os.PathLike[str]
_Types: TypeAlias = Mapping[str, CsvType]
_Batches: TypeAlias = tuple[pa.Schema, Iterator[pa.RecordBatch]]

_ROWS = 1 << 16
"""Rows of a batch: little memory, and the headers of batches do not count."""
_WHOLE = 1 << 20
"""A body of at most this many bytes is sent with its length, a longer one in chunks."""
_TABLES = ("pandas.", "polars.")
_ARROW_FILE = b"ARROW1"
_VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


class SentTable:
    """A table to send: the part ``table`` of a form."""

    def __init__(
        self,
        table: TableSource,
        roles: Roles,
        csv_types: _Types | None,
        name: str = "table",
        renames: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.name = name
        """The file name of the part: the name of the table, if there are several."""
        self.is_repeatable = _is_repeatable(table)
        self._renames = renames  # of the places of faults
        with renamed(*renames):
            self._source, self._roles = _opener(table, roles, csv_types), roles
            self._places = roles.places(csv_types or ())
        self._kept: list[bytes] | None = None
        self._opened: _Batches | None = None

    def keep(self) -> None:
        """Read a stream that can be read only once into memory."""
        if not self.is_repeatable:
            # The bytes are kept, and not the batches: their memory may be larger than what is in them.
            self._kept = list(self.chunks())
            self.is_repeatable = True

    def check(self) -> None:
        """Refuse names of columns that are not those of the release. A stream is opened once."""
        if self._kept is None:
            with renamed(*self._renames), renamed(*self._places):
                self._opened = _checked(self._source, self._roles)

    def chunks(self) -> Iterator[bytes]:
        if self._kept is not None:
            yield from self._kept
            return
        opened, self._opened = self._opened, None
        with renamed(*self._renames), renamed(*self._places):
            yield from _as_stream(*(_checked(self._source, self._roles) if opened is None else opened))


def form(request: Mapping[str, Any], tables: Sequence[SentTable], *, is_repeated: bool) -> Body:
    """The form of a release: the part ``request``, then a part ``table`` for each table.

    ``is_repeated``: a retry must be possible. Then a stream that can be read only once is first read into memory.
    """
    if is_repeated:
        for table in tables:
            table.keep()
    boundary = secrets.token_hex(16)
    head = _part(boundary, 'name="request"', JSON) + json.dumps(request, ensure_ascii=False).encode()

    def chunks() -> Iterator[bytes]:
        yield head
        for table in tables:
            yield b"\r\n" + _part(boundary, f'name="table"; filename="{table.name}"', ARROW)
            yield from table.chunks()
        yield f"\r\n--{boundary}--\r\n".encode()

    # Faults of the names come before a request is made, so that no column leaves that the release does not need.
    for table in tables:
        table.check()
    first = [_begun(chunks())]
    return Body(
        f"multipart/form-data; boundary={boundary}",
        lambda: first.pop() if first else _begun(chunks()),
        is_repeatable=all(table.is_repeatable for table in tables),
    )


def _part(boundary: str, name: str, media_type: str) -> bytes:
    lines = (f"--{boundary}", f"Content-Disposition: form-data; {name}", f"Content-Type: {media_type}", "", "")
    return "\r\n".join(lines).encode()


def _begun(chunks: Iterator[bytes]) -> bytes | Iterator[bytes]:
    """A small body as a whole, a longer one in chunks."""
    begin: list[bytes] = []
    size = 0
    for chunk in chunks:
        begin.append(chunk)
        size += len(chunk)
        if size > _WHOLE:
            break
    whole = b"".join(begin)
    return _chained(whole, chunks) if size > _WHOLE else whole


def _chained(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    del first
    yield from rest


def _opener(table: TableSource, roles: Roles, csv_types: _Types | None) -> Callable[[], _Batches]:
    if isinstance(table, str | os.PathLike):
        path = Path(table)
        kind = EXTENSIONS.get(path.suffix.lower())
        if kind is None:
            raise InvalidGroups("table", f"must be a file whose name ends with one of {', '.join(EXTENSIONS)}")
        types = _default_types(roles) | dict(csv_types or {})
        return lambda: _OPENERS[kind](path, types)
    if not hasattr(table, "__arrow_c_stream__"):
        raise InvalidGroups("table", f"must have the Arrow stream interface: {type(table).__name__} does not have it")
    return _from_arrow(table)


def _from_arrow(table: Any) -> Callable[[], _Batches]:
    def opened() -> _Batches:
        reader = pa.RecordBatchReader.from_stream(table)
        return reader.schema, iter(reader)

    def in_slices() -> _Batches:
        schema = pa.RecordBatchReader.from_stream(table.head(0)).schema
        slices = map(pa.RecordBatchReader.from_stream, table.iter_slices(_ROWS))
        return schema, itertools.chain.from_iterable(slices)

    # Polars would copy a table of several chunks as a whole.
    return in_slices if hasattr(table, "iter_slices") else opened


def _is_repeatable(table: TableSource) -> bool:
    """Whether the table can be read again: files and tables. A stream of batches, or a query, may be over."""
    if isinstance(table, str | os.PathLike | pa.Table | pa.RecordBatch):
        return True
    return f"{type(table).__module__}.".startswith(_TABLES) and hasattr(table, "__len__")


def _default_types(roles: Roles) -> dict[str, CsvType]:
    types: dict[str, CsvType] = dict.fromkeys(roles.keys, "string")
    return types | {roles.count: "int64"} | dict.fromkeys(roles.values, "float64")


def _mapped(path: Path) -> pa.Buffer:
    with pa.memory_map(os.fspath(path)) as file:
        return file.read_buffer()


def _open_parquet(path: Path, _types: _Types) -> _Batches:
    file = pq.ParquetFile(path)
    return file.schema_arrow, file.iter_batches(_ROWS)


def _open_ipc(path: Path, _types: _Types) -> _Batches:
    content = _mapped(path)
    if content.slice(0, min(6, content.size)).to_pybytes() == _ARROW_FILE:
        file = pa.ipc.open_file(content)
        return file.schema, map(file.get_batch, range(file.num_record_batches))
    stream = pa.ipc.open_stream(content)
    return stream.schema, iter(stream)


def _open_csv(path: Path, types: _Types) -> _Batches:
    return csv_batches(_mapped(path), types)


_OPENERS: Mapping[Format, Callable[[Path, _Types], _Batches]] = {
    "parquet": _open_parquet,
    "arrow": _open_ipc,
    "arrow_file": _open_ipc,
    "csv": _open_csv,
}


def _checked(source: Callable[[], _Batches], roles: Roles) -> _Batches:
    """The schema and the batches. Messages of Arrow quote cells, so errors say only their kind."""
    try:
        schema, batches = source()
        dropped = unnamed_index(schema)
        kept = [place for place, name in enumerate(schema.names) if name not in dropped]
        schema = pa.schema([_sent(schema.field(place)) for place in kept])
        check_columns(schema, roles)
        return schema, _guarded(schema, batches, kept)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        fault = _fault(error)
    raise fault


def _sent(field: pa.Field) -> pa.Field:
    """A column as it is sent: views of texts, as polars has them, as texts. The views of a slice refer to all texts."""
    return field.with_type(_VIEWS.get(field.type, field.type))


def _cast(column: pa.Array, type_: pa.DataType) -> pa.Array:
    return column if column.type == type_ else column.cast(type_)


def _guarded(schema: pa.Schema, batches: Iterator[pa.RecordBatch], kept: list[int]) -> Iterator[pa.RecordBatch]:
    """Batches of few rows. They share the memory of the table, except for views."""
    try:
        for batch in batches:
            for start in range(0, max(len(batch), 1), _ROWS):
                columns = batch.slice(start, _ROWS).columns
                sent = [_cast(columns[place], field.type) for place, field in zip(kept, schema, strict=True)]
                yield pa.record_batch(sent, schema)
        return
    except (pa.ArrowException, OSError, ValueError) as error:
        fault = _fault(error)
    raise fault


def _fault(error: Exception) -> InvalidGroups:
    if isinstance(error, FileNotFoundError):
        return InvalidGroups("table", "must be a file that exists")
    return InvalidGroups("table", f"must be readable to its end: reading it raised {type(error).__name__}")


class _Chunks:
    """What an Arrow writer has written since it was last asked."""

    closed = False

    def __init__(self) -> None:
        self._written: list[bytes] = []

    def write(self, data: Any) -> int:
        self._written.append(bytes(data))
        return len(self._written[-1])

    def flush(self) -> None:
        """Nothing waits."""

    def taken(self) -> bytes:
        written, self._written = self._written, []
        return b"".join(written)


def _as_stream(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    chunks = _Chunks()
    with pa.ipc.new_stream(pa.PythonFile(chunks, mode="w"), schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            yield chunks.taken()
    yield chunks.taken()
