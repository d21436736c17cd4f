"""Public group keys of a table: listed by the caller, from public knowledge, before anything is read.

Records with another key are left out before bounding, so that they use nobody's C_u up. All listed groups are
published, also those that no record has. The plan has a digest of the list:

    SHA-256("gsh public keys;" parts ";" texts)

``parts`` is the number of key columns. ``texts`` are the keys, each once, as lots write them (lots.py), sorted and
joined. So order and duplicates do not matter. The texts are those of the listed values, before an engine casts them to
the types of the events: the plan is fixed before the events are opened.

A list that comes from the events reveals which groups have users. What can be seen of it is refused: the events
themselves, one of their columns, one of their files, and whatever has the user column.
"""

import csv
import hashlib
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gsh.errors import InvalidParameter
from gsh.events.kinds import Kind, family
from gsh.histogram.public_keys import key_parts

__all__ = ["KeysLike", "ListedKeys", "Origin", "listed_kinds", "not_of_type", "public_keys_of"]


class _Arrow(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


KeysLike: TypeAlias = Sequence[Any] | NDArray[Any] | _Arrow | str | os.PathLike[str]
"""A list of keys (of tuples for several columns), a column, a table with the key columns, or a file of one."""

_MOST = 2**31 - 1
_PACKED = (".gz", ".zst")
_FORMS = "must be a list of group keys, a column, a table with the key columns, or a CSV or Parquet file"
_TYPES = "must be strings, whole numbers, decimals, Booleans, dates, timestamps or UUIDs"


_HEADER_BYTES = 2**20
_REVEALING = "must not come from the events: a list of the groups that have users reveals them"
_INSTEAD = "list groups from public knowledge"


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """The events: a list of public keys must not come from them. They are not read to check it."""

    user: str
    events: object = None
    files: Callable[[], Iterable[str]] = tuple
    """The local files of the events, and the patterns and folders of them; asked only if the keys are a file."""

    def check_file(self, path: Path, pointer: str) -> None:
        """Refuse one of the files of the events, whatever its name."""
        for file in self.files():
            is_it = os.path.abspath(file) == os.path.abspath(path)
            if is_it or (os.path.exists(file) and path.exists() and os.path.samefile(file, path)):
                raise InvalidParameter(pointer, f"{_REVEALING}; {_INSTEAD}")

    def check_names(self, names: Iterable[str], pointer: str) -> None:
        """Refuse what has the user column. Engines compare names without case."""
        if self.user.lower() in (str(name).lower() for name in names):
            raise InvalidParameter(pointer, f"{_REVEALING}, and this has their user column {self.user}; {_INSTEAD}")

    def check_columns(self, columns: Sequence[pa.ChunkedArray], by: Sequence[str], pointer: str) -> None:
        """Refuse columns that are in the memory of the events."""
        for column, name in zip(columns, by, strict=True):
            if not set(_memory(column)).isdisjoint(_memory(_column_of(self.events, name))):
                raise InvalidParameter(pointer, f"{_REVEALING}; {_INSTEAD}")


def _column_of(events: Any, name: str) -> pa.ChunkedArray | None:
    """A column of a frame in memory, if it is one. Streams and relations would be read for it."""
    if not (hasattr(events, "__arrow_c_stream__") and hasattr(events, "__len__") and hasattr(events, "__getitem__")):
        return None
    try:
        column = events[name]
        return pa.chunked_array(column) if hasattr(column, "__arrow_c_stream__") else None
    except Exception:  # of any frame; reading it later reports what is wrong
        return None


def _memory(column: pa.ChunkedArray | None) -> Iterator[int]:
    for chunk in () if column is None else column.chunks:
        parts = (chunk.indices, chunk.dictionary) if pa.types.is_dictionary(chunk.type) else (chunk,)
        yield from (buffer.address for part in parts for buffer in part.buffers() if buffer is not None and buffer.size)


@dataclass(frozen=True, slots=True, eq=False)
class ListedKeys:
    """A checked list: the key columns under their names, each key once; and the digest that the plan has."""

    table: pa.Table
    digest: str

    def __len__(self) -> int:
        return len(self.table)


def public_keys_of(
    given: object, by: Sequence[str], pointer: str = "public_keys", *, origin: Origin | None = None
) -> ListedKeys:
    """The list of public keys of a table with the key columns ``by``, which must not come from the ``origin``."""
    if origin is not None and given is not None and given is origin.events and not isinstance(given, str):
        raise InvalidParameter(pointer, f"{_REVEALING}; {_INSTEAD}")
    found = _columns(given, tuple(by), pointer, origin)
    if origin is not None and not isinstance(given, str | os.PathLike | list | tuple):
        origin.check_columns(found, by, pointer)
    columns = [_checked(column, pointer) for column in found]
    if not len(columns[0]):
        raise InvalidParameter(pointer, "must list at least one group")
    if len(columns[0]) > _MOST:
        raise InvalidParameter(pointer, "must list fewer than 2^31 groups")
    texts = ["".join(parts) for parts in zip(*map(_texts, columns), strict=True)]
    places = dict(zip(reversed(texts), range(len(texts) - 1, -1, -1), strict=True))
    table = pa.table(dict(zip(by, columns, strict=True))).take(pa.array(sorted(places.values()), pa.int64()))
    written = f"gsh public keys;{len(by)};{''.join(sorted(places))}"
    return ListedKeys(table.combine_chunks(), hashlib.sha256(written.encode()).hexdigest())


def listed_kinds(keys: ListedKeys, kinds: Sequence[Kind], pointer: str = "public_keys") -> None:
    """Refuse values that cannot mean those of the columns of the events, whose kinds are given.

    Texts may mean anything: the engine casts them, and refuses what it cannot read. Whole numbers may mean texts.
    """
    for place, (field, kind) in enumerate(zip(keys.table.schema, kinds, strict=True)):
        listed, wanted = _family(field.type), family(kind)
        also = {"string", "null", wanted} | {"decimal": {"integer"}, "string": {"integer"}}.get(wanted, set())
        also |= {"timestamp", "timestamp_ns"} if wanted.startswith("timestamp_ns") else set()
        if listed not in also:
            raise InvalidParameter(
                f"{pointer}/{place}", f"must be of the type of the key column {field.name}: {kind}, not {listed}"
            )


def not_of_type(name: str, kind: Kind) -> InvalidParameter:
    """What is wrong with a list whose texts an engine cannot cast. Its errors quote values, so they are not kept."""
    return InvalidParameter(
        "public_keys", f"must have values of the types of the key columns: {name} is of type {kind}"
    )


def _columns(given: object, by: tuple[str, ...], pointer: str, origin: Origin | None) -> list[pa.ChunkedArray]:
    try:
        if isinstance(given, str | os.PathLike):
            return _selected(_file(Path(given), by, pointer, origin), by, pointer)
        if isinstance(given, pa.Array | pa.ChunkedArray | np.ndarray) or hasattr(given, "to_list"):
            column = pa.chunked_array(given) if hasattr(given, "__arrow_c_stream__") else pa.array(given)
            return _one_column(column, by, pointer)
        if hasattr(given, "__arrow_c_stream__"):
            return _selected(_frame(given, pointer, origin), by, pointer)
        if isinstance(given, Sequence) and not isinstance(given, bytes | bytearray | memoryview):
            parts = key_parts(given, len(by), pointer, InvalidParameter)
            return [pa.chunked_array([pa.array(part)]) for part in parts]
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        detail = "must have values of one type in each column"
    except OSError:
        detail = "must be a file that can be read"
    else:
        detail = f"{_FORMS}, not {type(given).__name__}"
    raise InvalidParameter(pointer, detail)


def _one_column(column: pa.Array | pa.ChunkedArray, by: tuple[str, ...], pointer: str) -> list[pa.ChunkedArray]:
    if len(by) != 1:
        raise InvalidParameter(pointer, f"must have the {len(by)} key columns: give a table with their names")
    return [column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])]


def _selected(table: pa.Table, by: tuple[str, ...], pointer: str) -> list[pa.ChunkedArray]:
    for name in by:
        if table.column_names.count(name) != 1:
            raise InvalidParameter(pointer, f"must have the key columns, each once: there is no column {name}")
    return [table[name] for name in by]


def _frame(given: Any, pointer: str, origin: Origin | None) -> pa.Table:
    if isinstance(given, pa.Table | pa.RecordBatch):
        given = pa.table(given).to_reader()
    with pa.RecordBatchReader.from_stream(given) as reader:
        if origin is not None:
            origin.check_names(reader.schema.names, pointer)  # before a row is read
        return reader.read_all()


def _file(path: Path, by: tuple[str, ...], pointer: str, origin: Origin | None) -> pa.Table:
    if origin is not None:
        origin.check_file(path, pointer)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kind = suffixes[-2] if len(suffixes) > 1 and suffixes[-1] in _PACKED else suffixes[-1] if suffixes else ""
    if kind not in (".parquet", ".pq", ".csv", ".tsv"):
        raise InvalidParameter(pointer, "must be a file whose name ends with .parquet, .csv or .tsv")
    if not path.is_file():
        raise InvalidParameter(pointer, f"must be a file that exists: there is no {path}")
    is_parquet, delimiter = kind in (".parquet", ".pq"), "\t" if kind == ".tsv" else ","
    present = pq.read_schema(path).names if is_parquet else _header(path, delimiter)
    if origin is not None:
        origin.check_names(present, pointer)
    if len(present) == 1 and any(mark in present[0] for mark in ";\t|,") and present[0] not in by:
        detail = f"there is no {by[0]}: the header has one column; separate columns by commas (.csv) or tabs (.tsv)"
        raise InvalidParameter(pointer, f"must have the key columns, each once: {detail}")
    if is_parquet:
        return pq.read_table(path, columns=[name for name in by if name in present], partitioning=None)
    # As in events: all cells are texts, and an empty one is missing.
    return pyarrow.csv.read_csv(
        path,
        parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(by, pa.string()), null_values=[""], strings_can_be_null=True
        ),
    )


def _header(path: Path, delimiter: str) -> list[str]:
    with pa.input_stream(path, compression="detect") as stream:
        start = stream.read(_HEADER_BYTES).decode("utf-8-sig", errors="replace")
    return next(csv.reader(io.StringIO(start, newline=""), delimiter=delimiter), [])


def _checked(column: pa.ChunkedArray, pointer: str) -> pa.ChunkedArray:
    """The column as a plain type that group keys have."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if _is_text(column.type):
        column = column.cast(pa.string())
    if _family(column.type) == "":
        raise InvalidParameter(pointer, f"{_TYPES}, not {column.type}")
    return column


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _family(kind: pa.DataType) -> str:
    """The family of the kind of an Arrow type; nothing for a type that group keys do not have."""
    is_whole = pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0)
    if pa.types.is_timestamp(kind):
        return "timestamptz" if kind.tz is not None else "timestamp_ns" if kind.unit == "ns" else "timestamp"
    for name, is_it in (
        ("null", pa.types.is_null(kind)),
        ("string", _is_text(kind)),
        ("integer", is_whole),
        ("decimal", pa.types.is_decimal(kind)),
        ("boolean", pa.types.is_boolean(kind)),
        ("date", pa.types.is_date(kind)),
        ("uuid", isinstance(kind, pa.UuidType)),
    ):
        if is_it:
            return name
    return ""


def _texts(column: pa.ChunkedArray) -> list[str]:
    """The text of each value as lots write it, with its length before it; a hyphen for a missing one."""
    kind = column.type
    if pa.types.is_date(kind):
        column = column.cast(pa.date32()).cast(pa.int32())
    elif pa.types.is_timestamp(kind):
        is_fine = kind.unit == "ns" and kind.tz is None
        column = column.cast(pa.timestamp("ns" if is_fine else "us", kind.tz), safe=False).cast(pa.int64())
    elif pa.types.is_null(kind):
        return ["-"] * len(column)
    return ["-" if value is None else f"{len(text)}:{text}" for value in column.to_pylist() for text in [_text(value)]]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = format(value, "f") if hasattr(value, "as_tuple") else str(value)
    return text.rstrip("0").rstrip(".") if hasattr(value, "as_tuple") and "." in text else text
