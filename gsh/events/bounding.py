"""The bounding query: events in, one row per group out, with the bounds of the plan on every user.  [plan.py]

    bounding_query(plan, kinds, "duckdb", "views")

    column of the result       type
    the parts of the key       as in the events
    the count                  64-bit integer: the number of users
    each measure               an integer in steps, of a type that cannot overflow: ``Measure.numbers`` are its numbers

It is one SELECT. The names inside it start with an underscore, so that they do not clash with columns of the events.
An engine must refuse sums beyond 2⁵³. With ``is_partial`` groups below τ stay, so that the results for disjoint sets
of users can be added up.

A query is a list of lines until its end. A name inside a line may have line ends of its own, so that no text is split
into lines or changed after a name is in it.

An engine that builds expressions itself takes the parts: ``record_units`` for one record, ``clipped`` for the sum of a
user in a group, and ``lots.order_sql`` for the order.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from gsh.accounting.mechanism import Mechanism
from gsh.errors import InvalidParameter
from gsh.events.dialects import DIALECTS, Dialect, check_characters, dialect_named
from gsh.events.kinds import Kind, digits, family
from gsh.events.lots import order_sql
from gsh.events.plan import Plan
from gsh.library.measures import Measure

__all__ = [
    "bounding_query",
    "clipped",
    "commented_query",
    "default_kinds",
    "noisy_query",
    "ranked_query",
    "record_units",
    "table_name",
    "users_query",
]

Lines: TypeAlias = list[str]

_LIMIT = 2**52
_LINE = 100
_RESERVED = re.compile(
    "all|and|any|as|asc|between|by|case|cast|check|column|create|cross|default|desc|distinct|else|end|except|exists|"
    "false|fetch|for|from|full|group|having|in|inner|insert|intersect|into|is|join|left|like|limit|natural|not|null|"
    "offset|on|or|order|outer|primary|references|right|rows|select|set|some|table|then|to|true|union|unique|update|"
    "user|using|values|when|where|window|with",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")


def bounding_query(
    plan: Plan, kinds: Mapping[str, Kind], dialect: str, source: str, *, is_partial: bool = False
) -> str:
    """The aggregates of the plan. ``source`` is a table, or a subquery in parentheses, in the dialect."""
    sql = dialect_named(dialect)
    keys, sums = _inner(plan)
    steps = _bounded(plan, kinds, sql, source)
    named = [*_named_keys(plan, sql), f"COUNT(*) AS {sql.identifier(plan.count)}"]
    named += [
        f"SUM({sql.widened.format(value)}) AS {sql.identifier(each.column)}"
        for value, each in zip(sums, plan.measures, strict=True)
    ]
    having = [] if is_partial else _having(plan)
    result = _select(named, list(steps)[-1], f"GROUP BY {', '.join(keys)}", *having)
    return _with(sql, steps, result)


def noisy_query(plan: Plan, kinds: Mapping[str, Kind], dialect: str, source: str, mechanism: Mechanism) -> str:
    """The private groups of the plan, if the engine has functions that add Gaussian noise to whole numbers.

    The noisy count is rounded, so it is compared with T = ⌈τ* + ½⌉: before rounding that is T − ½ ≥ τ*.
    [docs/math/engines.md] The test reads the count that is published: a second call would draw again.
    """
    sql = dialect_named(dialect)
    if sql.noisy_count is None or sql.noisy_sum is None:
        able = ", ".join(each.name for each in DIALECTS.values() if each.noisy_count is not None)
        raise InvalidParameter("mechanism", f"must be omitted for {dialect}: only {able} adds the noise itself")
    keys, sums = _inner(plan)
    steps = _bounded(plan, kinds, sql, source)
    named = _named_keys(plan, sql)
    named.append(f"{sql.noisy_count.format(mechanism.sigma)} AS {sql.identifier(plan.count)}")
    for value, each, sigma in zip(sums, plan.measures, _sigmas(mechanism), strict=True):
        noisy = sql.noisy_sum.format(sql.as_double(value), sigma / each.step)
        named.append(f"{noisy} * {sql.as_double(repr(each.step))} AS {sql.identifier(each.column)}")
    group = f"GROUP BY {', '.join(keys)}"
    steps["_noisy"] = _select(named, list(steps)[-1], group, *_having(plan))
    columns = [sql.identifier(name) for name in (*plan.by, plan.count, *(each.column for each in plan.measures))]
    kept = f"WHERE {sql.identifier(plan.count)} >= {math.ceil(Fraction(mechanism.tau_star) + Fraction(1, 2))}"
    return _with(sql, steps, _select(columns, "_noisy", kept))


def _sigmas(mechanism: Mechanism) -> list[float]:
    """The noise of each further column, rounded up."""
    if mechanism.aggregates is None:
        return []
    matrix = mechanism.aggregates.covariance
    if any(entry for row, line in enumerate(matrix) for column, entry in enumerate(line) if row != column):
        raise InvalidParameter("mechanism/aggregates/covariance", "must be diagonal: the engine adds noise by columns")
    return [math.nextafter(math.sqrt(line[place]), math.inf) for place, line in enumerate(matrix)]


def _named_keys(plan: Plan, sql: Dialect) -> list[str]:
    keys, _ = _inner(plan)
    return [f"{key} AS {sql.identifier(name)}" for key, name in zip(keys, plan.by, strict=True)]


def _having(plan: Plan) -> list[str]:
    """Groups with fewer than τ users go, by their true count."""
    return [] if plan.tau <= 1 else [f"HAVING COUNT(*) >= {plan.tau}"]


def _bounded(plan: Plan, kinds: Mapping[str, Kind], sql: Dialect, source: str) -> dict[str, Lines]:
    """The steps to one row per user and group, with all bounds on the user."""
    keys, sums = _inner(plan)
    parts = [("_user", kinds[plan.user]), *((key, kinds[name]) for key, name in zip(keys, plan.by, strict=True))]
    steps = _ranked(plan, kinds, sql, source)
    steps["_kept"] = _select(["_user", *keys, *sums], "_ranked", f"WHERE _place <= {plan.c_u}")
    if any(each.groups is not None for each in plan.measures):
        steps |= _capped(plan, sql, parts, sums)
    return steps


def ranked_query(plan: Plan, kinds: Mapping[str, Kind], dialect: str, source: str) -> str:
    """One row per user and group, with the measures and ``_place``: from which C_u on the user counts in the group."""
    sql = dialect_named(dialect)
    keys, sums = _inner(plan)
    return _with(sql, _ranked(plan, kinds, sql, source), _select([*keys, *sums, "_place"], "_ranked"))


def users_query(plan: Plan, kinds: Mapping[str, Kind], dialect: str, source: str) -> str:
    """One row per user: ``_groups``, the number of groups, and the measures in the group with the smallest lot."""
    sql = dialect_named(dialect)
    steps, sums = _ranked(plan, kinds, sql, source), _inner(plan)[1]
    if not sums:  # no lot is needed
        steps.pop("_ranked")
    firsts = [f"MAX(CASE WHEN _place = 1 THEN {value} END) AS {value}" for value in sums]
    return _with(sql, steps, _select(["COUNT(*) AS _groups", *firsts], list(steps)[-1], "GROUP BY _user"))


def _inner(plan: Plan) -> tuple[list[str], list[str]]:
    """The names of the key columns and of the measures inside the query."""
    return [f"_key{j}" for j in range(1, len(plan.by) + 1)], [f"_sum{j}" for j in range(1, len(plan.measures) + 1)]


def _ranked(plan: Plan, kinds: Mapping[str, Kind], sql: Dialect, source: str) -> dict[str, Lines]:
    for pointer, name in plan.query_names:
        sql.check_name(pointer, name)
    keys, sums = _inner(plan)
    parts = [("_user", kinds[plan.user]), *((key, kinds[name]) for key, name in zip(keys, plan.by, strict=True))]
    place = f"ROW_NUMBER() OVER (PARTITION BY _user ORDER BY {order_sql(sql, plan.salt, parts)}) AS _place"
    return {
        "_per_user": _per_user(plan, kinds, sql, source),
        "_ranked": _select(["_user", *keys, *sums, place], "_per_user"),
    }


def _per_user(plan: Plan, kinds: Mapping[str, Kind], sql: Dialect, source: str) -> Lines:
    """One record per user and group: ``_user``, ``_key1`` …, and the clipped sums ``_sum1`` … in steps."""
    user = f"_events.{sql.identifier(plan.user)}"
    keys = [f"_events.{sql.identifier(name)}" for name in plan.by]
    chosen = [f"{user} AS _user", *(f"{key} AS _key{j}" for j, key in enumerate(keys, 1))]
    for j, each in enumerate(plan.measures, 1):
        units = sql.added.format(record_units(sql, each, kinds, "_events."))
        chosen.append(f"{clipped(sql, each, f'SUM({units})')} AS _sum{j}")
    clauses = f"WHERE {user} IS NOT NULL", f"GROUP BY {', '.join([user, *keys])}"
    return _select(chosen, f"{source} AS _events", *clauses)


def record_units(sql: Dialect, column: Measure, kinds: Mapping[str, Kind], table: str = "") -> str:
    """What one record adds: ⌊x/unit + 1/2⌋, limited to ±2⁵²; 0 if it is missing or NaN; 1 in a number of events.

    ``table`` stands before the name of the column.
    """
    if column.source is None:
        return "1"
    value, kind = f"{table}{sql.identifier(column.source)}", kinds[column.source]
    if column.digits is not None:
        return _in_powers_of_ten(sql, column.digits, kind, value)
    if family(kind) == "boolean":
        number = f"CASE WHEN {value} THEN 1 ELSE 0 END"
        if column.scale == 1:
            return number
        value, kind = f"({number})", "integer"
    if family(kind) == "integer":
        whole = f"LEAST(GREATEST(COALESCE({value}, 0), -{_LIMIT}), {_LIMIT})"
        if column.scale == 1:
            return whole
        # As doubles these are exact: the limit comes first. So no digit is lost.
        return _floored(sql, column, f"CAST({whole} AS {sql.double})")
    double = sql.as_double(value)
    missing = _missing(sql, kind, value)
    if column.scale > 1:  # then these count 0, and some engines refuse quotients that underflow
        missing += f" OR ABS({value}) < 1"
    return f"CASE WHEN {missing} THEN 0 ELSE {_floored(sql, column, double)} END"


def _in_powers_of_ten(sql: Dialect, digits_of_unit: int, kind: Kind, value: str) -> str:
    """The same for a unit of 10^−digits. No number becomes a double, and no product has too many digits.

    The limit comes first: whole numbers from which on every number is beyond ±2⁵² units.
    """
    limit = -(-_LIMIT // 10**digits_of_unit)
    if family(kind) == "boolean":
        value, kind = f"(CASE WHEN {value} THEN 1 ELSE 0 END)", "integer"
    if family(kind) == "integer":
        whole = f"LEAST(GREATEST(COALESCE({value}, 0), -{limit}), {limit})"
        units = f"CAST({whole} AS {sql.integer}) * {10**digits_of_unit}"
    else:
        precision, scale = digits(kind)
        limited, most = value, len(str(limit))
        if precision - scale >= most:
            least, largest = (f"CAST({end} AS {sql.decimal.format(precision, scale)})" for end in (-limit, limit))
            limited = f"LEAST(GREATEST({value}, {least}), {largest})"
        # DuckDB multiplies decimals of up to 18 digits in 64 bits, and Spark rounds products of more than 38.
        limited = f"CAST({limited} AS {sql.decimal.format(max(most + scale, 19), scale)})"
        unit, half = sql.decimal.format(digits_of_unit + 1, 0), f"CAST(0.5 AS {sql.decimal.format(1, 1)})"
        units = f"CAST(FLOOR({limited} * CAST({10**digits_of_unit} AS {unit}) + {half}) AS {sql.integer})"
    limited = f"LEAST(GREATEST({units}, -{_LIMIT}), {_LIMIT})"
    if family(kind) == "integer":
        return limited
    return f"CASE WHEN {_missing(sql, kind, value)} THEN 0 ELSE {limited} END"


def _missing(sql: Dialect, kind: Kind, value: str) -> str:
    """Whether a number that may have a fraction is missing or NaN."""
    if family(kind) == "double" or sql.name == "postgres":  # its decimals have NaN too
        return f"{value} IS NULL OR {sql.is_nan.format(value)}"
    return f"{value} IS NULL"


def _floored(sql: Dialect, column: Measure, double: str) -> str:
    """⌊x/unit + 1/2⌋. Multiplying by a power of two is exact, so that all engines get the same integer.

    The limit comes first, because some engines refuse products that overflow.
    """
    least, most = (f"CAST({sign * _LIMIT * column.scale!r} AS {sql.double})" for sign in (-1, 1))
    scaled = f"LEAST(GREATEST({double}, {least}), {most})"
    if column.scale < 1:
        scaled += f" * CAST({int(1 / column.scale)} AS {sql.double})"
    elif column.scale > 1:
        scaled += f" / CAST({int(column.scale)} AS {sql.double})"
    return f"CAST(FLOOR({scaled} + CAST(0.5 AS {sql.double})) AS {sql.integer})"


def clipped(sql: Dialect, column: Measure, total: str) -> str:
    """What a user adds to a group: the total, between the bounds, and in a mean less the middle of them."""
    return f"CAST({column.in_steps(f'LEAST(GREATEST({total}, {column.least}), {column.most})')} AS {sql.integer})"


def table_name(dialect: str, name: str) -> str:
    """The name of a table, or of a schema and a table with a dot between them.

    Plain names stay as they are, because engines fold their letters in different ways. Words of SQL are quoted.
    """
    sql = dialect_named(dialect)
    check_characters("source", name)
    is_plain = _PLAIN.fullmatch(name) is not None
    parts = name.split(".") if is_plain else [name]
    for part in parts:
        sql.check_name("source", part)
    return ".".join(part if is_plain and not _RESERVED.fullmatch(part) else sql.identifier(part) for part in parts)


def _capped(plan: Plan, sql: Dialect, parts: list[tuple[str, Kind]], sums: list[str]) -> dict[str, Lines]:
    """In a column with a cap, only the values with the smallest lots stay, and values of 0 do not use the cap up."""
    keys = [name for name, _ in parts[1:]]
    ranks, values = [], []
    for j, (column, value) in enumerate(zip(plan.measures, sums, strict=True), 1):
        if column.groups is None:
            values.append(value)
            continue
        order = f"CASE WHEN {value} = 0 THEN 1 ELSE 0 END, {order_sql(sql, plan.salt, parts, column.name)}"
        ranks.append(f"ROW_NUMBER() OVER (PARTITION BY _user ORDER BY {order}) AS _rank{j}")
        values.append(f"CASE WHEN _rank{j} <= {column.groups} THEN {value} ELSE 0 END AS {value}")
    return {
        "_by_column": _select([*keys, *sums, *ranks], "_kept"),
        "_capped": _select([*keys, *values], "_by_column"),
    }


def _with(sql: Dialect, steps: Mapping[str, Lines], result: Lines) -> str:
    lines, before = [], "WITH "
    for name, query in steps.items():
        lines += [f"{before}{name} AS {sql.inlined}(", *(f"    {line}" for line in query)]
        before = "), "
    return "\n".join([*lines, ")", *result])


def _select(columns: Sequence[str], source: str, *clauses: str) -> Lines:
    return [*_listed(columns), f"FROM {source}", *clauses]


def _listed(columns: Sequence[str]) -> Lines:
    """On one line if it is short."""
    line = ", ".join(columns)
    if len(line) <= _LINE:
        return [f"SELECT {line}"]
    starts = ["SELECT ", *["       "] * (len(columns) - 1)]
    ends = [*[","] * (len(columns) - 1), ""]
    return [f"{start}{column}{end}" for start, column, end in zip(starts, columns, ends, strict=True)]


def default_kinds(plan: Plan) -> dict[str, Kind]:
    """The kinds of columns if no schema says them."""
    return plan.default_kinds()


def commented_query(plan: Plan, dialect: str, source: str, mechanism: Mechanism | None = None) -> str:
    """The query, what it enforces, and whether our tests run it on the engine.

    With a mechanism, the engine adds the noise and drops small groups.
    """
    kinds = plan.kinds_in(dict(default_kinds(plan)))
    table = table_name(dialect, source)
    lines = [
        f"-- For {dialect}, {DIALECTS[dialect].tested}.",
        f"-- Each user counts in at most {plan.c_u} groups, chosen by a hash of that user's own records.",
    ]
    lines += [f"-- {_on_one_line(each.name)}: {_bounds_of(each)}" for each in plan.measures]
    if mechanism is None:
        query = bounding_query(plan, kinds, dialect, table)
    else:
        query = noisy_query(plan, kinds, dialect, table, mechanism)
        lines.append("-- The result is private, and nothing else may be published of these groups. Give it no seed.")
    return "\n".join([*lines, f"{query};", ""])


def _bounds_of(each: Measure) -> str:
    """The bounds of a measure in words."""
    if each.kind == "events":
        bounds = f"the number of records, at most {each.most} per user and group"
    else:
        bounds = f"from {each.least} to {each.most} per user and group, in units of {each.scale:g}"
        if each.kind == "mean":
            bounds += f"; the result is in halves of a unit, less the middle {each.middle:g} for each user"
    return f"{bounds}." if each.groups is None else f"{bounds}, in at most {each.groups} groups per user."


def _on_one_line(name: str) -> str:
    """The name in a comment. A line end in it would end the comment, so characters that are not shown are escaped."""
    return name if name.isprintable() else json.dumps(name)
