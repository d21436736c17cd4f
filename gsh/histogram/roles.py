"""The roles of the columns of a table, and the names of the columns that intervals add."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from gsh.errors import InvalidGroups, pointer_part

__all__ = ["ENDS", "Roles", "check_interval_columns", "interval_columns"]


@dataclass(frozen=True, slots=True)
class Roles:
    """The role of each column of a table. The table must have no other columns."""

    keys: tuple[str, ...]
    count: str
    values: tuple[str, ...]

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns of numbers."""
        return self.count, *self.values

    def places(self, typed: Collection[str] = ()) -> list[tuple[str, str]]:
        """Places of the columns of CSV by their roles, as pairs for ``renamed``, except those with a given type."""
        roles = {name: f"/key_columns/{place}" for place, name in enumerate(self.keys)} | {self.count: "/count_column"}
        roles |= {name: f"/mechanism/aggregates/names/{place}" for place, name in enumerate(self.values)}
        named = [(f"/csv_types/{pointer_part(name)}", role) for name, role in roles.items() if name not in typed]
        return named if typed else [*named, ("/csv_types", "/key_columns")]


ENDS = ("low", "estimate", "high")
"""Intervals add three columns to each column of numbers: ``<name>_low``, ``<name>_estimate`` and ``<name>_high``."""


def interval_columns(numbers: Iterable[str]) -> tuple[str, ...]:
    """The names of the further columns, for columns of numbers with these names."""
    return tuple(f"{name}_{end}" for name in numbers for end in ENDS)


def check_interval_columns(numbers: Iterable[str], keys: Iterable[str] = ()) -> None:
    """Refuse intervals whose columns have the name of another column."""
    named = tuple(numbers)
    if {*named, *keys} & {*interval_columns(named)}:
        raise InvalidGroups("/intervals", f"need names that end in _{', _'.join(ENDS)}, and the table has one of them")
