"""The columns that intervals add to a table: ``<name>_low``, ``<name>_estimate`` and ``<name>_high``."""

from collections.abc import Iterable

from gsh.errors import InvalidGroups

__all__ = ["ENDS", "check_interval_columns", "interval_columns"]

ENDS = ("low", "estimate", "high")


def interval_columns(numbers: Iterable[str]) -> tuple[str, ...]:
    """The names of the further columns, for columns of numbers with these names."""
    return tuple(f"{name}_{end}" for name in numbers for end in ENDS)


def check_interval_columns(numbers: Iterable[str], keys: Iterable[str] = ()) -> None:
    """Refuse intervals whose columns have the name of another column."""
    named = tuple(numbers)
    if {*named, *keys} & {*interval_columns(named)}:
        raise InvalidGroups("/intervals", f"need names that end in _{', _'.join(ENDS)}, and the table has one of them")
