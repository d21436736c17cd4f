"""Releases as a client receives them: the private table with its certificate.

A table is an Arrow IPC stream of a server that may be hostile. Arrow's own readers follow offsets and indices wherever
they lead, and decompress as much as a header says. So every byte is checked before it is used:

    a batch                      must not be compressed, and no dictionary added to: so a table takes no more memory
                                 than its answer
    the schema                   must have the columns of a release, of the types that the service answers with
    every buffer                 must be as long as its values need, and every offset and index inside of it
    metadata                     is dropped: the certificate and the name of the table alone stay
    an archive of tables         must have the asked tables and the certificate, and no compressed file
    the certificate              must say what was asked for (asked.py)
"""

import functools
import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gsh.accounting.mechanism import AnyMechanism
from gsh.arguments import Real
from gsh.certificate import Certificate
from gsh.client.asked import Asked, certified
from gsh.client.decoding import Contradiction, document_in, understood
from gsh.client.operations import Answer
from gsh.errors import InvalidParameter
from gsh.histogram.archives import read_archive
from gsh.histogram.formats import CERTIFICATE, TABLE, stream_batches
from gsh.histogram.keys.types import answer_type
from gsh.histogram.roles import Roles, interval_columns
from gsh.library.groups import Groups, Numbers, answered_key
from gsh.wire import Json, release_from_json

if TYPE_CHECKING:
    from gsh.library.accuracy import Intervals, Totals

__all__ = ["Release", "ReleasedGroups", "ReleasedTables", "groups_of", "is_archive", "release_of", "tables_of"]


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """A private table and its certificate. The certificate is also in the metadata of the table's schema."""

    table: pa.Table
    is_replayed: bool = False
    """Whether an earlier request with the same ``once=`` made the release, and was charged."""
    released_at: str | None = None
    """When a replayed release was made. None if it is new."""

    @functools.cached_property
    def certificate(self) -> Certificate:
        return _certificate_in(self.table.schema)

    @functools.cached_property
    def mechanism(self) -> AnyMechanism:
        """The mechanism that was run."""
        return release_from_json(self.certificate.mechanism)

    @property
    def once(self) -> str | None:
        """The idempotency key: the name of the release. None if no budget paid for it."""
        return self.certificate.idempotency_key

    @functools.cached_property
    def _roles(self) -> Roles:
        return _roles_in(self.table.schema, self.mechanism)

    @property
    def key_columns(self) -> tuple[str, ...]:
        return self._roles.keys

    @property
    def count_column(self) -> str:
        return self._roles.count

    @property
    def value_columns(self) -> tuple[str, ...]:
        return self._roles.values

    def intervals(self, level: Real = 0.95) -> "Intervals":
        """Where the true numbers are, at a level of confidence: ``gsh.intervals`` of this table, without a request."""
        from gsh.library import accuracy  # noqa: PLC0415 - loads SciPy

        return accuracy.intervals(self.mechanism, **self._numbers(), level=level)

    def total(self, level: Real = 0.95) -> "Totals":
        """The sums of the true numbers: ``gsh.total`` of this table, without a request."""
        from gsh.library import accuracy  # noqa: PLC0415

        return accuracy.total(self.mechanism, **self._numbers(), level=level)

    def _numbers(self) -> dict[str, Any]:
        values = {name: self.table[name].to_numpy() for name in self.value_columns}
        return {"counts": self.table[self.count_column].to_numpy(), "values": values}

    def to_pandas(self) -> Any:
        """The table as a data frame of pandas."""
        return self.table.to_pandas()

    def to_polars(self) -> Any:
        """The table as a data frame of polars."""
        return importlib.import_module("polars").from_arrow(self.table)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """For programs that read Arrow tables: pandas, polars, DuckDB."""
        return self.table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __repr__(self) -> str:
        columns = ", ".join(self.table.column_names)
        name = "" if self.once is None else f" {self.once!r}"
        replayed = f", replayed: released on {self.released_at}" if self.is_replayed else ""
        return f"<Release{name}: {len(self)} groups of {columns}{replayed}>"


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedTables:
    """Private tables of one release by their names, and their certificate. It is also in the metadata of each table."""

    tables: Mapping[str, pa.Table]
    certificate: Certificate
    is_replayed: bool = False
    """Whether an earlier request with the same ``once=`` made the release, and was charged."""
    released_at: str | None = None
    """When a replayed release was made. None if it is new."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", MappingProxyType(dict(self.tables)))

    def __reduce__(self) -> tuple[type["ReleasedTables"], tuple[object, ...]]:
        return ReleasedTables, (dict(self.tables), self.certificate, self.is_replayed, self.released_at)

    @property
    def table(self) -> pa.Table:
        """An error: there are several."""
        raise InvalidParameter(
            "table", f"is ambiguous: there are several. Take tables[name]; the names are {', '.join(self.tables)}"
        )

    @functools.cached_property
    def mechanisms(self) -> Mapping[str, AnyMechanism]:
        """The mechanism of each table, by its name."""
        return self.certificate.mechanisms

    @property
    def once(self) -> str | None:
        """The idempotency key: the name of the release. None if no budget paid for it."""
        return self.certificate.idempotency_key

    def __repr__(self) -> str:
        tables = ", ".join(f"{name} ({len(table)} groups)" for name, table in self.tables.items())
        name = "" if self.once is None else f" {self.once!r}"
        replayed = f", replayed: released on {self.released_at}" if self.is_replayed else ""
        return f"<ReleasedTables{name}: {tables}{replayed}>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ReleasedGroups(Groups):
    """The groups that were kept, as the library gives them, with the certificate of the service."""

    certificate: Certificate
    is_replayed: bool
    released_at: str | None = None

    def __reduce__(self) -> tuple[type["ReleasedGroups"], tuple[object, ...]]:
        about = (self.certificate, self.is_replayed, self.released_at)
        return ReleasedGroups, (self.keys, self.counts, dict(self.values), *about)


def release_of(answer: Answer, asked: Asked | None = None) -> Release:
    """The release of an Arrow stream, with the mechanism and the columns that were asked for.

    Nothing of it is used before it is checked. The table refers to the bytes of the answer.
    """

    def roles(schema: pa.Schema) -> Roles:
        certificate, mechanisms = certified(_document_in(schema), asked)
        return _asked_roles(schema, mechanisms[""], certificate, asked, "")

    table = understood(answer, lambda: _read_answer(answer.content, roles, answer.unload))
    return Release(table, answer.is_replayed, answer.released_at)


def _certificate_in(schema: pa.Schema) -> Certificate:
    return Certificate.from_json(_document_in(schema))


def _document_in(schema: pa.Schema) -> Json:
    return document_in(pa.py_buffer(schema.metadata[_CERTIFICATE]))


def is_archive(answer: Answer) -> bool:
    """Whether an answer has several tables."""
    return bool(answer.content.slice(0, min(4, answer.content.size)).to_pybytes() == b"PK\x03\x04")


def tables_of(
    answer: Answer, asked: Asked | None = None, others: Mapping[str, Answer] = MappingProxyType({})
) -> ReleasedTables:
    """The tables of an archive, with the names, the mechanisms and the columns that were asked for.

    Nothing of it is used before it is checked. Its files are not compressed, so that it takes no more memory than its
    answer. Tables that are not Arrow streams must be in ``others``, as streams.
    """
    return understood(answer, lambda: _read_tables(answer, asked, others))


def _read_tables(answer: Answer, asked: Asked | None, others: Mapping[str, Answer]) -> ReleasedTables:
    members, stated = read_archive(answer.content)
    certificate, mechanisms = certified(document_in(pa.py_buffer(stated.encode())), asked)
    if "" in mechanisms or members.keys() != mechanisms.keys():
        raise ValueError
    tables = {}
    for name, (kind, content) in members.items():

        def roles(schema: pa.Schema, name: str = name) -> Roles:
            if schema.metadata[TABLE.encode()] != name.encode() or schema.metadata[_CERTIFICATE] != stated.encode():
                raise ValueError
            return _asked_roles(schema, mechanisms[name], certificate, asked, name)

        tables[name] = _read_answer(content if kind == "arrow" else others[name].content, roles, answer.unload)
    return ReleasedTables(tables, certificate, answer.is_replayed, answer.released_at)


def _asked_roles(
    schema: pa.Schema, mechanism: AnyMechanism, certificate: Certificate, asked: Asked | None, name: str
) -> Roles:
    found = _roles_in(schema, mechanism)
    if asked is not None and asked.roles[name] != found:
        raise Contradiction("a table has other columns")
    if certificate.columns.get(name, found) != found:
        raise Contradiction("its certificate names other columns")
    return found


def _roles_in(schema: pa.Schema, mechanism: AnyMechanism) -> Roles:
    """Keys come first, then the count, then the values, then the intervals of both, if they were asked for."""
    values = () if mechanism.aggregates is None else mechanism.aggregates.names
    names = tuple(schema.names)
    shorter = len(names) - len(interval_columns(("", *values)))
    count = names[max(shorter - 1 - len(values), 0)]
    if names[max(shorter, 0) :] == interval_columns((count, *values)):
        names = names[:shorter]
    place = len(names) - 1 - len(values)
    if place < 1 or names[place + 1 :] != values or len(set(schema.names)) != len(schema.names):
        raise ValueError("the columns are not those of a release")
    return Roles(names[:place], names[place], values)


def groups_of(document: Json, asked: Asked, is_replayed: bool, released_at: str | None) -> ReleasedGroups:
    """The groups of a JSON answer, with the mechanism that was asked for. Numbers are integers if their grid is 1."""
    certificate, mechanisms = certified(document["certificate"], asked)
    groups, grid = document["groups"], document["certificate"]["grid"]
    if groups["values"].keys() != set(mechanisms[""].column_names):
        raise Contradiction("it has other columns")
    found = ReleasedGroups(
        keys=tuple(map(answered_key, groups["keys"])),
        counts=_numbers(groups["counts"], grid["count"]),
        values={name: _numbers(column, grid["values"][name]) for name, column in groups["values"].items()},
        certificate=certificate,
        is_replayed=is_replayed,
        released_at=released_at,
    )
    if {len(column) for column in (found.counts, *found.values.values())} != {len(found.keys)}:
        raise ValueError
    return found


def _numbers(column: list[float], grid: float) -> Numbers:
    numbers = np.array(column, np.float64 if not column else None)
    if numbers.ndim != 1 or numbers.dtype.kind not in "if":
        raise ValueError
    if grid != 1:
        return numbers.astype(np.float64)
    whole = numbers.astype(np.int64)
    if not np.array_equal(whole, numbers):
        raise ValueError
    return whole


_CERTIFICATE = CERTIFICATE.encode()
_NUMBERS = (pa.int64(), pa.float64())
_VERSION, _HEADER, _METADATA = 0, 2, 4
"""Places of the fields of a message."""
_COMPRESSION, _DATA, _IS_DELTA = 3, 1, 2
"""Places of fields: the compression of a batch, and of a dictionary its batch and whether it adds to an earlier one."""
_V5 = 4


def _read_answer(content: pa.Buffer, roles: Callable[[pa.Schema], Roles], unload: Callable[[], None]) -> pa.Table:
    """The table of a stream, which refers to ``content``; or an error of Arrow or of Python.

    ``roles`` gives the roles of its columns. ``unload`` is called after each batch: what was read for a check need not
    stay in memory.
    """
    for message in _messages(content):
        _check_message(message)
    schema, batches = stream_batches(content)
    names = roles(schema)
    _check_types(schema, len(names.keys))
    checked = []
    for batch in batches:
        batch.validate(full=True)
        if any(column.null_count for column in batch.columns[len(names.keys) :]):
            raise ValueError
        checked.append(batch)
        unload()
    fields = [pa.field(each.name, each.type, place < len(names.keys)) for place, each in enumerate(schema)]
    kept = {name: schema.metadata[name] for name in (_CERTIFICATE, TABLE.encode()) if name in schema.metadata}
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
