"""The bounding of a plan as expressions of a Spark DataFrame.  [gsh/events/plan.py]

Two shuffles, with adaptive execution on or off, in classic Spark and in Spark Connect:

    by user    one record per user and group, the lots, and counts and sums of the users of a bucket need no other
               shuffle. One serves all tables of a release. Spark chooses the partitions
    by key     counts and sums of all buckets. The plan has the number of partitions, and adaptive execution does not
               change it

The second shuffle stands *before* the last grouping. After it Spark could drop the shuffle, or merge partitions, and
the noise depends on the content of a partition (gsh/spark/noise.py).

The first shuffle is by a bucket, which is a function of the user. Spark then knows that a bucket is in one place, so
that it adds up inside the bucket without a shuffle: a group of many users is a few rows of the second shuffle.
"""

from collections.abc import Iterable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone calls it
from pyspark.sql import types as T  # noqa: N812

from gsh.events.bounding import clipped, record_units
from gsh.events.dialects import DIALECTS
from gsh.events.kinds import Kind
from gsh.events.lots import order_sql
from gsh.events.plan import COUNT, Plan
from gsh.events.tables import AnyPlan

__all__ = ["aggregates", "by_user", "kinds_of", "quoted"]

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
_NUMBERS_OF_PARTITIONS = ("spark.sql.shuffle.partitions", "spark.sql.adaptive.coalescePartitions.initialPartitionNum")


def kinds_of(schema: T.StructType) -> dict[str, Kind | None]:
    """The kind of each column; None for a type that a plan cannot use, such as a string with a collation."""
    return {field.name: _kind(field.dataType) for field in schema.fields}


def quoted(name: str) -> Column:
    """The column of this name, whatever characters the name has."""
    return F.col(_SQL.identifier(name))


def by_user(events: DataFrame, plan: AnyPlan) -> DataFrame:
    """The records that have a user: the columns of the plan, and the bucket as the last one. Shuffled by it."""
    plan.kinds_in(kinds_of(events.schema))
    for pointer, name in plan.pointed:
        _SQL.check_name(pointer, name)
    bucket = f"_bucket{'_' * max(map(len, plan.columns))}"  # so no column of the events has this name
    records = events.where(quoted(plan.user).isNotNull()).select(
        *(quoted(name).alias(name) for name in plan.columns),
        F.expr(_bucket(_SQL.identifier(plan.user), _buckets(events))).alias(bucket),
    )
    return records.repartition(bucket)


def aggregates(rows: DataFrame, plan: Plan, listed: DataFrame | None = None) -> DataFrame:
    """One row per group with at least τ users: the key columns, ``count``, and the sums in units.

    ``rows`` are those of ``by_user``. If the groups are public, ``listed`` has their keys, in the order of the plan:
    each of them is a row.
    """
    kinds = plan.kinds_in(kinds_of(rows.schema))
    assert plan.partitions is not None
    columns = {"_user": plan.user} | {f"_key{j}": name for j, name in enumerate(plan.by)}
    keys = list(columns)[1:]
    sums = [f"_sum{j}" for j in range(len(plan.sums))]
    records = rows.select(
        F.col(rows.columns[-1]).alias("_bucket"),
        *(quoted(name).alias(inner) for inner, name in columns.items()),
        *(
            F.expr(f"CAST({record_units(_SQL, each, kinds[each.name], _SQL.identifier(each.name))} AS BIGINT)").alias(
                inner
            )
            for inner, each in zip(sums, plan.sums, strict=True)
        ),
    )
    if listed is not None:
        listed = listed.toDF(*(f"_listed{j}" for j in range(len(keys))))
        same = [F.col(key).eqNullSafe(F.col(f"_listed{j}")) for j, key in enumerate(keys)]
        records = records.join(F.broadcast(listed), same, "left_semi")
    per_user = records.groupBy("_user", "_bucket", *keys)
    added = [
        F.expr(clipped(_SQL, each, _exact(f"SUM({_lower(inner)})", f"SUM({_upper(inner)})"))).alias(inner)
        for inner, each in zip(sums, plan.sums, strict=True)
    ]
    each_once = per_user.agg(*added) if added else per_user.agg(F.count(F.lit(1)).alias("_records"))
    kept = _kept(each_once, plan, {inner: kinds[name] for inner, name in columns.items()})
    halves = {inner: _halves(inner, max(-each.least, each.most)) for inner, each in zip(sums, plan.sums, strict=True)}
    in_buckets = kept.groupBy("_bucket", *keys).agg(
        F.count(F.lit(1)).alias("_count"),
        *(F.expr(f"SUM({part})").alias(name) for parts in halves.values() for name, part in parts.items()),
    )
    partial = in_buckets.drop("_bucket")
    if listed is not None:  # with zeros, so that all of them are there
        zeros = (F.lit(0).cast("bigint").alias(name) for name in partial.columns[len(keys) :])
        partial = partial.union(listed.select("*", *zeros))
    totals = [F.expr(_exact(*added) if added[1:] else added[0]) for added in map(_sums_of, halves.values())]
    groups = (
        partial.repartition(plan.partitions, *keys).groupBy(*keys).agg(F.expr("SUM(_count)").alias("_count"), *totals)
    )
    named = groups.toDF(*plan.by, COUNT, *(each.name for each in plan.sums))
    return named.where(F.col(COUNT) >= plan.tau) if plan.tau > 1 else named


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
    keys = (name for name in kinds if name != "_user")
    return kept.select("_bucket", *keys, *(f"_sum{j}" for j in range(len(plan.sums))))


def _place(order: str) -> Column:
    # The user comes first: then the rows are sorted by users, of which there are many, and not by buckets.
    return F.expr(f"ROW_NUMBER() OVER (PARTITION BY _user, _bucket ORDER BY {order})")


def _halves(name: str, most: int) -> dict[str, str]:
    """What is added up of a number: the number itself, or its lower and its upper bits apart."""
    return {name: name} if most <= _SMALL else {f"{name}_lower": _lower(name), f"{name}_upper": _upper(name)}


def _sums_of(names: Iterable[str]) -> list[str]:
    return [f"SUM({name})" for name in names]


def _lower(name: str) -> str:
    return f"{name} & {2**_HALF - 1}"


def _upper(name: str) -> str:
    return f"SHIFTRIGHT({name}, {_HALF})"


def _exact(lower: str, upper: str) -> str:
    """The sum of integers up to 2⁵² without overflow, faster than with decimals; beyond ±2⁶² it stays there.

    The lower and the upper bits are added up apart: for 2³⁷ records both sums stay within 64 bits.
    """
    whole = f"({upper} + SHIFTRIGHT({lower}, {_HALF}))"
    limited = f"LEAST(GREATEST({whole}, -{2 ** (62 - _HALF)}), {2 ** (62 - _HALF)} - 1)"
    return f"({limited} * {2**_HALF} + ({lower} & {2**_HALF - 1}))"


def _buckets(events: DataFrame) -> int:
    """As many as Spark makes partitions."""
    found = (events.sparkSession.conf.get(name, None) for name in _NUMBERS_OF_PARTITIONS)
    return max(int(number) for number in found if number)


def _bucket(user: str, buckets: int) -> str:
    """The bucket of a user. Spark places a bucket by its hash: these numbers are those with the hashes 0, 1, 2 …"""
    numbers = ",".join(str(_with_hash(number)) for number in range(buckets))
    return f"CAST(SPLIT('{numbers}', ',') AS ARRAY<INT>)[CAST(PMOD(XXHASH64({user}), {buckets}) AS INT)]"


def _with_hash(number: int) -> int:
    """The integer of 32 bits with this hash of Spark: the steps of Murmur3 for one integer, backwards."""
    found = number ^ number >> 16
    found = _times(found, _inverse(0xC2B2AE35))
    found ^= found >> 13 ^ found >> 26
    found = _times(found, _inverse(0x85EBCA6B))
    found ^= found >> 16 ^ 4
    found = _times(found - 0xE6546B64, _inverse(5))
    found = _rotated(found, 19) ^ 42
    found = _rotated(_times(found, _inverse(0x1B873593)), 17)
    found = _times(found, _inverse(0xCC9E2D51))
    return found - (found >> 31 << 32)


def _inverse(factor: int) -> int:
    return pow(factor, -1, 2**32)


def _times(number: int, factor: int) -> int:
    return number * factor % 2**32


def _rotated(number: int, bits: int) -> int:
    return (number << bits | number >> (32 - bits)) % 2**32
