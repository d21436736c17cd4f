"""Publishing with a service: charged once under its name, also if the job starts again."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import gsh
from gsh.duckdb.aggregates import aggregated
from gsh.duckdb.sources import open_source
from gsh.duckdb.workspace import workspace
from gsh.events.lots import salt_of_release
from gsh.events.plan import make_plan
from gsh.events.terms import Payer
from gsh.wire import mechanism_from_json
from tests.gsh.events.test_duckdb import EVENTS
from tests.gsh.events.test_publish import CENTS, TARGET

pytestmark = pytest.mark.slow


def test_a_release_is_charged_once_and_comes_back_before_an_event_is_read(
    service: gsh.Client, budget: str, tmp_path: Path
) -> None:
    """Also into the file that has it, of every format."""
    words: dict[str, Any] = {"description": "weekly", "labels": ["team-a", "test"], "about": {"source": "views"}}
    paid = {"service": service, "budget": budget, "once": f"{budget}-1", "unprotected": ["c_u by a preview"]} | words
    first = gsh.publish(EVENTS, **TARGET, **paid, to=tmp_path / "private.parquet")
    places = [None, *(tmp_path / f"private.{ending}" for ending in ("parquet", "csv", "csv", "arrow", "arrow"))]
    replayed = [gsh.publish("missing.parquet", **TARGET, **paid, to=place) for place in places]

    assert service.budgets[budget].spent.releases == 1
    assert (first.is_replayed, first.released_at, "replayed" in first.summary()) == (False, None, False)
    recorded = service.releases[f"{budget}-1"]
    assert (recorded.description, recorded.labels) == ("weekly", ("team-a", "test"))
    at = recorded.at
    for each in replayed:
        assert (each.is_replayed, each.released_at) == (True, at)
        assert each.summary().startswith(f"replayed: released on {at}; ")
        assert each.table.to_pylist() == first.table.to_pylist()
        assert each.plan == first.plan
    said = first.certificate
    assert said["budget"]["id"] == budget
    assert (said.unprotected, dict(said.about)) == (("c_u by a preview",), {"source": "views"})
    assert said["bounds"]["enforced_by"] == "gsh.duckdb"
    assert said["bounds"]["plan_digest"] == first.plan.digest
    assert f"paid by the budget {budget}" in first.summary()


def test_an_answer_that_nobody_has_read_is_asked_for_again(
    service: gsh.Client, budget: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service that ended between the charge and the key of the answer has a record without an answer."""
    paid = {"service": service, "budget": budget, "once": f"{budget}-1"}
    gsh.publish(EVENTS, **TARGET, **paid)
    unread = replace(service.releases[f"{budget}-1"], stored=None)
    monkeypatch.setattr(Payer, "earlier", lambda _self: unread)

    again = gsh.publish(EVENTS, **TARGET, **paid)

    assert service.budgets[budget].spent.releases == 1
    assert again.is_replayed  # the service has an answer here, and gives it to the same request
    with pytest.raises(gsh.Error, match=r"^events: "):
        gsh.publish("missing.parquet", **TARGET, **paid)


def test_the_same_events_make_the_same_request_again(service: gsh.Client, budget: str) -> None:
    """In another order, and in buckets: if two runs of a job meet, the service recognises the second one."""
    paid = {"budget": budget, "once": f"{budget}-1"}
    with_cents = {"sums": TARGET["sums"] | {"paid": (0, 2.5)}, "units": TARGET["units"] | {"paid": 0.01}}
    first = gsh.publish(CENTS, **TARGET | with_cents, service=service, **paid)
    shuffled = CENTS.take(pa.array(sorted(range(300), key=lambda row: row * 7 % 300)))
    with workspace() as space:
        source = open_source(space, shuffled, first.plan)
        table = aggregated(space, source, first.plan, lambda _progress: None, 3)
    provenance = {"enforced_by": "gsh.duckdb", "plan_digest": first.plan.digest, "plan": first.plan.to_json()}
    mechanism = mechanism_from_json(first.certificate["mechanism"])

    again = service.release(
        table, mechanism, users="count", keys=first.plan.by, epsilon=1, provenance=provenance, unprotected=[], **paid
    )

    assert again.is_replayed
    assert again.table.to_pylist() == first.table.to_pylist()
    assert first.plan.salt == salt_of_release(budget, f"{budget}-1")


@pytest.mark.parametrize("change", [{"c_u": 5}, {"tau": 2}, {"by": ["url"]}, {"epsilon": 7}, {"unprotected": ["c_u"]}])
def test_another_plan_or_target_under_the_same_name_stops_before_it_reads(
    change: dict[str, object], service: gsh.Client, budget: str
) -> None:
    paid = {"service": service, "budget": budget, "once": f"{budget}-1"}
    gsh.publish(EVENTS, **TARGET, **paid)

    with pytest.raises(gsh.InvalidParameter, match="once"):
        gsh.publish("missing.parquet", **{**TARGET, **change}, **paid)


def test_an_existing_file_of_another_release_is_not_replaced(service: gsh.Client, budget: str, tmp_path: Path) -> None:
    paid = {"service": service, "budget": budget, "once": f"{budget}-1"}
    gsh.publish(EVENTS, **TARGET, to=tmp_path / "private.parquet")

    with pytest.raises(gsh.InvalidParameter, match="to"):
        gsh.publish(EVENTS, **TARGET, **paid, to=tmp_path / "private.parquet")

    assert service.budgets[budget].spent.releases == 0


def test_a_budget_that_cannot_pay_refuses(service: gsh.Client, budget: str) -> None:
    service.budgets.put(budget, epsilon=0.01, delta=1e-9, reason="test")

    with pytest.raises(gsh.client.errors.BudgetExceeded):
        gsh.publish(EVENTS, **TARGET, service=service, budget=budget, once=f"{budget}-1")


def test_a_share_of_a_budget_is_the_target_also_for_a_restarted_job(service: gsh.Client, budget: str) -> None:
    """Three equal releases use the budget up. The restart of one does not calibrate to what remains after it."""
    plan = {name: value for name, value in TARGET.items() if name not in ("epsilon", "delta")}
    made = []
    for week in (3, 2, 1):
        paid = {"service": service, "budget": budget, "once": f"{budget}-{week}", "releases": week}
        made.append(gsh.publish(EVENTS, **plan, **paid))
        again = gsh.publish("missing.parquet", **plan, **paid)

        assert again.is_replayed
        assert again.certificate["mechanism"] == made[-1].certificate["mechanism"]
    paying = service.budgets[budget]

    assert paying.spent.releases == 3
    assert paying.used > 0.999
    assert [each.certificate["mechanism"]["sigma"] for each in made] == pytest.approx(
        [made[0].certificate["mechanism"]["sigma"]] * 3, rel=1e-3
    )
    with pytest.raises(gsh.InvalidParameter, match=r"^once: "):
        gsh.publish("missing.parquet", **{**plan, "by": ["url"]}, **paid)


def test_the_mechanism_of_an_earlier_release_is_repeated(service: gsh.Client, budget: str) -> None:
    """A fixed releases= would take a third of what remains, with more noise each time."""
    plan = {name: value for name, value in TARGET.items() if name not in ("epsilon", "delta")}
    paid: dict[str, Any] = {"service": service, "budget": budget}
    first = gsh.publish(EVENTS, **plan, **paid, once=f"{budget}-1", releases=3)

    second = gsh.publish(EVENTS, **plan, **paid, once=f"{budget}-2", mechanism_of=f"{budget}-1")
    crept = gsh.publish(EVENTS, **plan, **paid, once=f"{budget}-3", releases=3)

    assert second.certificate["mechanism"] == first.certificate["mechanism"]
    assert crept.certificate["mechanism"]["sigma"] > 1.5 * first.certificate["mechanism"]["sigma"]
    both: dict[str, Any] = {"mechanism_of": f"{budget}-1", "mechanism": gsh.PlainGaussian(c_u=3, sigma=20)}
    with pytest.raises(gsh.InvalidParameter, match=r"^mechanism_of: "):
        gsh.publish(EVENTS, **plan, **paid, once=f"{budget}-4", **both)
    with pytest.raises(gsh.InvalidParameter, match=r"^mechanism_of: .* without a service"):
        gsh.publish(EVENTS, **plan, mechanism_of=f"{budget}-1")
    with pytest.raises(gsh.client.errors.UnknownRelease):
        gsh.publish(EVENTS, **plan, **paid, once=f"{budget}-4", mechanism_of="missing")


def test_a_sliver_of_a_budget_is_refused_and_the_name_stays_free(service: gsh.Client, budget: str) -> None:
    """It would be an empty table. Who wants the noise says so."""
    plan = {name: value for name, value in TARGET.items() if name not in ("epsilon", "delta")}
    paid = {"service": service, "budget": budget, "once": f"{budget}-last"}
    first = service.budgets.calibrate(budget, c_u=3, releases=2).mechanism
    service.budgets.charge(budget, first, once=f"{budget}-1")
    left = service.budgets[budget].remaining.mu_squared
    service.budgets.charge(
        budget, gsh.Mechanism(c_u=1, tau=1, tau_star=1e12, sigma=(left - 1e-12) ** -0.5), once=f"{budget}-2"
    )

    with pytest.raises(gsh.client.errors.TooLittleLeft, match="on average"):
        gsh.publish("missing.parquet", **plan, **paid, releases=1)
    with pytest.raises(gsh.client.errors.TooLittleLeft, match="most_sigma is 1000"):
        gsh.publish("missing.parquet", **plan, **paid, releases=1, most_sigma=1e3)
    with pytest.raises(gsh.InvalidParameter, match=r"^most_sigma: "):
        gsh.publish("missing.parquet", **plan, **paid, mechanism=first, most_sigma=1e3)
    with pytest.raises(gsh.InfeasibleTarget, match=r"most_sigma is 0\.001"):
        gsh.publish("missing.parquet", **TARGET, **paid, most_sigma=1e-3)
    assert service.budgets[budget].spent.releases == 2
    published = gsh.publish(EVENTS, **plan, **paid, releases=1, most_sigma=1e9)
    assert not published.is_replayed
    assert published.certificate["mechanism"]["sigma"] > 1e5


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"epsilon": 1}, "epsilon"),
        ({"delta": 1e-6}, "delta"),
        ({"service": None, "budget": None, "once": None}, "releases"),
    ],
)
def test_a_share_of_a_budget_goes_with_no_other_target(
    change: dict[str, object], pointer: str, service: gsh.Client, budget: str
) -> None:
    plan = {name: value for name, value in TARGET.items() if name not in ("epsilon", "delta")}
    paid = {"service": service, "budget": budget, "once": "never", "releases": 2}

    with pytest.raises(gsh.InvalidParameter) as error:
        gsh.publish("missing.parquet", **{**plan, **paid, **change})

    assert error.value.pointer == pointer


def test_the_share_of_an_open_release_stays_the_same(service: gsh.Client, budget: str) -> None:
    """A driver of Spark died after it had opened the release, which used some of the budget."""
    plan = make_plan(user="u", by=["k"], sums={"x": (0, 4)}, caps={"x": 2}, c_u=3, salt="0" * 32)
    payer = Payer(service, budget, f"{budget}-1")
    mechanism, stated = payer.share(plan, 2, None)
    provenance = {"enforced_by": "gsh.spark", "plan_digest": plan.digest, "plan": plan.to_json()}
    service.releases.open(mechanism, budget=budget, once=payer.once, provenance=provenance, **stated)

    assert payer.share(plan, 2, None) == (mechanism, stated)
    assert Payer(service, budget, f"{budget}-2").share(plan, 2, None)[0].sigma > mechanism.sigma


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_run_that_was_killed_between_two_names_can_be_repeated(
    ending: str, service: gsh.Client, budget: str, tmp_path: Path
) -> None:
    """SIGKILL leaves the plan, and the certificate of a CSV file, without the table."""
    paid = {"service": service, "budget": budget, "once": f"{budget}-1"}
    target = tmp_path / f"private.{ending}"
    first = gsh.publish(EVENTS, **TARGET, **paid, to=target)
    target.unlink()

    again = gsh.publish("missing.parquet", **TARGET, **paid, to=target)

    assert again.table == first.table
    assert target.exists()
    target.unlink()
    with pytest.raises(gsh.InvalidParameter, match=r"^to: "):
        gsh.publish(EVENTS, **TARGET, to=target)  # another plan: its salt is new


def test_a_late_release_is_paid_by_the_period_that_it_names(service: gsh.Client, budget: str) -> None:
    """Also if it comes again, and with a share of what remains. Without a name the present period pays."""
    weekly = f"{budget}-weekly"
    service.budgets.put(weekly, epsilon=4, delta=1e-4, renews="week")
    paid = {"service": service, "budget": weekly, "privacy_unit": "user"}
    late, present = paid | {"period": "2026-W45", "once": f"{weekly}-late"}, paid | {"once": f"{weekly}-now"}
    share = {name: value for name, value in TARGET.items() if name not in ("epsilon", "delta")}

    for arguments in (TARGET | late, TARGET | present, share | late | {"once": f"{weekly}-share", "releases": 2}):
        first, again = (gsh.publish(EVENTS, **arguments) for _ in range(2))
        assert (first.is_replayed, again.is_replayed) == (False, True)

    periods = {each.id: each.spent.releases for each in service.budgets[weekly].periods or ()}
    assert periods.pop(f"{weekly}@2026-W45") == 2
    assert list(periods.values()) == [1]
    with pytest.raises(gsh.client.errors.UnknownBudget):
        gsh.publish(EVENTS, **TARGET, **paid, once=f"{weekly}-none", period="2026-11")
    with pytest.raises(gsh.InvalidParameter, match="period: "):
        gsh.publish(EVENTS, **TARGET, period="2026-W45")
