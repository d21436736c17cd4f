"""Several tables in one release: one shuffle by user, each table as the judge says, and all of them or none."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gsh
from gsh.errors import InvalidParameter
from gsh.events.tables import Plans, planned
from gsh.spark import publishing
from gsh.spark.aggregates import USERS
from gsh.spark.keepers import ByService
from gsh.spark.noise import TABLE, stream_of
from gsh.spark.places import Place
from gsh.spark.tables import _key_slots, aggregates_of_tables
from tests.app.process import Service
from tests.gsh.events.tables import as_events
from tests.gsh.spark.test_exactly_once import Stopped, stopped_at, unreadable
from tests.gsh.spark.views import TABLES, entries, files_in, views
from tests.reference.bounding import bounded_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Read = Callable[[pa.Table], "DataFrame"]
NAMES = set(TABLES["tables"])


def plan_of(tables: Mapping[str, gsh.Table], partitions: int = 2) -> tuple[Plans, dict[str, Any]]:
    return planned(tables, user="user_id", salt="0" * 32, partitions=partitions)


@contextmanager
def adaptive_is(spark: "SparkSession", value: str) -> Iterator[None]:
    """Adaptive execution, on or off."""
    spark.conf.set("spark.sql.adaptive.enabled", value)
    try:
        yield
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_each_table_is_what_the_judge_says_after_one_shuffle_by_user(
    spark: "SparkSession", read: Read, adaptive: str
) -> None:
    """Records of keys that are not listed use nobody's C_u up, and listed groups without records count 0."""
    further = gsh.Table(by=["likes", "url"], sums={"seconds": (-(2**51), 2**51)}, units={"seconds": 1}, c_u=2, tau=2)
    plans, keys = plan_of({**TABLES["tables"], "by_likes": further})
    events = read(views())
    truth = bounded_tables(
        as_events(views()),
        plans.to_json(),
        {name: [tuple(row.values()) for row in each.table.to_pylist()] for name, each in keys.items()},
    )
    with adaptive_is(spark, adaptive):
        query = aggregates_of_tables(events, plans, keys)
        rows = query.collect()
        final = query._jdf.queryExecution().executedPlan().toString().partition("Initial Plan")[0]
    found: dict[str, dict[Any, Any]] = {name: {} for name in plans.tables}
    slots = _key_slots(events, plans)
    for row in rows:
        name = list(plans.tables)[row[TABLE]]
        totals = (row[f"_total{j}"] for j in range(len(plans.tables[name].measures)))
        found[name][tuple(row[slot] for slot in slots[name])] = (row[USERS], *totals)
    assert found == truth
    assert truth["by_country"]["XX",] == (0, 0)
    assert len(rows) == sum(map(len, truth.values()))
    shuffles = re.findall(r"Exchange hashpartitioning\((\w+)", re.sub(r"Reused.*", "", final))
    assert sorted(shuffles) == ["_key0_0", "user_id"], final
    assert len(re.findall(r"ReusedExchange", final)) == len(plans.tables) - 1, final


def test_keys_must_not_come_from_the_events(read: Read, tmp_path: Path) -> None:
    """Neither the events, nor one of their files, nor what has the user column."""
    events = read(views().select(["user_id", "country"]))
    (file,) = (path for folder in tmp_path.glob("*.parquet") for path in [folder, *folder.glob("*.parquet")])
    (tmp_path / "link.parquet").symlink_to(file)
    for keys in (events, file, tmp_path / "link.parquet", views()):
        with pytest.raises(InvalidParameter, match=r"^public_keys: must not come from the events"):
            gsh.spark.publish(
                events,
                user="user_id",
                by="country",
                public_keys=keys,
                c_u=1,
                epsilon=1,
                delta=1e-6,
                to=tmp_path / "private",
            )
    assert not (tmp_path / "private").exists()


def check_averages(made: gsh.Published, to: Path) -> None:
    """The parts of a table have what was released, in whole units; means and ratios follow from it."""
    detail, parts = gsh.read(to)["detail"], pq.read_table(to / "detail")
    assert parts.column_names == ["url", "country", "people", "likes", "paid", "views", "seconds_centred"]
    assert (parts["people"].type, parts["views"].type) == (pa.int64(), pa.int64())
    averages = [f"{name}{end}" for name in ("seconds_mean", *detail.ratios()) for end in ("", "_low", "_high")]
    assert detail.table.column_names == [*parts.column_names, *averages]
    assert detail.table.equals(made.tables["detail"])
    assert made.budget_use is not None
    assert made.budget_use.budget == "tables"


def test_a_release_of_tables_appears_whole_and_is_charged_once(read: Read, service: Service, tmp_path: Path) -> None:
    """The driver ends after the first table, and before the commit; then it makes the same rows."""
    to, events = tmp_path / "published", read(views())
    original = publishing._staged
    with gsh.Client(service.url) as client:
        client.budgets.put("tables", epsilon=100, delta=0.5)
        given = TABLES | {"service": client, "budget": "tables", "once": "tables-W46", "to": to}

        def first_only(*arguments: Any) -> None:
            original(*arguments)
            raise Stopped

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(publishing, "_staged", first_only)
            with pytest.raises(Stopped):
                gsh.spark.publish(events, **given)
        with stopped_at(ByService, "commit"), pytest.raises(Stopped):
            gsh.spark.publish(read(views(order=1)), **given)
        assert not to.exists()
        (finished,) = tmp_path.glob(".published.*.staging/finished.json")
        staged = files_in(finished.parent / json.loads(finished.read_text())["attempt"])
        assert {name.partition("/")[0] for name in staged} == NAMES
        assert entries(service, "tables", "tables-W46") == {"charge": 1}

        with adaptive_is(events.sparkSession, "false"):
            made = gsh.spark.publish(read(views(order=2)), **given)

        assert files_in(to) == staged
        assert made.groups == sum(pq.read_metadata(pa.BufferReader(file)).num_rows for file in staged.values())
        assert not list(tmp_path.glob(".published*"))
        assert entries(service, "tables", "tables-W46") == {"charge": 1, "committed": 1}
        certificate = json.loads((to / "_certificate.json").read_text())
        assert made.certificate == certificate
        assert {table["bounds"]["plan_digest"] for table in certificate["tables"]} == {made.plan.digest}
        assert client.releases.verify(certificate).made_here
        assert certificate["record"]["committed_digest"] == Place(to, tables=tuple(TABLES["tables"])).digest(str(to))[0]
        assert gsh.exact(made.mechanisms, epsilon=20).delta <= 1e-2
        found = gsh.read(to)
        assert (found.certificate, found.roles) == (made.certificate, made.plan.roles)
        assert found.rest("by_country", "detail").equals(made.rest("by_country", "detail"))
        assert sum(map(len, found.tables.values())) == made.groups
        check_averages(made, to)

        again = gsh.spark.publish(unreadable(events), **given)
        assert (again.is_replayed, again.groups) == (True, made.groups)
        other = {"tables": {**TABLES["tables"], "detail": gsh.Table(by="url", c_u=1)}}
        with pytest.raises(InvalidParameter, match="to: must be a new place"):
            gsh.spark.publish(events, **(given | other))


def test_all_listed_groups_are_published_with_noise(read: Read, tmp_path: Path) -> None:
    """Also those without records. Without a service, and for one table too."""
    to = tmp_path / "published"
    listed = [f"https://example.org/{number}" for number in range(20)]
    one = {
        "user": "user_id",
        "by": "url",
        "public_keys": listed,
        "c_u": 1,
        "epsilon": 1,
        "delta": 1e-2,
        "partitions": 2,
    }
    made = gsh.spark.publish(read(views()), to=to, **one)

    found = pq.read_table(to).to_pydict()
    assert sorted(found["url"]) == sorted(listed)
    empty = [count for url, count in zip(found["url"], found["count"], strict=True) if len(url) > len(listed[9])]
    assert len(set(empty)) > 1
    assert made.plan.public_keys is not None
    assert gsh.spark.publish(unreadable(read(views())), to=to, **one).is_replayed


def test_a_sum_beyond_doubles_names_its_table(read: Read, tmp_path: Path) -> None:
    """All tables are one query, so that the error comes with the first one that is written."""
    events = read(pa.table({"u": ["a", "b", "c"], "g": ["secret"] * 3, "x": [2**52 - 7] * 3}))
    tables = {"first": gsh.Table(by="g", c_u=1), "second": gsh.Table(by="g", sums={"x": (0, 2**52)}, c_u=1)}

    with pytest.raises(gsh.EventsError) as error:
        gsh.spark.publish(
            events, user="u", tables=tables, epsilon=1, delta=1e-2, partitions=1, to=tmp_path / "published"
        )

    assert str(error.value) == "tables/second/sums/x: must stay within 2^53 units in every group: take a larger unit"
    assert error.value.__context__ is None
    assert not (tmp_path / "published").exists()
    assert not list(tmp_path.glob(".published*/*/*"))


def test_no_two_tables_share_noise() -> None:
    """Also tables with the same groups."""
    drawn = {stream_of(bytes(32), "digest", b"content", name)(64) for name in ("", "a", "b")}

    assert len(drawn) == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"by": "url"}, "by: must be omitted with tables"),
        ({"tau": 2}, "tau: must be omitted with tables"),
        ({"tables": {"_a": gsh.Table(by="url", c_u=1)}}, "tables: must have names that begin with a letter"),
        ({"tables": {"..": gsh.Table(by="url", c_u=1)}}, "tables: must have names that begin with a letter"),
        ({"tables": {"a": gsh.Table(by="nothing", c_u=1)}}, "tables/a/by/0: must name a column"),
        (
            {"tables": {"a": gsh.Table(by="likes", public_keys=["x"], c_u=1)}},
            "tables/a/public_keys: must have values of the types",
        ),
        ({"tables": None, "c_u": 1}, "by: must be given"),
    ],
)
def test_mistakes_name_the_table(read: Read, tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        gsh.spark.publish(unreadable(read(views())), to=tmp_path / "published", **(TABLES | change))
    assert list(tmp_path.glob("*published*")) == []
