"""A digest of the content of groups: the same for the same set of groups, however a table or a body writes it down.

It covers the role and the name of every column in the order of the request, the class of every column
(keys/classes.py), and all rows in the order of their group keys. Dictionaries and runs are what they encode. A length
stands before every part, so that different contents never give the same bytes to hash.

The digest is a plain SHA-256. A program that stores it must key it: otherwise a reader can test guesses of the table.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gsh.histogram.arrays import Doubles, Integers, Positions
from gsh.histogram.keys.classes import Bytes, class_of
from gsh.histogram.keys.types import is_text

__all__ = ["Column", "digest_of", "number_columns"]

_VERSION = b"gsh content 1"
_ROWS = 1 << 16
_MOST_BYTES = 1 << 26


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a type: the values that rows have, and for each row, in the order of the keys, its place in them."""

    role: str
    name: str
    type: pa.DataType
    values: pa.Array
    places: pa.Array

    def digest(self) -> tuple[str, bytes]:
        """The class of the column, and the digests of its nulls and values. Where a batch ends does not matter."""
        name, parts = class_of(self.type, self.values)
        streams = [hashlib.sha256() for _ in range(3)]
        start = 0
        for batch in self._batches():
            for stream, part in zip(streams, (_nulls(batch, start), *parts(batch, start)), strict=True):
                stream.update(part)
            start += len(batch)
        return name, b"".join(stream.digest() for stream in streams)

    def _batches(self) -> Iterator[pa.Array]:
        """The rows, in batches that are bounded in rows and in bytes."""
        longest = (pc.max(pc.binary_length(self.values)).as_py() or 0) if is_text(self.values.type) else 0
        step = max(1, min(_ROWS, _MOST_BYTES // max(1, longest)))
        for start in range(0, len(self.places), step):
            yield self.values.take(self.places.slice(start, step))


def number_columns(
    count: str, counts: Integers, values: Iterable[tuple[str, Doubles]], order: Positions
) -> list[Column]:
    """The columns of the true numbers."""
    places = pa.array(order)
    columns = [Column("count", count, pa.int64(), pa.array(counts), places)]
    return columns + [Column("value", name, pa.float64(), pa.array(column), places) for name, column in values]


def digest_of(columns: Sequence[Column], *further: bytes) -> bytes:
    """The digest of some columns of equal length, and of ``further`` facts about them."""
    if len(columns[0].places) <= _ROWS:
        digests = list(map(Column.digest, columns))
    else:
        with ThreadPoolExecutor(os.cpu_count()) as pool:  # Arrow and the hash work without the interpreter's lock
            digests = list(pool.map(Column.digest, columns))
    facts = [_VERSION, str(len(columns[0].places)).encode(), *further]
    for column, (name, content) in zip(columns, digests, strict=True):
        facts += (column.role.encode(), column.name.encode("utf-8", "surrogatepass"), name.encode(), content)
    return hashlib.sha256(b"".join(len(fact).to_bytes(8, "little") + fact for fact in facts)).digest()


def _nulls(batch: pa.Array, start: int) -> Bytes:
    """The numbers of the rows that are null."""
    if not batch.null_count:
        return b""
    return (np.flatnonzero(batch.is_null().to_numpy(zero_copy_only=False)) + start).data
