"""The rests of all groups of a parent table: what each has beyond its published children.  [docs/levels.md]

The child's key columns contain those of the parent: (country, city) and (country). Nothing but published numbers is
used, so it costs no privacy. Columns of the result: the parent's keys, and ``<name>_low``, ``<name>_estimate`` and
``<name>_high`` for the count and each sum that both tables have.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from gsh.accounting.mechanism import AnyMechanism
from gsh.arguments import Real
from gsh.errors import InvalidParameter, renamed
from gsh.histogram.roles import ENDS, Roles
from gsh.library.accuracy import rest
from gsh.library.measures import CENTRED

Rounded: TypeAlias = tuple[float, ...] | None

__all__ = ["child_of", "numbers_of", "rest_table", "rests_asked"]


def child_of(roles: Mapping[str, Roles], parent: str, child: str | None = None) -> str:
    """The table of the children: the one that is named, or the coarsest of those that are finer than the parent."""
    if parent not in roles:
        raise InvalidParameter("parent", f"must be one of the tables: {', '.join(roles)}")
    finer = _finer(roles, parent)
    if not finer:
        raise InvalidParameter("parent", f"must have a finer table: no table has the key columns of {parent} and more")
    if child is None:
        return _coarsest(roles, parent, finer)
    if child not in finer:
        raise InvalidParameter("child", f"must be a table whose key columns contain those of {parent}, and others")
    return child


def _finer(roles: Mapping[str, Roles], parent: str) -> list[str]:
    """The tables with the key columns of the parent and others."""
    return [name for name, each in roles.items() if {*each.keys} > {*roles[parent].keys}]


def _coarsest(roles: Mapping[str, Roles], parent: str, finer: Sequence[str]) -> str:
    """The finer table whose key columns all others have too: of url, country and day after url, country."""
    keys = {name: {*roles[name].keys} for name in finer}
    found = [name for name in finer if all(keys[name] <= each for each in keys.values())]
    if len(found) != 1:  # none, or two tables with the same key columns
        listed = ", ".join(finer)
        raise InvalidParameter("child", f"must name the child of {parent}: none of {listed} is the coarsest")
    return found[0]


def rests_asked(roles: Mapping[str, Roles], asked: bool | Mapping[str, str]) -> dict[str, str]:
    """The child of each parent whose rest is written. True: every table that has a finer one is a parent."""
    if not isinstance(asked, Mapping | bool):
        raise InvalidParameter("rest", "must be True, False, or a mapping from parents to their children")
    with renamed(("parent", "rest"), ("child", "rest")):
        if isinstance(asked, Mapping):
            pairs = {parent: child_of(roles, parent, child) for parent, child in asked.items()}
        else:
            pairs = {name: child_of(roles, name) for name in roles if asked and _finer(roles, name)}
    if asked is True and not pairs:
        raise InvalidParameter("rest", "must be omitted: no table has the key columns of another and more")
    for parent in pairs:
        if f"{parent}_rest".lower() in {name.lower() for name in roles}:
            raise InvalidParameter("rest", f"needs the name {parent}_rest, and a table has it")
    return pairs


def numbers_of(parent: Roles, child: Roles) -> tuple[str, ...]:
    """The count, and the further columns that both tables have. What is around a middle has no rest of its own."""
    return parent.count, *(name for name in parent.values if name in child.values and not name.endswith(CENTRED))


def rest_table(
    parent: tuple[Roles, AnyMechanism, pa.Table, Rounded],
    child: tuple[Roles, AnyMechanism, pa.Table, Rounded],
    level: Real = 0.95,
) -> pa.Table:
    """The rest of each published group of the parent, in their order.

    The last of each is what its numbers were rounded to. What is not rounded may be taken as rounded.
    """
    (roles, mechanism, groups, rounded), (finer, theirs, children, theirs_rounded) = parent, child
    numbers = numbers_of(roles, finer)
    units = _units([(roles, rounded), (finer, theirs_rounded)], numbers[1:])
    below: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for place, key in enumerate(_keys(children, roles.keys)):
        below[key].append(place)
    counts = children[finer.count].to_numpy()
    columns = {name: children[name].to_numpy() for name in numbers[1:]}
    rows = []
    for key, *own in zip(_keys(groups, roles.keys), *(groups[name].to_pylist() for name in numbers), strict=True):
        places = below[key]
        values = {name: (value, columns[name][places]) for name, value in zip(numbers[1:], own[1:], strict=True)}
        found = rest(mechanism, theirs, count=own[0], counts=counts[places], values=values, level=level, **units)
        rows.append([getattr(each, end) for each in (found.counts, *found.values.values()) for end in ENDS])
    names = [f"{name}_{end}" for name in numbers for end in ENDS]
    made = {name: pa.array([row[place] for row in rows], pa.float64()) for place, name in enumerate(names)}
    return pa.table({name: groups[name] for name in roles.keys} | made)


def _units(tables: Sequence[tuple[Roles, Rounded]], names: Sequence[str]) -> dict[str, Any]:
    """The rounding of both tables as arguments of ``gsh.rest``: the coarser unit of each column."""
    given = [dict(zip(roles.numbers, units, strict=True)) for roles, units in tables if units is not None]
    if not given:
        return {}
    return {"is_rounded": True, "units": {name: max(units[name] for units in given) for name in names}}


def _keys(table: pa.Table, by: tuple[str, ...]) -> list[tuple[Any, ...]]:
    return list(zip(*(table[name].to_pylist() for name in by), strict=True))
