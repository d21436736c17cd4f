"""Several tables of one release as one query: the events are read once, and shuffled by user once.

    events → shuffle by user → of each table: one record per user and group, at most C_u of them
           → union → shuffle by group key → count and sums, τ → noise of all tables in one mapInArrow

So Spark starts as many tasks with Python as for one table. The rows of all tables have the same columns: the table, and
*slots*. The first key of type string is in the first slot for strings, whatever the table, and so on; slots that a
table does not need are null. Spark's hash skips nulls, so that they do not move its groups to other partitions.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone calls it
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_type

from gsh.accounting.mechanism import AnyMechanism
from gsh.events.plan import Plan
from gsh.events.public_keys import ListedKeys
from gsh.events.tables import Plans, in_table
from gsh.histogram.noise import Noise
from gsh.spark.aggregates import USERS, bounded, by_user, quoted, total
from gsh.spark.noise import TABLE, SharedRows, noise_of_tables
from gsh.spark.public_keys import listed_keys

__all__ = ["aggregates_of_tables", "kinds_of_numbers", "noised_tables", "rows_of_table"]

Kind = TypeVar("Kind", bound=Hashable)


def aggregates_of_tables(events: DataFrame, plans: Plans, listed: Mapping[str, ListedKeys]) -> DataFrame:
    """One row per table and group with at least τ users: the table, the slots of keys, the count, and sums in units."""
    tables, slots = plans.tables, _key_slots(events, plans)
    kinds = _all(slots)
    rows = _as_they_are(by_user(events, plans), plans)
    most = max(len(plan.measures) for plan in tables.values())
    parts = []
    for place, (name, plan) in enumerate(tables.items()):
        with in_table(name):
            kept = bounded(rows, plan, listed_keys(events, plan, listed, name))
        own = dict(zip(slots[name], kept.columns, strict=False))
        keys = [F.col(own[slot]) if slot in own else F.lit(None).cast(kind) for slot, kind in kinds.items()]
        sums = [F.col(f"_sum{j}") if j < len(plan.measures) else F.lit(0).cast("bigint") for j in range(most)]
        users = F.col(USERS) if name in listed else F.lit(1)
        parts.append(kept.select(F.lit(place).alias(TABLE), *keys, *sums, users))
    together = parts[0]
    for part in parts[1:]:
        together = together.union(part)
    together = together.toDF(TABLE, *kinds, *(f"_sum{j}" for j in range(most)), USERS)
    measures = [[plan.measures[j] for plan in tables.values() if j < len(plan.measures)] for j in range(most)]
    totals = [total(f"_sum{j}", each).alias(f"_total{j}") for j, each in enumerate(measures)]
    partitions = next(iter(tables.values())).partitions
    assert partitions is not None
    groups = together.repartition(partitions, *kinds).groupBy(TABLE, *kinds).agg(F.sum(USERS).alias(USERS), *totals)
    tau = F.element_at(F.array(*(F.lit(plan.tau) for plan in tables.values())), F.col(TABLE) + 1)
    return groups.where(F.col(USERS) >= tau) if any(plan.tau > 1 for plan in tables.values()) else groups


def noised_tables(
    events: DataFrame,
    plans: Plans,
    mechanisms: Mapping[str, AnyMechanism],
    seed: bytes,
    listed: Mapping[str, ListedKeys],
) -> DataFrame:
    """The published rows of all tables, in one plan of Spark. Every execution gives the same rows."""
    groups = aggregates_of_tables(events, plans, listed)
    keys, numbers = _key_slots(events, plans), _number_slots(plans, mechanisms)
    shared = [
        SharedRows(
            name,
            plan,
            mechanisms[name],
            inputs=(*keys[name], USERS, *(f"_total{j}" for j in range(len(plan.measures)))),
            outputs=(*keys[name], *numbers[name]),
        )
        for name, plan in plans.tables.items()
    ]
    key_kinds, number_kinds = _all(keys), _all(numbers)
    kinds = {TABLE: T.IntegerType(), **key_kinds, **number_kinds}
    schema = T.StructType([T.StructField(slot, kind) for slot, kind in kinds.items()])
    arrow = {slot: to_arrow_type(kind) for slot, kind in number_kinds.items()}
    return groups.mapInArrow(noise_of_tables(shared, list(key_kinds), arrow, seed, plans.digest), schema)


def rows_of_table(
    together: DataFrame, events: DataFrame, plans: Plans, mechanisms: Mapping[str, AnyMechanism], name: str
) -> DataFrame:
    """The rows of one table, with its own columns."""
    plan = plans.tables[name]
    keys, numbers = _key_slots(events, plans)[name], _number_slots(plans, mechanisms)[name]
    own = together.where(F.col(TABLE) == list(plans.tables).index(name))
    return own.select(
        *(F.col(slot).alias(column) for slot, column in zip(keys, plan.by, strict=True)),
        # Never null in this table: the columns of a file must say so, as those of a table alone.
        *(
            F.coalesce(F.col(slot), F.lit(0)).alias(column)
            for slot, column in zip(numbers, plan.roles.numbers, strict=True)
        ),
    )


def kinds_of_numbers(plan: Plan, mechanism: AnyMechanism) -> list[T.DataType]:
    """The types of the published count and sums of a table."""
    steps = Noise(mechanism, plan.meaning.rounded).steps
    return [T.LongType() if step == 1 else T.DoubleType() for step in steps]


def _as_they_are(rows: DataFrame, plans: Plans) -> DataFrame:
    """The same rows. Spark cannot tell, and so gives each table all columns, and one shuffle serves all.

    Otherwise it would read and shuffle the events for each table anew, with the columns of this table.
    """
    columns = [quoted(name) for name in plans.columns]
    return rows.where((F.spark_partition_id() >= 0) | (F.hash(*columns) == 0))


def _key_slots(events: DataFrame, plans: Plans) -> dict[str, dict[str, T.DataType]]:
    return _slots(
        "_key", {name: [events.schema[column].dataType for column in plan.by] for name, plan in plans.tables.items()}
    )


def _number_slots(plans: Plans, mechanisms: Mapping[str, AnyMechanism]) -> dict[str, dict[str, T.DataType]]:
    kinds = {name: kinds_of_numbers(plan, mechanisms[name]) for name, plan in plans.tables.items()}
    return _slots("_number", kinds)


def _all(slots: Mapping[str, Mapping[str, Kind]]) -> dict[str, Kind]:
    """The slots of all tables, each once."""
    return {slot: kind for each in slots.values() for slot, kind in each.items()}


def _slots(start: str, kinds: Mapping[str, Sequence[Kind]]) -> dict[str, dict[str, Kind]]:
    """The columns of each table, in its order, with their types. Tables share columns of the same type.

    >>> _slots("_key", {"a": ["string"], "b": ["int", "string", "string"]})
    {'a': {'_key0_0': 'string'}, 'b': {'_key1_0': 'int', '_key0_0': 'string', '_key0_1': 'string'}}
    """
    distinct = list(dict.fromkeys(kind for each in kinds.values() for kind in each))
    found: dict[str, dict[str, Kind]] = {}
    for name, each in kinds.items():
        seen: Counter[Kind] = Counter()
        found[name] = {}
        for kind in each:
            found[name][f"{start}{distinct.index(kind)}_{seen[kind]}"] = kind
            seen[kind] += 1
    return found
