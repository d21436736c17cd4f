"""Several tables that share the rest of a budget: they fit, each has its share, and little is left over."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsh.accounting.budget_limits import Limit
from gsh.accounting.calibration.draft import Draft, Target
from gsh.accounting.calibration.remaining import calibrate_remaining
from gsh.accounting.calibration.remaining_tables import RemainingTables, calibrate_remaining_tables
from gsh.accounting.calibration.shares import TableDraft, calibrate_tables
from gsh.accounting.calibration.usual_noise import calibrate_usual_tables
from gsh.accounting.composition import NOTHING, Spent, cost_of, delta_at
from gsh.accounting.mechanism import Mechanism, PlainGaussian, hazard_ball, mu_squared_ball, release_of
from gsh.accounting.numerics.balls import at_most, ball_of
from gsh.errors import InfeasibleTarget, InvalidParameter, TooLittleLeft
from tests.gsh.accounting.draws import examples, log_uniform

LIMIT = Limit(1.0, 1e-6)
WEEKLY = Mechanism(c_u=16, tau=1, tau_star=360.0, sigma=60.0)


def draft(c_u: int, *, is_public: bool = False) -> TableDraft:
    return TableDraft(Draft(c_u=c_u, tau=1, tau_star=None, sigma=None), is_public)


LEVELS = [draft(1), draft(16), draft(2, is_public=True)]


def charged(times: int) -> tuple[Spent, Limit]:
    cost = cost_of(WEEKLY)
    return NOTHING.plus(WEEKLY, cost, times), LIMIT.settled_by(cost)


def after(spent: Spent, found: RemainingTables, releases: int) -> Spent:
    release = release_of(found.tables)
    return spent.plus(release, cost_of(release), releases)


def test_a_first_and_only_release_has_exact_accounting() -> None:
    found = calibrate_remaining_tables(NOTHING, LEVELS, [1, 2, 1], 1, LIMIT)

    exact = calibrate_tables(LEVELS, [1, 2, 1], Target(1.0, 1e-6))
    assert (found.tables, found.shares, found.delta) == (exact.tables, exact.shares, exact.point.delta)


@pytest.mark.parametrize("releases", [1, 2, 7])
@pytest.mark.parametrize("times", [1, 3])
def test_each_table_has_its_share_of_what_is_left_of_both_sums(times: int, releases: int) -> None:
    spent, limit = charged(times)
    found = calibrate_remaining_tables(spent, LEVELS, [1, 2, 1], releases, limit)

    caps = limit.caps
    square, hazard = ((getattr(caps, name) - getattr(spent, name)) / releases for name in ("mu_squared", "hazard"))
    for table, share in zip(found.tables, found.shares, strict=True):
        assert at_most(lambda table=table, share=share: (mu_squared_ball(table), ball_of(share * square)))  # type: ignore[misc]
    country, url, _ = found.tables
    assert at_most(lambda: (hazard_ball(country), ball_of(hazard / 3)))
    assert at_most(lambda: (hazard_ball(url), ball_of(2 * hazard / 3)))
    total = after(spent, found, releases)
    assert limit.admits_several(total)
    assert not limit.admits_several(total.plus(WEEKLY, cost_of(WEEKLY)))
    assert total.mu_squared > caps.mu_squared * (1 - Fraction(1, 10**12))
    assert total.hazard > caps.hazard * (1 - Fraction(1, 10**9))
    assert found.delta == delta_at(total, 1.0) <= 1e-6


@pytest.mark.parametrize("releases", [2, 12])
def test_one_table_gets_what_the_calibration_of_a_mechanism_gives(releases: int) -> None:
    """Nearly: both search for the division of a new budget, and a search ends near the best one."""
    alone = calibrate_remaining(NOTHING, Draft(16, 1, None, None), releases, LIMIT).mechanism
    (table,) = calibrate_remaining_tables(NOTHING, [draft(16)], [1], releases, LIMIT).tables

    assert isinstance(table, Mechanism)
    assert table.tau_star == pytest.approx(alone.tau_star, rel=1e-5)
    assert table.tau_star <= alone.tau_star * (1 + 1e-6)


@given(
    st.lists(st.tuples(st.integers(1, 10**6), st.booleans(), log_uniform(0.1, 10)), min_size=1, max_size=4),
    st.integers(2, 10**4),
    log_uniform(0.05, 8),
    log_uniform(1e-12, 1e-3),
)
@examples(40)
def test_releases_of_tables_fit_every_new_limit(
    tables: list[tuple[int, bool, float]], releases: int, epsilon: float, delta: float
) -> None:
    limit = Limit(epsilon, delta)
    drafts = [draft(c_u, is_public=is_public) for c_u, is_public, _ in tables]
    found = calibrate_remaining_tables(NOTHING, drafts, [share for *_, share in tables], releases, limit)

    total = after(NOTHING, found, releases)
    assert limit.admits_several(total)
    assert limit.settled_by(cost_of(release_of(found.tables))).admits_several(total)
    assert sum(found.shares) == 1
    assert [isinstance(table, PlainGaussian) for table in found.tables] == [is_public for _, is_public, _ in tables]


def test_a_budget_that_is_used_up_has_no_solution() -> None:
    spent, limit = charged(200)

    with pytest.raises(InfeasibleTarget, match="used up"):
        calibrate_remaining_tables(spent, LEVELS, [1, 1, 1], 1, limit)
    with pytest.raises(TooLittleLeft, match="too little is left"):
        calibrate_usual_tables(spent, LEVELS, [1, 1, 1], 1, limit)


def test_the_largest_sigma_of_the_tables_is_bounded() -> None:
    spent, limit = charged(1)
    found = calibrate_usual_tables(spent, LEVELS, [1, 1, 1], 1, limit)
    largest = max(table.sigma for table in found.tables)

    assert calibrate_usual_tables(spent, LEVELS, [1, 1, 1], 1, limit, most_sigma=largest) == found
    with pytest.raises(TooLittleLeft, match="most_sigma"):
        calibrate_usual_tables(spent, LEVELS, [1, 1, 1], 1, limit, most_sigma=largest / 2)


def test_drafts_are_checked_before_the_budget_is() -> None:
    spent, limit = charged(200)
    sigma = TableDraft(Draft(c_u=1, tau=1, tau_star=None, sigma=2.0))

    with pytest.raises(InvalidParameter, match="tables/1: must omit sigma"):
        calibrate_remaining_tables(spent, [draft(1), sigma], [1, 1], 1, limit)
