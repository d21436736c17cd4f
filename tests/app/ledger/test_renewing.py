"""Budgets that renew: one budget for each period, made by its first charge, and closed after its end if wanted."""

from contextlib import closing
from typing import Any

import pytest

from app.ledger.clock import after
from app.ledger.errors import (
    BudgetExceeded,
    InvalidParent,
    InvalidSetting,
    ParentSettled,
    PeriodClosed,
    UnitSettled,
    UnknownBudget,
    UnknownPeriod,
)
from app.ledger.opening import open_ledger
from app.ledger.state import Budget
from app.ledger.store import Ledger
from gsh.accounting.budget_limits import Limit
from gsh.accounting.composition import NOTHING, cost_of
from tests.app.ledger.examples import URLS, charge, paid
from tests.app.ledger.test_lineage import WIDE, faults, put
from tests.app.ledger.test_store import race

SUNDAY, MONDAY = "2026-11-15T23:59:59Z", "2026-11-16T00:00:00Z"
W46, W47 = "web@2026-W46", "web@2026-W47"
LIMIT = Limit(1.0, 1e-4)
MANY = LIMIT.how_many_fit(NOTHING, URLS, cost_of(URLS))
DAY = 86_400.0


@pytest.fixture
def weekly(ledger: Ledger) -> Ledger:
    put(ledger, "users", None)
    ledger.put_budget("web", LIMIT, "views", SUNDAY, settings={"parent": "users", "renews": "week", "closes_after": 14})
    return ledger


def test_each_period_has_a_budget_of_its_own_below_the_same_parent(weekly: Ledger) -> None:
    charge(weekly, paid(key="a"), at=SUNDAY)
    charge(weekly, paid(key="b"), at=MONDAY)
    charge(weekly, paid(W46, "late"), at=MONDAY)

    assert [release.budget for release in map(weekly.release, "ab")] == [W46, W47]
    renewed = weekly.budget("web")
    assert [(each.id, each.spent.releases) for each in renewed.periods] == [(W46, 2), (W47, 1)]
    assert renewed.budget.spent == NOTHING
    for each in renewed.periods:
        assert (each.limit.epsilon, each.limit.delta, each.description) == (1.0, 1e-4, "views")
        assert (each.privacy_unit, each.period, each.parent, each.period_of) == ("user", "week", "users", "web")
        assert each.promise == pytest.approx(1e-4)
    assert weekly.standing("users").spent.releases == 3
    assert {release.key for release in weekly.releases(["web"], None, 10)} == {"a", "b", "late"}
    assert faults(weekly) == {}


def test_a_request_that_comes_again_in_the_next_period_is_charged_to_neither_again(weekly: Ledger) -> None:
    first = charge(weekly, paid(), b"one", SUNDAY)
    assert charge(weekly, paid(), b"two", MONDAY) == first

    assert weekly.check(paid(), MONDAY) is None
    assert weekly.names() == ["users", "web", W46]
    assert weekly.standing("users").spent.releases == 1


def test_a_period_without_charges_is_not_stored_by_a_check_or_a_refusal(weekly: Ledger) -> None:
    payable = weekly.check(paid(), SUNDAY)
    assert payable is not None
    assert payable.budget.id == W46
    assert [each.id for each in weekly.paying("web", MONDAY)] == [W47, "users"]
    weekly.put_budget("users", Limit(0.01, 1e-9), None, SUNDAY, reason="less")
    with pytest.raises(BudgetExceeded):
        charge(weekly, paid(), at=SUNDAY)
    with pytest.raises(UnknownBudget):
        weekly.standing(W46)
    assert weekly.names() == ["users", "web"]


@pytest.mark.parametrize("label", ["2026-W47", "2026-W54", "2026-11", "2025-W53", "2026"])
def test_a_period_that_has_not_begun_or_is_none_is_unknown(weekly: Ledger, label: str) -> None:
    for attempt in (weekly.check, lambda asked, at: charge(weekly, asked, at=at)):
        with pytest.raises(UnknownPeriod):
            attempt(paid(f"web@{label}"), SUNDAY)
    for name in ("users@2026-W46", "none@2026-W46"):
        with pytest.raises(UnknownBudget):
            charge(weekly, paid(name), at=SUNDAY)


def test_a_period_closes_so_many_days_after_its_end(weekly: Ledger) -> None:
    last = after(MONDAY, 14 * DAY - 1)
    charge(weekly, paid(W46, "late"), at=last)
    for attempt in (weekly.check, lambda asked, at: charge(weekly, asked, at=at)):
        with pytest.raises(PeriodClosed):
            attempt(paid(W46, "later"), after(last, 1))

    assert charge(weekly, paid(W46, "late"), at=after(last, 1)) == b"42"  # the stored answer
    weekly.put_budget(W46, LIMIT, None, last, settings={"closes_after": 100}, reason="a correction")
    charge(weekly, paid(W46, "later"), at=after(last, 1))
    assert faults(weekly) == {}


def test_a_changed_limit_is_that_of_later_periods_and_the_rest_is_fixed_by_the_first(weekly: Ledger) -> None:
    charge(weekly, paid(key="a"), at=SUNDAY)
    weekly.put_budget("web", Limit(2.0, 1e-4), None, SUNDAY, reason="more")
    charge(weekly, paid(key="b"), at=MONDAY)

    assert [each.limit.epsilon for each in weekly.budget("web").periods] == [1.0, 2.0]
    assert weekly.put_budget(W46, Limit(1.5, 1e-4), None, MONDAY, reason="one week").limit.epsilon == 1.5
    for settings, error in (
        ({"renews": "month"}, UnitSettled),
        ({"renews": None}, UnitSettled),
        ({"privacy_unit": "household"}, UnitSettled),
        ({"parent": None}, ParentSettled),
    ):
        with pytest.raises(error):
            weekly.put_budget("web", LIMIT, None, MONDAY, settings=settings, reason="a test")  # type: ignore[arg-type]
    assert faults(weekly) == {}


def test_what_cannot_be_renewed_or_be_a_parent_or_be_made_by_hand(weekly: Ledger) -> None:
    weekly.put_budget("team", WIDE, "", SUNDAY)
    charge(weekly, paid("team", "a"), at=SUNDAY)
    charge(weekly, paid(key="b"), at=SUNDAY)
    with pytest.raises(InvalidParent):
        put(weekly, "child", "web")
    with pytest.raises(UnitSettled):
        weekly.put_budget("team", WIDE, None, SUNDAY, settings={"renews": "week"}, reason="a test")
    for name, settings in (
        ("users", {"renews": "week"}),  # it is a parent
        (W46, {"renews": "week"}),
        ("new", {"closes_after": 3}),
        ("new", {"renews": "week", "period": "month"}),
    ):
        with pytest.raises(InvalidSetting):
            weekly.put_budget(name, WIDE, None, SUNDAY, settings=settings, reason="a test")  # type: ignore[arg-type]
    with pytest.raises(UnknownBudget):
        weekly.put_budget(W47, WIDE, None, SUNDAY)
    assert weekly.names() == ["team", "users", "web", W46]


def test_racing_clients_at_the_turn_of_a_period_make_one_budget_for_each(weekly: Ledger, ledger_url: str) -> None:
    """32 clients charge the last second of a week, and 32 the first of the next one."""

    def attempt(number: int) -> bytes:
        with closing(open_ledger(ledger_url, "a secret for tests")) as mine:
            return charge(mine, paid(key=str(number)), at=(SUNDAY, MONDAY)[number % 2])

    outcomes = race(64, attempt)

    assert outcomes.count(b"42") == 2 * MANY
    assert outcomes.count(BudgetExceeded) == 64 - 2 * MANY
    assert [(each.id, each.spent.releases) for each in weekly.budget("web").periods] == [(W46, MANY), (W47, MANY)]
    assert weekly.standing("users").spent.releases == 2 * MANY
    assert faults(weekly) == {}


@pytest.mark.parametrize("forged", [{"description": "other"}, {"closes_after": 99}, {"renewed_entry": 2}])
def test_verify_finds_a_period_that_was_not_made_as_its_renewed_budget(weekly: Ledger, forged: dict[str, Any]) -> None:
    """The chain of the period itself is intact."""
    charge(weekly, paid(key="a"), at=SUNDAY)
    weekly.put_budget("web", Limit(2.0, 1e-4), None, MONDAY, reason="more")
    charge(weekly, paid(key="b"), at=MONDAY)
    assert faults(weekly) == {}

    forge_first_entry(weekly, W46, forged)
    assert faults(weekly)[W46] == (1, "was not made as its renewed budget was then")


def forge_first_entry(ledger: Ledger, name: str, forged: dict[str, Any]) -> None:
    """Change the first entry, hash the history again, and change the columns of the budget to fit."""
    entries = ledger.history(name, None, 100)[::-1]
    budget = Budget(name, LIMIT, "")
    sql = ledger._connections.statements
    with ledger._connections.transaction() as execute:
        for entry in entries:
            details = entry.details | (forged if entry.number == 1 else {})
            budget, made = budget._appended(entry.kind, entry.at, details)
            values = (made.payload, made.hash, name, made.number)
            execute(sql._adapt("UPDATE entries SET payload = %s, hash = %s WHERE budget = %s AND number = %s"), values)
        execute(sql._adapt("UPDATE budgets SET head = %s WHERE id = %s"), (budget.head, name))
        for column in forged.keys() & {"description", "closes_after"}:
            execute(sql._adapt(f"UPDATE budgets SET {column} = %s WHERE id = %s"), (forged[column], name))
