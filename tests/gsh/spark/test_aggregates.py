"""Spark's aggregates are those of the judge, row for row, and come with two shuffles."""

import dataclasses
import datetime
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

import gsh
from gsh.errors import InvalidParameter
from gsh.events.bounding import bounding_query
from gsh.events.plan import Plan, make_plan
from gsh.spark import aggregates as spark_aggregates
from gsh.spark.aggregates import aggregates, by_user, kinds_of
from gsh.spark.publishing import check_events, noised
from tests.gsh.events.decimals import COUNTED, TYPES, query
from tests.gsh.events.names import CONTROLS, LINE_ENDS, WORDS, named_events
from tests.gsh.events.tables import NASTY, NASTY_PLAN, as_events, draws
from tests.gsh.spark.faults import keeping
from tests.gsh.spark.views import RELEASE, views
from tests.reference.bounding import Aggregates, bounded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Read = Callable[[pa.Table], "DataFrame"]
PARAMETERS = {name: RELEASE[name] for name in ("user", "by", "sums", "events", "units", "c_u", "caps")}


def test_a_nested_column_is_refused_with_what_to_select(spark: "SparkSession") -> None:
    """Before anything is charged, and in the words that DuckDB's events have."""
    nested = spark.sql(
        "SELECT 'a' AS user_id, named_struct('url', 'x') AS page, array(1) AS tags, map('a', 1) AS sizes"
    )
    for by in ("page", "tags", "sizes", "page.url"):
        plan = make_plan(user="user_id", by=[by], c_u=1, salt="0" * 32, partitions=2)
        with pytest.raises(InvalidParameter, match="select what is inside as plain columns first"):
            check_events(nested, plan)
    plain = nested.selectExpr("user_id", "page.url AS url")
    check_events(plain, make_plan(user="user_id", by=["url"], c_u=1, salt="0" * 32, partitions=2))


def rows_of(frame: "DataFrame", plan: Plan) -> Aggregates:
    """The rows as the judge has them: instants in UTC, numbers as integers."""
    found = {}
    # Python has no time before the year 1, so that instants come as microseconds.
    instants = [field.name for field in frame.schema.fields if field.dataType.simpleString() == "timestamp"]
    for name in instants:
        quoted = f"`{name}`"
        frame = frame.withColumn(name, spark_aggregates.F.expr(f"unix_micros({quoted})"))
    for row in frame.collect():
        key = tuple(
            datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=part)
            if name in instants and part is not None
            else part
            for name, part in zip(plan.by, row, strict=False)
        )
        assert key not in found
        found[key] = tuple(map(int, row[len(plan.by) :]))
    return found


def on_spark(read: Read, table: pa.Table, plan: Plan) -> Aggregates:
    """The aggregates of the DataFrame, and of the query that ``gsh bound`` prints. They are the same."""
    events, fixed = read(table), dataclasses.replace(plan, partitions=2)
    found = rows_of(aggregates(by_user(events, fixed), fixed), plan)
    events.createOrReplaceTempView("views")
    query = bounding_query(plan, plan.kinds_in(kinds_of(events.schema)), "spark", "views")
    assert rows_of(events.sparkSession.sql(query), plan) == found
    return found


@pytest.mark.parametrize(
    ("ansi", "is_compiled"), [("true", False), ("false", False), pytest.param("true", True, marks=pytest.mark.long)]
)
def test_the_nasty_table_is_bounded_as_the_reference_says(
    spark: "SparkSession", read: Read, request: pytest.FixtureRequest, ansi: str, is_compiled: bool
) -> None:
    if is_compiled:
        request.getfixturevalue("compiled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        assert on_spark(read, NASTY, NASTY_PLAN) == bounded(as_events(NASTY), NASTY_PLAN.to_json())
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def examples(most: int) -> Any:
    return settings(max_examples=most, deadline=None, database=None, suppress_health_check=list(HealthCheck))


@examples(3)
@given(draws())
def test_drawn_tables_are_bounded_as_the_reference_says(read: Read, drawn: tuple[pa.Table, Any, Plan]) -> None:
    table, _, plan = drawn

    assert on_spark(read, table, plan) == bounded(as_events(table), plan.to_json())


@pytest.mark.long
@pytest.mark.usefixtures("compiled")
@examples(80)
@given(draws())
def test_many_drawn_tables_are_bounded_as_the_reference_says(read: Read, drawn: tuple[pa.Table, Any, Plan]) -> None:
    table, _, plan = drawn

    assert on_spark(read, table, plan) == bounded(as_events(table), plan.to_json())


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_decimals_of_every_size_count_exactly(spark: "SparkSession", ansi: str) -> None:
    """Spark would round products of more than 38 digits without a word."""
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        for kind in TYPES:
            assert sorted(map(tuple, spark.sql(query("spark", *kind)).collect())) == COUNTED[kind]
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_a_name_is_that_column_whatever_characters_it_has(read: Read) -> None:
    """Decoys have the names that an edit of the text would make."""
    table, plan, _ = named_events(*("x".join([part, *LINE_ENDS, *CONTROLS, *WORDS]) for part in "ukn"))

    assert on_spark(read, table, plan) == bounded(as_events(table), plan.to_json())


def test_names_with_variables_are_refused(read: Read) -> None:
    """Spark would replace them, read nulls, and publish sums of 0."""
    table, plan, _ = named_events("u", "k", "${spark.app.name}")

    with pytest.raises(InvalidParameter, match="spark replaces variables in names"):
        by_user(read(table), dataclasses.replace(plan, partitions=2))


@pytest.mark.parametrize(
    ("folder", "columns", "detail"),
    [
        ("url=FORGED", ["user", "url"], "events: must have the column url either in the files or in the names"),
        ("user=FORGED [1]", ["user", "url"], "events: must have the column user either in the files or in the names"),
        ("user=u", ["url"], "user: must be a column of the files"),
        ("url=a%2Fb", ["user"], None),
        ("url=FORGED", ["user", "url", "csv"], "events: must be Parquet files"),
    ],
)
def test_a_folder_replaces_no_column_of_a_file(
    spark: "SparkSession", tmp_path: Path, folder: str, columns: list[str], detail: str | None
) -> None:
    """Spark takes the value of the folder, without a word. A renamed column is the caller's own choice."""
    (tmp_path / folder).mkdir()
    if "csv" in columns:
        (tmp_path / folder / "a.csv").write_text("user,url\nx,x\n")
        events = spark.read.option("header", "true").csv(str(tmp_path))
    else:
        pq.write_table(pa.table({name: ["x"] for name in columns}), tmp_path / folder / "a.parquet")
        events = spark.read.parquet(str(tmp_path))
    renamed = events.toDF(*(f"_{name}" for name in events.columns))
    plan = make_plan(user="user", by="url", c_u=1, salt="0" * 32, partitions=2)

    if detail is None:
        check_events(events, plan)
    else:
        with pytest.raises(InvalidParameter, match=detail):
            check_events(events, plan)
    if folder == "url=FORGED":
        check_events(renamed, dataclasses.replace(plan, user="_user", by=("_url",)))


LARGE = make_plan(user="u", by="g", sums={"x": (-(2**52), 2**52)}, c_u=1, salt="0" * 32)


def test_sums_are_exact_up_to_the_limit_and_beyond_it(read: Read) -> None:
    """A user's records overflow 64 bits and are clipped; the sums of users are exact, and too large ones stay large.

    The query adds up decimals, so that its sums are exact beyond the limit too.
    """
    events = [("a", "few", 2**52 - 1), ("b", "few", 2**52), ("c", "few", -1)]
    events += [(user, "many", 2**52) for user in map(str, range(3000)) for _ in range(1)]
    events += [("d", "records", -(2**62))] * 5000
    table = pa.table({name: [event[j] for event in events] for j, name in enumerate("ugx")})

    found = rows_of(aggregates(by_user(read(table), LARGE), dataclasses.replace(LARGE, partitions=2)), LARGE)

    assert found["few",] == (3, 2**53 - 2)
    assert found["records",] == (1, -(2**52))
    assert found["many",][1] > 2**53


PLANTED: dict[str, Callable[[pytest.MonkeyPatch], None]] = {}


def planted(name: str) -> Callable[[Any], Any]:
    return lambda bug: PLANTED.setdefault(name, bug)


@planted("C_u + 1")
def one_group_more(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(spark_aggregates, "_kept", keeping(1))


@planted("clip before summing")
def clip_records(patch: pytest.MonkeyPatch) -> None:
    units, clipped = spark_aggregates.record_units, spark_aggregates.clipped
    patch.setattr(
        spark_aggregates, "record_units", lambda sql, each, *rest: clipped(sql, each, units(sql, each, *rest))
    )
    patch.setattr(spark_aggregates, "clipped", lambda _sql, _column, total: total)


@planted("random lots")
def random_lots(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(spark_aggregates, "lot_sql", lambda *_: "rand()")


@pytest.mark.usefixtures("compiled")
def test_planted_bugs_are_caught(read: Read) -> None:
    """Users have many records in a group, and more groups than C_u. Without a bug all is well."""
    plan = make_plan(**PARAMETERS, salt="0" * 32, partitions=2)
    events, truth = read(views()), bounded(as_events(views()), plan.to_json())

    assert rows_of(aggregates(by_user(events, plan), plan), plan) == truth
    for name, plant in PLANTED.items():
        with pytest.MonkeyPatch.context() as patch:
            plant(patch)
            assert rows_of(aggregates(by_user(events, plan), plan), plan) != truth, name


@pytest.mark.parametrize(("adaptive", "partitions"), [("true", 2), ("true", 5), ("false", 5)])
def test_there_are_two_shuffles_and_the_partitions_of_the_plan(
    spark: "SparkSession", read: Read, adaptive: str, partitions: int
) -> None:
    """Read through the noise, as the number of partitions can change only there; 2 is also Spark's own number here."""
    F = spark_aggregates.F  # noqa: N806
    plan = make_plan(**PARAMETERS, salt="0" * 32, partitions=partitions)
    mechanism = gsh.Mechanism(c_u=3, tau=1, tau_star=2, sigma=2.0**-30)
    counts_only = dataclasses.replace(plan, measures=())
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        rows = noised(by_user(read(views()), counts_only), counts_only, mechanism, bytes(32))
        placed = {(row.url, row.country): row.part for row in rows.withColumn("part", F.spark_partition_id()).collect()}
        text = rows._jdf.queryExecution().executedPlan().toString()
        every = aggregates(by_user(read(views()), plan), plan)
        every.collect()
        with_sums = every._jdf.queryExecution().executedPlan().toString()
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")

    for shown in (text, with_sums):
        final = shown.partition("Initial Plan")[0]
        assert len(re.findall(r"Exchange hashpartitioning", final)) == 2, final
        assert len(re.findall(r"Exchange", final)) == 2 + final.count("ReusedExchange"), final
    assert "PythonMapInArrow" in text or "MapInArrow" in text
    expected = spark.createDataFrame(list(placed), "url string, country string").select(
        "*", F.expr(f"pmod(hash(url, country), {partitions})").alias("part")
    )
    assert {(row.url, row.country): row.part for row in expected.collect()} == placed


@pytest.mark.parametrize("size", [60_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_a_user_and_a_group_that_are_large_are_bounded(spark: "SparkSession", size: int) -> None:
    """One user with a million groups, and one group with a million users: in a driver with 1 GB."""
    events = spark.sql(
        f"SELECT 0L AS u, id AS g FROM range({size}) UNION ALL SELECT id + 1 AS u, -1L AS g FROM range({size})"
    )
    plan = make_plan(user="u", by="g", c_u=7, salt="0" * 32, partitions=2)

    found = {row.g: row["count"] for row in aggregates(by_user(events, plan), plan).collect()}

    assert found.pop(-1) == size
    assert list(found.values()) == [1] * 7
