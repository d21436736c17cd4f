"""Releases that have arrived: the private table with its certificate."""

import functools
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gsh.accounting.mechanism import Mechanism
from gsh.arguments import Real
from gsh.client.arrow_answers import read_answer
from gsh.client.calls import Answer
from gsh.client.decoding import document_in, understood
from gsh.client.documents import Certificate, certificate_of
from gsh.histogram.interval_columns import interval_columns
from gsh.histogram.tables import CERTIFICATE, Roles
from gsh.library.groups import Groups, Numbers, answered_key
from gsh.wire import mechanism_from_json

if TYPE_CHECKING:
    from gsh.library.accuracy import Intervals, Totals

__all__ = ["Release", "ReleasedGroups", "groups_of", "release_of"]


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
    def mechanism(self) -> Mechanism:
        """The mechanism that was run."""
        return mechanism_from_json(self.certificate.mechanism)

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
        """For whatever reads Arrow tables: pandas, polars, DuckDB."""
        return self.table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __repr__(self) -> str:
        columns = ", ".join(self.table.column_names)
        name = "" if self.once is None else f" {self.once!r}"
        replayed = f", replayed: released on {self.released_at}" if self.is_replayed else ""
        return f"<Release{name}: {len(self)} groups of {columns}{replayed}>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ReleasedGroups(Groups):
    """The groups that were kept, as the library gives them, with the certificate of the service."""

    certificate: Certificate
    is_replayed: bool
    released_at: str | None = None

    def __reduce__(self) -> tuple[type["ReleasedGroups"], tuple[object, ...]]:
        about = (self.certificate, self.is_replayed, self.released_at)
        return ReleasedGroups, (self.keys, self.counts, dict(self.values), *about)


def release_of(answer: Answer, asked: Roles | None = None) -> Release:
    """The release of an Arrow stream, with the columns that were asked for.

    Nothing of it is used before it is checked (arrow_answers.py). The table refers to the bytes of the answer.
    """

    def roles(schema: pa.Schema) -> Roles:
        found = _roles_in(schema, mechanism_from_json(_certificate_in(schema).mechanism))
        if asked not in (None, found):
            raise ValueError
        return found

    table = understood(answer, lambda: read_answer(answer.content, roles, answer.unload))
    return Release(table, answer.is_replayed, answer.released_at)


def _certificate_in(schema: pa.Schema) -> Certificate:
    return certificate_of(document_in(pa.py_buffer(schema.metadata[CERTIFICATE.encode()])))


def _roles_in(schema: pa.Schema, mechanism: Mechanism) -> Roles:
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


def groups_of(document: Mapping[str, Any], is_replayed: bool, released_at: str | None) -> ReleasedGroups:
    """The groups of a JSON answer. Numbers are integers if their grid is 1."""
    groups, certificate = document["groups"], certificate_of(document["certificate"])
    grid = document["certificate"]["grid"]
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
