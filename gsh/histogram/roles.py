"""The roles of the columns of a table, and the names of the columns that intervals add."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from gsh.errors import InvalidGroups, pointer_part

__all__ = ["ENDS", "Roles", "check_interval_columns", "interval_columns", "roles_in"]


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


def roles_in(columns: Sequence[str], values: Sequence[str], stated: Roles | None = None) -> Roles:
    """The roles of the columns of a private table, in their order; ``ValueError`` if they are not those of a release.

    Keys come first, then the count, then the ``values`` of its mechanism, then the intervals of both, if they were
    asked for. The names of the keys and of the count must be the ``stated`` ones.
    """
    names, values = tuple(columns), tuple(values)
    shorter = len(names) - len(interval_columns(("", *values)))
    count = names[max(shorter - 1 - len(values), 0)] if names else ""
    if names[max(shorter, 0) :] == interval_columns((count, *values)):
        names = names[:shorter]
    place = len(names) - 1 - len(values)
    if place < 1 or names[place + 1 :] != values or len({*columns}) != len(columns):
        raise ValueError("the columns are not those of a release")
    found = Roles(names[:place], names[place], values)
    if stated not in (None, found):
        raise ValueError("the columns are not those that the certificate names")
    return found
