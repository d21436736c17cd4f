"""The bounding query in other dialects: run on PostgreSQL, translated to DuckDB, or parsed alone.

tests/gsh/spark/test_aggregates.py runs it on Spark.
"""

import re
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pytest
import sqlglot
from hypothesis import HealthCheck, example, given, settings

import gsh
from gsh.events.bounding import bounding_query, commented_query, noisy_query, table_name
from gsh.events.dialects import DIALECTS
from gsh.events.plan import Plan, make_plan
from tests.gsh.events import decimals
from tests.gsh.events.tables import NASTY, NASTY_PLAN, as_events, draws
from tests.gsh.events.test_bounding import NASTY_KINDS, rows_of
from tests.postgres import Postgres
from tests.reference.bounding import Aggregates, bounded

ROOT = Path(__file__).parents[3]
TYPES = {
    "string": "TEXT",
    "integer": "BIGINT",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "double": "DOUBLE PRECISION",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMPTZ",
}


def on_postgres(connection: psycopg.Connection[Any], table: pa.Table, kinds: dict[str, str], plan: Plan) -> Aggregates:
    quoted = DIALECTS["postgres"].identifier
    # Numbers without a scale: 1.5 and 1.50 are one value with two texts.
    columns = ", ".join(f"{quoted(name)} {TYPES.get(kind, 'NUMERIC')}" for name, kind in kinds.items())
    places = ", ".join(["%s"] * len(kinds))
    connection.execute("DROP TABLE IF EXISTS views")
    connection.execute(f"CREATE TABLE views ({columns})".encode())
    rows = [tuple(event[name] for name in kinds) for event in as_events(table)]
    with connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO views VALUES ({places})".encode(), rows)
        result = cursor.execute(bounding_query(plan, kinds, "postgres", "views").encode()).fetchall()
    return rows_of(result, len(plan.by))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=draws())
@example(drawn=(NASTY, NASTY_KINDS, NASTY_PLAN))
def test_postgres_bounds_as_the_reference(postgres: Postgres, drawn: tuple[pa.Table, dict[str, str], Plan]) -> None:
    table, kinds, plan = drawn
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")  # elsewhere, Python has no date for the first instants
        assert on_postgres(connection, table, kinds, plan) == bounded(as_events(table), plan.to_json())


def test_postgres_counts_decimals_of_every_size_exactly(postgres: Postgres) -> None:
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
        for kind in decimals.TYPES:
            assert (
                sorted(connection.execute(decimals.query("postgres", *kind).encode()).fetchall())
                == decimals.COUNTED[kind]
            )


TRANSLATED = [name for name, dialect in DIALECTS.items() if dialect.is_translated]


def in_duckdb(query: str, dialect: str, table: pa.Table) -> list[tuple[Any, ...]]:
    """The result of a query of another dialect. Noisy functions of Presto add no noise here."""
    (translated,) = sqlglot.transpile(query, read=dialect, write="duckdb")
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("CREATE MACRO noisy_count_gaussian(x, sigma) AS round(count(x))")
        connection.execute("CREATE MACRO noisy_sum_gaussian(x, sigma) AS sum(x)")
        connection.register("views", table)
        found = connection.sql(translated).to_arrow_table()
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


@pytest.mark.parametrize("dialect", TRANSLATED)
@settings(max_examples=10, deadline=None)
@given(drawn=draws())
@example(drawn=(NASTY, NASTY_KINDS, NASTY_PLAN))
def test_a_translated_query_bounds_as_the_reference(dialect: str, drawn: tuple[pa.Table, dict[str, str], Plan]) -> None:
    table, kinds, plan = drawn
    result = in_duckdb(bounding_query(plan, kinds, dialect, "views"), dialect, table)

    assert rows_of(result, len(plan.by)) == bounded(as_events(table), plan.to_json())


NOISY = gsh.Mechanism(
    c_u=2,
    tau=2,
    tau_star=2.75,
    sigma=0.5,
    aggregates=gsh.Aggregates(names=["likes"], covariance=[[4.0]], sensitivity=gsh.box(lower=[0], upper=[5])),
)
NOISY_PLAN = make_plan(user="u", by=["k"], c_u=2, tau=2, sums={"likes": (0, 5)}, units={"likes": 0.5}, salt="0" * 32)


def test_a_noisy_query_drops_what_is_below_tau_or_the_threshold_in_one_test_of_what_it_publishes() -> None:
    """τ* = 2.75 of the count before rounding: groups of 3 users are dropped, because 3 can be 2.5 rounded."""
    users = [("a", 2), ("b", 3), ("c", 4), ("d", 1)]
    rows = [(f"{key}{user}", key) for key, many in users for user in range(many)]
    table = pa.table({"u": [u for u, _ in rows], "k": [k for _, k in rows], "likes": [9.0] * len(rows)})
    query = noisy_query(NOISY_PLAN, NOISY_PLAN.default_kinds(), "presto", "views", NOISY)

    assert in_duckdb(query, "presto", table) == [("c", 4, 20.0)]
    assert query.count("noisy_count_gaussian(1, 0.5)") == 1
    assert query.count("noisy_sum_gaussian(") == 1
    assert "4.000000000000001)" in query  # the noise of likes, 2, in units of 0.5 and rounded up


@pytest.mark.parametrize("dialect", sorted(set(DIALECTS) - {"presto"}))
def test_an_engine_that_adds_no_noise_has_no_noisy_query(dialect: str) -> None:
    with pytest.raises(gsh.InvalidParameter, match="only presto adds the noise itself"):
        commented_query(NOISY_PLAN, dialect, "views", NOISY)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_queries_of_every_dialect_parse(dialect: str) -> None:
    names = {name: name for name in NASTY_KINDS} | {"text": "a`b\"c'd\\e"}
    plan = Plan.from_json(NASTY_PLAN.to_json() | {"by": [names[name] for name in NASTY_PLAN.by]})
    kinds = {names[name]: kind for name, kind in NASTY_KINDS.items()}
    query = bounding_query(plan, kinds, dialect, table_name(dialect, "my views"))

    (parsed,) = sqlglot.parse(query, dialect=dialect)

    assert parsed is not None
    assert parsed.named_selects == [*plan.by, *plan.roles.numbers]
    assert "random" not in query.lower()


def test_the_text_says_where_it_was_executed() -> None:
    plan = make_plan(user="u", by=["k"], c_u=3, salt="0" * 32)
    said = {dialect: commented_query(plan, dialect, "views").splitlines()[0] for dialect in DIALECTS}

    for dialect in ("snowflake", "bigquery"):
        assert "not executed here: only its syntax is tested" in said[dialect]
    for dialect in ("presto", "trino"):
        assert "not executed here: tested in a translation to DuckDB" in said[dialect]
    for dialect in ("duckdb", "postgres", "spark"):
        assert "tested on this engine" in said[dialect]


@pytest.mark.parametrize(("dialect", "kind"), [("spark", "uuid"), ("postgres", "timestamp_ns")])
def test_a_kind_that_an_engine_does_not_have_is_refused(dialect: str, kind: str) -> None:
    plan = make_plan(user="u", by=["k"], c_u=3, salt="0" * 32)

    with pytest.raises(gsh.InvalidParameter, match="types"):
        bounding_query(plan, {"u": "string", "k": kind}, dialect, "views")


def test_the_query_of_the_threat_model_is_the_generators() -> None:
    (query,) = re.findall(r"^```sql\n(.*?)^```$", (ROOT / "docs/threat-model.md").read_text(), re.MULTILINE | re.DOTALL)
    (salt,) = set(re.findall(r"'([0-9a-f]{32});'", query))
    plan = make_plan(
        user="user_id",
        by=["url", "country"],
        sums={"shared": (0, 1), "seconds": (0, 600)},
        c_u=51914,
        types={"shared": "boolean"},
        salt=salt,
    )

    assert query == commented_query(plan, "duckdb", "views")


RANDOM = r"(rand(om)?|uuid|newid)\s*\(\s*\)"
RANDOM_ORDER = re.compile(rf"{RANDOM}\s+AS\s+_?(lot|place)|ORDER\s+BY\s+{RANDOM}", re.IGNORECASE)


@pytest.mark.parametrize("text", ["random() AS lot", "OVER (PARTITION BY u ORDER BY rand())", "order by random ()"])
def test_a_random_lot_would_be_found(text: str) -> None:
    assert RANDOM_ORDER.search(text)


def test_no_lot_is_drawn_at_random() -> None:
    """In no file that people read or run."""
    places = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    places += [path for folder in ("app", "gsh", "examples") for path in (ROOT / folder).rglob("*.*")]
    texts = [path for path in places if path.suffix in {".md", ".py", ".js", ".html", ".sql"}]

    assert [str(path) for path in texts if RANDOM_ORDER.search(path.read_text())] == []


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("views", "views"),
        ("web.views", "web.views"),
        ("order", '"order"'),
        ("web.Order", 'web."Order"'),
        ("a b", '"a b"'),
    ],
)
def test_names_of_tables_that_are_words_of_sql_are_quoted(name: str, written: str) -> None:
    assert table_name("duckdb", name) == written
