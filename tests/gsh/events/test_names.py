"""A name of a column is that name, whatever characters it has: in every dialect, engine, format and document."""

import csv
import io
import json
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import sqlglot
from hypothesis import HealthCheck, example, given, settings

import gsh
from gsh.events.bounding import bounding_query, commented_query
from gsh.events.dialects import DIALECTS
from gsh.events.plan import make_plan
from tests.gsh.events.names import LINE_ENDS, Named, drawn_events, named_events
from tests.gsh.events.tables import as_events
from tests.gsh.events.test_bounding import on_duckdb as queried
from tests.gsh.events.test_dialects import on_postgres
from tests.gsh.events.test_duckdb import SALT, on_duckdb
from tests.postgres import Postgres
from tests.reference.bounding import bounded

pytestmark = pytest.mark.slow

ENDS = [named_events(f"user{end}id", f"u{end}rl", f"li{end}kes") for end in LINE_ENDS]
ALL_ENDS = named_events(*("x".join([part, *LINE_ENDS]) for part in "ukn"))


def drawn(most: int):
    return settings(max_examples=most, deadline=None, suppress_health_check=list(HealthCheck))


@drawn(30)
@given(named=drawn_events())
@example(named=ALL_ENDS)
def test_duckdb_reads_the_columns_that_the_plan_names(named: Named) -> None:
    expected = bounded(as_events(named.table), named.plan.to_json())

    assert queried(named.table, named.kinds, named.plan) == expected
    assert on_duckdb(named.table, named.plan) == on_duckdb(named.table, named.plan, 3) == expected


@drawn(15)
@given(named=drawn_events())
@example(named=ALL_ENDS)
def test_postgres_reads_the_columns_that_the_plan_names(postgres: Postgres, named: Named) -> None:
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
        found = on_postgres(connection, named.table, named.kinds, named.plan)

    assert found == bounded(as_events(named.table), named.plan.to_json())


@drawn(15)
@given(named=drawn_events())
@example(named=ALL_ENDS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_query_of_every_dialect_has_the_names_of_the_plan(dialect: str, named: Named) -> None:
    """The parser finds each name once for each use, whole, and nothing is outside of the quotes."""
    wanted = [*named.plan.by, *named.plan.roles.numbers]
    if dialect == "spark" and any("${" in name for name in named.plan.columns):
        with pytest.raises(gsh.InvalidParameter, match="replaces variables"):
            bounding_query(named.plan, named.kinds, dialect, "views")
        return
    (parsed,) = sqlglot.parse(bounding_query(named.plan, named.kinds, dialect, "views"), dialect=dialect)
    assert parsed is not None

    assert parsed.named_selects == wanted
    if dialect == "bigquery" and any("." in name for name in named.plan.columns):
        return  # this parser takes any quoted name with a dot for a path
    read = {column.name for column in parsed.find_all(sqlglot.exp.Column) if column.table == "_events"}
    assert read == set(named.plan.columns)


@pytest.mark.parametrize("named", ENDS, ids=[repr(end) for end in LINE_ENDS])
def test_files_of_every_format_have_such_names(named: Named, tmp_path: Path) -> None:
    """CSV cannot have all of them: DuckDB would take the file for a header, and publish no group."""
    expected = bounded(as_events(named.table), named.plan.to_json())
    events = named.table.to_pylist()
    pq.write_table(named.table, tmp_path / "events.parquet")
    (tmp_path / "events.jsonl").write_text("\n".join(json.dumps(event, ensure_ascii=False) for event in events))
    for ending in ("\n", "\r\n"):
        path = tmp_path / f"events-{len(ending)}.csv"
        with path.open("w", newline="") as file:
            rows = [named.table.column_names, *(event.values() for event in events)]
            csv.writer(file, lineterminator=ending, quoting=csv.QUOTE_ALL).writerows(rows)
        with pytest.raises(gsh.InvalidParameter, match="without line ends inside quotes"):
            on_duckdb(path, named.plan)

    for name in ("events.parquet", "events.jsonl"):
        assert on_duckdb(tmp_path / name, named.plan) == expected


@drawn(20)
@given(named=drawn_events())
def test_csv_has_all_names_without_line_ends(named: Named) -> None:
    kept = [name for name in named.table.column_names if not {"\r", "\n"} & set(name)]
    if not set(named.plan.columns) <= set(kept):
        return
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(named.table.select(kept), sink)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "events.csv").write_bytes(sink.getvalue().to_pybytes())
        assert on_duckdb(Path(folder) / "events.csv", named.plan) == bounded(
            as_events(named.table), named.plan.to_json()
        )


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv"])
def test_a_published_table_and_its_certificate_have_such_names(ending: str, tmp_path: Path) -> None:
    table, plan, _ = ALL_ENDS
    _, number, views = plan.roles.numbers
    columns = {"user": plan.user, "by": plan.by, "sums": {number: (0, 5)}, "events": {views: 2}, "c_u": 2}
    columns["names"] = {"count": plan.count}
    made = gsh.publish(table, **columns, epsilon=90, delta=0.1, to=tmp_path / f"private.{ending}")

    assert made.groups > 0
    assert made.table is not None
    assert made.table.column_names == [*plan.by, plan.count, number, views]
    assert made.certificate["mechanism"]["aggregates"]["names"] == (number, views)
    assert made.certificate["roles"] == {"keys": list(plan.by), "count": plan.count, "values": [number, views]}
    assert json.loads((tmp_path / f"private.{ending}.plan.json").read_text())["user"] == plan.user
    if ending == "csv":
        header = next(csv.reader(io.StringIO((tmp_path / "private.csv").read_bytes().decode(), newline="")))
        assert header == made.table.column_names


@pytest.mark.parametrize("end", LINE_ENDS, ids=repr)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_name_does_not_end_a_comment(dialect: str, end: str) -> None:
    plan = make_plan(user="u", by="k", sums={f"a{end}DROP TABLE views; --": (0, 1)}, c_u=2, salt=SALT)
    query = commented_query(plan, dialect, "views")

    comments = [line for line in query.splitlines() if line.startswith("-- ")]
    assert len(comments) == 3
    assert comments[2].startswith('-- "a\\')
    assert len(sqlglot.parse(query, dialect=dialect)) == 1


@pytest.mark.parametrize(
    ("name", "detail"),
    [
        ("a\0b", "must have no NUL character"),
        ("a\ud800b", "must be Unicode without lone surrogates"),
        ("", "of 1 to 255 characters"),
    ],
)
@pytest.mark.parametrize("role", ["user", "by", "sums", "events", "names"])
def test_a_name_that_engines_cannot_have_is_refused(role: str, name: str, detail: str) -> None:
    columns: dict[str, Any] = {"user": "u", "by": ["k"], "sums": {"n": (0, 1)}}
    named = {"sums": {name: (0, 1)}, "events": {name: 1}, "names": {"count": name}}
    columns[role] = {"user": name, "by": [name], **named}[role]

    with pytest.raises(gsh.InvalidParameter, match=detail) as error:
        make_plan(**columns, c_u=1, salt=SALT)
    assert error.value.pointer.startswith(role)


def test_names_that_postgres_would_cut_are_refused() -> None:
    """It would cut both names to the same one, and publish the users as groups."""
    plan = make_plan(user="x" * 63 + "u", by="x" * 63 + "k", c_u=1, salt=SALT)
    kinds = dict.fromkeys(plan.columns, "string")

    with pytest.raises(gsh.InvalidParameter, match="user: must be a name of at most 63 bytes"):
        bounding_query(plan, kinds, "postgres", "views")
    assert bounding_query(plan, kinds, "duckdb", "views")


@pytest.mark.parametrize(
    ("change", "pointer"), [({"events": {"x": 1}}, "events/x"), ({"names": {"count": "x"}}, "names/count")]
)
@pytest.mark.parametrize(("dialect", "name"), [("postgres", "x" * 64), ("spark", "${x}")])
def test_names_of_the_result_are_checked_too(dialect: str, name: str, change: dict[str, Any], pointer: str) -> None:
    """They are no columns of the events, but the engine reads them as well."""
    written = json.loads(json.dumps(change).replace('"x"', json.dumps(name)))
    plan = make_plan(user="u", by="k", c_u=1, salt=SALT, **written)

    with pytest.raises(gsh.InvalidParameter) as error:
        bounding_query(plan, dict.fromkeys(plan.columns, "string"), dialect, "views")
    assert error.value.pointer == pointer.replace("/x", f"/{name}")


def test_text_of_enumerations_stays_as_it_is() -> None:
    """Their values are in the name of their type, which is text of a query too."""
    values = ["a'b", 'a"b', "a\nb", "a\\b", "a, b", "é\u2028"]
    with duckdb.connect() as connection:
        written = ", ".join(DIALECTS["duckdb"].literal(value) for value in values)
        connection.execute(f"CREATE TYPE kind AS ENUM ({written})")
        rows = connection.sql(f"SELECT u::VARCHAR AS u, unnest([{written}])::kind AS k FROM range(3) AS r(u)")
        plan = make_plan(user="u", by="k", c_u=9, salt=SALT)
        found = on_duckdb(rows, plan)

    assert found == {(value,): (3,) for value in values}
