"""POST /bound: the query of `gsh bound`, the columns it needs, and errors at the fields of the request."""

import duckdb
import pytest

import gsh
from gsh.events.bounding import commented_query
from gsh.events.dialects import DIALECTS
from gsh.events.plan import make_plan
from tests.app.client import Client, Json, problem_errors

SALT = "00112233445566778899aabbccddeeff"
LIKES: Json = {"name": "likes", "lower": 0, "upper": 1, "groups": 2}
SECONDS: Json = {"name": "seconds", "lower": 0, "upper": 2.5, "unit": 2**-10}
BODY: Json = {
    "dialect": "duckdb",
    "source": "views",
    "user": "user_id",
    "by": ["url", "country"],
    "c_u": 3,
    "tau": 2,
    "sums": [LIKES, SECONDS],
    "events": [{"name": "views", "most": 4, "groups": 1}],
    "salt": SALT,
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_query_is_that_of_the_library(client: Client, dialect: str) -> None:
    answer = client.answer("/bound", BODY | {"dialect": dialect})
    plan = make_plan(
        user="user_id",
        by=["url", "country"],
        sums={"likes": (0, 1), "seconds": (0, 2.5)},
        units={"seconds": 2**-10},
        events={"views": 4},
        caps={"likes": 2, "views": 1},
        c_u=3,
        tau=2,
        salt=SALT,
    )

    assert answer["query"] == commented_query(plan, dialect, "views")
    assert (answer["salt"], answer["plan_digest"]) == (SALT, plan.digest)
    assert (answer["dialect"], answer["is_executed"]) == (dialect, DIALECTS[dialect].is_executed)


NOISE: Json = {"c_u": 3, "tau": 2, "tau_star": 30.0, "sigma": 4.0}


def test_an_engine_that_adds_noise_gets_the_threshold_too(client: Client) -> None:
    body = BODY | {"dialect": "presto", "sums": [], "events": [], "mechanism": NOISE}
    plan = make_plan(user="user_id", by=["url", "country"], c_u=3, tau=2, salt=SALT)

    query = client.answer("/bound", body)["query"]

    assert query == commented_query(plan, "presto", "views", gsh.Mechanism(**NOISE))
    assert 'WHERE "count" >= 31;' in query


@pytest.mark.parametrize(
    ("changed", "pointer"),
    [
        ({"dialect": "trino"}, "/mechanism"),
        ({"mechanism": NOISE | {"c_u": 4}}, "/mechanism/c_u"),
        ({"mechanism": NOISE | {"tau": 1}}, "/mechanism/tau"),
        ({"sums": [LIKES]}, "/mechanism/aggregates"),
    ],
)
def test_noise_that_does_not_fit_the_query_is_refused(client: Client, changed: Json, pointer: str) -> None:
    body = BODY | {"dialect": "presto", "sums": [], "events": [], "mechanism": NOISE} | changed

    assert list(problem_errors(client.post("/bound", body), 422, "invalid-request")) == [pointer]


def test_it_names_the_columns_that_it_needs(client: Client) -> None:
    answer = client.answer("/bound", BODY | {"types": {"user_id": "integer"}})

    assert answer["columns"] == [
        {"name": "user_id", "role": "user", "type": "integer", "unit": None},
        {"name": "url", "role": "key", "type": "string", "unit": None},
        {"name": "country", "role": "key", "type": "string", "unit": None},
        {"name": "likes", "role": "sum", "type": "integer", "unit": 1},
        {"name": "seconds", "role": "sum", "type": "double", "unit": 2**-10},
    ]


def test_the_query_runs_on_a_table_with_these_columns(client: Client) -> None:
    """Each of three users is in five groups, counts in three of them, and likes two of these."""
    answer = client.answer("/bound", BODY)
    sql = {"string": "VARCHAR", "integer": "INTEGER", "double": "DOUBLE"}
    columns = ", ".join(f"{each['name']} {sql[each['type']]}" for each in answer["columns"])
    database = duckdb.connect()
    database.execute(f"CREATE TABLE views ({columns})")
    database.execute("INSERT INTO views SELECT 'u' || u, 'p' || p, 'US', 7, 9.0 FROM range(3) t(u), range(5) s(p)")

    counts, likes, seconds, views = zip(*(row[2:] for row in database.execute(answer["query"]).fetchall()), strict=True)

    assert all(count >= 2 for count in counts)
    assert sum(counts) <= 9
    assert sum(likes) <= 6
    assert sum(views) == 3  # one event in each group, and in one group only
    assert [each * 2**-10 for each in seconds] == [2.5 * count for count in counts]


def test_without_a_salt_each_query_has_its_own(client: Client) -> None:
    body = {name: value for name, value in BODY.items() if name != "salt"}
    first, second = (client.answer("/bound", body) for _ in range(2))

    assert first["salt"] != second["salt"]
    assert first["query"] == client.answer("/bound", body | {"salt": first["salt"]})["query"]


@pytest.mark.parametrize(
    ("change", "pointer", "detail"),
    [
        ({"by": ["url", "user_id"]}, "/by", "must not have the user column"),
        ({"by": ["url", "count"]}, "/by", "must have unique names, other than count"),
        ({"by": ["url", "a\0"]}, "/by/1", "must have no NUL character"),
        ({"by": ["url", "${x}"], "dialect": "spark"}, "/by/1", "must be a name without ${"),
        ({"user": "é" * 32, "dialect": "postgres"}, "/user", "must be a name of at most 63 bytes"),
        ({"source": "a\0b"}, "/source", "must have no NUL character"),
        ({"by": []}, "/by", "at least 1"),
        ({"c_u": 0}, "/c_u", "must be at least 1"),
        ({"tau": -1}, "/tau", "must be at least 0"),
        ({"salt": ""}, "/salt", "must be 32 hexadecimal digits"),
        ({"salt": "x"}, "/salt", "must be 32 hexadecimal digits"),
        ({"dialect": "oracle"}, "/dialect", "must be"),
        ({"sums": [LIKES, LIKES]}, "/sums", "must have unique names"),
        ({"sums": [LIKES, SECONDS | {"upper": -1}]}, "/sums/1", "must have a lower bound"),
        ({"sums": [SECONDS | {"unit": 0.3}]}, "/sums/0/unit", "must be a power of two"),
        ({"sums": [LIKES, LIKES | {"name": "a/b", "groups": 4}]}, "/sums/1/groups", "must be from 1 to c_u"),
        ({"events": [{"name": "views", "most": 4}] * 2}, "/events", "must have unique names"),
        ({"events": [{"name": "likes", "most": 4}]}, "/events/0/most", "must be a name that sums lack"),
        ({"events": [{"name": "views", "most": 0}]}, "/events/0/most", "must be at least 1"),
        ({"events": [{"name": "views", "most": 4, "groups": 4}]}, "/events/0/groups", "must be from 1 to c_u"),
        ({"sums": [LIKES], "types": {"likes": "double"}}, "/sums/0/unit", "must be given for a column"),
        ({"types": {"nobody": "integer"}}, "/types", "must name only columns"),
        ({"types": {"url": "uuid"}, "dialect": "spark"}, "/types", "must be of a kind that spark has"),
        ({"types": {"url": "much"}}, "/types", "must be"),
        ({"source": ""}, "/source", "at least 1"),
    ],
)
def test_an_error_names_its_field(client: Client, change: Json, pointer: str, detail: str) -> None:
    errors = problem_errors(client.post("/bound", BODY | change), 422, "invalid-request")

    assert list(errors) == [pointer]
    assert detail in errors[pointer]
