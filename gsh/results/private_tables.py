"""Private tables with their certificate: the one interface of what is published, released and read."""

import dataclasses
import functools
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gsh.accounting.mechanism import AnyMechanism
from gsh.arguments import Real
from gsh.certificate import Certificate
from gsh.certificate_words import intervals_cover
from gsh.errors import InvalidParameter
from gsh.histogram.meanings import Meaning
from gsh.histogram.roles import Roles, roles_in
from gsh.results.averages import means_in, numbers_in, ratios_in

if TYPE_CHECKING:
    from gsh.library.accuracy import Interval, Intervals, Totals

__all__ = ["LazyTables", "PrivateTables"]


@dataclass(frozen=True, eq=False, repr=False)
class PrivateTables:
    """The private tables of one release, with their certificate.  [docs/library.md]

    If there is one, it is ``table``, and the result itself is a table for programs that read Arrow. Of several, each
    has a name: ``tables["by_url"]`` has its rows, and ``result["by_url"]`` is the result of this table alone.
    """

    tables: Mapping[str, pa.Table]
    """The rows of each table, sorted by group key. The only table of a release without names has the empty name."""
    certificate: Certificate
    signature: str | None = None
    """The signed envelope of the certificate as JSON, if the files have one. It is not verified: see gsh.verify."""

    def __post_init__(self) -> None:
        if isinstance(self.tables, dict):
            object.__setattr__(self, "tables", MappingProxyType(dict(self.tables)))

    def __reduce__(self) -> tuple[Any, ...]:
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return functools.partial(type(self), **fields | {"tables": dict(self.tables)}), ()

    @property
    def table(self) -> pa.Table:
        """The rows of the only table: the key columns, the count, and further columns."""
        return self.tables[self._only]

    @functools.cached_property
    def mechanisms(self) -> Mapping[str, AnyMechanism]:
        """The mechanism of each table, by its name."""
        every = self.certificate.mechanisms
        return MappingProxyType({name: every[name] for name in self.tables})

    @property
    def mechanism(self) -> AnyMechanism:
        """The mechanism of the only table."""
        return self.mechanisms[self._only]

    @functools.cached_property
    def meanings(self) -> Mapping[str, Meaning]:
        """What the columns of each table mean, as the certificate says it."""
        every = self.certificate.meanings
        return MappingProxyType({name: every[name] for name in self.tables})

    @functools.cached_property
    def roles(self) -> Mapping[str, Roles]:
        """Which columns of each table are keys, count and values."""
        stated = self.certificate.columns
        return MappingProxyType(
            {
                name: roles_in(
                    self.meanings[name].without_averages(table.column_names),
                    self.mechanisms[name].column_names,
                    stated.get(name),
                )
                for name, table in self.tables.items()
            }
        )

    @property
    def key_columns(self) -> tuple[str, ...]:
        return self.roles[self._only].keys

    @property
    def count_column(self) -> str:
        return self.roles[self._only].count

    @property
    def value_columns(self) -> tuple[str, ...]:
        return self.roles[self._only].values

    @property
    def intervals_cover(self) -> str:
        """What intervals of the only table cover, in words: the numbers after bounding."""
        return intervals_cover(self.certificate.described[self._only].bounds, self.certificate.unit)

    def intervals(self, level: Real = 0.95) -> "Intervals":
        """Where the true numbers of the only table are, at a level of confidence: ``gsh.intervals`` of its columns."""
        from gsh.library import accuracy  # noqa: PLC0415 - loads SciPy

        return accuracy.intervals(self.mechanism, **self._numbers(), level=level)

    def total(self, level: Real = 0.95) -> "Totals":
        """The sums of the true numbers of the only table: ``gsh.total`` of its columns."""
        from gsh.library import accuracy  # noqa: PLC0415

        return accuracy.total(self.mechanism, **self._numbers(), level=level)

    def means(
        self, means: Mapping[str, tuple[Real, Real]] | None = None, *, level: Real = 0.95
    ) -> "Mapping[str, Interval]":
        """The means per user of the only table, with intervals: ``gsh.means`` of its columns.  [docs/accuracy.md]

        They are those that its certificate names, as ``gsh.publish`` made them. For another table, give their ranges.
        """
        return means_in(self.mechanism, self.meanings[self._only], self._numbers(), level, means)

    def ratios(
        self, ratios: Mapping[str, tuple[str, str]] | None = None, *, level: Real = 0.95
    ) -> "Mapping[str, Interval]":
        """The ratios of columns of the only table, with intervals: those of its certificate, or the given ones."""
        return ratios_in(self.mechanism, self.meanings[self._only], self._numbers(), level, ratios)

    def rest(self, parent: str, child: str | None = None, *, level: Real = 0.95) -> pa.Table:
        """What each published group of a table has beyond its published children, with intervals.  [docs/levels.md]

        The key columns of the child contain those of the parent. If it is omitted, it is the coarsest such table.
        """
        from gsh.results.rest import child_of, rest_table  # noqa: PLC0415 - loads SciPy

        if not any(self.tables):
            raise InvalidParameter("parent", "must be one of several tables, and this is a table without a name")
        finer = child_of(self.roles, parent, child)
        of_parent, of_child = (
            (self.roles[name], self.mechanisms[name], self.tables[name], self.meanings[name].rounded)
            for name in (parent, finer)
        )
        return rest_table(of_parent, of_child, level)

    def to_pandas(self) -> Any:
        """The only table as a data frame of pandas."""
        return self.table.to_pandas()

    def to_polars(self) -> Any:
        """The only table as a data frame of polars."""
        return importlib.import_module("polars").from_arrow(self.table)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """For programs that read Arrow tables: pandas, polars, DuckDB."""
        return self.table.__arrow_c_stream__(requested_schema)

    def __getitem__(self, name: str) -> "PrivateTables":
        """The result of one table alone."""
        if name not in self.tables:
            raise InvalidParameter("table", f"must be one of {', '.join(self.tables)}")
        return PrivateTables({name: self.tables[name]}, self.certificate, self.signature)

    def __len__(self) -> int:
        """The number of groups, of all tables together."""
        return sum(map(len, self.tables.values()))

    def __repr__(self) -> str:
        return f"<PrivateTables: {self._described()}>"

    def _described(self) -> str:
        """The columns of the only table, or the names of several, with the numbers of their groups."""
        if len(self.tables) == 1:
            (table,) = self.tables.values()
            return f"{len(table)} groups of {', '.join(table.column_names)}"
        return ", ".join(f"{name} ({len(table)} groups)" for name, table in self.tables.items())

    @property
    def _only(self) -> str:
        """The name of the only table."""
        if len(self.tables) != 1:
            detail = f"is ambiguous: there are several. Take result[name]; the names are {', '.join(self.tables)}"
            raise InvalidParameter("table", detail)
        return next(iter(self.tables))

    def _numbers(self) -> dict[str, Any]:
        return numbers_in(self.table, self.roles[self._only], self.meanings[self._only])


class LazyTables(Mapping[str, pa.Table]):
    """Tables that are read when the rows of one are first used. Their names are known."""

    def __init__(self, names: Iterable[str], read: Callable[[], Mapping[str, pa.Table]]) -> None:
        self._names, self._read = tuple(names), functools.cache(read)

    def __getitem__(self, name: str) -> pa.Table:
        if name not in self._names:
            raise KeyError(name)
        return self._read()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
