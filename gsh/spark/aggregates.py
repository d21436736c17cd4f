"""The bounding of a plan as expressions of a Spark DataFrame.  [gsh/events/plan.py]

Two shuffles, with adaptive execution on or off, in classic Spark and in Spark Connect:

    by user    one record per user and group, and the lots, need no other shuffle. Spark chooses the partitions
    by key     count and sums. The plan has the number of partitions, and adaptive execution does not change it

The second shuffle stands *before* the grouping. After it Spark could drop the shuffle, or merge partitions, and the
noise depends on the content of a partition (gsh/spark/noise.py).
"""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone calls it
from pyspark.sql import types as T  # noqa: N812

from gsh.events.bounding import clipped, record_units
from gsh.events.dialects import DIALECTS
from gsh.events.kinds import Kind
from gsh.events.lots import order_sql
from gsh.events.plan import COUNT, Plan

__all__ = ["aggregates", "kinds_of", "quoted"]

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


def aggregates(events: DataFrame, plan: Plan) -> DataFrame:
    """One row per group with at least τ users: the key columns, ``count``, and the sums in units."""
    kinds = plan.kinds_in(kinds_of(events.schema))
    for pointer, name in plan.pointed:
        _SQL.check_name(pointer, name)
    assert plan.partitions is not None
    columns = {"_user": plan.user} | {f"_key{j}": name for j, name in enumerate(plan.by)}
    keys = list(columns)[1:]
    records = events.where(quoted(plan.user).isNotNull()).select(
        *(quoted(name).alias(inner) for inner, name in columns.items()),
        *(
            F.expr(f"CAST({record_units(_SQL, each, kinds[each.name], _SQL.identifier(each.name))} AS BIGINT)").alias(
                f"_sum{j}"
            )
            for j, each in enumerate(plan.sums)
        ),
    )
    sums = [F.expr(clipped(_SQL, each, _exact_sum(f"_sum{j}"))).alias(f"_sum{j}") for j, each in enumerate(plan.sums)]
    by_user = records.repartition("_user").groupBy("_user", *keys)
    rows = by_user.agg(*sums) if sums else by_user.agg(F.count(F.lit(1)).alias("_records"))
    kept = _kept(rows, plan, {inner: kinds[name] for inner, name in columns.items()})
    totals = [
        F.expr(f"SUM(_sum{j})" if max(-each.least, each.most) <= _SMALL else _exact_sum(f"_sum{j}")).alias(each.name)
        for j, each in enumerate(plan.sums)
    ]
    by_key = kept.repartition(plan.partitions, *keys).groupBy(*keys)
    groups = by_key.agg(F.count(F.lit(1)).alias(COUNT), *totals)
    if plan.tau > 1:
        groups = groups.where(F.col(COUNT) >= plan.tau)
    return groups.toDF(*plan.by, COUNT, *(each.name for each in plan.sums))


def _kind(kind: T.DataType) -> Kind | None:
    if isinstance(kind, T.DecimalType):
        return "integer" if kind.scale == 0 else f"decimal({kind.precision},{kind.scale})"
    return _KINDS.get(kind.simpleString())


def _kept(rows: DataFrame, plan: Plan, kinds: Mapping[str, Kind]) -> DataFrame:
    """Of each user at most C_u rows, and in a capped column at most so many values: those with the smallest lots."""
    parts = list(kinds.items())
    kept = rows.withColumn("_place", _place(order_sql(_SQL, plan.salt, parts))).where(F.col("_place") <= plan.c_u)
    # Zeros come last, so that they do not use the cap up.
    capped = {
        f"_sum{j}": (each.groups, _place(f"_sum{j} = 0, {order_sql(_SQL, plan.salt, parts, each.name)}"))
        for j, each in enumerate(plan.sums)
        if each.groups is not None
    }
    for name, (_, place) in capped.items():
        kept = kept.withColumn(f"_place{name}", place)
    for name, (most, _) in capped.items():
        kept = kept.withColumn(name, F.when(F.col(f"_place{name}") <= most, F.col(name)).otherwise(F.lit(0)))
    return kept.select(*(name for name in kinds if name != "_user"), *(f"_sum{j}" for j in range(len(plan.sums))))


def _place(order: str) -> Column:
    return F.expr(f"ROW_NUMBER() OVER (PARTITION BY _user ORDER BY {order})")


def _exact_sum(name: str) -> str:
    """The sum of integers up to 2⁵² without overflow, faster than with decimals; beyond ±2⁶² it stays there.

    The upper and the lower bits are added up apart: for 2³⁷ records both sums stay within 64 bits.
    """
    lower = f"SUM({name} & {2**_HALF - 1})"
    upper = f"(SUM(SHIFTRIGHT({name}, {_HALF})) + SHIFTRIGHT({lower}, {_HALF}))"
    limited = f"LEAST(GREATEST({upper}, -{2 ** (62 - _HALF)}), {2 ** (62 - _HALF)} - 1)"
    return f"({limited} * {2**_HALF} + ({lower} & {2**_HALF - 1}))"
