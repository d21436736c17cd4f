"""A digest of the rows of a release: the same in every format, so that a file can be compared with its certificate.

It is named "gsh table 1", and documented in docs/certificate.md, so that any language can compute it. Let lp(b) be the
length of the bytes b as 8 bytes, little-endian, and then b. The digest is the SHA-256 of

    lp("gsh table 1")  columns  lp(name) lp(kind) of each column  rows  lp(row) of each row, sorted by their bytes

``columns`` and ``rows`` are counts in 8 bytes. A row is its cells: 00 for null, else 01 and lp(value).

    kind                                        value
    text                                        UTF-8
    float                                       binary64, little-endian; −0 is 0, and NaN is 000000000000f87f
    number (integers and decimals)              digits, without zeros at the end of a fraction: -12, 1.5
    boolean, date, time, timestamp, instant,    as in CSV (texts.py), without zeros at the end of a fraction of
    duration, binary, uuid, json                seconds

The columns are those that the noise is in: the key columns, the count, and the values, in this order. Columns that
follow from them, such as intervals, are not part of it. The order of rows and the pieces of a table do not matter.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from gsh.histogram.keys.canonical import canonical
from gsh.histogram.keys.columns import decoded
from gsh.histogram.keys.types import is_text, is_unicode
from gsh.histogram.roles import Roles
from gsh.histogram.texts import texts_of

__all__ = ["ALGORITHM", "ReleasedColumn", "ReleasedContent", "content_of", "contents_of"]

ALGORITHM = "gsh table 1"

_READ_FROM_TEXT = (
    *("float", "number", "boolean", "date", "time", "timestamp", "instant", "duration", "binary", "uuid", "json"),
)
_WITH_SECONDS = ("time", "timestamp", "instant", "duration")
_NUMBER = r"\A-?(0|[1-9][0-9]*)(\.[0-9]+)?\z"
_WIDTH = 8
_ROWS = 1 << 16


@dataclass(frozen=True, slots=True)
class ReleasedColumn:
    """A column of a release: its role, and the kind of its values."""

    name: str
    role: str
    """``key``, ``count`` or ``value``."""
    kind: str


@dataclass(frozen=True, slots=True)
class ReleasedContent:
    """The digest of a table, with what is needed to compute it again from any format."""

    sha256: str
    rows: int
    columns: tuple[ReleasedColumn, ...]
    intervals: float | None = None
    """The level of the intervals that were added. They follow from the rows, and the digest does not cover them."""

    def to_json(self) -> dict[str, Any]:
        columns = [{"name": each.name, "role": each.role, "kind": each.kind} for each in self.columns]
        found = {"algorithm": ALGORITHM, "sha256": self.sha256, "rows": self.rows, "columns": columns}
        return found | ({} if self.intervals is None else {"intervals": self.intervals})

    @staticmethod
    def from_json(given: Mapping[str, Any]) -> "ReleasedContent":
        """``ValueError``, ``TypeError`` or ``KeyError`` if it is none that this version can compute."""
        if given["algorithm"] != ALGORITHM:
            raise ValueError(f"must be by the algorithm {ALGORITHM}")
        columns = tuple(ReleasedColumn(each["name"], each["role"], each["kind"]) for each in given["columns"])
        return ReleasedContent(given["sha256"], given["rows"], columns, given.get("intervals"))

    @property
    def roles(self) -> Roles:
        """The names of the columns by their roles."""
        by_role = {role: tuple(each.name for each in self.columns if each.role == role) for role in _ROLES}
        (count,) = by_role["count"]
        return Roles(by_role["key"], count, by_role["value"])


_ROLES = ("key", "count", "value")


def content_of(table: pa.Table, roles: Roles, kinds: Sequence[str] | None = None) -> ReleasedContent:
    """The content of a table, which may have further columns.

    ``kinds`` are those of the columns, if they are known: formats without types have text in their place. A column of
    another kind is a ``ValueError``.
    """
    named = [
        *((name, "key") for name in roles.keys),
        (roles.count, "count"),
        *((name, "value") for name in roles.values),
    ]
    columns, cells = [], []
    for place, (name, role) in enumerate(named):
        kind, values = _values_of(table[name], None if kinds is None else kinds[place], name)
        columns.append(ReleasedColumn(name, role, kind))
        cells.append(values)
    return ReleasedContent(_digest(columns, cells, len(table)), len(table), tuple(columns))


def contents_of(
    tables: Mapping[str, pa.Table], roles: Mapping[str, Roles], level: float | None = None
) -> dict[str, dict[str, Any]]:
    """The content of each table by its name, as JSON: what ``Certificate.with_contents`` takes.

    ``level`` is that of the intervals in them, if there are any.
    """
    found = {name: content_of(table, roles[name]) for name, table in tables.items()}
    return {name: replace(content, intervals=level).to_json() for name, content in found.items()}


def _digest(columns: Sequence[ReleasedColumn], cells: Sequence[pa.Array], count: int) -> str:
    digest = hashlib.sha256(_with_length(ALGORITHM.encode()) + _integer(len(columns)))
    for column in columns:
        digest.update(_with_length(column.name.encode("utf-8", "surrogatepass")) + _with_length(column.kind.encode()))
    digest.update(_integer(count))
    starts = range(0, count, _ROWS) or [0]
    rows = pa.chunked_array([_row_bytes([values.slice(start, _ROWS) for values in cells]) for start in starts])
    cells = ()  # the values are in the rows now, and may take much memory
    order = pc.sort_indices(rows)
    for start in range(0, count, _ROWS):
        piece = rows.take(order.slice(start, _ROWS))
        piece = piece.combine_chunks() if isinstance(piece, pa.ChunkedArray) else piece
        digest.update(_joined([_lengths(piece), piece]).buffers()[2])
    return digest.hexdigest()


def _row_bytes(cells: Sequence[pa.Array]) -> pa.Array:
    """The bytes of each row."""
    return _joined([part for values in cells for part in _cell(values)])


def _values_of(column: pa.ChunkedArray, expected: str | None, name: str) -> tuple[str, pa.Array]:
    """The kind of a column, and its values as bytes."""
    values = decoded(column)
    kind = _kind_of(column.type if isinstance(column.type, pa.BaseExtensionType) else values.type)
    if expected is None or kind == expected or values.null_count == len(values):
        return expected or kind, _bytes_of(values, column.type, kind)
    if kind == "number" and expected == "float" and _are_exact(values):
        return expected, _bytes_of(values.cast(pa.float64()), pa.float64(), expected)
    if kind == "text" and expected in _READ_FROM_TEXT:
        return expected, _from_text(values, expected, name)
    raise ValueError(f"column {name} must be of kind {expected}, not {kind}")


def _kind_of(kind: pa.DataType) -> str:
    for is_of, name in _KINDS:
        if is_of(kind):
            return name
    return "instant" if kind.tz is not None else "timestamp"


_KINDS: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (lambda kind: isinstance(kind, pa.UuidType), "uuid"),
    (lambda kind: isinstance(kind, pa.JsonType), "json"),
    (pa.types.is_null, "null"),
    (pa.types.is_boolean, "boolean"),
    (is_unicode, "text"),
    (lambda kind: is_text(kind) or pa.types.is_fixed_size_binary(kind), "binary"),
    (pa.types.is_floating, "float"),
    (lambda kind: pa.types.is_integer(kind) or pa.types.is_decimal(kind), "number"),
    (pa.types.is_date, "date"),
    (pa.types.is_time, "time"),
    (pa.types.is_duration, "duration"),
)


def _bytes_of(values: pa.Array, kind: pa.DataType, name: str) -> pa.Array:
    """The values of a typed column as bytes, with its nulls."""
    if name == "float":
        doubles = canonical(values.cast(pa.float64()), pa.float64())
        validity, content = doubles.buffers()
        fixed = pa.Array.from_buffers(pa.binary(_WIDTH), len(doubles), [validity, content], doubles.null_count)
        return fixed.cast(pa.large_binary())
    if isinstance(kind, pa.BaseExtensionType):
        values = kind.wrap_array(values.cast(kind.storage_type))
    return _texts(texts_of(values), name)


def _texts(texts: pa.Array, name: str) -> pa.Array:
    if name in _WITH_SECONDS:  # the unit decides how many zeros a fraction of seconds has
        texts = pc.replace_substring_regex(texts, r"(\.[0-9]*?)0+(Z|S)?\z", r"\1\2")
        texts = pc.replace_substring_regex(texts, r"\.(Z|S)?\z", r"\1")
    return texts.cast(pa.large_binary())


def _from_text(texts: pa.Array, kind: str, name: str) -> pa.Array:
    """The values of a column that a format without types has as text."""
    if kind == "float":
        try:
            return _bytes_of(texts.cast(pa.float64()), pa.float64(), kind)
        except pa.ArrowInvalid:
            raise ValueError(f"column {name} must have numbers") from None
    if kind == "number":
        if not pc.all(pc.match_substring_regex(texts, _NUMBER), min_count=0).as_py():
            raise ValueError(f"column {name} must have numbers, written as digits")
        texts = pc.replace_substring_regex(texts, r"(\.[0-9]*?)0+\z", r"\1")
        texts = pc.replace_substring_regex(texts, r"\.\z", "")
        texts = pc.replace_substring_regex(texts, r"\A-0\z", "0")
    return _texts(texts.cast(pa.large_string()), kind)


def _are_exact(values: pa.Array) -> bool:
    """Whether doubles have all the values."""
    try:
        values.cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _cell(values: pa.Array) -> list[pa.Array]:
    """The parts of the cells of a column: the mark, and for a value its length and its bytes."""
    is_null = values.is_null()
    mark = pc.if_else(is_null, pa.scalar(b"\0", pa.large_binary()), pa.scalar(b"\1", pa.large_binary()))
    nothing = pa.scalar(b"", pa.large_binary())
    return [mark, pc.if_else(is_null, nothing, _lengths(values)), pc.fill_null(values, b"")]


def _joined(parts: Sequence[pa.Array]) -> pa.Array:
    return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.large_binary()))


def _lengths(values: pa.Array) -> pa.Array:
    """The length of each value, in 8 bytes."""
    lengths = pc.fill_null(pc.binary_length(values), 0).to_numpy().astype("<u8")
    fixed = pa.Array.from_buffers(pa.binary(_WIDTH), len(values), [None, pa.py_buffer(lengths)])
    return fixed.cast(pa.large_binary())


def _with_length(content: bytes) -> bytes:
    return _integer(len(content)) + content


def _integer(number: int) -> bytes:
    return number.to_bytes(_WIDTH, "little")
