"""Releases as a client receives them: private tables with their certificate, of a server that may be hostile.

Every byte of a table is checked before it is used (gsh/results/arrow_streams.py), an archive must have the asked tables
and the certificate, and the certificate must say what was asked for (asked.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from gsh.accounting.mechanism import AnyMechanism
from gsh.certificate import Certificate
from gsh.client.asked import Asked, certified
from gsh.client.decoding import Contradiction, understood
from gsh.client.operations import Answer
from gsh.documents import object_in
from gsh.histogram.archives import read_archive
from gsh.histogram.formats import CERTIFICATE, TABLE, signature_in
from gsh.histogram.roles import Roles, roles_in
from gsh.library.groups import Groups, Numbers, answered_key
from gsh.results.arrow_streams import read_stream
from gsh.results.budget_use import BudgetUse
from gsh.results.private_tables import PrivateTables
from gsh.wire import Json

__all__ = ["Release", "ReleasedGroups", "groups_of", "is_archive", "release_of", "tables_of"]


_CERTIFICATE = CERTIFICATE.encode()


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Release(PrivateTables):
    """A private table, or several of one release, and their certificate. It is also in the metadata of each table."""

    is_replayed: bool = False
    """Whether an earlier request with the same ``once=`` made the release, and was charged."""
    released_at: str | None = None
    """When a replayed release was made. None if it is new."""
    budget_use: BudgetUse | None = None
    """What it used of the budget that paid, and how many more like it fit. None if nothing paid, or it is unknown."""

    @property
    def once(self) -> str | None:
        """The idempotency key: the name of the release. None if no budget paid for it."""
        return self.certificate.idempotency_key

    def __repr__(self) -> str:
        name = "" if self.once is None else f" {self.once!r}"
        replayed = f", replayed: released on {self.released_at}" if self.is_replayed else ""
        used = "" if self.budget_use is None else f"; {self.budget_use}"
        return f"<Release{name}: {self._described()}{replayed}{used}>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ReleasedGroups(Groups):
    """The groups that were kept, as the library gives them, with the certificate of the service."""

    certificate: Certificate
    is_replayed: bool
    released_at: str | None = None
    budget_use: BudgetUse | None = None

    def __reduce__(self) -> tuple[type["ReleasedGroups"], tuple[object, ...]]:
        about = (self.certificate, self.is_replayed, self.released_at, self.budget_use)
        return ReleasedGroups, (self.keys, self.counts, dict(self.values), *about)


def release_of(answer: Answer, asked: Asked | None = None) -> Release:
    """The release of an Arrow stream, with the mechanism and the columns that were asked for.

    Nothing of it is used before it is checked. The table refers to the bytes of the answer.
    """

    said: list[Certificate] = []

    def roles(schema: pa.Schema) -> Roles:
        certificate, mechanisms = certified(object_in(schema.metadata[_CERTIFICATE]), asked)
        said.append(certificate)
        return _asked_roles(schema, mechanisms[""], certificate, asked, "")

    table = understood(answer, lambda: read_stream(answer.content, roles, answer.unload))
    return _release({"": table}, said[0], answer)


def _release(tables: Mapping[str, pa.Table], certificate: Certificate, answer: Answer) -> Release:
    replay = {"is_replayed": answer.is_replayed, "released_at": answer.released_at}
    signature = next(filter(None, map(signature_in, tables.values())), None)
    return Release(tables, certificate, signature, **replay, budget_use=answer.budget_use)  # type: ignore[arg-type]


def is_archive(answer: Answer) -> bool:
    """Whether an answer has several tables."""
    return bool(answer.content.slice(0, min(4, answer.content.size)).to_pybytes() == b"PK\x03\x04")


def tables_of(
    answer: Answer, asked: Asked | None = None, others: Mapping[str, Answer] = MappingProxyType({})
) -> Release:
    """The tables of an archive, with the names, the mechanisms and the columns that were asked for.

    Nothing of it is used before it is checked. Its files are not compressed, so that it takes no more memory than its
    answer. Tables that are not Arrow streams must be in ``others``, as streams.
    """
    return understood(answer, lambda: _read_tables(answer, asked, others))


def _read_tables(answer: Answer, asked: Asked | None, others: Mapping[str, Answer]) -> Release:
    members, stated = read_archive(answer.content)
    certificate, mechanisms = certified(object_in(stated), asked)
    if "" in mechanisms or members.keys() != mechanisms.keys():
        raise ValueError
    tables = {}
    for name, (kind, content) in members.items():

        def roles(schema: pa.Schema, name: str = name) -> Roles:
            if schema.metadata[TABLE.encode()] != name.encode() or schema.metadata[_CERTIFICATE] != stated.encode():
                raise ValueError
            return _asked_roles(schema, mechanisms[name], certificate, asked, name)

        tables[name] = read_stream(content if kind == "arrow" else others[name].content, roles, answer.unload)
    return _release(tables, certificate, answer)


def _asked_roles(
    schema: pa.Schema, mechanism: AnyMechanism, certificate: Certificate, asked: Asked | None, name: str
) -> Roles:
    found = roles_in(schema.names, mechanism.column_names)
    if asked is not None and asked.roles[name] != found:
        raise Contradiction("a table has other columns")
    if certificate.columns.get(name, found) != found:
        raise Contradiction("its certificate names other columns")
    return found


def groups_of(document: Json, asked: Asked, answer: Answer) -> ReleasedGroups:
    """The groups of a JSON answer, with the mechanism that was asked for. Numbers are integers if their grid is 1."""
    certificate, mechanisms = certified(document["certificate"], asked)
    groups, said = document["groups"], document["certificate"]
    grid = said.get("rounded", said["grid"])
    if groups["values"].keys() != set(mechanisms[""].column_names):
        raise Contradiction("it has other columns")
    found = ReleasedGroups(
        keys=tuple(map(answered_key, groups["keys"])),
        counts=_numbers(groups["counts"], grid["count"]),
        values={name: _numbers(column, grid["values"][name]) for name, column in groups["values"].items()},
        certificate=certificate,
        is_replayed=answer.is_replayed,
        released_at=answer.released_at,
        budget_use=answer.budget_use,
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
