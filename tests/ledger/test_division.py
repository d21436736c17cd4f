"""The first charge settles how a budget is divided, so an analyst cannot choose after looking at a release."""

import shutil
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from app.ledger.errors import DivisionSettled
from app.ledger.opening import open_ledger
from app.ledger.store import Ledger
from gsh.accounting.budget_limits import Limit
from gsh.accounting.composition import NOTHING, Cost, cost_of
from gsh.accounting.mechanism import Mechanism, PlainGaussian
from tests.accounting.test_budget_limits import adaptive_delta
from tests.ledger.examples import AT, GAUSSIAN, URLS, charge, paid

OLD_LEDGER = Path(__file__).parent / "fixtures" / "version_0_1_0.sqlite3"
OLD_SECRET = "a secret for tests, of an old ledger"
NOISE, THRESHOLDS = cost_of(PlainGaussian(1, 10.0)), Cost(1.0, 1.6e-3)
LIMIT = Limit(1.0, 1e-4)


@pytest.fixture
def on_file(tmp_path: Path) -> Iterator[Ledger]:
    with closing(open_ledger(str(tmp_path / "ledger.sqlite3"), "a secret for tests")) as ledger:
        yield ledger


def room(ledger: Ledger, name: str) -> Cost:
    budget = ledger.standing(name)
    return budget.limit.remaining(budget.spent)


@pytest.mark.parametrize("announced", [1.0, 0.75], ids=["the same limit", "a raise that was announced"])
def test_a_typical_mechanism_named_after_a_release_spends_no_more_than_delta(on_file: Ledger, announced: float) -> None:
    """Two budgets represent two paths: one is divided for noise after the first release, the other for thresholds.

    Each path alone keeps δ = 10⁻⁴ at ε = 1. An analyst who chose the path after the first release could
    reach 1.77 · 10⁻⁴.
    """
    share = 0.6 if announced == 1.0 else 0.999
    first = PlainGaussian(1, (share * Limit(announced, 1e-4, NOISE).remaining(NOTHING).mu_squared) ** -0.5)
    for name, proportion in (("noise", NOISE), ("thresholds", THRESHOLDS)):
        on_file.put_budget(name, Limit(announced, 1e-4), "", AT, reason="a test")
        charge(on_file, paid(name, name, release=first))
        with suppress(DivisionSettled):
            on_file.put_budget(name, Limit(1.0, 1e-4, proportion), "", AT, reason="a test")
        with suppress(DivisionSettled):
            on_file.put_budget(name, Limit(1.0, 1e-4), "", AT, reason="a test")

    s, d = room(on_file, "noise").mu_squared, room(on_file, "thresholds").hazard
    assert s > 0
    assert d > 0
    assert adaptive_delta(cost_of(first).mu_squared, s, d, 0.402, 1.0) <= 1e-4


def test_another_proportion_is_free_before_the_first_charge_and_refused_after_it(ledger: Ledger) -> None:
    ledger.put_budget("web", Limit(1.0, 1e-4, NOISE), "", AT, reason="a test")
    ledger.put_budget("web", Limit(1.0, 1e-4, cost_of(URLS)), "", AT, reason="a test")
    charge(ledger, paid())

    with pytest.raises(DivisionSettled) as refused:
        ledger.put_budget("web", Limit(2.0, 1e-3, NOISE), "", AT, reason="a test")
    assert refused.value.names_mechanism
    assert ledger.standing("web").entries == 3
    assert ledger.put_budget("web", Limit(2.0, 1e-3, cost_of(URLS)), "", AT, reason="a test").entries == 4
    assert ledger.verify("web")[1] is None


def test_a_limit_whose_caps_cross_the_ones_before_is_refused(ledger: Ledger) -> None:
    ledger.put_budget("web", LIMIT, "", AT, reason="a test")
    charge(ledger, paid(release=GAUSSIAN))

    with pytest.raises(DivisionSettled) as refused:
        ledger.put_budget("web", Limit(2.0, 5e-5), "", AT, reason="a test")
    assert not refused.value.names_mechanism
    assert ledger.standing("web").limit.epsilon == 1.0


def test_a_lowered_limit_keeps_the_larger_promise_and_can_be_raised_back(ledger: Ledger) -> None:
    assert ledger.put_budget("web", LIMIT, "", AT, reason="a test").promise is None
    charge(ledger, paid(key="a"))
    charge(ledger, paid(key="b"))
    before = ledger.standing("web").promise
    assert before == pytest.approx(1e-4)
    assert before <= 1e-4

    lowered = ledger.put_budget("web", Limit(1.0, 5e-5), "", AT, reason="a test")
    assert lowered.promise == before
    assert ledger.put_budget("web", LIMIT, "", AT, reason="a test").promise == before
    assert ledger.put_budget("web", Limit(1.0, 2e-4), "", AT, reason="a test").promise == pytest.approx(2e-4)
    assert ledger.verify("web")[1] is None


@pytest.mark.parametrize("column", ["hull_s", "hull_d"])
@pytest.mark.parametrize("value", ["'1/1024'", "NULL", "'many'"])
def test_a_hull_that_differs_from_the_history_is_found(ledger: Ledger, column: str, value: str) -> None:
    ledger.put_budget("web", LIMIT, "", AT, reason="a test")
    charge(ledger, paid())
    with ledger._connections.transaction() as execute:
        execute(f"UPDATE budgets SET {column} = {value}")

    assert ledger.verify("web")[1] is not None


def test_a_budget_divided_again_by_an_earlier_version_has_the_larger_promise(tmp_path: Path) -> None:
    """That history was legal then, so it is no fault."""
    place = tmp_path / "ledger.sqlite3"
    shutil.copy(OLD_LEDGER, place)
    with closing(open_ledger(str(place), OLD_SECRET)) as ledger:
        plain, divided, unused = (ledger.standing(name) for name in ("plain", "divided", "unused"))
        assert [ledger.verify(name)[1] for name in ledger.names()] == [None] * 3

        assert unused.promise is None
        assert plain.promise == pytest.approx(1e-4)
        assert divided.promise is not None
        assert divided.promise > 1.8e-4
        with pytest.raises(DivisionSettled):
            ledger.put_budget(
                "divided", Limit(1.0, 1e-4, cost_of(Mechanism(3, 1, 120.0, 20.0))), "", AT, reason="a test"
            )
        assert ledger.put_budget("divided", Limit(1.0, 1e-4), "said anew", AT).promise == divided.promise
