"""Surveys with a service: one name, one charge, one certificate, and the same bounds and rows after a kill."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import gsh
from gsh.duckdb import two_stages
from gsh.duckdb.written import TablePlace
from gsh.events.surveys.keeping import KeptByService
from gsh.events.surveys.staged import StagedRows
from tests.gsh.events.tables import made_up
from tests.gsh.events.test_surveys import ASKED, EVENTS, PLAIN, TABLES, TARGET, Killed, after_step

pytestmark = pytest.mark.slow

KILLS: Mapping[str, Callable[[pytest.MonkeyPatch], None]] = {
    "open": after_step(KeptByService, "begin"),
    "survey": after_step(two_stages, "survey_counts"),
    "record": after_step(KeptByService, "record"),
    "draw": after_step(two_stages, "seeded_rows"),
    "stage": after_step(StagedRows, "keep"),
    "commit": after_step(KeptByService, "commit"),
    "write": after_step(TablePlace, "write"),
}


@pytest.fixture
def paid(service: gsh.Client, budget: str) -> dict[str, Any]:
    return {"service": service, "budget": budget, "once": f"{budget}-1"}


def test_both_stages_are_one_release(paid: dict[str, Any], tmp_path: Path) -> None:
    to = tmp_path / "private.parquet"
    first = gsh.publish(EVENTS, **ASKED, **paid, to=to)
    again = gsh.publish("missing.parquet", **ASKED, **paid, to=to)

    service, name = paid["service"], paid["once"]
    assert service.budgets[paid["budget"]].spent.releases == 1
    recorded = service.releases[name]
    assert recorded.state == "committed"
    said = recorded.certificate
    assert first.survey is not None
    assert said.survey.chosen == first.certificate.survey.chosen == first.survey.chosen
    assert said.unprotected is None
    assert said.delta <= 1e-6
    assert said.bounds.plan_digest == first.plan.digest
    assert said.bounds.c_u == first.survey.c_u[""]
    assert said.record.committed_digest == said.content.sha256 == first.certificate.content.sha256
    assert service.releases.verify(gsh.read(to).certificate).made_here
    assert (first.is_replayed, again.is_replayed) == (False, True)
    assert first.budget_use == again.budget_use is not None
    assert first.budget_use.budget == paid["budget"]
    assert again.table.to_pylist() == first.table.to_pylist()
    assert [entry.kind for entry in service.budgets.history(paid["budget"])][:3] == ["committed", "surveyed", "charge"]
    assert service.budgets.verify(paid["budget"]).intact
    assert sorted(path.name for path in tmp_path.iterdir()) == ["private.parquet", "private.parquet.plan.json"]


@pytest.mark.parametrize("step", KILLS)
def test_a_killed_job_goes_on_with_the_same_bounds_and_rows(
    step: str, paid: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the killed run drew is what the next one draws: a second survey would not be paid for."""
    drawn: list[tuple[Any, Any]] = []
    decided, rows = two_stages.Surveying.decided, two_stages.seeded_rows

    def see_bounds(*arguments: Any) -> Any:
        found = decided(*arguments)
        drawn.append(("survey", found.statement.digest))
        return found

    def see_rows(*arguments: Any, **options: Any) -> pa.Table:
        found = rows(*arguments, **options)
        drawn.append(("rows", found.to_pylist()))
        return found

    monkeypatch.setattr(two_stages.Surveying, "decided", see_bounds)
    monkeypatch.setattr(two_stages, "seeded_rows", see_rows)
    to = tmp_path / "private.parquet"
    with monkeypatch.context() as patch:
        KILLS[step](patch)
        with pytest.raises(Killed):
            gsh.publish(EVENTS, **PLAIN, **paid, to=to)
    before = list(drawn)
    assert to.exists() is (step == "write")
    published = gsh.publish(EVENTS if step not in ("commit", "write") else "missing.parquet", **PLAIN, **paid, to=to)

    service = paid["service"]
    assert service.budgets[paid["budget"]].spent.releases == 1
    assert published.certificate["survey"]["digest"] == next(each for kind, each in drawn if kind == "survey")
    assert all(each in drawn[len(before) :] for each in before) or step in ("commit", "write")
    assert published.table.to_pylist() == next(each for kind, each in reversed(drawn) if kind == "rows")
    assert published.is_replayed is (step in ("commit", "write"))
    assert service.releases[paid["once"]].certificate.content.sha256 == published.certificate.content.sha256
    assert sorted(path.name for path in tmp_path.iterdir()) == ["private.parquet", "private.parquet.plan.json"]


def test_other_events_or_another_plan_under_the_same_name_stop(
    paid: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = tmp_path / "private.parquet"
    with monkeypatch.context() as patch:
        KILLS["record"](patch)
        with pytest.raises(Killed):
            gsh.publish(EVENTS, **PLAIN, **paid, to=to)

    with pytest.raises(gsh.InvalidParameter, match=r"^events: must be the events of the earlier run"):
        gsh.publish(made_up(seed=2), **PLAIN, **paid, to=to)
    with pytest.raises(gsh.Error, match="once"):
        gsh.publish(EVENTS, **PLAIN | {"epsilon": 0.5}, **paid, to=to)
    with pytest.raises(gsh.InvalidParameter, match=r"^once: .*another unprotected"):
        gsh.publish(EVENTS, **PLAIN, **paid, to=to, unprotected=["a guess"])
    gsh.publish(EVENTS, **PLAIN, **paid, to=to)
    with pytest.raises(gsh.InvalidParameter, match=r"^once: .*another plan"):
        gsh.publish(EVENTS, **PLAIN | {"by": "seconds"}, **paid, to=to)
    with pytest.raises(gsh.InvalidParameter, match=r"^once: .*its rows are neither"):
        gsh.publish(EVENTS, **PLAIN, **paid, to=tmp_path / "elsewhere.parquet")
    assert paid["service"].budgets[paid["budget"]].spent.releases == 1


def test_the_rows_need_a_place(paid: dict[str, Any]) -> None:
    with pytest.raises(gsh.InvalidParameter, match=r"^to: must be given with a survey and a service"):
        gsh.publish(EVENTS, **PLAIN, **paid)
    assert paid["service"].budgets[paid["budget"]].spent.releases == 0


def test_several_tables_are_one_release_too(paid: dict[str, Any], tmp_path: Path) -> None:
    tables = {"by_url": TABLES["by_url"], "by_seconds": gsh.Table(by="seconds", c_u="survey")}
    asked: dict[str, Any] = {"user": "user_id", "tables": tables, **TARGET, **paid, "to": tmp_path / "private"}
    first = gsh.publish(EVENTS, **asked)
    again = gsh.publish("missing.parquet", **asked)

    assert first.survey is not None
    assert len(first.survey.choices) == 2
    assert again.is_replayed
    assert {name: len(table) for name, table in again.tables.items()} == {
        name: len(table) for name, table in first.tables.items()
    }
    assert paid["service"].budgets[paid["budget"]].spent.releases == 1


def test_a_survey_alone_is_charged_once(paid: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"user": "user_id", "by": "url", "sums": {"seconds": "survey"}, **TARGET, **paid}
    first = gsh.survey(EVENTS, **asked)
    again = gsh.survey("missing.parquet", **asked)

    assert (first.is_replayed, again.is_replayed) == (False, True)
    assert again.histograms == first.histograms
    assert again.choices == first.choices
    assert first.budget_use == again.budget_use is not None
    spent = paid["service"].budgets[paid["budget"]].spent
    assert (spent.releases, spent.hazard) == (1, 0)
    with pytest.raises(gsh.InvalidParameter, match=r"^once: "):
        gsh.survey("missing.parquet", **asked | {"tau": 2})
