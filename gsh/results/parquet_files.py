"""Parquet files that may be hostile: a few bytes can say how to make many.

    the footer            must be small, and its columns flat
    the header of a page  says how large the page is when it is decompressed: Arrow takes no more memory for it
    a dictionary          is kept as it is until it is known how long its values are together: a text of a megabyte in a
                          hundred thousand rows is a few hundred bytes in a file

With dictionaries kept, Arrow refuses texts that are encoded as changes of other texts: a page of these could have as
many long texts as it has bytes. pyarrow and Spark write them only if asked.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gsh.histogram.formats import MOST_SCHEMA_BYTES
from gsh.histogram.keys.types import is_text
from gsh.results.locations import TooLarge

__all__ = ["read_parquet"]

_BATCH = 1 << 16
_WIDTH = 16
"""The most bytes of a value that is not text."""

_Path: TypeAlias = tuple[int, ...]


def read_parquet(source: pa.Buffer, most_bytes: int) -> pa.Table:
    """The table of a file, with every buffer checked; an error of Arrow or of Python if it is none."""
    footer = int.from_bytes(source.slice(max(0, source.size - 8), 4).to_pybytes(), "little")
    if footer > min(MOST_SCHEMA_BYTES, source.size):
        raise ValueError("must have a smaller footer")
    plain = _opened(source)
    schema, metadata = plain.schema_arrow, plain.metadata
    if len(schema) != metadata.num_columns or any(pa.types.is_nested(kind) for kind in schema.types):
        raise ValueError("must have flat columns")
    if metadata.num_rows * metadata.num_columns * _WIDTH > most_bytes or _weight(source, footer) > most_bytes:
        raise TooLarge
    texts = [field.name for field in schema if is_text(_storage(field.type))]
    left, batches = most_bytes, []
    for batch in _opened(source, texts).iter_batches(_BATCH):
        batch.validate(full=True)
        left -= sum(map(_decoded_size, batch.columns, schema.types))
        if left < 0:
            raise TooLarge
        batches.append(pa.record_batch(list(map(_decoded, batch.columns, schema.types)), schema))
    return pa.Table.from_batches(batches, schema)


def _opened(source: pa.Buffer, texts: Sequence[str] = ()) -> pq.ParquetFile:
    """The file, with dictionaries in place of texts."""
    checks = {"page_checksum_verification": True, "coerce_int96_timestamp_unit": "us"}
    return pq.ParquetFile(pa.BufferReader(source), read_dictionary=[*texts], **checks)


def _storage(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _decoded_size(column: pa.Array, kind: pa.DataType) -> int:
    """The bytes of a column when it has its type. Dictionaries that stay are weighed with their pages."""
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    if pa.types.is_dictionary(kind):
        return int(column.indices.nbytes)
    return int(pc.sum(pc.binary_length(column.dictionary).take(column.indices)).as_py() or 0)


def _decoded(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type == kind:
        return column
    storage = column.dictionary_decode().cast(_storage(kind))
    return pa.ExtensionArray.from_storage(kind, storage) if isinstance(kind, pa.BaseExtensionType) else storage


def _weight(source: pa.Buffer, footer: int) -> int:
    """The most bytes of all pages, when they are decompressed.

    The footer is read here: to ask pyarrow for the columns of a damaged footer can end the process.
    """
    content = memoryview(source).cast("B")
    found = _Numbers(content[source.size - 8 - footer : source.size - 8]).found
    columns = {path[:-1] for path in found if len(path) == _DEPTH and path[:-1:2] == _COLUMN}
    sizes = [found.get((*column, _COMPRESSED), 0) for column in columns]
    if min(sizes, default=0) < 0 or sum(sizes) > source.size:
        raise ValueError("must have columns of its own")
    return sum(_weight_of_column(content, found, column) for column in columns)


def _weight_of_column(content: memoryview, found: Mapping[_Path, int], column: _Path) -> int:
    values, size, data, dictionary = (found.get((*column, each), 0) for each in (_VALUES, _COMPRESSED, _DATA, _ENTRIES))
    start = dictionary if 0 < dictionary < data else data
    if start < 0:
        raise ValueError("must have columns inside of it")
    end = min(start + size + _MOST_PADDING, len(content))
    weight = 0
    while values > 0:
        header = _Numbers(content[start:end])
        uncompressed, compressed = (header.found.get((field,), 0) for field in (_SIZE, _SIZE_COMPRESSED))
        if min(uncompressed, compressed) < 0:
            raise ValueError("must have pages of some size")
        weight += uncompressed
        values -= sum(header.found.get((field, 1), 0) for field in _DATA_PAGES)
        start += header.length + compressed
    return weight


_SIZE, _SIZE_COMPRESSED = 2, 3
"""Fields of the header of a page."""
_DATA_PAGES = (5, 8)
"""Fields of the header of a page with values, of both versions. Their first field is the number of values."""
_COLUMN, _DEPTH = (4, 1, 3), 6
"""Where the numbers of a column are in a footer: in the list of groups, in its list of columns, in its description."""
_VALUES, _COMPRESSED, _DATA, _ENTRIES = 5, 7, 9, 11
"""The numbers of values and of bytes of a column, and where its pages and its dictionary begin."""
_MOST_PADDING = 100
"""Early writers said that a column is shorter than it is."""


class _Numbers:
    """The integers of a struct in the compact form of Thrift, by their fields and by their places in lists."""

    def __init__(self, content: memoryview) -> None:
        self._content, self.length = content, 0
        self.found: dict[_Path, int] = {}
        self._struct(())

    def _struct(self, path: _Path) -> None:
        field = 0
        if len(path) > _MOST_DEPTH:
            raise ValueError("must not be so deep")
        while head := self._byte():
            step, kind = head >> 4, head & 15
            field = field + step if step else self._zigzag()
            self._value(kind, (*path, field))

    def _list(self, path: _Path) -> None:
        head = self._byte()
        size, kind = head >> 4, head & 15
        for place in range(self._varint() if size == _LONG_LIST else size):
            if kind in _BOOLEANS:
                self._skip(1)
            else:
                self._value(kind, (*path, place))

    def _value(self, kind: int, path: _Path) -> None:
        if kind in _INTEGERS:
            if path in self.found:
                raise ValueError("must have each field once")
            self.found[path] = self._zigzag()
        elif kind == _STRUCT:
            self._struct(path)
        elif kind == _LIST:
            self._list(path)
        elif kind == _BINARY:
            self._skip(self._varint())
        elif kind not in _BOOLEANS:
            self._skip(_SIZES[kind])

    def _skip(self, size: int) -> None:
        if size > len(self._content) - self.length:
            raise ValueError("must be whole")
        self.length += size

    def _byte(self) -> int:
        self._skip(1)
        return self._content[self.length - 1]

    def _varint(self) -> int:
        number = 0
        for shift in range(0, _BITS, 7):
            byte = self._byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
        raise ValueError("must have numbers of 64 bits")

    def _zigzag(self) -> int:
        number = self._varint()
        return number >> 1 ^ -(number & 1)


_BOOLEANS, _INTEGERS, _BINARY, _LIST, _STRUCT = (1, 2), (4, 5, 6), 8, 9, 12
_SIZES = {3: 1, 7: 8}
_LONG_LIST, _BITS, _MOST_DEPTH = 15, 64, 12
