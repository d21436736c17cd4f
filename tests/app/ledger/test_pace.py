"""How long a budget lasts at its present rate, against the sums of its last charges."""

from datetime import timedelta

import pytest

from app.ledger.clock import after, seconds_of
from app.ledger.pace import Standing
from app.ledger.store import Ledger
from gsh.accounting.budget_limits import Limit
from gsh.accounting.composition import NOTHING, Release, cost_of
from tests.app.ledger.examples import AT, GAUSSIAN, URLS, charge, paid

DAY = timedelta(days=1).total_seconds()
LIMIT = Limit(10.0, 1e-3)


def day(number: float) -> str:
    return after(AT, number * DAY)


def charged_on(ledger: Ledger, days: list[float], release: Release = URLS, budget: str = "web") -> None:
    for place, each in enumerate(days):
        charge(ledger, paid(budget, f"{budget}-{place}-{each}", release=release), at=day(each))


def standing(ledger: Ledger, at: float, budget: str = "web") -> Standing:
    (found,) = (each for each in ledger.standings(day(at)) if each.budget == budget)
    return found


def room(ledger: Ledger, name: str = "web") -> float:
    """How many more like the last one fit, not rounded."""
    budget, cost = ledger.standing(name), cost_of(URLS)
    left = budget.limit.remaining(budget.spent)
    return min(left.mu_squared / cost.mu_squared, left.hazard / cost.hazard)


@pytest.mark.parametrize(
    ("charged", "at", "rate"),
    [
        ([0.0, 7.0, 14.0], 20.0, 3 / 20),  # younger than 28 days
        ([0.0, 0.1], 0.2, 2 / 7),  # younger than a week
        ([0.0, 7.0, 14.0, 21.0, 28.0], 40.0, 3 / 28),  # older: the last 28 days alone
        ([each / 10 for each in range(120)], 12.0, 100 / (12.0 - 2.0)),  # the last hundred alone
    ],
)
def test_a_budget_lasts_as_long_as_its_room_divided_by_the_rate_of_its_last_charges(
    ledger: Ledger, charged: list[float], at: float, rate: float
) -> None:
    ledger.put_budget("web", Limit(100.0, 1e-2), "", AT)
    charged_on(ledger, charged)

    assert seconds_of(day(at)) == seconds_of(AT) + at * DAY
    assert standing(ledger, at).days_left == pytest.approx(room(ledger) / rate, rel=1e-9)


def test_each_cap_has_its_share_and_the_cap_that_is_full_first_decides(ledger: Ledger) -> None:
    ledger.put_budget("web", LIMIT, "", AT)
    charged_on(ledger, [0.0])
    charged_on(ledger, [1.0], GAUSSIAN)
    budget = ledger.standing("web")
    left, caps = budget.limit.remaining(budget.spent), budget.limit.caps

    found = standing(ledger, 2.0)

    assert (found.mu_squared, found.hazard) == budget.limit.used_shares(budget.spent)
    assert found.mu_squared == pytest.approx(float(budget.spent.mu_squared / caps.mu_squared))
    assert found.hazard < found.mu_squared
    noise = cost_of(URLS).mu_squared + cost_of(GAUSSIAN).mu_squared
    assert found.days_left == pytest.approx(7.0 * left.mu_squared / noise)


def test_a_budget_without_charges_lately_and_a_renewed_one_have_no_end(ledger: Ledger) -> None:
    """The present period of a renewed budget stands for it."""
    ledger.put_budget("old", LIMIT, "", AT)
    ledger.put_budget("weekly", LIMIT, "", AT, settings={"renews": "week"})
    charged_on(ledger, [0.0], budget="old")
    charged_on(ledger, [0.0], budget="weekly")
    used = LIMIT.settled_by(cost_of(URLS)).used_shares(NOTHING.plus(URLS, cost_of(URLS)))

    assert ledger.standings(day(1)) == [
        Standing("old", *used, standing(ledger, 1, "old").days_left),
        Standing("weekly", *used, None),
    ]
    assert standing(ledger, 1, "old").days_left is not None
    assert ledger.standings(day(29)) == [Standing("old", *used, None), Standing("weekly", 0.0, 0.0, None)]


def test_a_full_budget_has_no_day_left(ledger: Ledger) -> None:
    """One release that fits by its exact accounting alone."""
    ledger.put_budget("web", Limit(0.349, 1.0032e-5), "", AT)
    charged_on(ledger, [0.0])

    assert standing(ledger, 1).days_left == 0
