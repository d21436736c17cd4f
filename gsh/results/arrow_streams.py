"""Arrow IPC streams of a server or a file that may be hostile: every byte is checked before it is used.

Arrow's own readers follow offsets and indices wherever they lead, and decompress as much as a header says. So:

    a batch         must not be compressed, and no dictionary added to: a table takes no more memory than its bytes
    the schema      must have the columns of a release, of the types that answers have
    every buffer    must be as long as its values need, and every offset and index inside of it
    metadata        is dropped: the certificate and the name of the table alone stay
"""

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from gsh.histogram.formats import CERTIFICATE, SIGNATURE, TABLE, stream_batches
from gsh.histogram.keys.types import answer_type
from gsh.histogram.roles import Roles

__all__ = ["checked_rows", "read_stream"]

_NUMBERS = (pa.int64(), pa.float64())
_VERSION, _HEADER, _METADATA = 0, 2, 4
"""Places of the fields of a message."""
_COMPRESSION, _DATA, _IS_DELTA = 3, 1, 2
"""Places of fields: the compression of a batch, and of a dictionary its batch and whether it adds to an earlier one."""
_V5 = 4


def read_stream(
    content: pa.Buffer, roles: Callable[[pa.Schema], Roles], unload: Callable[[], None] = lambda: None
) -> pa.Table:
    """The table of a stream, which refers to ``content``; or an error of Arrow or of Python.

    ``roles`` gives the roles of its columns. ``unload`` is called after each batch: what was read for a check need not
    stay in memory.
    """
    for message in _messages(content):
        _check_message(message)
    schema, batches = stream_batches(content)
    return checked_rows(schema, batches, roles(schema), unload)


def checked_rows(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], names: Roles, unload: Callable[[], None] = lambda: None
) -> pa.Table:
    """The table of some batches, if they are those of a private table with these columns."""
    _check_types(schema, len(names.keys))
    checked = []
    for batch in batches:
        batch.validate(full=True)
        if any(column.null_count for column in batch.columns[len(names.keys) :]):
            raise ValueError
        checked.append(batch)
        unload()
    fields = [pa.field(each.name, each.type, place < len(names.keys)) for place, each in enumerate(schema)]
    metadata = schema.metadata or {}
    kept = {name: metadata[name] for name in map(str.encode, (CERTIFICATE, TABLE, SIGNATURE)) if name in metadata}
    return pa.Table.from_arrays(pa.Table.from_batches(checked, schema).columns, schema=pa.schema(fields, kept))


def _check_types(schema: pa.Schema, keys: int) -> None:
    """Key columns have the types that canonical form has, and the others are numbers."""
    for place, field in enumerate(schema):
        getattr(getattr(field.type, "value_type", field.type), "tz", None)  # the name of a time zone must be text
        is_known = answer_type(field, "") == field.type if place < keys else field.type in _NUMBERS
        if not is_known:
            raise ValueError


def _messages(content: pa.Buffer) -> Iterator[pa.Message]:
    """All messages of a stream. Arrow verifies that each is a flatbuffer."""
    reader = pa.ipc.MessageReader.open_stream(content)
    while True:
        try:
            yield reader.read_next_message()
        except StopIteration:
            return


def _check_message(message: pa.Message) -> None:
    """Refuse a message that says how to unpack it: in its batch, or in its metadata, as versions before 5 did."""
    root = _Flatbuffer(message.metadata.to_pybytes()).root()
    if root.number(_VERSION, 2) != _V5 or root.has(_METADATA):
        raise ValueError
    if message.type == "schema":
        return
    table = root.table(_HEADER)
    is_dictionary = message.type == "dictionary"
    batch = table.table(_DATA) if is_dictionary else table
    if batch.has(_COMPRESSION) or (is_dictionary and table.has(_IS_DELTA)):
        raise ValueError


class _Flatbuffer:
    """A table of a flatbuffer: it begins with the distance to the places of its fields."""

    def __init__(self, content: bytes, start: int = 0) -> None:
        self._content, self._start = content, start

    def root(self) -> "_Flatbuffer":
        return _Flatbuffer(self._content, self._number(0, 4))

    def has(self, field: int) -> bool:
        return self._place(field) != 0

    def number(self, field: int, width: int) -> int:
        """The value of a field; 0 if it is absent."""
        place = self._place(field)
        return self._number(self._start + place, width) if place else 0

    def table(self, field: int) -> "_Flatbuffer":
        start = self._start + self._place(field)
        return _Flatbuffer(self._content, start + self._number(start, 4))

    def _place(self, field: int) -> int:
        """Where a field is; 0 if it is absent."""
        places = self._start - self._number(self._start, 4, signed=True)
        return self._number(places + 4 + 2 * field, 2) if 4 + 2 * field < self._number(places, 2) else 0

    def _number(self, place: int, width: int, *, signed: bool = False) -> int:
        if not 0 <= place <= len(self._content) - width:
            raise ValueError
        return int.from_bytes(self._content[place : place + width], "little", signed=signed)
