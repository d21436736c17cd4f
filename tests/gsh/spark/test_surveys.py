"""Surveys on Spark: users by bins as the judge counts them, and one release with the same bounds after a kill."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import gsh
from gsh.errors import InvalidParameter
from gsh.events.plan import make_plan
from gsh.events.surveys.asked import Asks
from gsh.events.surveys.keeping import KeptByService, KeptHere
from gsh.events.surveys.surveying import Surveying, surveying_of
from gsh.spark import two_stages
from gsh.spark.places import Place
from gsh.spark.surveying import survey_counts
from tests.app.process import Service
from tests.gsh.events.tables import NASTY, NASTY_PLAN, as_events, made_up
from tests.gsh.spark.test_exactly_once import Stopped, stopped_at, unreadable
from tests.reference.bounding import surveyed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Read = Callable[[pa.Table], "DataFrame"]
EVENTS = made_up(1500)
ASKED: dict[str, Any] = {"user": "user_id", "by": "url", "c_u": "survey", "sums": {"seconds": "survey"}, "epsilon": 1}
ASKED |= {"delta": 1e-6, "survey": gsh.SurveyShare(0.2), "partitions": 2}


def counted(events: "DataFrame", plan: Any, columns: tuple[str, ...]) -> list[list[int]]:
    surveying = surveying_of(plan, {"": Asks(True, columns)}, {"epsilon": 1, "delta": 1e-6})
    assert surveying is not None
    return [each.tolist() for each in survey_counts(events, surveying, {})[""]]


def test_the_nasty_table_is_counted_as_by_the_reference(read: Read) -> None:
    plan = replace(NASTY_PLAN, measures=tuple(replace(each, groups=None) for each in NASTY_PLAN.measures))
    columns = tuple(each.name for each in plan.measures)

    session = read(NASTY).sparkSession
    views = session.sql("SHOW VIEWS").collect()

    assert counted(read(NASTY), plan, columns) == surveyed(as_events(NASTY), plan.to_json(), list(columns))
    assert session.sql("SHOW VIEWS").collect() == views


STEPS: list[tuple[Any, str]] = [(KeptByService, "record"), (two_stages, "staged"), (KeptByService, "commit")]
STEPS += [(Place, "certify"), (Place, "move")]


def test_a_killed_driver_goes_on_with_the_same_bounds_and_rows_and_one_charge(
    read: Read, service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends at every step in turn, each time one step further."""
    to, digests = tmp_path / "made" / "published", []
    decided = Surveying.decided

    def seen(*arguments: Any) -> Any:
        found = decided(*arguments)
        digests.append(found.statement.digest)
        return found

    monkeypatch.setattr(Surveying, "decided", seen)
    with gsh.Client(service.url) as client:
        client.budgets.put("surveys", epsilon=1, delta=1e-6)
        given = ASKED | {"service": client, "budget": "surveys", "once": "surveys-1", "to": to}
        for owner, step in STEPS:
            with stopped_at(owner, step), pytest.raises(Stopped):
                gsh.spark.publish(read(EVENTS), **given)
            assert not to.exists()
        with pytest.raises(gsh.Error, match="once"):
            gsh.spark.publish(read(EVENTS), **given | {"by": "seconds", "sums": None})
        published = gsh.spark.publish(unreadable(read(EVENTS)), **given)
        again = gsh.spark.publish(unreadable(read(EVENTS)), **given)

        assert client.budgets["surveys"].spent.releases == 1
        assert client.budgets.verify("surveys").intact
        recorded = client.releases["surveys-1"].certificate
    assert len(set(digests)) == 1
    assert recorded == published.certificate
    assert recorded.survey.digest == digests[0]
    assert recorded.unprotected is None
    assert recorded.bounds.plan_digest == published.plan.digest
    assert recorded.delta <= 1e-6
    assert (published.is_replayed, again.is_replayed) == (True, True)
    assert published.budget_use is not None
    assert len(published) > 20
    assert gsh.read(to).table.num_rows == len(published)
    assert [path.name for path in to.parent.iterdir()] == ["published"]


def test_without_a_service_a_folder_keeps_the_seed(read: Read, tmp_path: Path) -> None:
    to = tmp_path / "made" / "published"
    with stopped_at(KeptHere, "record"), pytest.raises(Stopped):
        gsh.spark.publish(read(EVENTS), **ASKED, to=to)
    assert (to.parent / ".published.survey/seed.json").stat().st_mode & 0o777 == 0o600
    with stopped_at(Place, "certify"), pytest.raises(Stopped):
        gsh.spark.publish(read(EVENTS), **ASKED, to=to)
    with pytest.raises(InvalidParameter, match=r"^events: must be the events of the earlier run"):
        gsh.spark.publish(read(made_up(1500, seed=1)), **ASKED, to=to)
    published = gsh.spark.publish(read(EVENTS), **ASKED, to=to)
    again = gsh.spark.publish(unreadable(read(EVENTS)), **ASKED, to=to)

    assert published.survey is not None
    assert published.plan.c_u == published.survey.c_u[""]
    assert published.certificate["survey"]["chosen"] == published.survey.chosen
    assert again.is_replayed
    assert again.certificate == published.certificate
    assert [path.name for path in to.parent.iterdir()] == ["published"]


def test_several_tables_with_a_list_of_public_keys_are_counted_each(read: Read, tmp_path: Path) -> None:
    tables = {
        "by_url": gsh.Table(by="url", c_u="survey", public_keys=list(range(10))),
        "by_seconds": gsh.Table(by="seconds", c_u=2, public_keys=list(range(5, 30))),
    }
    published = gsh.spark.publish(
        read(EVENTS),
        user="user_id",
        tables=tables,
        epsilon=1,
        delta=1e-6,
        partitions=2,
        to=tmp_path / "published",
        survey=gsh.SurveyShare(0.2),
    )

    assert published.survey is not None
    (histogram,) = published.survey.histograms
    plan = published.plan.tables["by_url"].to_json()
    (true,) = surveyed(as_events(EVENTS), plan, [], [(key,) for key in range(10)])
    assert max(abs(a - b) for a, b in zip(histogram.users, true, strict=True)) < 6 * histogram.sigma
    assert {name: len(table) for name, table in published.tables.items()} == {"by_url": 10, "by_seconds": 25}


def test_a_survey_alone_is_a_release_of_public_bins_charged_once(read: Read, service: Service) -> None:
    asked: dict[str, Any] = {name: ASKED[name] for name in ("user", "by", "sums", "epsilon", "delta", "survey")}
    local = gsh.spark.survey(read(EVENTS), **asked)
    with gsh.Client(service.url) as client:
        client.budgets.put("spark-surveys", epsilon=1, delta=1e-6)
        paid = asked | {"service": client, "budget": "spark-surveys", "once": "spark-survey-1"}
        first = gsh.spark.survey(read(EVENTS), **paid)
        again = gsh.spark.survey(unreadable(read(EVENTS)), **paid)
        spent = client.budgets["spark-surveys"].spent

    plan = make_plan(user="user_id", by="url", c_u=1, salt="0" * 32)
    (true,) = surveyed(as_events(EVENTS), plan.to_json(), [])
    for found in (local, first):
        groups = found.histograms[0]
        assert max(abs(a - b) for a, b in zip(groups.users, true, strict=True)) < 6 * groups.sigma
        assert found.certificate.described["groups"].bounds.enforced_by == "gsh.spark"
    assert (again.histograms, again.choices, again.is_replayed) == (first.histograms, first.choices, True)
    assert (spent.releases, spent.hazard) == (1, 0)
    with pytest.raises(InvalidParameter, match=r"^events: must be a DataFrame"):
        gsh.spark.survey(EVENTS, **asked)  # type: ignore[arg-type]
