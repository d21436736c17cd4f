"""Approvals in the ledger: what waits, who may decide, and that only what was approved is done."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from app.ledger.approvals import Approval
from app.ledger.charges import Charge
from app.ledger.databases import Execute
from app.ledger.errors import (
    AlreadyDecided,
    AwaitsApproval,
    InvalidSetting,
    KeyReused,
    LedgerUnavailable,
    NoSecondKey,
    OutdatedRequest,
    TooManyComparisons,
    UnknownApproval,
)
from app.ledger.releases import Notes
from app.ledger.state import ApprovalRule, Budget, By
from app.ledger.store import Ledger
from gsh.accounting.budget_limits import Limit
from tests.app.ledger.examples import AT, GAUSSIAN, SMALL, charge, paid
from tests.app.ledger.test_store import race

WIDE, WIDER = Limit(10.0, 1e-3), Limit(20.0, 1e-3)
ASKER, OFFICER = By("4f1c2a9b", "operations"), By("7d0e55aa", "officer")


def put(
    ledger: Ledger,
    name: str = "web",
    limit: Limit = WIDE,
    approval: ApprovalRule | None = None,
    reason: str = "a test",
    parent: str | None = None,
) -> Budget:
    settings = {"approval": approval} if approval else {}
    settings |= {"parent": parent} if parent else {}
    return ledger.put_budget(name, limit, None, AT, settings=settings, reason=reason, by=ASKER, client=ASKER.id)  # type: ignore[arg-type]


def waiting(change: Callable[[], object]) -> Approval:
    with pytest.raises(AwaitsApproval) as found:
        change()
    return found.value.approval


def decide(ledger: Ledger, name: str, by: By | None = OFFICER, *, is_approved: bool = True) -> Approval:
    client = "" if by is None else by.id
    return ledger.decide(name, AT, by=by, client=client, reason="as planned", is_approved=is_approved)


def asked(key: str = "first", content: str = "content", budget: str = "web") -> Charge:
    made = paid(budget, key, "", SMALL, ASKER.id)
    return replace(made, content=content, notes=Notes(by=ASKER))


def test_a_change_of_the_limit_waits_and_is_made_when_another_key_approves_it(ledger: Ledger) -> None:
    put(ledger, approval="limits")

    request = waiting(lambda: put(ledger, limit=WIDER))
    before = ledger.standing("web").limit
    decided = decide(ledger, request.id)

    assert before == WIDE
    assert ledger.standing("web").limit == WIDER
    assert (request.state, decided.state) == ("waiting", "done")
    changed, approved, requested, _ = ledger.history("web", None, 10)
    assert [each.kind for each in (requested, approved, changed)] == ["requested", "approved", "changed"]
    assert changed.details["approval_id"] == approved.details["approval_id"] == request.id
    assert (changed.details["by"]["id"], approved.details["by"]["id"]) == (ASKER.id, OFFICER.id)
    assert requested.shown["changes"] == [{"field": "epsilon", "before": 10.0, "after": 20.0}]
    assert not {"client", "before", "after"} & requested.shown.keys()
    assert ledger.verify("web")[1] is None


def test_the_same_change_asked_twice_is_one_request_and_another_one_is_not(ledger: Ledger) -> None:
    put(ledger, approval="limits")

    first, again = (waiting(lambda: put(ledger, limit=WIDER)) for _ in range(2))
    other = waiting(lambda: put(ledger, limit=Limit(30.0, 1e-3)))

    assert first.id == again.id != other.id
    assert {each.id for each in ledger.approvals()} == {first.id, other.id}


def test_a_description_needs_no_approval_and_the_end_of_approvals_does(ledger: Ledger) -> None:
    put(ledger, approval="releases")

    ledger.put_budget("web", WIDE, "page views", AT, by=ASKER, client=ASKER.id)
    request = waiting(
        lambda: ledger.put_budget(
            "web", WIDE, None, AT, settings={"approval": None}, reason="too slow", by=ASKER, client=ASKER.id
        )
    )

    assert ledger.standing("web").description == "page views"
    assert ledger.standing("web").approval == "releases"
    decide(ledger, request.id)
    assert ledger.standing("web").approval is None
    assert put(ledger, limit=WIDER).limit == WIDER
    assert ledger.verify("web")[1] is None


def test_who_asked_cannot_decide_nor_can_one_without_a_key(ledger: Ledger) -> None:
    put(ledger, approval="limits")
    request = waiting(lambda: put(ledger, limit=WIDER))

    for by in (ASKER, None):
        with pytest.raises(NoSecondKey):
            decide(ledger, request.id, by)
    with pytest.raises(UnknownApproval):
        decide(ledger, "0" * 16)
    with pytest.raises(InvalidSetting, match="approval"):
        ledger.put_budget("ads", WIDE, "", AT, settings={"approval": "limits"})
    assert ledger.standing("web").limit == WIDE


def test_a_refused_request_changes_nothing_and_is_not_decided_again(ledger: Ledger) -> None:
    put(ledger, approval="limits")
    request = waiting(lambda: put(ledger, limit=WIDER))

    refused = decide(ledger, request.id, is_approved=False)

    assert refused.state == "refused"
    assert refused.decided is not None
    assert refused.decided.details["reason"] == "as planned"
    with pytest.raises(AlreadyDecided, match="refused"):
        decide(ledger, request.id)
    assert ledger.standing("web").limit == WIDE
    assert ledger.verify("web")[1] is None


def test_a_change_is_not_made_of_a_budget_that_has_changed_since(ledger: Ledger) -> None:
    put(ledger, approval="limits")
    first = waiting(lambda: put(ledger, limit=WIDER))
    second = waiting(lambda: put(ledger, limit=Limit(30.0, 1e-3)))
    decide(ledger, second.id)

    with pytest.raises(OutdatedRequest):
        decide(ledger, first.id)

    assert ledger.standing("web").limit == Limit(30.0, 1e-3)
    assert ledger.approval(first.id).state == "waiting"
    assert decide(ledger, first.id, is_approved=False).state == "refused"
    assert ledger.verify("web")[1] is None


def test_a_release_waits_and_only_its_own_content_is_charged(ledger: Ledger) -> None:
    put(ledger, approval="releases")

    request = ledger.request_release(asked(), AT)
    assert ledger.request_release(asked(), AT).id == request.id
    with pytest.raises(LedgerUnavailable):  # not approved yet
        charge(ledger, asked())
    decide(ledger, request.id)
    with pytest.raises(KeyReused):
        charge(ledger, asked(content="other"))
    assert charge(ledger, asked()) == b"42"

    assert charge(ledger, asked()) == b"42"  # replayed
    assert ledger.approval(request.id).state == "done"
    assert ledger.standing("web").spent.releases == 1
    assert ledger.history("web", None, 1)[0].details["approval_id"] == request.id
    assert ledger.verify("web")[1] is None


def test_a_request_is_compared_as_seldom_as_a_release_and_for_its_own_client_alone(ledger: Ledger) -> None:
    put(ledger, approval="releases")
    request = ledger.request_release(asked(), AT)

    with pytest.raises(KeyReused) as other:
        ledger.request_release(replace(asked(), client="another"), AT)
    for _ in range(5):
        with pytest.raises(KeyReused):
            ledger.request_release(asked(content="a guess"), AT)
    with pytest.raises(TooManyComparisons):
        ledger.request_release(asked(content="a guess"), AT)

    assert other.value.approval == request.id


def test_an_ancestor_demands_approvals_for_the_budgets_below_it(ledger: Ledger) -> None:
    put(ledger, "company", approval="releases")
    put(ledger, "web", parent="company")

    request = ledger.request_release(asked(), AT)
    decide(ledger, request.id)
    charge(ledger, asked())

    assert request.budget == "web"
    assert [ledger.verify(name)[1] for name in ("company", "web")] == [None, None]
    (through,) = (each for each in ledger.history("company", None, 10) if each.kind == "charge")
    assert through.details["approval_id"] == request.id


def test_a_request_for_a_renewed_budget_makes_its_period_which_keeps_the_rule(ledger: Ledger) -> None:
    settings = {"approval": "releases", "renews": "week"}
    ledger.put_budget("web", WIDE, "", AT, settings=settings, by=ASKER, client=ASKER.id)  # type: ignore[arg-type]

    request = ledger.request_release(asked(), AT)
    decide(ledger, request.id)
    charge(ledger, replace(asked(), budget=request.budget), at="2026-11-30T12:00:00Z")

    assert request.budget == "web@2026-W47"
    period = ledger.standing("web@2026-W47")
    assert (period.approval, period.spent.releases) == ("releases", 1)
    assert ledger.verify("web@2026-W47")[1] is None


def test_of_two_who_decide_at_once_one_decides(ledger: Ledger) -> None:
    """Two approvers, or one who approves and one who refuses."""
    put(ledger, approval="limits")
    for refuses in (False, True):
        limit = Limit(ledger.standing("web").limit.epsilon + 1, 1e-3)
        request = waiting(partial(put, ledger, limit=limit))

        def one(number: int, name: str = request.id, refuses: bool = refuses) -> str:
            is_approved = not (refuses and number % 2)
            return decide(ledger, name, By(f"0000000{number}", "officer"), is_approved=is_approved).state

        outcomes = race(8, one)

        assert outcomes.count(AlreadyDecided) == 7
        decisions = [each for each in ledger.history("web", None, 50) if each.kind in {"approved", "refused"}]
        assert [each.details["approval_id"] for each in decisions].count(request.id) == 1
        assert (ledger.standing("web").limit == limit) == ("done" in outcomes)
    assert ledger.verify("web")[1] is None


def rewrite(ledger: Ledger, *statements: str) -> None:
    with ledger._connections.transaction() as execute:
        run: Execute = execute
        for statement in statements:
            run(f"{statement} RETURNING 1")


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE approvals SET state = 'waiting'", "in another state than the recorded one"),
        ("UPDATE approvals SET decision = NULL", "in another state than the recorded one"),
        ("DELETE FROM approvals", "in another state than the recorded one"),
    ],
)
def test_a_changed_row_is_found(ledger: Ledger, statement: str, said: str) -> None:
    put(ledger, approval="limits")
    decide(ledger, waiting(lambda: put(ledger, limit=WIDER)).id)

    rewrite(ledger, statement)

    fault = ledger.verify("web")[1]
    assert fault is not None
    assert said in fault.detail


def test_a_change_and_a_charge_without_their_approval_are_found(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service that forgot to ask would write an intact chain of hashes. The history says that it must have asked."""
    put(ledger, "limits", approval="limits")
    put(ledger, "releases", approval="releases")
    monkeypatch.setattr("app.ledger.changes.PlannedChange.needs_approval", False)
    monkeypatch.setattr("app.ledger.store.demands_approval", lambda _lineage: False)

    put(ledger, "limits", limit=WIDER)
    charge(ledger, paid("releases", "unasked", release=GAUSSIAN))

    for name in ("limits", "releases"):
        fault = ledger.verify(name)[1]
        assert fault is not None
        assert (fault.number, fault.detail) == (2, "was not approved")
