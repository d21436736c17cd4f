"""Several tables from the same events: users and key values become numbers, from which all tables are made.

    _gsh_code0          the users: ``value``, its ``code``, and its ``part`` in the text of a lot
    _gsh_code1 …        the same of each key column. None is a value too
    _gsh_base           a row per user and combination of all keys: code0, code1 …, and the sums in units base0, base1 …

Integers in units are added, so what comes from the base is what comes from the events. The bounds of the tables come
later, each for itself. A column that is summed in two units is added up in both. The base is stored in the order of
users, and codes take 32 bits unless there are very many events: all that reads them is faster so.

Lots cost the most, so only users with more rows than they keep get them. The codes of key values have the order of the
values: so equal lots are decided by the parts of the key, as everywhere (gsh/events/lots.py).

Events are read twice, by columns: for the codes and for the base. If a value has no code, they have changed.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from gsh.duckdb.public_keys import KeysTable
from gsh.duckdb.sources import Source
from gsh.duckdb.workspace import CHANGED, Workspace, literal
from gsh.events.bounding import clipped, record_units
from gsh.events.dialects import DIALECTS
from gsh.events.kinds import Kind
from gsh.events.lots import lot_of_sql, part_sql, start_sql
from gsh.events.plan import Plan
from gsh.library.measures import Measure

__all__ = ["Coded"]

_BASE = "_gsh_base"
_CODES = "_gsh_code"
_MOST_OF_32_BITS = 2**28
"""Events from which on codes take 64 bits. Of texts the number is an estimate, so there is room: a code that does not
fit would be an error."""
_SQL = DIALECTS["duckdb"]


@dataclass(frozen=True, slots=True)
class Coded:
    """The columns of several tables, each once."""

    user: str
    keys: tuple[str, ...]
    measures: tuple[Measure, ...]
    kinds: Mapping[str, Kind]
    code_type: str

    @staticmethod
    def of(plans: Sequence[Plan], source: Source) -> "Coded":
        keys = dict.fromkeys(name for plan in plans for name in plan.by)
        measures = {_added(each): each for plan in plans for each in plan.measures}
        code_type = "UINTEGER" if source.rows < _MOST_OF_32_BITS else "UBIGINT"
        return Coded(plans[0].user, tuple(keys), tuple(measures.values()), source.kinds, code_type)

    @contextmanager
    def made(self, space: Workspace, scan: str) -> Iterator[str]:
        """The tables of the codes and of the base, while the block runs."""
        columns = (self.user, *self.keys)
        try:
            for place in range(len(columns)):
                space.connection.execute(f"CREATE TEMP TABLE {_CODES}{place} AS {self.coding(place, scan)}")
            space.connection.execute(f"CREATE TEMP TABLE {_BASE} AS {self.adding_up(scan)}")
            yield _BASE
        finally:
            for name in (_BASE, *(f"{_CODES}{place}" for place in range(len(columns)))):
                space.connection.execute(f"DROP TABLE IF EXISTS {name}")

    def coding(self, place: int, scan: str) -> str:
        """The values of the user column (at place 0) or of a key column, with their codes."""
        name = (self.user, *self.keys)[place]
        kind = self.kinds[name]
        column = _SQL.identifier(name)
        # An enumeration has an order of its own, which depends on other records.
        order = f"ORDER BY {'CAST(value AS VARCHAR)' if kind == 'string' else 'value'}" if place > 0 else ""
        values = f"SELECT DISTINCT {column} AS value FROM {scan}"
        code = f"CAST(ROW_NUMBER() OVER ({order}) AS {self.code_type})"
        return f"SELECT value, {code} AS code, {part_sql(_SQL, 'value', kind)} AS part FROM ({values})"

    def adding_up(self, scan: str) -> str:
        """The events with codes in place of values, added up."""
        user = f"_events.{_SQL.identifier(self.user)}"
        changed = f"error({literal(CHANGED)})"
        codes, joins = [], []
        for place, name in enumerate((self.user, *self.keys)):
            codes.append(f"COALESCE(_code{place}.code, {changed})")
            same = f"_events.{_SQL.identifier(name)} IS NOT DISTINCT FROM _code{place}.value"
            joins.append(f"LEFT JOIN {_CODES}{place} AS _code{place} ON {same}")
        chosen = [f"{code} AS code{place}" for place, code in enumerate(codes)]
        for place, each in enumerate(self.measures):
            units = record_units(_SQL, each, self.kinds, "_events.")
            chosen.append(f"SUM({_SQL.added.format(units)}) AS base{place}")
        groups = ", ".join(str(place) for place in range(1, len(codes) + 1))
        return (
            f"SELECT {', '.join(chosen)} FROM {scan} AS _events {' '.join(joins)} "
            f"WHERE {user} IS NOT NULL GROUP BY {groups} ORDER BY 1"
        )

    def query(self, base: str, plan: Plan, listed: KeysTable | None, *, is_partial: bool = False) -> str:
        """The aggregates of a plan, from these tables: the result of ``bounding_query`` over the events."""
        return _Bounding(self, plan, listed).query(base, is_partial=is_partial)


def _added(measure: Measure) -> tuple[str | None, float]:
    """What of the events a measure adds up, before its bounds."""
    return measure.source, measure.scale


class _Bounding:
    """The query of one table: the steps of gsh/events/plan.py, each a common table expression."""

    def __init__(self, coded: Coded, plan: Plan, listed: KeysTable | None) -> None:
        self._coded, self._plan, self._listed = coded, plan, listed
        self._places = [1 + coded.keys.index(name) for name in plan.by]
        self._keys = [f"_key{place}" for place in self._places]
        self._sums = [f"_sum{place}" for place in range(len(plan.measures))]
        self._steps: list[str] = []

    def query(self, base: str, *, is_partial: bool) -> str:
        plan, sums = self._plan, self._sums
        capped = {name: each for name, each in zip(sums, plan.measures, strict=True) if each.groups is not None}
        self._add_per_user(base)
        self._add_smallest("_kept", "_per_user", sums, plan.c_u, is_stored=bool(capped))
        # A user counts in all kept groups. A capped column adds only the values that stay in it.
        parts = [self._counted("_kept", "1", [name for name in sums if name not in capped])]
        for name, each in capped.items():
            assert each.groups is not None
            values = f"(SELECT _user, {', '.join(self._keys)}, {name} FROM _kept WHERE {name} <> 0)"
            self._add_smallest(f"_stays{name}", values, [name], each.groups, each.name)
            parts.append(self._counted(f"_stays{name}", "NULL", [name]))
        totals = ", ".join(["COUNT(_users) AS _users", *(f"SUM({name}) AS {name}" for name in sums)])
        having = f" HAVING COUNT(_users) >= {plan.tau}" if plan.tau > 1 and not is_partial else ""
        keys = ", ".join(self._keys)
        self._add("_groups", f"SELECT {keys}, {totals} FROM ({' UNION ALL '.join(parts)}) GROUP BY {keys}{having}")
        return f"WITH {', '.join(self._steps)} {self._named()}"

    def _add(self, name: str, query: str, *, is_stored: bool = False) -> None:
        self._steps.append(f"{name} AS {'' if is_stored else 'NOT '}MATERIALIZED ({query})")

    def _add_per_user(self, base: str) -> None:
        """One record per user and group, with clipped sums."""
        coded, plan = self._coded, self._plan
        is_added = set(coded.keys) == set(plan.by)  # then the rows of the base are those of the table
        codes = [f"code{place}" for place in (0, *self._places)]
        chosen = [f"{code} AS {name}" for code, name in zip(codes, ("_user", *self._keys), strict=True)]
        added = list(map(_added, coded.measures))
        for name, each in zip(self._sums, plan.measures, strict=True):
            units = f"base{added.index(_added(each))}"
            chosen.append(f"{clipped(_SQL, each, units if is_added else f'SUM({units})')} AS {name}")
        listed = ""
        if self._listed is not None:
            same = " AND ".join(f"{code} = c{j}" for j, code in enumerate(codes[1:]))
            listed = f" SEMI JOIN ({self._listed.coded([f'{_CODES}{place}' for place in self._places])}) ON {same}"
        groups = "" if is_added else f" GROUP BY {', '.join(codes)}"
        query = f"SELECT {', '.join(chosen)} FROM {base}{listed}{groups}"
        self._add("_per_user", query, is_stored=bool(listed or groups))

    def _add_smallest(
        self, name: str, rows: str, sums: Sequence[str], most: int, column: str = "", *, is_stored: bool = False
    ) -> None:
        """Of each user the rows with the smallest lots, so many at most. Only users with more rows get lots."""
        many, ranked, chosen = f"_many{name}", f"_ranked{name}", ", ".join([*self._keys, *sums])
        salted = f"{start_sql(_SQL, self._plan.salt)} || part AS _salted"
        users = f"SELECT _user FROM {rows} GROUP BY _user HAVING COUNT(*) > {most}"
        self._add(many, f"SELECT _user, {salted} FROM ({users}) JOIN {_CODES}0 ON code = _user", is_stored=True)
        lot = lot_of_sql(_SQL, ["_salted", *(f"_code{place}.part" for place in self._places)], column)
        lots = f"SELECT _user, {chosen}, {lot} AS _lot FROM {rows} JOIN {many} USING (_user) {self._joined()}"
        order = f"PARTITION BY _user ORDER BY {', '.join(['_lot', *self._keys])}"
        self._add(ranked, f"SELECT _user, {chosen}, ROW_NUMBER() OVER ({order}) AS _place FROM ({lots})")
        few = f"SELECT _user, {chosen} FROM {rows} WHERE _user NOT IN (SELECT _user FROM {many})"
        smallest = f"SELECT _user, {chosen} FROM {ranked} WHERE _place <= {most}"
        self._add(name, f"{few} UNION ALL {smallest}", is_stored=is_stored)

    def _counted(self, rows: str, users: str, sums: Sequence[str]) -> str:
        added = [f"{name if name in sums else 0} AS {name}" for name in self._sums]
        return f"SELECT {', '.join([*self._keys, f'{users} AS _users', *added])} FROM {rows}"

    def _joined(self) -> str:
        """What goes with the codes of the key."""
        each = (f"JOIN {_CODES}{place} AS _code{place} ON _code{place}.code = _key{place}" for place in self._places)
        return " ".join(each)

    def _named(self) -> str:
        """The groups with values in place of codes."""
        keys = [f"_code{place}.value" for place in self._places]
        columns = zip([*keys, "_users", *self._sums], (*self._plan.by, *self._plan.roles.numbers), strict=True)
        named = ", ".join(f"{column} AS {_SQL.identifier(name)}" for column, name in columns)
        return f"SELECT {named} FROM _groups {self._joined()}"
