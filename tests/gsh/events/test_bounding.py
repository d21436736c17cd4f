"""The bounding query against the reference: on DuckDB here, on PostgreSQL in test_dialects.py."""

import datetime
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import example, given, settings

from gsh.events.bounding import bounding_query
from gsh.events.plan import Plan, make_plan
from tests.gsh.events.decimals import COUNTED, TYPES, query
from tests.gsh.events.tables import NASTY, NASTY_PLAN, as_events, draws
from tests.reference.bounding import Aggregates, bounded

pytestmark = pytest.mark.slow

NASTY_KINDS = {
    "user_id": "string",
    "text": "string",
    "more": "string",
    "whole": "integer",
    "flag": "boolean",
    "day": "date",
    "price": "decimal(20,7)",
    "local": "timestamp",
    "instant": "timestamptz",
    "likes": "integer",
    "seconds": "double",
    "paid": "decimal(20,7)",
    "seen": "boolean",
}
SALT = "0" * 32


def rows_of(result: list[tuple[Any, ...]], keys: int) -> Aggregates:
    """The rows of an engine, as the reference has them. Instants are in UTC, in whatever zone they come."""
    found = {}
    for row in result:
        key = tuple(
            part.astimezone(datetime.UTC) if isinstance(part, datetime.datetime) and part.tzinfo else part
            for part in row[:keys]
        )
        assert key not in found
        found[key] = tuple(int(number) for number in row[keys:])
    return found


def on_duckdb(table: pa.Table, kinds: dict[str, str], plan: Plan) -> Aggregates:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'America/New_York'")
        connection.register("views", table)
        result = connection.sql(bounding_query(plan, kinds, "duckdb", "views")).to_arrow_table()
    # In the zone of the session, the first instants have no date in Python.
    for place, field in enumerate(result.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz:
            result = result.set_column(place, field.name, result[place].cast(pa.timestamp("us", "UTC")))
    return rows_of([tuple(row.values()) for row in result.to_pylist()], len(plan.by))


@settings(max_examples=60, deadline=None)
@given(draws())
@example((NASTY, NASTY_KINDS, NASTY_PLAN))
def test_duckdb_bounds_as_the_reference(drawn: tuple[pa.Table, dict[str, str], Plan]) -> None:
    table, kinds, plan = drawn

    assert on_duckdb(table, kinds, plan) == bounded(as_events(table), plan.to_json())


@pytest.mark.parametrize(("precision", "scale"), TYPES)
def test_decimals_of_every_size_count_exactly(precision: int, scale: int) -> None:
    with duckdb.connect() as connection:
        assert sorted(connection.sql(query("duckdb", precision, scale)).fetchall()) == COUNTED[precision, scale]


def test_the_nasty_table_is_nasty() -> None:
    """Each bound changes something: the users, C_u, the caps and the clips."""
    plan = NASTY_PLAN.to_json()
    plain = bounded(as_events(NASTY), plan)

    for change in (
        {"c_u": 10**6},
        {"measures": [{**each, "groups": None} for each in plan["measures"]]},
        {"salt": SALT},
    ):
        assert bounded(as_events(NASTY), plan | change) != plain
    assert max(map(max, plain.values())) > 1


def test_texts_that_would_be_alike_if_joined_have_other_lots() -> None:
    """("ab", "c") and ("a", "bc") are different groups: a user with both keeps one, by lots that differ."""
    events = pa.table(
        {"u": [f"{n}" for n in range(64)] * 2, "a": ["ab"] * 64 + ["a"] * 64, "b": ["c"] * 64 + ["bc"] * 64}
    )
    plan = make_plan(user="u", by=["a", "b"], c_u=1, salt=SALT)

    found = on_duckdb(events, {"u": "string", "a": "string", "b": "string"}, plan)

    assert found == bounded(as_events(events), plan.to_json())
    assert len(found) == 2  # with the same lot for both, the winner would be whatever came first


@pytest.mark.parametrize("clause", ["PARTITION BY _user ORDER BY md5", "_place <= 17", "LEAST(GREATEST(SUM"])
def test_the_query_has_its_bounds(clause: str) -> None:
    assert clause in bounding_query(NASTY_PLAN, NASTY_KINDS, "duckdb", "views")


def test_partial_results_keep_small_groups() -> None:
    plan = make_plan(user="u", by="a", c_u=1, tau=5, salt=SALT)

    assert "HAVING COUNT(*) >= 5" in bounding_query(plan, {"u": "string", "a": "string"}, "duckdb", "views")
    assert "HAVING" not in bounding_query(plan, {"u": "string", "a": "string"}, "duckdb", "views", is_partial=True)
