"""The bounding of a plan as expressions of a Spark DataFrame.  [gsh/events/plan.py]

Two shuffles, with adaptive execution on or off, in classic Spark and in Spark Connect:

    by user    one record per user and group, and the lots, need no other shuffle. One serves all tables of a release.
               Spark chooses the partitions
    by key     count and sums. The plan has the number of partitions, and adaptive execution does not change it

The second shuffle stands *before* the grouping. After it Spark could drop the shuffle, or merge partitions, and the
noise depends on the content of a partition (gsh/spark/noise.py).
"""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone calls it
from pyspark.sql import types as T  # noqa: N812

from gsh.events.bounding import clipped, record_units
from gsh.events.dialects import DIALECTS
from gsh.events.kinds import NESTED, Kind
from gsh.events.lots import lot_sql
from gsh.events.plan import Plan
from gsh.events.tables import AnyPlan
from gsh.library.measures import Measure

__all__ = ["USERS", "aggregates", "bounded", "by_user", "kinds_of", "quoted", "total"]

USERS = "_users"

_SQL = DIALECTS["spark"]
_KINDS: Mapping[str, Kind] = {
    "bigint": "integer",
    "boolean": "boolean",
    "date": "date",
    "double": "double",
    "float": "double",
    "int": "integer",
    "smallint": "integer",
    "string": "string",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
    "tinyint": "integer",
}
_SMALL = 2**23
"""Sums of numbers up to here stay within 64 bits for 2⁴⁰ users."""
_HALF = 26


def kinds_of(schema: T.StructType) -> dict[str, Kind | None]:
    """The kind of each column; None for a type that a plan cannot use, such as a string with a collation."""
    return {field.name: _kind(field.dataType) for field in schema.fields}


def quoted(name: str) -> Column:
    """The column of this name, whatever characters the name has."""
    return F.col(_SQL.identifier(name))


def by_user(events: DataFrame, plan: AnyPlan) -> DataFrame:
    """The columns of the plan, of the records that have a user. Shuffled by user."""
    plan.kinds_in(kinds_of(events.schema))
    for pointer, name in plan.query_names:
        _SQL.check_name(pointer, name)
    records = events.where(quoted(plan.user).isNotNull())
    return records.select(*(quoted(name).alias(name) for name in plan.columns)).repartition(quoted(plan.user))


def aggregates(rows: DataFrame, plan: Plan, listed: DataFrame | None = None) -> DataFrame:
    """One row per group with at least τ users: the key columns, ``count``, and the sums in units.

    ``rows`` are those of ``by_user``. If the groups are public, ``listed`` has their keys, in the order of the plan:
    each of them is a row.
    """
    assert plan.partitions is not None
    keys = [f"_key{j}" for j in range(len(plan.by))]
    count = F.count(F.lit(1)) if listed is None else F.sum(USERS)
    totals = [total(f"_sum{j}", [each]) for j, each in enumerate(plan.measures)]
    kept = bounded(rows, plan, listed)
    groups = kept.repartition(plan.partitions, *keys).groupBy(*keys).agg(count, *totals)
    named = groups.toDF(*plan.by, *plan.roles.numbers)
    return named.where(quoted(plan.count) >= plan.tau) if plan.tau > 1 else named


def total(sum_: str, measures: Sequence[Measure]) -> Column:
    """The exact sum over users of a column in units, which has the values of one or more measures."""
    is_small = all(max(-each.least, each.most) <= _SMALL for each in measures)
    return F.expr(f"SUM({sum_})" if is_small else _exact_sum(sum_))


def bounded(rows: DataFrame, plan: Plan, listed: DataFrame | None = None) -> DataFrame:
    """Of each user at most C_u records, one per group: ``_key0`` …, ``_sum0`` ….

    With ``listed``, also each listed key with zeros, so that all of them are there. ``_users`` is then 0 for these, and
    1 for the others.
    """
    kinds = plan.kinds_in(kinds_of(rows.schema))
    columns = {"_user": plan.user} | {f"_key{j}": name for j, name in enumerate(plan.by)}
    keys = list(columns)[1:]
    sums = [f"_sum{j}" for j in range(len(plan.measures))]
    records = rows.select(
        *(quoted(name).alias(inner) for inner, name in columns.items()),
        *(
            F.expr(f"CAST({record_units(_SQL, each, kinds)} AS BIGINT)").alias(inner)
            for inner, each in zip(sums, plan.measures, strict=True)
        ),
    )
    if listed is not None:
        listed = listed.toDF(*(f"_listed{j}" for j in range(len(keys))))
        same = [F.col(key).eqNullSafe(F.col(f"_listed{j}")) for j, key in enumerate(keys)]
        records = records.join(F.broadcast(listed), same, "left_semi")
    per_user = records.groupBy("_user", *keys)
    added = [
        F.expr(clipped(_SQL, each, _exact_sum(inner))).alias(inner)
        for inner, each in zip(sums, plan.measures, strict=True)
    ]
    each_once = per_user.agg(*added) if added else per_user.agg(F.count(F.lit(1)).alias("_records"))
    kept = _kept(each_once, plan, {inner: kinds[name] for inner, name in columns.items()})
    if listed is None:
        return kept
    zeros = (F.lit(0).cast("bigint").alias(inner) for inner in sums)
    return kept.withColumn(USERS, F.lit(1)).union(listed.select("*", *zeros, F.lit(0)))


def _kind(kind: T.DataType) -> Kind | None:
    if isinstance(kind, T.DecimalType):
        return "integer" if kind.scale == 0 else f"decimal({kind.precision},{kind.scale})"
    return NESTED if isinstance(kind, T.StructType | T.ArrayType | T.MapType) else _KINDS.get(kind.simpleString())


def _kept(rows: DataFrame, plan: Plan, kinds: Mapping[str, Kind]) -> DataFrame:
    """Of each user at most C_u rows, and in a capped column at most so many values: those with the smallest lots."""
    parts = list(kinds.items())
    counted = rows.withColumn("_groups", _of_user("COUNT(1)"))
    place = _place(_order(plan, parts, f"_groups > {plan.c_u}"))
    kept = counted.withColumn("_place", place).where(F.col("_place") <= plan.c_u)
    capped = {f"_sum{j}": each for j, each in enumerate(plan.measures) if each.groups is not None}
    for name in capped:
        kept = kept.withColumn(f"_groups{name}", _of_user(f"COUNT(NULLIF({name}, 0))"))
    for name, each in capped.items():
        # Zeros come last, so that they do not use the cap up.
        order = _order(plan, parts, f"_groups{name} > {each.groups}", each.name)
        kept = kept.withColumn(f"_place{name}", _place(f"{name} = 0, {order}"))
    for name, each in capped.items():
        kept = kept.withColumn(name, F.when(F.col(f"_place{name}") <= each.groups, F.col(name)).otherwise(F.lit(0)))
    keys = (name for name in kinds if name != "_user")
    return kept.select(*keys, *(f"_sum{j}" for j in range(len(plan.measures))))


def _order(plan: Plan, parts: Sequence[tuple[str, Kind]], is_needed: str, column: str = "") -> str:
    """By lot, and then by key, where this decides what a user keeps. Else lots are not computed: they cost the most."""
    by = (lot_sql(_SQL, plan.salt, parts, column), *(key for key, _ in parts[1:]))
    return ", ".join(f"CASE WHEN {is_needed} THEN {each} END" for each in by)


def _place(order: str) -> Column:
    return F.expr(f"ROW_NUMBER() OVER (PARTITION BY _user ORDER BY {order})")


def _of_user(number: str) -> Column:
    return F.expr(f"{number} OVER (PARTITION BY _user)")


def _exact_sum(name: str) -> str:
    """The sum of integers up to 2⁵² without overflow, faster than with decimals; beyond ±2⁶² it stays there.

    The upper and the lower bits are added up apart: for 2³⁷ records both sums stay within 64 bits.
    """
    lower = f"SUM({name} & {2**_HALF - 1})"
    upper = f"(SUM(SHIFTRIGHT({name}, {_HALF})) + SHIFTRIGHT({lower}, {_HALF}))"
    limited = f"LEAST(GREATEST({upper}, -{2 ** (62 - _HALF)}), {2 ** (62 - _HALF)} - 1)"
    return f"({limited} * {2**_HALF} + ({lower} & {2**_HALF - 1}))"
