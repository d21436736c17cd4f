"""Public keys as a table of DuckDB: records of other groups are left out, and groups without records are completed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import duckdb

from gsh.duckdb.sources import Source, casted
from gsh.duckdb.workspace import Workspace
from gsh.events.dialects import DIALECTS
from gsh.events.plan import Plan
from gsh.events.public_keys import ListedKeys, listed_kinds, not_of_type
from gsh.events.tables import in_table

__all__ = ["KeysTable", "keys_table", "keys_tables"]

_IDENTIFIER = DIALECTS["duckdb"].identifier


@dataclass(frozen=True, slots=True)
class KeysTable:
    """A table with the columns c0, c1 … of a list of keys, each key once, in the types of the events."""

    name: str
    by: tuple[str, ...]
    is_text: tuple[bool, ...]
    """Which columns of the events are compared as texts: an enumeration may lack a listed value."""

    def listed(self, scan: str) -> str:
        """The events of listed groups. A missing part is a value of its own."""
        same = self._same(f"_records.{_IDENTIFIER(name)}" for name in self.by)
        return f"(SELECT _records.* FROM {scan} AS _records SEMI JOIN {self.name} AS _listed ON {same})"

    def coded(self, codes: Sequence[str]) -> str:
        """The list with codes in place of values. ``codes`` has a table of values and codes for each column."""
        places = range(len(self.by))
        same = self._same(f"_code{place}.value" for place in places)
        tables = ", ".join(f"{table} AS _code{place}" for place, table in enumerate(codes))
        chosen = ", ".join(f"_code{place}.code AS c{place}" for place in places)
        return f"SELECT {chosen} FROM {self.name} AS _listed, {tables} WHERE {same}"

    def completed(self, query: str, plan: Plan) -> str:
        """All listed groups: those that the query over events does not have count 0."""
        keys = [f"_listed.c{place} AS {_IDENTIFIER(name)}" for place, name in enumerate(self.by)]
        numbers = [f"COALESCE(_found.{_IDENTIFIER(name)}, 0) AS {_IDENTIFIER(name)}" for name in plan.roles.numbers]
        found = f"({query}) AS _found ON {self._same(f'_found.{_IDENTIFIER(name)}' for name in self.by)}"
        return f"SELECT {', '.join([*keys, *numbers])} FROM {self.name} AS _listed LEFT JOIN {found}"

    def _same(self, columns: Iterable[str]) -> str:
        values = [f"CAST({each} AS VARCHAR)" if self.is_text[place] else each for place, each in enumerate(columns)]
        return " AND ".join(f"{value} IS NOT DISTINCT FROM _listed.c{place}" for place, value in enumerate(values))


def keys_table(space: Workspace, source: Source, plan: Plan, keys: ListedKeys, number: int = 0) -> KeysTable:
    """The table of the list, cast to the types of the key columns. Values that cannot be cast are refused."""
    listed_kinds(keys, [source.kinds[name] for name in plan.by])
    types = dict(space.described(source.sql))
    is_text = tuple(types[name].startswith("ENUM") for name in plan.by)
    arrow, name = f"_gsh_listed{number}", f"_gsh_keys{number}"
    space.connection.register(arrow, keys.table.rename_columns([f"c{place}" for place in range(len(plan.by))]))
    columns = [
        f"{casted(f'c{place}', source.kinds[column], 'VARCHAR' if is_text[place] else types[column])} AS c{place}"
        for place, column in enumerate(plan.by)
    ]
    try:
        wrong = None
        if not _runs(space, f"CREATE TABLE {name} AS SELECT DISTINCT {', '.join(columns)} FROM {arrow}"):
            casts = (f"SELECT COUNT({cast.rpartition(' AS ')[0]}) FROM {arrow}" for cast in columns)
            wrong = next((place for place, query in enumerate(casts) if not _runs(space, query)), 0)
    finally:
        space.connection.unregister(arrow)
    if wrong is not None:
        raise not_of_type(plan.by[wrong], source.kinds[plan.by[wrong]])
    return KeysTable(name, plan.by, is_text)


def _runs(space: Workspace, query: str) -> bool:
    try:
        space.connection.execute(query)
    except duckdb.Error:
        return False
    return True


def keys_tables(
    space: Workspace, source: Source, plans: Mapping[str, Plan], keys: Mapping[str, ListedKeys]
) -> dict[str, KeysTable]:
    """The tables of all lists."""
    made = {}
    for place, (name, listed) in enumerate(keys.items()):
        with in_table(name):
            made[name] = keys_table(space, source, plans[name], listed, place)
    return made
