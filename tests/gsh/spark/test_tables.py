"""Several tables in one release: one shuffle by user, each table as the judge says, and all of them or none."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gsh
from gsh.certificate import Certificate
from gsh.errors import InvalidParameter
from gsh.events.tables import Plans, planned
from gsh.spark import publishing
from gsh.spark.aggregates import aggregates, by_user
from gsh.spark.keepers import ByFile
from gsh.spark.noise import stream_of
from gsh.spark.public_keys import listed_keys
from tests.app.process import ROOT
from tests.gsh.events.tables import as_events
from tests.gsh.spark.job import STEPS
from tests.gsh.spark.test_aggregates import rows_of
from tests.gsh.spark.test_exactly_once import Stopped, stopped_at, unreadable
from tests.gsh.spark.views import TABLES, files_in, rows_in, views
from tests.reference.bounding import bounded_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Read = Callable[[pa.Table], "DataFrame"]
NAMES = set(TABLES["tables"])


def plan_of(tables: Mapping[str, gsh.Table], partitions: int = 2) -> tuple[Plans, dict[str, Any]]:
    return planned(tables, user="user_id", salt="0" * 32, partitions=partitions)


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_each_table_is_what_the_judge_says_after_one_shuffle_by_user(
    spark: "SparkSession", read: Read, adaptive: str
) -> None:
    """Records of keys that are not listed use nobody's C_u up, and listed groups without records count 0."""
    plans, keys = plan_of(TABLES["tables"])
    events = read(views())
    truth = bounded_tables(
        as_events(views()),
        plans.to_json(),
        {name: [tuple(row.values()) for row in each.table.to_pylist()] for name, each in keys.items()},
    )
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    rows = by_user(events, plans).persist()
    try:
        for name, plan in plans.tables.items():
            found = aggregates(rows, plan, listed_keys(events, plan, keys, name))
            assert rows_of(found, plan) == truth[name]
            found.collect()
            final = found._jdf.queryExecution().executedPlan().toString().partition("Initial Plan")[0]
            shuffles = re.findall(r"Exchange hashpartitioning\((\w+)", final)
            # The first one is that of the rows that are kept for all tables.
            assert sorted(shuffles) in (["_bucket" + "_" * 7, "_key0"], ["_key0"]), final
            assert "InMemoryTableScan" in final or "TableCacheQueryStage" in final
    finally:
        rows.unpersist()
        spark.conf.unset("spark.sql.adaptive.enabled")
    assert truth["by_country"]["XX",] == (0, 0)


def test_a_release_of_tables_appears_whole_or_not_at_all(read: Read, tmp_path: Path) -> None:
    """The driver ends after the first table, and before the commit; then it makes the same rows."""
    to, events = tmp_path / "published", read(views())
    original = publishing._staged

    def first_only(*arguments: Any) -> None:
        original(*arguments)
        raise Stopped

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(publishing, "_staged", first_only)
        with pytest.raises(Stopped):
            gsh.spark.publish(events, to=to, **TABLES)
    with stopped_at(ByFile, "commit"), pytest.raises(Stopped):
        gsh.spark.publish(read(views(order=1)), to=to, **TABLES)
    assert not to.exists()
    finished = json.loads((tmp_path / ".published.staging" / "finished.json").read_text())
    staged = files_in(tmp_path / ".published.staging" / finished["attempt"])
    assert {name.partition("/")[0] for name in staged} == NAMES
    with pytest.raises(InvalidParameter, match="events: must be the events of the earlier run"):
        gsh.spark.publish(read(views(late=1)), to=to, **TABLES)

    made = gsh.spark.publish(read(views(order=2)), to=to, **TABLES)

    assert files_in(to) == staged
    assert made.groups == sum(pq.read_metadata(pa.BufferReader(file)).num_rows for file in staged.values())
    assert not list(tmp_path.glob(".published*"))
    certificate = json.loads((to / "_certificate.json").read_text())
    assert made.certificate == certificate
    assert {table["bounds"]["plan_digest"] for table in certificate["tables"]} == {made.plan.digest}
    assert gsh.exact(Certificate.from_json(certificate).mechanisms, epsilon=20).delta <= 1e-2
    # All listed groups are there, with noise on each, also on those without records.
    countries = pq.read_table(to / "by_country").sort_by("country").to_pydict()
    assert countries["country"] == ["FR", "JP", "XX"]
    assert countries["count"][2] != 0 or countries["likes"][2] != 0
    assert pq.read_table(to / "by_url").num_rows == 3

    again = gsh.spark.publish(unreadable(events), to=to, **TABLES)
    assert (again.is_replayed, again.groups) == (True, made.groups)
    other = TABLES | {"tables": {**TABLES["tables"], "detail": gsh.Table(by="url", c_u=1)}}
    with pytest.raises(InvalidParameter, match="to: must be a new place"):
        gsh.spark.publish(events, to=to, **other)


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
        ({"tables": {"a": gsh.Table(by="likes", keys=["x"], c_u=1)}}, "tables/a/keys: must have values of the types"),
        ({"tables": None, "c_u": 1}, "by: must be given"),
    ],
)
def test_mistakes_name_the_table(read: Read, tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        gsh.spark.publish(unreadable(read(views())), to=tmp_path / "published", **(TABLES | change))
    assert list(tmp_path.glob("*published*")) == []


@pytest.mark.long
@pytest.mark.parametrize("step", STEPS)
def test_a_driver_killed_after_any_step_publishes_all_tables_once(tmp_path: Path, step: str) -> None:
    to, runs = tmp_path / "published", iter(range(9))

    def run(code: int, **given: Any) -> dict[str, Any]:
        events = tmp_path / f"events-{next(runs)}.parquet"
        pq.write_table(views(int(events.stem[-1])), events)
        said = {"master": "local[2]", "events": str(events), "to": str(to), "tables": True} | given
        command = [sys.executable, "-m", "tests.gsh.spark.job", json.dumps(said)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == code, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1]) if code >= 0 else {}

    run(-signal.SIGKILL, die=step)
    assert to.exists() == (step == "place")
    seeds = list(tmp_path.glob(".published.staging/seed.json"))
    assert len(seeds) == (STEPS.index(step) < STEPS.index("commit"))
    finished = list(tmp_path.glob(".published.staging/finished.json"))
    before = rows_in(finished[0].parent / json.loads(finished[0].read_text())["attempt"]) if finished else {}

    made = run(0)

    assert made["is_replayed"] == (STEPS.index(step) >= STEPS.index("commit"))
    assert {name.partition("/")[0] for name in rows_in(to)} == NAMES
    assert not before or rows_in(to) == before
    assert not list(tmp_path.glob(".published*"))
