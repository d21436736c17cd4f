"""A release is made once: tasks that fail, runs that stop and start again, and rows in any order give the same rows."""

import base64
import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gsh
from gsh.errors import InvalidParameter
from gsh.events.plan import make_plan
from gsh.histogram.released_content import contents_of
from gsh.results.parts import spark_metadata
from gsh.spark import publishing
from gsh.spark.aggregates import by_user
from gsh.spark.keepers import ByFile, ByService, Opening
from gsh.spark.places import Place
from gsh.spark.publishing import noised
from tests.app.process import Service
from tests.gsh.spark.faults import failing_once
from tests.gsh.spark.leaks import leaks, shown_by
from tests.gsh.spark.views import RELEASE, entries, files_in, views

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Read = Callable[[pa.Table], "DataFrame"]


class Stopped(Exception):
    """The driver ends here."""


@pytest.fixture
def budget(service: Service, request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """A budget and a name of a release for each test."""
    name = request.node.name.replace("_", "-")[:50]
    with gsh.Client(service.url) as client:
        client.budgets.put(name, epsilon=100, delta=0.5)
        yield {"service": client, "budget": name, "once": f"{name}-W46"}


@pytest.fixture
def seeds(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """All seeds that runs get."""
    found: list[bytes] = []
    for keeper in (ByService, ByFile):
        original = keeper.open

        def opened(self: Any, *arguments: Any, original: Any = original) -> Opening:
            opening: Opening = original(self, *arguments)
            if opening.seed is not None:
                found.append(opening.seed)
            return opening

        monkeypatch.setattr(keeper, "open", opened)
    return found


@contextmanager
def stopped_at(keeper: type, step: str) -> Iterator[None]:
    """The driver ends before a step."""

    def stopped(*_: object) -> None:
        raise Stopped

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keeper, step, stopped)
        yield


def unreadable(events: "DataFrame") -> "DataFrame":
    """Events of this schema that nobody may read."""

    def refuse(_batches: Any) -> Any:
        raise AssertionError("an event was read")

    return events.mapInArrow(refuse, events.schema)


def test_every_execution_gives_the_same_bytes(spark: "SparkSession", read: Read, tmp_path: Path) -> None:
    """Twice, from other orders of rows and partitions, with and without adaptive execution, with a failed task."""
    named = {name: RELEASE[name] for name in ("user", "by", "sums", "units", "c_u", "caps", "partitions")}
    plan = make_plan(**named, salt="0" * 32)
    mechanism = gsh.calibrate(c_u=3, epsilon=8, delta=1e-2, sums=RELEASE["sums"], caps=RELEASE["caps"]).mechanism
    marker = tmp_path / "failed"

    def written(name: str, events: "DataFrame", *, fail: bool = False) -> dict[str, bytes]:
        rows = noised(by_user(events, plan), plan, mechanism, bytes(32))
        if fail:
            rows = rows.mapInArrow(failing_once(str(marker)), rows.schema)
        rows.write.parquet(str(tmp_path / name))
        Place(tmp_path / name).finish(str(tmp_path / name), {"": plan.roles})
        return files_in(tmp_path / name)

    first = written("first", read(views()))
    assert sum(pq.read_metadata(pa.BufferReader(file)).num_rows for file in first.values()) > 5
    assert written("again", read(views())) == first
    assert written("failed", read(views(order=4)).repartition(7), fail=True) == first
    assert marker.exists()
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        assert written("not-adaptive", read(views(order=5))) == first
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")
    assert written("late", read(views(late=1))) != first


def test_a_release_of_the_service_survives_a_stop_and_is_charged_and_committed_once(
    spark: "SparkSession",
    read: Read,
    service: Service,
    budget: dict[str, Any],
    seeds: list[bytes],
    logs: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    to = tmp_path / "published"
    with stopped_at(ByService, "commit"), pytest.raises(Stopped):
        gsh.spark.publish(read(views()), to=to, **budget, **RELEASE)
    assert not to.exists()
    assert entries(service, budget["budget"], budget["once"]) == {"charge": 1}
    (staging,) = tmp_path.glob(".published.*.staging")
    (attempt,) = (path for path in staging.iterdir() if path.is_dir())
    staged = files_in(attempt)

    # Other events under the same name stop, and nothing is published.
    with pytest.raises(InvalidParameter, match="events: must be the events of the earlier run"):
        gsh.spark.publish(read(views(late=2)), to=to, **budget, **RELEASE)
    assert not to.exists()

    # The same events in another order, and a task that fails at first.
    original = publishing.noised

    def fails(*arguments: Any) -> Any:
        rows = original(*arguments)
        return rows.mapInArrow(failing_once(str(tmp_path / "failed")), rows.schema)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(publishing, "noised", fails)
        made = gsh.spark.publish(read(views(order=2)), to=to, **budget, **RELEASE)
    assert (tmp_path / "failed").exists()
    assert files_in(to) == staged
    assert not made.is_replayed
    assert made.groups == sum(pq.read_metadata(pa.BufferReader(file)).num_rows for file in staged.values())
    assert entries(service, budget["budget"], budget["once"]) == {"charge": 1, "committed": 1}
    assert not list(tmp_path.glob(".published*"))
    certificate = json.loads((to / "_certificate.json").read_text())
    assert certificate["record"]["committed_digest"] == Place(to).digest(str(to))[0]
    inside = made.certificate.recorded(None).to_dict()
    content = inside.pop("content")  # of all rows, which are not all there when a part is written
    for part in to.glob("part-*.parquet"):  # each has the certificate, but for the record and the content
        assert json.loads(spark_metadata(pq.read_schema(part))[b"certificate"]) == inside
    found = gsh.read(to)
    assert (found.certificate, found.roles) == (made.certificate, {"": made.plan.roles})
    assert found.table.equals(made.table)
    assert contents_of(found.tables, found.roles) == {"": content}
    (to / "part-00000-000.parquet").rename(to / "_gone")
    with pytest.raises(gsh.FileError, match="must have the rows that were committed"):
        gsh.read(to)
    (to / "_gone").rename(to / "part-00000-000.parquet")
    assert certificate["bounds"]["enforced_by"] == "gsh.spark"
    assert certificate["bounds"]["plan_digest"] == made.plan.digest
    assert budget["service"].releases.verify(certificate).made_here

    # A run after the commit reads no event.
    again = gsh.spark.publish(unreadable(read(views())), to=to, **budget, **RELEASE)
    assert (again.is_replayed, again.released_at) == (True, certificate["released_at"])
    assert again.groups == made.groups
    assert files_in(to) == staged

    # All runs had one seed, and it is nowhere.
    (seed,) = set(seeds)
    assert not leaks(seed, [logs, tmp_path], shown_by(spark), *capfd.readouterr())


def as_literal(spark: "SparkSession", seed: bytes) -> None:
    spark.range(2).selectExpr(f"X'{seed.hex()}' AS x").collect()


def as_text(spark: "SparkSession", seed: bytes) -> None:
    spark.range(2).selectExpr(f"'{base64.b64encode(seed).decode()}' AS x").collect()


def as_setting(spark: "SparkSession", seed: bytes) -> None:
    spark.conf.set("spark.sql.planted", repr(seed))
    spark.range(2).collect()
    spark.conf.unset("spark.sql.planted")


def as_broadcast(spark: "SparkSession", seed: bytes) -> None:
    spark.sparkContext.broadcast(seed)


@pytest.mark.parametrize("plant", [as_literal, as_text, as_setting, as_broadcast])
def test_the_search_finds_a_planted_seed_in_files(spark: "SparkSession", logs: Path, plant: Any) -> None:
    seed = os.urandom(32)
    assert not leaks(seed, [logs])
    plant(spark, seed)
    shown_by(spark)

    folder = "local" if plant is as_broadcast else "events"
    assert leaks(seed, [logs / folder])


@pytest.mark.parametrize("kind", ["TEMPORARY", "GLOBAL TEMPORARY"])
def test_the_search_finds_a_planted_seed_in_a_view(spark: "SparkSession", kind: str) -> None:
    seed = os.urandom(32)
    spark.sql(f"CREATE {kind} VIEW planted AS SELECT X'{seed.hex()}' AS x")
    shown = shown_by(spark)
    (spark.catalog.dropTempView if kind == "TEMPORARY" else spark.catalog.dropGlobalTempView)("planted")

    assert leaks(seed, [], shown)
    assert not leaks(seed, [], shown_by(spark))


def test_the_plan_text_does_not_show_the_seed(read: Read, capsys: pytest.CaptureFixture[str]) -> None:
    seed = os.urandom(32)
    plan = make_plan(user="user_id", by=["url"], c_u=2, salt="0" * 32, partitions=2)
    rows = noised(by_user(read(views()), plan), plan, gsh.Mechanism(c_u=2, tau=1, tau_star=30, sigma=5), seed)
    rows.explain(extended=True)

    assert not leaks(seed, [], capsys.readouterr().out, repr(rows))


def test_two_drivers_with_other_events_commit_one_release(
    read: Read, service: Service, budget: dict[str, Any], tmp_path: Path
) -> None:
    """The second one started before the commit of the first, and writes elsewhere: it stops at its commit."""
    first, second = tmp_path / "first", tmp_path / "second"

    def other_driver(place: Place, attempt: str, plan: Any) -> Any:
        patch.undo()
        gsh.spark.publish(read(views(late=3)), to=first, **budget, **RELEASE)
        return publishing._finished(place, attempt, plan)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(publishing, "_finished", other_driver)
        with pytest.raises(InvalidParameter, match="once: must be a new name"):
            gsh.spark.publish(read(views()), to=second, **budget, **RELEASE)

    assert first.exists()
    assert not second.exists()
    assert entries(service, budget["budget"], budget["once"]) == {"charge": 1, "committed": 1}
    # Its seed is gone: the rows cannot be made again elsewhere.
    with pytest.raises(InvalidParameter, match="once: must be a new name: this one is committed"):
        gsh.spark.publish(read(views()), to=tmp_path / "third", **budget, **RELEASE)
    with pytest.raises(InvalidParameter, match="once: must be a new name: a release by another plan"):
        gsh.spark.publish(read(views()), to=tmp_path / "third", **budget, **(RELEASE | {"partitions": 4}))


def test_without_a_service_a_file_keeps_the_seed_until_the_commit(
    spark: "SparkSession", read: Read, seeds: list[bytes], logs: Path, tmp_path: Path
) -> None:
    to, events = tmp_path / "published", read(views())
    with stopped_at(ByFile, "commit"), pytest.raises(Stopped):
        gsh.spark.publish(events, to=to, **RELEASE)
    file = tmp_path / ".published.staging" / "seed.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    (attempt,) = (path for path in file.parent.iterdir() if path.is_dir())
    staged = files_in(attempt)
    assert leaks(seeds[0], [tmp_path]) == [str(file)]
    with pytest.raises(InvalidParameter, match="to: must be another folder: a run with other parameters"):
        gsh.spark.publish(events, to=to, **(RELEASE | {"c_u": 4}))
    with pytest.raises(InvalidParameter, match="to: must be another folder: a run with other parameters"):
        gsh.spark.publish(events, to=to, unprotected=["c_u"], **RELEASE)
    with pytest.raises(InvalidParameter, match="events: must be the events of the earlier run"):
        gsh.spark.publish(read(views(late=1)), to=to, **RELEASE)

    # The driver ends between the commit and the move.
    with stopped_at(Place, "move"), pytest.raises(Stopped):
        gsh.spark.publish(read(views(order=1)), to=to, **RELEASE)
    assert not file.exists()
    made = gsh.spark.publish(unreadable(events), to=to, **RELEASE)

    assert files_in(to) == staged
    assert made.certificate["budget"] is None
    assert made.certificate.bounds.enforced_by == "gsh.spark"
    assert made.certificate.bounds.plan_digest == made.plan.digest
    assert "SHAKE-256" in made.certificate.noise
    found = gsh.read(to)
    assert found.certificate == made.certificate
    assert found.table.equals(made.table)
    assert len(found) == made.groups
    assert not file.parent.exists()
    assert gsh.spark.publish(unreadable(events), to=to, **RELEASE).is_replayed
    with pytest.raises(InvalidParameter, match="to: must be a new place"):
        gsh.spark.publish(events, to=to, **(RELEASE | {"epsilon": 7}))
    (seed,) = set(seeds)
    assert not leaks(seed, [logs, tmp_path], shown_by(spark))


@pytest.mark.parametrize("until", [*(pytest.param(step, marks=pytest.mark.long) for step in ("open", "commit")), "end"])
def test_two_drivers_at_once_without_a_service_make_one_release(
    read: Read, seeds: list[bytes], tmp_path: Path, until: str
) -> None:
    """The second starts when the first has seen that no seed is there, and goes on until a step, or to its end."""
    to = tmp_path / "published"
    original = Place.write_secret
    found: list[Any] = []

    def other_driver(place: Place, path: str, document: Any) -> None:
        patch.undo()
        if until == "end":
            found.append(gsh.spark.publish(read(views(order=1)), to=to, **RELEASE))
        else:
            step = {"open": (publishing, "_stage"), "commit": (ByFile, "commit")}[until]
            with stopped_at(*step), pytest.raises(Stopped):
                gsh.spark.publish(read(views(order=1)), to=to, **RELEASE)
        original(place, path, document)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Place, "write_secret", other_driver)
        made = gsh.spark.publish(read(views()), to=to, **RELEASE)

    assert made.certificate == json.loads((to / "_certificate.json").read_text())
    assert made.certificate["bounds"]["plan_digest"] == made.plan.digest
    assert made.plan.to_json() == json.loads((to / "_plan.json").read_text())
    assert made.groups == Place(to).rows(str(to)) > 5
    assert made.is_replayed == (until == "end")
    assert len(set(seeds)) == 1
    assert [other.plan for other in found] == [made.plan] * len(found)
    assert not list(tmp_path.glob(".published*"))


@pytest.mark.long
def test_a_driver_that_is_slower_gives_the_release_of_the_other(read: Read, tmp_path: Path) -> None:
    """When its rows are written, the other one has placed its release and removed the folder of this attempt."""
    to = tmp_path / "published"
    found: list[Any] = []

    def other_driver(place: Place, attempt: str, plan: Any) -> Any:
        patch.undo()
        found.append(gsh.spark.publish(read(views(order=1)), to=to, **RELEASE))
        return publishing._finished(place, attempt, plan)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(publishing, "_finished", other_driver)
        made = gsh.spark.publish(read(views()), to=to, **RELEASE)

    assert made.is_replayed
    assert [(other.plan, other.certificate, other.groups) for other in found] == [
        (made.plan, made.certificate, made.groups)
    ]
    assert not list(tmp_path.glob(".published*"))


def test_a_sum_beyond_doubles_is_an_error_that_names_the_column(
    read: Read, service: Service, budget: dict[str, Any], tmp_path: Path
) -> None:
    """It is known after the charge only. Nothing is published, and the error has nothing of the data."""
    users = ["a", "b", "c"]
    events = read(pa.table({"u": users, "g": ["secret"] * 3, "x": [0] * 3, "y z": [2**52 - 7] * 3}))
    sums = {"x": (0, 1), "y z": (0, 2**52)}
    given = {"user": "u", "by": "g", "sums": sums, "c_u": 1, "epsilon": 1, "delta": 1e-2, "partitions": 2}

    with pytest.raises(gsh.EventsError) as error:
        gsh.spark.publish(events, to=tmp_path / "published", **given, **budget)

    assert str(error.value) == "sums/y z: must stay within 2^53 units in every group: take a larger unit"
    assert error.value.__context__ is None
    assert error.value.__cause__ is None
    assert not (tmp_path / "published").exists()
    assert not list(tmp_path.glob(".published*/*/*"))
    assert entries(service, budget["budget"], budget["once"]) == {"charge": 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"user": "nobody"}, "user: must name a column"),
        ({"by": ["url", "seconds"], "sums": None, "units": None, "caps": None}, "by/1: must be of one of these types"),
        ({"once": "W46"}, "once: must be omitted without a service"),
        ({"units": None}, "units/seconds: must be given"),
        ({"partitions": 0}, "partitions: must be from 1 to"),
        ({"partitions": 2**31}, "partitions: must be from 1 to"),
        ({"unprotected": "abc"}, "unprotected: must be a list"),
        ({"caps": {"likes": 4}}, "caps/likes: must be from 1 to c_u"),
    ],
)
def test_mistakes_name_the_argument_before_anything_runs(
    read: Read, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidParameter, match=message):
        gsh.spark.publish(unreadable(read(views())), to=tmp_path / "published", **(RELEASE | change))
    assert not list(tmp_path.glob(".published*"))


def test_a_query_that_spark_refuses_is_refused_before_the_charge(
    spark: "SparkSession", service: Service, budget: dict[str, Any], tmp_path: Path
) -> None:
    """Spark ignores the case of names."""
    spark.conf.set("spark.sql.caseSensitive", "true")
    events = spark.sql("SELECT 'a' AS u, 'b' AS U, 'c' AS k")
    spark.conf.unset("spark.sql.caseSensitive")

    with pytest.raises(InvalidParameter, match="events: must have only one column u"):
        gsh.spark.publish(events, user="u", by="k", c_u=1, epsilon=1, delta=1e-6, to=tmp_path / "published", **budget)
    assert entries(service, budget["budget"], budget["once"]) == {}


def ended(*_: object) -> None:
    raise SystemExit


@pytest.mark.long
def test_a_committed_attempt_that_lost_a_file_is_not_placed(
    monkeypatch: pytest.MonkeyPatch, read: Read, budget: dict[str, Any], tmp_path: Path
) -> None:
    """The driver ended after the commit."""
    given = RELEASE | budget | {"to": tmp_path / "published"}
    with monkeypatch.context() as patch:
        patch.setattr(
            Place, "certify", lambda *_: (_ for _ in ()).throw(SystemExit)
        )  # the driver ends after the commit
        with pytest.raises(SystemExit):
            gsh.spark.publish(read(views()), **given)
    next(tmp_path.glob(".published*/*/part-*.parquet")).unlink()

    with pytest.raises(InvalidParameter, match="once: must be a new name"):
        gsh.spark.publish(read(views()), **given)
    assert not (tmp_path / "published").exists()
