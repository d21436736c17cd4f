"""Calibration of several tables by shares: each table stays within its share, and all together meet the target."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsh.accounting.accountings import EXACT, at_epsilon, fits
from gsh.accounting.calibration.balanced import balanced
from gsh.accounting.calibration.draft import Draft, Target
from gsh.accounting.calibration.shares import (
    CalibratedTables,
    Shares,
    TableDraft,
    calibrate_tables,
    largest_hazard,
    largest_square,
)
from gsh.accounting.calibration.target import calibrate
from gsh.accounting.mechanism import AnyMechanism, Joint, Mechanism, PlainGaussian, hazard_ball, mu_squared_ball
from gsh.accounting.numerics.balls import at_most, ball_of
from gsh.accounting.numerics.doubles import next_below
from gsh.accounting.sensitivity import Box
from gsh.errors import InfeasibleTarget, InvalidParameter
from tests.gsh.accounting.draws import assert_refused, examples, log_uniform

TARGET = Target(1.0, 1e-6)


def table(c_u: int | None, *, is_public: bool = False, caps: tuple[int | None, ...] = (), tau: int = 1) -> TableDraft:
    """A table without σ and τ*. ``caps`` has the cap of each further column."""
    if not caps:
        return TableDraft(Draft(c_u=c_u, tau=tau, tau_star=None, sigma=None), is_public)
    box = Box((0.0,) * len(caps), (1.0,) * len(caps), caps)
    columns = balanced(tuple(f"column {j}" for j in range(len(caps))), box, c_u)
    return TableDraft(Draft(c_u=c_u, tau=tau, tau_star=None, sigma=None, columns=columns), is_public)


def levels(shares: Shares) -> CalibratedTables:
    """By country, by URL, by URL and country."""
    return calibrate_tables([table(1), table(16), table(16)], shares, TARGET)


@pytest.mark.parametrize(
    ("shares", "sigmas", "tau_stars"),
    [
        ([1, 1, 1], (7.317, 29.27, 29.27), (37.37, 161.50, 161.50)),
        ([1, 16, 16], (24.27, 24.27, 24.27), (132.46, 132.46, 132.46)),
        ("balanced", (12.67, 25.35, 25.35), (66.65, 138.70, 138.70)),
    ],
)
def test_three_levels_need_the_noise_of_the_document(
    shares: Shares, sigmas: tuple[float, ...], tau_stars: tuple[float, ...]
) -> None:
    found = levels(shares)

    assert tuple(each.sigma for each in found.tables) == pytest.approx(sigmas, rel=5e-4)
    assert [each.tau_star for each in secret(found)] == pytest.approx(tau_stars, rel=5e-4)
    assert 0.999999 * TARGET.delta < found.point.delta <= TARGET.delta


def secret(found: CalibratedTables) -> list[Mechanism]:
    return [each for each in found.tables if isinstance(each, Mechanism)]


@examples(60)
@given(
    st.lists(st.tuples(st.integers(1, 10**9), log_uniform(1e-3, 1e3)), min_size=2, max_size=5),
    st.one_of(st.just(0.0), log_uniform(1e-3, 10)),
    log_uniform(1e-12, 0.3),
)
def test_each_table_stays_within_its_share_and_no_smaller_double_does(
    tables: list[tuple[int, float]], epsilon: float, delta: float
) -> None:
    """S_k ≤ w_k S and D_k ≤ w_k D for exact fractions w_k of sum 1: the domination of Theorem C."""
    target = Target(epsilon, delta)
    found = calibrate_tables([table(c_u) for c_u, _ in tables], [share for _, share in tables], target)
    square, hazard = largest_square(target), largest_hazard(target)

    assert sum(found.shares) == 1
    for each, share in zip(secret(found), found.shares, strict=True):
        assert within(each, share * square, share * hazard) == (True, True)
        less = Mechanism(c_u=each.c_u, tau_star=each.tau_star, sigma=next_below(each.sigma))
        assert within(less, share * square, share * hazard)[0] is False
        if next_below(each.tau_star) > 1:
            lower = Mechanism(c_u=each.c_u, tau_star=next_below(each.tau_star), sigma=each.sigma)
            assert within(lower, share * square, share * hazard)[1] is False
    assert fits(EXACT, found.release, epsilon, delta)


def within(each: AnyMechanism, square: Fraction, hazard: Fraction) -> tuple[bool, bool]:
    return (
        at_most(lambda: (mu_squared_ball(each), ball_of(square))),
        at_most(lambda: (hazard_ball(each), ball_of(hazard))),
    )


@examples(30)
@given(st.data())
def test_with_caps_or_public_groups_the_target_is_met_and_nothing_is_left(data: st.DataObject) -> None:
    """The hazards are as large as they can be: a thousandth more of each would miss the target."""
    drafts = data.draw(st.lists(st.sampled_from(KINDS), min_size=2, max_size=4))
    shares = [data.draw(log_uniform(0.05, 20)) for _ in drafts]
    target = Target(data.draw(log_uniform(0.01, 5)), data.draw(log_uniform(1e-9, 1e-2)))
    found = calibrate_tables(drafts, shares, target)

    assert fits(EXACT, found.release, target.epsilon, target.delta)
    assert [isinstance(each, PlainGaussian) for each in found.tables] == [each.is_public for each in drafts]
    if secret(found):
        looser = [_with_hazard(each, 1.001) if isinstance(each, Mechanism) else each for each in found.tables]
        assert not fits(EXACT, Joint(looser), target.epsilon, target.delta)


KINDS = (table(1), table(40), table(7, is_public=True), table(30, caps=(None, 3)), table(12, is_public=True, caps=(2,)))


def _with_hazard(each: Mechanism, factor: float) -> Mechanism:
    """The same table with so many times the threshold cost, or a little more."""
    low, high = 1.0, each.tau_star
    for _ in range(60):
        middle = (low + high) / 2
        candidate = Mechanism(c_u=each.c_u, tau_star=middle, sigma=each.sigma) if middle > 1 else each
        low, high = (middle, high) if candidate.hazard > factor * each.hazard else (low, middle)
    tau_star = max(low, math.nextafter(1.0, 2.0))
    return Mechanism(c_u=each.c_u, tau_star=tau_star, sigma=each.sigma, mu_0=each.costs.mu_0, capped=each.costs.capped)


def test_public_groups_leave_the_thresholds_what_the_document_says() -> None:
    """If public groups have 0.9 of the noise cost, the thresholds have 1 − r(0.9) = 0.679 of their cost."""
    found = calibrate_tables([table(1, is_public=True), table(16), table(16)], [18, 1, 1], TARGET)

    assert found.point.delta_infinite / TARGET.delta == pytest.approx(1 - 0.321, abs=6e-4)


def test_public_groups_alone_need_no_threshold() -> None:
    found = calibrate_tables([table(1, is_public=True), table(16, is_public=True)], [1, 1], TARGET)

    assert all(isinstance(each, PlainGaussian) for each in found.tables)
    assert found.point.delta_infinite == 0
    assert 0.999999 * TARGET.delta < found.point.delta <= TARGET.delta


def test_one_table_needs_what_a_calibration_of_one_table_needs() -> None:
    """With the whole share the two differ in the last digits at most."""
    draft = table(51914).draft
    alone = calibrate(EXACT, draft, Target(0.349, 1e-5)).mechanism
    (shared,) = secret(calibrate_tables([TableDraft(draft)], [3], Target(0.349, 1e-5)))

    assert shared.sigma == pytest.approx(alone.sigma, rel=1e-14)
    assert shared.tau_star == pytest.approx(alone.tau_star, rel=1e-14)


def test_shares_of_the_noise_alone_would_miss_the_target() -> None:
    """The planted fault: every table gets the whole threshold cost."""
    found = levels([1, 1, 1])
    planted = [_with_hazard(each, 3.0) for each in secret(found)]

    assert not fits(EXACT, Joint(planted), TARGET.epsilon, TARGET.delta)
    assert at_epsilon(EXACT, Joint(planted), TARGET.epsilon).delta > 2.9 * TARGET.delta


def test_balanced_shares_have_the_least_sum_of_variances() -> None:
    best = sum(each.sigma**2 for each in levels("balanced").tables)

    for shares in ([1, 4.2, 4], [1.1, 4, 4], [1, 4, 4.2], [1, 1, 1], [1, 16, 16]):
        assert sum(each.sigma**2 for each in levels(shares).tables) > best


def test_columns_with_fixed_noise_take_their_part_of_the_share() -> None:
    fixed = TableDraft(Draft(c_u=4, tau=1, tau_star=None, sigma=None, columns=0.05))
    with_columns, without = (calibrate_tables([each, table(4)], [1, 1], TARGET) for each in (fixed, table(4)))

    assert with_columns.tables[0].sigma > without.tables[0].sigma
    assert with_columns.tables[1].sigma == without.tables[1].sigma


@pytest.mark.parametrize(
    ("drafts", "shares", "pointer", "bound"),
    [
        ([table(1), table(2)], [1], "shares", "2 numbers"),
        ([table(1), table(2)], [1, 0], "tables/1/share", "greater than 0"),
        ([table(1), table(2)], [1, math.nan], "tables/1/share", "greater than 0"),
        ([table(1), table(None)], [1, 1], "tables/1/c_u", "must be given"),
        ([table(1), TableDraft(Draft(c_u=1, tau=1, tau_star=None, sigma=3.0))], [1, 1], "tables/1", "must omit"),
        ([], [], "tables", "1 to 64"),
        ([table(1)] * 65, [1] * 65, "tables", "1 to 64"),
    ],
)
def test_what_a_share_cannot_decide_is_refused(
    drafts: list[TableDraft], shares: list[float], pointer: str, bound: str
) -> None:
    assert_refused(lambda: calibrate_tables(drafts, shares, TARGET), pointer, bound)


def test_an_error_in_a_table_names_the_table() -> None:
    with pytest.raises(InvalidParameter) as error:
        calibrate_tables([table(1), table(0)], [1, 1], TARGET)

    assert error.value.pointer == "tables/1/c_u"


@pytest.mark.parametrize(("shares", "name"), [([5e-324, 1e308], "sigma"), ([1e-307, 1e307], "tau_star")])
def test_a_share_that_is_far_too_small_is_named(shares: list[float], name: str) -> None:
    """A smaller C_u would not help: it is 1."""
    with pytest.raises(InfeasibleTarget) as error:
        calibrate_tables([table(1), table(1)], shares, TARGET)

    assert error.value.pointer == "tables/0/share"
    assert error.value.detail == f"must be larger: the {name} needed exceeds the largest double"


def test_columns_that_exceed_their_share_are_infeasible() -> None:
    noisy = TableDraft(Draft(c_u=4, tau=1, tau_star=None, sigma=None, columns=1.0))
    with pytest.raises(InfeasibleTarget) as error:
        calibrate_tables([noisy, table(4)], [1, 1], TARGET)

    assert error.value.pointer == "tables/0/aggregates"
