"""Surveys on DuckDB: users by bins as the judge counts them, noise on every bin, and the same bounds after a kill."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

import gsh
from gsh.duckdb import two_stages
from gsh.duckdb.aggregates import Query, answered
from gsh.duckdb.sources import open_source
from gsh.duckdb.workspace import workspace
from gsh.duckdb.written import TablePlace
from gsh.events.plan import Plan, make_plan
from gsh.events.surveys.asked import Asks, settled, shares_asked
from gsh.events.surveys.histograms import counted as added_up
from gsh.events.surveys.histograms import survey_query
from gsh.events.surveys.keeping import KeptHere
from gsh.events.surveys.surveying import surveying_of
from gsh.histogram.entropy import stream
from tests.gsh.events.tables import NASTY, NASTY_PLAN, as_events, draws, made_up
from tests.reference.bounding import surveyed

pytestmark = pytest.mark.slow

TARGET: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}


EVENTS = made_up()
ASKED: dict[str, Any] = {
    "user": "user_id",
    "by": "url",
    "c_u": "survey",
    "sums": {"seconds": "survey"},
    "events": {"views": "survey"},
    **TARGET,
}

PLAIN = {name: value for name, value in ASKED.items() if name not in ("sums", "events")}


def counted(events: pa.Table, plan: Plan, asks: Asks, buckets: int | None = None) -> list[list[int]]:
    """What DuckDB counts."""
    with workspace() as space:
        source = open_source(space, events, plan)

        def binned(scan: str) -> str:
            return survey_query(plan, asks, source.kinds, "duckdb", scan)

        query = Query(binned, binned, lambda partial: f"SELECT * FROM {partial}")
        (table,) = answered(space, source, plan.user, [query], lambda _progress: None, buckets)
        rows = [tuple(row.values()) for row in table.to_pylist()]
    return [each.tolist() for each in added_up(plan, asks, rows)]


@pytest.mark.parametrize("buckets", [None, 4])
def test_the_nasty_table_is_counted_as_by_the_reference(buckets: int | None) -> None:
    columns = tuple(each.name for each in NASTY_PLAN.measures)
    expected = surveyed(as_events(NASTY), NASTY_PLAN.to_json(), list(columns))

    assert counted(NASTY, NASTY_PLAN, Asks(True, columns), buckets) == expected
    assert counted(NASTY, NASTY_PLAN, Asks(True, ()), buckets) == expected[:1]


@settings(max_examples=20, deadline=None)
@given(draws())
def test_any_table_is_counted_as_by_the_reference(drawn: tuple[pa.Table, dict[str, str], Plan]) -> None:
    table, _, plan = drawn
    columns = tuple(each.name for each in plan.measures)

    assert counted(table, plan, Asks(True, columns)) == surveyed(as_events(table), plan.to_json(), list(columns))


def true_histograms(events: pa.Table, plan: Any, columns: list[str]) -> list[list[int]]:
    return surveyed(as_events(events), plan.to_json(), columns)


def test_every_bin_has_the_noise_that_the_certificate_states() -> None:
    """Also empty ones: over 83 bins, none is exact, and the mean square is that of σ_h."""
    published = gsh.publish(EVENTS, **ASKED)
    survey = published.survey
    assert survey is not None
    true = true_histograms(EVENTS, published.plan, ["seconds", "views"])
    sigmas = [each["sigma"] for each in published.certificate["survey"]["histograms"]]
    scaled = [
        (noisy - exact) / sigma
        for each, histogram, sigma in zip(survey.histograms, true, sigmas, strict=True)
        for noisy, exact in zip(each.users, histogram, strict=True)
    ]

    assert len(scaled) == 21 + 41 + 21
    assert sum(each == 0 for each in scaled) <= 10  # noise on a grid of 1, of 100 or more
    square = sum(each**2 for each in scaled)
    assert 40 < square < 145  # χ² with 83 degrees of freedom: outside with probability 10⁻⁵
    empty = [
        each
        for each, histogram in zip(scaled, (number for each in true for number in each), strict=True)
        if histogram == 0
    ]
    assert len(empty) > 30
    assert np.mean([each != 0 for each in empty]) > 0.8


def test_the_choice_follows_from_what_is_published_and_public_alone() -> None:
    """Nobody who has the noisy histograms learns anything new from the bounds."""
    published = gsh.publish(EVENTS, **ASKED)
    again = gsh.publish(made_up(50, seed=1), **ASKED)  # other events: only the arguments are the same
    assert published.survey is not None
    assert again.survey is not None
    other = two_stages_surveying()

    assert other.choices(published.survey.histograms) == published.survey.choices
    assert other.choices(again.survey.histograms) == again.survey.choices
    assert all(choice.is_default for *_, choice in again.survey.choices)


def test_the_same_noisy_histograms_decide_the_same_whatever_the_events_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the number of users is private: the rule must not read it, as a scale or to see whether they are enough."""
    surveying = two_stages_surveying()
    truths = [{"": [np.full(len(each.bins), users) for each in surveying.histograms]} for users in (0, 10**7)]
    noisy = surveying.drawn(
        {"": [np.arange(len(each.bins))[::-1] * 500 for each in surveying.histograms]}, stream(bytes(32))
    )
    monkeypatch.setattr("gsh.events.surveys.surveying.drawn", lambda *_: noisy)

    few, many = (surveying.decided(true, bytes(32)) for true in truths)

    assert not any(choice.is_default for *_, choice in few.choices)
    assert (few.choices, few.plan, few.statement, few.terms) == (many.choices, many.plan, many.statement, many.terms)


def two_stages_surveying() -> Any:
    """The survey of the arguments, without any events."""
    fields, asks = settled({name: ASKED[name] for name in ("c_u", "sums", "events")})
    assert asks is not None
    plan = make_plan(user="user_id", by="url", salt="0" * 32, **fields)
    return surveying_of(plan, {"": asks}, TARGET)


def test_the_certificate_covers_the_choice() -> None:
    published = gsh.publish(EVENTS, **ASKED)
    said = published.certificate
    survey = published.survey
    assert survey is not None

    assert said.unprotected is None
    assert said.delta <= 1e-6
    assert said["survey"]["chosen"] == survey.chosen
    assert len(said["survey"]["digest"]) == 64
    assert said.bounds.c_u == survey.c_u[""] == published.plan.c_u
    assert said.bounds.plan_digest == published.plan.digest
    columns = {each["name"]: each["upper"] for each in said["bounds"]["columns"]}
    assert columns == {name: bound for (_, name), bound in survey.clips.items()}
    assert survey.c_u[""] in (16, 32, 64)
    assert survey.clips["", "seconds"] in (64, 128)
    assert len(published) > 30


def test_whatever_is_chosen_is_charged_alike() -> None:
    """A cost that depended on the choice would be a number of the survey that nobody accounted for."""
    found = [gsh.publish(made_up(users), **ASKED) for users in (50, 3000)] + [gsh.publish(EVENTS, **ASKED)]
    costs = {tuple(each.certificate[name] for name in ("mu_squared", "hazard", "delta", "mu")) for each in found}

    assert len({each.plan.c_u for each in found}) > 1
    assert len(costs) == 1


@pytest.mark.parametrize(("expected", "share"), [(None, 0.01), (99_999, 0.01), (100_000, 0.002)])
def test_the_share_follows_from_the_arguments_alone(expected: int | None, share: float) -> None:
    asks = {"": Asks(True, ("seconds",))}

    assert sum(each.share for each in shares_asked(asks, None, expected)) == share
    assert sum(each.share for each in shares_asked(asks, gsh.SurveyShare(0.03), expected)) == 0.03


def test_defaults_are_those_of_the_call() -> None:
    few = made_up(50)
    plain = gsh.publish(few, user="user_id", by="url", c_u="survey", sums={"seconds": "survey"}, **TARGET)
    named = gsh.publish(few, user="user_id", by="url", c_u=("survey", 5), sums={"seconds": ("survey", 600)}, **TARGET)

    assert (plain.plan.c_u, plain.plan.measures[0].upper) == (32, 1024)
    assert (named.plan.c_u, named.plan.measures[0].upper) == (5, 600)
    assert "the default" in named.certificate["survey"]["chosen"][0]


TABLES = {
    "by_url": gsh.Table(by="url", c_u="survey", share=2),
    "by_day": gsh.Table(by=["url", "user_group"], c_u=4, sums={"seconds": "survey"}),
}


@pytest.mark.parametrize("buckets", [None, 3])
def test_several_tables_have_their_own_histograms(tmp_path: Path, buckets: int | None) -> None:
    events = EVENTS.append_column("user_group", pa.array(np.arange(len(EVENTS)) % 3))
    published = gsh.publish(
        events, user="user_id", tables=TABLES, **TARGET, to=tmp_path / "private", rest=True, _buckets=buckets
    )
    survey = published.survey
    assert survey is not None

    assert [each.wanted.of for each in survey.histograms] == [
        "by_url: groups of a user",
        "by_day: seconds of a user in one group",
    ]
    assert published.plan.tables["by_url"].c_u == survey.c_u["by_url"]
    assert published.plan.tables["by_day"].c_u == 4
    assert published.certificate.delta <= 1e-6
    assert gsh.read(tmp_path / "private").certificate == published.certificate
    assert [path.name for path in tmp_path.iterdir()] == ["private"]


def test_public_groups_may_have_a_survey() -> None:
    listed = {"public_keys": list(range(60))}
    published = gsh.publish(EVENTS, user="user_id", by="url", c_u="survey", **TARGET, **listed)

    assert len(published) == 60
    assert published.survey is not None
    assert published.survey.c_u[""] >= 8
    assert published.certificate.hazard == 0
    true = true_histograms(EVENTS.filter(pa.compute.less(EVENTS["url"], 10)), published.plan, [])
    few = gsh.survey(EVENTS, user="user_id", by="url", **TARGET, public_keys=list(range(10)))
    assert max(abs(a - b) for a, b in zip(few.histograms[0].users, true[0], strict=True)) < 6 * few.histograms[0].sigma


class Killed(Exception):
    """What a kill does to a run."""


def after_step(owner: Any, name: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Killed right after a step."""
    step = getattr(owner, name)

    def killed(*arguments: Any, **options: Any) -> Any:
        step(*arguments, **options)
        raise Killed

    return lambda patch: patch.setattr(owner, name, killed)


KILLS: Mapping[str, Callable[[pytest.MonkeyPatch], None]] = {
    "begin": after_step(KeptHere, "begin"),
    "survey": after_step(two_stages, "survey_counts"),
    "record": after_step(KeptHere, "record"),
    "aggregates": after_step(two_stages, "aggregated"),
    "draw": after_step(two_stages, "seeded_rows"),
    "write": after_step(TablePlace, "write"),
}


@pytest.mark.parametrize("step", KILLS)
def test_a_killed_run_goes_on_with_the_same_bounds_and_rows(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seed stays next to the output until it is whole: another one would be a second survey."""
    to = tmp_path / "private.parquet"
    with monkeypatch.context() as patch:
        KILLS[step](patch)
        with pytest.raises(Killed):
            gsh.publish(EVENTS, **PLAIN, to=to)
    kept = tmp_path / ".private.parquet.survey"
    assert kept.stat().st_mode & 0o777 == 0o700
    copy = {path.name: path.read_bytes() for path in kept.iterdir()}
    first = gsh.publish(EVENTS, **PLAIN, to=to)
    assert not kept.exists()

    # The same once more from what the killed run had left.
    rows, said = first.table.to_pylist(), first.certificate
    for path in tmp_path.iterdir():
        path.unlink()
    kept.mkdir(mode=0o700)
    for name, content in copy.items():
        (kept / name).write_bytes(content)
        (kept / name).chmod(0o600)
    again = gsh.publish(EVENTS, **PLAIN, to=to)

    assert again.table.to_pylist() == rows
    assert again.certificate["survey"] == said["survey"]
    if step in ("record", "aggregates", "draw", "write"):
        assert again.certificate == said
    assert first.is_replayed is (step == "write")


def test_other_events_or_arguments_stop_a_run_that_has_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    to = tmp_path / "private.parquet"
    with monkeypatch.context() as patch:
        KILLS["record"](patch)
        with pytest.raises(Killed):
            gsh.publish(EVENTS, **ASKED, to=to)

    with pytest.raises(gsh.InvalidParameter, match=r"^events: must be the events of the earlier run"):
        gsh.publish(made_up(seed=2), **ASKED, to=to)
    with pytest.raises(gsh.InvalidParameter, match=r"^to: must be another place: a run with other parameters"):
        gsh.publish(EVENTS, **ASKED | {"epsilon": 2}, to=to)
    assert not to.exists()
    (tmp_path / ".private.parquet.survey").chmod(0o777)
    with pytest.raises(gsh.InvalidParameter, match=r"^to: must have a staging folder of your own"):
        gsh.publish(EVENTS, **ASKED, to=to)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"caps": {"seconds": 2}}, "^caps: must be omitted with a survey"),
        (
            {"mechanism": gsh.Mechanism(c_u=1, tau=1, tau_star=9, sigma=2), "epsilon": None},
            "^mechanism: must be omitted",
        ),
        ({"c_u": 4, "sums": None, "events": None, "expected_users": 5}, "^expected_users: must be omitted unless"),
        ({"expected_users": 0}, "^expected_users: must be at least 1"),
        ({"c_u": ("survey", 0)}, "^c_u: must be from 1"),
        ({"survey": 0.01}, "^survey: must be"),
        ({"c_u": "surveys"}, "^c_u: must be"),
        ({"sums": {"seconds": ("survey", 0)}}, "^sums/seconds: must have a bound"),
        ({"tables": TABLES, "by": None}, "^c_u: must be omitted with tables|^sums: must be omitted with tables"),
    ],
)
def test_what_cannot_be_surveyed_is_refused_by_field(change: dict[str, Any], message: str) -> None:
    with pytest.raises(gsh.InvalidParameter, match=message):
        gsh.publish("missing.parquet", **{**ASKED, **change})


def test_a_release_with_a_survey_has_public_groups_in_all_tables_or_in_none() -> None:
    mixed = TABLES | {"by_url": dataclasses.replace(TABLES["by_url"], public_keys=[1, 2])}
    with pytest.raises(gsh.InvalidParameter, match=r"^public_keys: must be given for all tables"):
        gsh.publish("missing.parquet", user="user_id", tables=mixed, **TARGET)
    with pytest.raises(gsh.InvalidParameter, match=r"^shares: must be omitted with a survey"):
        gsh.publish("missing.parquet", user="user_id", tables=TABLES, **TARGET, shares="balanced")


def test_a_survey_alone_is_a_release_of_public_bins() -> None:
    found = gsh.survey(EVENTS, user="user_id", by="url", sums={"seconds": "survey"}, **TARGET)
    noise = sum(1 / each.sigma**2 for each in found.histograms)

    assert math.isclose(found.certificate["mu_squared"], noise, rel_tol=1e-12)
    assert found.certificate["hazard"] == 0
    assert found.c_u[""] in (16, 32, 64)
    for each, intervals in zip(found.histograms, found.intervals(0.999999), strict=True):
        true = true_histograms(EVENTS, two_stages_surveying().plan, ["seconds"])[0 if each.wanted.column is None else 1]
        if each.wanted.column is None:  # lots differ
            assert all(low <= users <= high for users, (low, high) in zip(true, intervals, strict=True))
    assert found.chosen[0].startswith(f"C_u = {found.c_u['']}: about ")
    assert found.chosen[0] in repr(found)
    page = found.to_html()
    assert page.count("<svg") == 2
    assert found.chosen[0] in page
    assert not any(word in page for word in ("http", "src=", "href=", "@import", "url("))
    assert found.to_dict()["bounds"][0]["bound"] == found.c_u[""]
