"""The first charge settles how a budget is divided, so an analyst cannot choose after looking at a release."""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from app.ledger.charges import fitting
from app.ledger.errors import BudgetExceeded, DivisionSettled
from app.ledger.opening import open_ledger
from app.ledger.state import Budget
from app.ledger.store import Ledger
from gsh.accounting.budget_limits import Caps, Limit
from gsh.accounting.composition import NOTHING, Cost, Release, Spent, cost_of, delta_at
from gsh.accounting.mechanism import Mechanism, PlainGaussian
from tests.app.ledger.examples import AT, GAUSSIAN, SMALL, URLS, charge, paid
from tests.gsh.accounting.draws import examples, log_uniform
from tests.gsh.accounting.test_budget_limits import adaptive_delta

FIXTURES = Path(__file__).parent / "fixtures"
OLD_LEDGER, LEDGER_0_2 = FIXTURES / "version_0_1_0.sqlite3", FIXTURES / "version_0_2_0_crossing.sqlite3"
OLD_SECRET = "a secret for tests, of an old ledger"
NOISE, THRESHOLDS = cost_of(PlainGaussian(c_u=1, sigma=10.0)), Cost(1.0, 1.6e-3)
LIMIT = Limit(1.0, 1e-4)
Step: TypeAlias = Release | tuple[float, float]
STEPS: st.SearchStrategy[Step] = st.sampled_from([GAUSSIAN, SMALL]) | st.tuples(
    log_uniform(0.3, 3), log_uniform(1e-6, 1e-3)
)


@pytest.fixture
def on_file(tmp_path: Path) -> Iterator[Ledger]:
    with closing(open_ledger(str(tmp_path / "ledger.sqlite3"), "a secret for tests")) as ledger:
        yield ledger


def room(ledger: Ledger, name: str) -> Cost:
    budget = ledger.standing(name)
    return budget.limit.remaining(budget.spent)


def hulls(budgets: Iterable[Budget]) -> list[Caps]:
    return [each.hull for each in budgets if each.hull is not None]


def nested(one: Budget, other: Budget) -> bool:
    """Whether one of the two hulls covers the other, and both have one direction."""
    left, right = hulls([one, other])
    return left.joined(right) in (left, right) and left.is_parallel_to(right)


def charged(budget: Budget, release: Release) -> Budget:
    """As ``Ledger.charge`` does it, without a database."""
    asked = paid(release=release)
    fitting((budget,), asked)
    return budget.charged(budget.spent.plus(release, asked.cost), release, asked.cost, AT, {})[0]


def walked(budget: Budget, steps: Iterable[Step]) -> Budget:
    """The budget after some limits and charges; a charge that does not fit is left out."""
    for step in steps:
        if isinstance(step, tuple):
            limit = replace(budget.limit, epsilon=step[0], delta=step[1])
            budget = budget.changed_to(limit, AT, reason="a test")[0]
        else:
            with suppress(BudgetExceeded):
                budget = charged(budget, step)
    return budget


@pytest.mark.parametrize("announced", [1.0, 0.75], ids=["the same limit", "a raise that was announced"])
def test_a_typical_mechanism_named_after_a_release_spends_no_more_than_delta(on_file: Ledger, announced: float) -> None:
    """Two budgets represent two paths: one is divided for noise after the first release, the other for thresholds.

    Each path alone keeps δ = 10⁻⁴ at ε = 1. An analyst who chose the path after the first release could
    reach 1.77 · 10⁻⁴.
    """
    share = 0.6 if announced == 1.0 else 0.999
    first = PlainGaussian(c_u=1, sigma=(share * Limit(announced, 1e-4, NOISE).remaining(NOTHING).mu_squared) ** -0.5)
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

    with pytest.raises(DivisionSettled):
        ledger.put_budget("web", Limit(2.0, 1e-3, NOISE), "", AT, reason="a test")
    assert ledger.standing("web").entries == 3
    assert ledger.put_budget("web", Limit(2.0, 1e-3, cost_of(URLS)), "", AT, reason="a test").entries == 4
    assert ledger.verify("web")[1] is None


@pytest.mark.parametrize("lower_epsilon", [0.5963, 0.59635])
def test_two_paths_with_a_small_promise_cost_no_more_together(ledger: Ledger, lower_epsilon: float) -> None:
    """After noise of μ² = 0.0579, one path raises ε for noise, the other raises δ for a threshold and lowers it again.

    Each ends with a promise of (1, ≤ 10⁻⁴). If the caps could cross, an analyst who chose the path after the first
    release would reach 1.77 · 10⁻⁴.
    """
    first = PlainGaussian(c_u=1, sigma=0.0579**-0.5)
    for name in ("noise", "thresholds"):
        ledger.put_budget(name, Limit(0.75, 1e-4), "", AT)
        charge(ledger, paid(name, name, release=first))
    for_noise = ledger.put_budget("noise", Limit(1.0, 1e-4), "", AT, reason="after looking")
    for_thresholds = ledger.put_budget("thresholds", Limit(lower_epsilon, 7.888e-4), "", AT, reason="after looking")
    s, d = room(ledger, "noise").mu_squared, room(ledger, "thresholds").hazard
    with pytest.raises(BudgetExceeded):
        charge(
            ledger,
            paid("thresholds", "crossing", release=Mechanism(c_u=1, tau=1, tau_star=1 + 3.73 * 2000, sigma=2000.0)),
        )
    lowered = ledger.put_budget("thresholds", Limit(1.0, 1e-6), "", AT, reason="after looking")

    assert for_noise.promise == pytest.approx(1e-4)
    assert lowered.promise is not None
    assert lowered.promise <= 1e-4
    assert nested(for_noise, for_thresholds)
    assert s > 0.037
    assert d > 0
    assert adaptive_delta(cost_of(first).mu_squared, s, d, 0.402, 1.0) <= 1e-4
    assert [ledger.verify(name)[1] for name in ledger.names()] == [None] * 2


@examples(60)
@given(
    st.sampled_from([GAUSSIAN, SMALL, URLS]),
    st.tuples(log_uniform(0.3, 3), log_uniform(1e-6, 1e-3)),
    st.lists(st.lists(STEPS, min_size=1, max_size=5), min_size=2, max_size=4),
    log_uniform(0.3, 3),
)
def test_all_paths_after_the_first_charge_stay_in_one_box_that_the_largest_promise_covers(
    first: Release, limit: tuple[float, float], paths: list[list[Step]], epsilon: float
) -> None:
    """A path is a sequence of limits and charges. The box of all paths is that of the largest of their hulls."""
    start = Budget("web", Limit(*limit), "")
    try:
        start = charged(start, first)
    except BudgetExceeded:
        assume(False)
    ends = [walked(start, path) for path in paths]

    box = Caps(Fraction(0), Fraction(0))
    for end in ends:
        assert end.hull is not None
        box = box.joined(end.hull)
    assert box in hulls(ends)
    together = delta_at(Spent(box.mu_squared, box.hazard, releases=2), epsilon)
    assert together == max(delta_at(Spent(each.mu_squared, each.hazard, 2), epsilon) for each in hulls(ends))
    assert all(box.cover(end.spent) or end.spent.releases == 1 for end in ends)


def test_a_larger_epsilon_with_a_smaller_delta_is_a_limit_like_any_other(ledger: Ledger) -> None:
    """Before caps had a ray it was refused if thresholds had their minimum of δ/8."""
    ledger.put_budget("web", LIMIT, "", AT)
    charge(ledger, paid(release=GAUSSIAN))
    before = ledger.standing("web")

    changed = ledger.put_budget("web", Limit(2.0, 5e-5), "", AT, reason="a test")
    assert nested(before, changed)
    assert changed.promise == pytest.approx(5e-5)
    assert ledger.verify("web")[1] is None


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


@pytest.mark.parametrize("column", ["hull_s", "hull_d", "ray_s", "ray_d"])
@pytest.mark.parametrize("value", ["'1/1024'", "NULL", "'many'"])
def test_a_hull_or_a_ray_that_differs_from_the_history_is_found(ledger: Ledger, column: str, value: str) -> None:
    ledger.put_budget("web", LIMIT, "", AT, reason="a test")
    charge(ledger, paid())
    with ledger._connections.transaction() as execute:
        execute(f"UPDATE budgets SET {column} = {value}")

    assert ledger.verify("web")[1] is not None


def test_a_budget_whose_caps_crossed_in_an_earlier_version_grows_along_its_hull(tmp_path: Path) -> None:
    """A ledger of version 0.2.0. Budgets whose caps did not cross keep them, to the last bit."""
    place = tmp_path / "ledger.sqlite3"
    shutil.copy(LEDGER_0_2, place)
    with closing(open_ledger(str(place), OLD_SECRET)) as ledger:
        crossing, noise, web, unused = (ledger.standing(name) for name in ("crossing", "noise", "web", "unused"))
        assert [ledger.verify(name)[1] for name in ledger.names()] == [None] * 4
        assert unused.promise is None
        assert [crossing.promise, noise.promise, web.promise] == [9.999543797313414e-05, 1e-4, 1e-4]
        assert noise.limit.caps == noise.hull
        assert room(ledger, "web") == Cost(0.03091522872624677, 2.956365614943409e-05)
        assert room(ledger, "crossing") == Cost(0.0, 0.0)

        raised = ledger.put_budget("crossing", Limit(1.0, 1e-3), "", AT, reason="a test")
        assert raised.promise == pytest.approx(1e-3)
        assert nested(crossing, raised)
        assert ledger.verify("crossing")[1] is None


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
                "divided",
                Limit(1.0, 1e-4, cost_of(Mechanism(c_u=3, tau=1, tau_star=120.0, sigma=20.0))),
                "",
                AT,
                reason="a test",
            )
        assert ledger.put_budget("divided", Limit(1.0, 1e-4), "said anew", AT).promise == divided.promise
