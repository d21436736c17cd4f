"""The plan of several tables that are published together: one user column, and a plan for each table.

    plans, keys = planned(tables, user="user_id", salt=salt)       tables: names to gsh.Table

    plans.tables[name]      the ``Plan`` of one table, with a salt of its own (lots.salt_of_table)
    plans.digest            of all tables, and of each list of public keys
    keys[name]              the list of a table with public keys (public_keys.py)

Each table is bounded by itself, exactly as if it were published alone under its salt. So an engine that can do one plan
can do several, and what a table keeps does not depend on the other tables.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, TypeAlias

from gsh.accounting.mechanism import MOST_TABLES
from gsh.arguments import Integer, instance
from gsh.errors import InvalidParameter, pointer_part, renamed
from gsh.events.kinds import Kind, checked_kind
from gsh.events.lots import salt_of_table
from gsh.events.plan import (
    COUNT,
    Plan,
    checked_count,
    checked_keys,
    checked_object,
    make_plan,
    table_fields,
    table_of_json,
    table_to_json,
)
from gsh.events.public_keys import ListedKeys, Origin, public_keys_of
from gsh.histogram.meanings import Meaning
from gsh.histogram.roles import Roles
from gsh.library.tables import Table, check_tables
from gsh.wire import check_table_name

__all__ = ["AnyPlan", "Plans", "in_table", "place_of", "plan_from_json", "planned"]


@dataclass(frozen=True, slots=True)
class Plans:
    """A checked plan of several tables. ``planned`` and ``Plans.from_json`` make it."""

    user: str
    salt: str
    """The salt of the release. Each table has one that is derived from it and from the name of the table."""
    types: tuple[tuple[str, Kind], ...]
    named: tuple[tuple[str, Plan], ...]
    count: str = COUNT
    """The column with the number of users, in all tables."""

    @property
    def tables(self) -> dict[str, Plan]:
        """The plan of each table, in their order."""
        return dict(self.named)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the events that the tables need, each once."""
        return tuple(dict.fromkeys(name for _, name in self.pointed))

    @property
    def roles(self) -> dict[str, Roles]:
        """The columns of the result of each table."""
        return {name: plan.roles for name, plan in self.named}

    @property
    def meaning(self) -> dict[str, Meaning]:
        """What the columns of each table mean."""
        return {name: plan.meaning for name, plan in self.named}

    @property
    def pointed(self) -> tuple[tuple[str, str], ...]:
        """The same columns, each with the arguments that name it."""
        return self._of_tables(lambda plan: plan.pointed)

    @property
    def query_names(self) -> tuple[tuple[str, str], ...]:
        """All names that queries have, each with its argument."""
        return self._of_tables(lambda plan: plan.query_names)

    def _of_tables(self, names: Callable[[Plan], Iterable[tuple[str, str]]]) -> tuple[tuple[str, str], ...]:
        further = (
            (pointer if pointer in ("user", "names/count") else f"{place_of(name)}/{pointer}", column)
            for name, plan in self.named
            for pointer, column in names(plan)
        )
        return tuple(dict.fromkeys(further))

    def kinds_in(self, schema: Mapping[str, Kind | None], *, may_list: bool = True) -> dict[str, Kind]:
        """The kind of each column, as ``Plan.kinds_in``."""
        kinds: dict[str, Kind] = {}
        for name, plan in self.named:
            with in_table(name):
                kinds |= plan.kinds_in(schema, may_list=may_list)
        return kinds

    def default_kinds(self) -> dict[str, Kind]:
        """The kinds of columns of files without types. Tables that would read a column differently must declare it."""
        kinds: dict[str, Kind] = {}
        for _, plan in self.named:
            for column, kind in plan.default_kinds().items():
                if kinds.setdefault(column, kind) != kind:
                    detail = f"must be declared: one table would read {column} as {kinds[column]}, another as {kind}"
                    raise InvalidParameter(f"types/{column}", detail)
        return kinds

    @property
    def version(self) -> int:
        """The version of its JSON: the first one for several tables that can say all of them."""
        return max(2, *(plan.version for _, plan in self.named))

    def to_json(self) -> dict[str, Any]:
        """The plan as a JSON object."""
        return {
            "version": self.version,
            "user": self.user,
            "salt": self.salt,
            "types": dict(self.types),
            **({"count": self.count} if self.version > 2 else {}),
            "tables": [
                {
                    "name": name,
                    **table_to_json(plan, self.version),
                    "public_keys": plan.public_keys,
                }
                for name, plan in self.named
            ],
        }

    @staticmethod
    def from_json(given: object) -> "Plans":
        """The plan of a JSON object, with every check made again."""
        version = given.get("version") if isinstance(given, Mapping) else None
        if version not in (3, 4):
            version = 2
        own = {"version", "user", "salt", "types", "tables"}
        found = checked_object("plan", given, own | {"count"} if version > 2 else own)
        if found["version"] != version:
            raise InvalidParameter("plan/version", f"must be {version}")
        if not isinstance(found["tables"], Sequence) or isinstance(found["tables"], str):
            raise InvalidParameter("plan/tables", "must be a list")
        fields = {"name", "public_keys", *table_fields(version)}
        tables: dict[str, dict[str, Any]] = {}
        for place, each in enumerate(found["tables"]):
            pointer = f"plan/tables/{place}"
            table = checked_object(pointer, each, fields)
            check_table_name(f"{pointer}/name", table["name"], tables)
            tables[table["name"]] = table_of_json(pointer, table, version)
            tables[table["name"]]["public_keys"] = table["public_keys"]
        count = checked_count({COUNT: found.get("count", COUNT)})
        return _plans(tables, user=found["user"], salt=found["salt"], types=found["types"], count=count)

    @property
    def digest(self) -> str:
        """The SHA-256 of the canonical JSON, as of a ``Plan``."""
        written = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
        return hashlib.sha256(written.encode("ascii")).hexdigest()


AnyPlan: TypeAlias = Plan | Plans


def plan_from_json(given: object) -> AnyPlan:
    """A plan of one table or of several."""
    return Plans.from_json(given) if isinstance(given, Mapping) and "tables" in given else Plan.from_json(given)


def planned(
    tables: Mapping[str, Table],
    *,
    user: str,
    salt: str,
    types: Mapping[str, Kind] | None = None,
    partitions: Integer | None = None,
    origin: Origin | None = None,
    names: Mapping[str, str] | None = None,
) -> tuple[Plans, dict[str, ListedKeys]]:
    """The plan of the tables of ``publish``, and the public keys of the tables that have them.

    The keys must not come from the ``origin``: the events.
    """
    check_tables(tables)
    described: dict[str, dict[str, Any]] = {}
    keys: dict[str, ListedKeys] = {}
    for name, given in tables.items():
        with renamed(("", place_of(name))):
            table = instance("", given, Table)
            if table.aggregates is not None:
                raise InvalidParameter("aggregates", "must be omitted: publish clips each column of sums")
            if table.public_keys is not None:
                keys[name] = public_keys_of(table.public_keys, checked_keys(table.by), origin=origin)
        described[name] = {
            "by": table.by,
            "sums": table.sums,
            "events": table.events,
            "means": table.means,
            "units": table.units,
            "ratios": table.ratios,
            "round": table.round,
            "caps": table.caps,
            "c_u": table.c_u,
            "tau": table.tau,
            "public_keys": keys[name].digest if name in keys else None,
            "partitions": partitions,
        }
    return _plans(described, user=user, salt=salt, types=types, count=checked_count(names)), keys


def _plans(tables: Mapping[str, Mapping[str, Any]], *, user: str, salt: str, types: object, count: str) -> Plans:
    if not 1 <= len(tables) <= MOST_TABLES:
        raise InvalidParameter("tables", f"must be 1 to {MOST_TABLES} tables")
    if types is not None and not isinstance(types, Mapping):
        raise InvalidParameter("types", "must be a mapping from names of columns")
    named: list[tuple[str, Plan]] = []
    names = {COUNT: count}
    for name, fields in tables.items():
        with in_table(name):
            plain = make_plan(user=user, names=names, salt=salt, **fields)
            own = {column: kind for column, kind in (types or {}).items() if column in plain.columns}
            named.append((name, make_plan(user=user, names=names, salt=salt_of_table(salt, name), types=own, **fields)))
    columns = {column for _, plan in named for column in plan.columns}
    if not columns.issuperset(types or {}):
        raise InvalidParameter("types", "must name only columns of user, by and sums")
    declared = {column: checked_kind(f"types/{column}", kind) for column, kind in (types or {}).items()}
    return Plans(user, salt, tuple(sorted(declared.items())), tuple(named), count)


def place_of(name: str) -> str:
    """Where the arguments of a table are."""
    return f"tables/{pointer_part(name)}"


def in_table(name: str) -> Any:
    """Errors about a table name it. Those about what all tables share do not. The only table has no name."""
    if not name:
        return nullcontext()
    shared = ("user", "salt", "types", "names")
    return renamed(*((pointer, pointer) for pointer in shared), ("", place_of(name)))
