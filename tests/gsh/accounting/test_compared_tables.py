"""What other ways to account for the same tables need: each meets the target by itself, and none needs less."""

import math
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsh.accounting.accountings import EXACT, ZCDP, at_epsilon, fits
from gsh.accounting.calibration.compared_tables import PricedTables, WayName, compare_tables
from gsh.accounting.calibration.draft import Draft, Target
from gsh.accounting.calibration.shares import Shares, TableDraft
from gsh.accounting.composition import fits_together
from gsh.accounting.mechanism import Joint, Mechanism, PlainGaussian, hazard_ball, mu_squared_ball
from gsh.accounting.numerics.balls import round_down
from gsh.accounting.numerics.doubles import LEAST_DOUBLE
from gsh.errors import InfeasibleTarget
from tests import reference
from tests.gsh.accounting.draws import assert_refused, examples, log_uniform
from tests.gsh.accounting.test_shares import KINDS, TARGET, table

LEVELS = [table(1), table(16), table(16)]
"""By country, by URL, by URL and country."""


def price(drafts: Sequence[TableDraft], shares: Shares, way: WayName, target: Target = TARGET) -> PricedTables:
    found = compare_tables(drafts, shares, target)[way]
    assert found is not None
    return found


def tau_stars(found: PricedTables) -> list[float]:
    return [each.tau_star for each in found.tables if isinstance(each, Mechanism)]


@pytest.mark.parametrize(
    ("shares", "way", "sigmas", "thresholds"),
    [
        ([1, 1, 1], "shares", (7.317, 29.27), (37.37, 161.50)),
        ([1, 1, 1], "composition", (7.495, 29.98), (39.58, 170.24)),
        ([1, 1, 1], "zcdp", (8.035, 32.14), (42.28, 182.13)),
        ([1, 1, 1], "separate", (12.47, 49.89), (62.99, 274.55)),
        ([1, 16, 16], "shares", (24.27, 24.27), (132.46, 132.46)),
        ([1, 16, 16], "composition", (24.87, 24.87), (139.72, 139.72)),
        ([1, 16, 16], "zcdp", (26.66, 26.66), (149.46, 149.46)),
        ([1, 16, 16], "separate", (136.148, 34.424), (738.51, 187.48)),
        ("balanced", "shares", (12.674, 25.348), (66.65, 138.70)),
        ("balanced", "composition", (12.986, 25.971), (70.45, 146.28)),
        ("balanced", "zcdp", (13.92, 27.84), (75.32, 156.48)),
        ("balanced", "separate", (37.21, 37.52), (193.72, 204.81)),
    ],
)
def test_three_levels_need_what_the_document_says(
    shares: Shares, way: WayName, sigmas: tuple[float, float], thresholds: tuple[float, float]
) -> None:
    """The table of docs/math/joint-tables.md: country, URL. The third table needs what the second needs."""
    found = price(LEVELS, shares, way)

    assert [each.sigma for each in found.tables] == pytest.approx([*sigmas, sigmas[1]], rel=3e-4)
    assert tau_stars(found) == pytest.approx([*thresholds, thresholds[1]], abs=0.01)
    assert 0.999999 * TARGET.delta < found.delta <= TARGET.delta


targets = st.builds(Target, st.just(0.0) | log_uniform(1e-3, 20.0), log_uniform(1e-12, 0.3))
plain = st.lists(st.tuples(st.integers(1, 10**6).map(table), log_uniform(0.05, 20)), min_size=2, max_size=4)
mixed = st.lists(st.tuples(st.sampled_from(KINDS), log_uniform(0.05, 20)), min_size=1, max_size=4)


@examples(20)
@given(plain | mixed, targets)
def test_each_way_meets_the_target_by_its_own_bound(tables: list[tuple[TableDraft, float]], target: Target) -> None:
    """Public groups and caps of columns included. The bounds are evaluated here by other code, and by 60 digits."""
    drafts, shares = zip(*tables, strict=True)
    prices = compare_tables(drafts, shares, target)

    for way, found in prices.items():
        assert found is not None
        assert found.delta <= target.delta
        assert [isinstance(each, PlainGaussian) for each in found.tables] == [each.is_public for each in drafts]
        release = Joint(found.tables)
        # Whatever a way claims is enough for the exact δ of the tables in one release.
        assert fits(EXACT, release, target.epsilon, target.delta)
        if way == "composition":
            assert fits_together(*sums_below(release), target.epsilon, target.delta)
        if way == "zcdp":
            assert fits(ZCDP, release, target.epsilon, target.delta)
            assert zcdp_in_60_digits(release, target.epsilon) <= target.delta
        if way == "separate":
            points = [
                at_epsilon(EXACT, each, float(share * target.epsilon))
                for each, share in zip(found.tables, normed(shares), strict=True)
            ]
            assert math.fsum(point.delta for point in points) <= target.delta * (1 + 1e-9)


def sums_below(release: Joint) -> tuple[Fraction, Fraction]:
    """S and D, rounded down: their last bits are not the ledger's, which rounds every table up."""
    return (
        Fraction(round_down(lambda: mu_squared_ball(release))),
        Fraction(max(round_down(lambda: hazard_ball(release)), 0.0)),
    )


def normed(shares: Sequence[float]) -> list[float]:
    return [share / math.fsum(shares) for share in shares]


def zcdp_in_60_digits(release: Joint, epsilon: float) -> float:
    mpf = reference.mp.mpf
    square = reference.mp.fsum(mpf(each.mu_squared) for each in release.mechanisms)
    hazard = reference.mp.fsum(mpf(each.hazard) for each in release.mechanisms if isinstance(each, Mechanism))
    # mu_squared and hazard are rounded up, each by two units in the last place at most.
    return float((reference.zcdp(reference.mp.sqrt(square), epsilon) - reference.mp.expm1(-hazard)) * (1 - mpf(1e-9)))


@examples(20)
@given(plain, targets)
def test_no_way_needs_less_than_one_release(tables: list[tuple[TableDraft, float]], target: Target) -> None:
    """Without caps and public groups: less noise, and lower thresholds, than each other way, in every table."""
    drafts, shares = zip(*tables, strict=True)
    prices = compare_tables(drafts, shares, target)

    for found in prices.values():
        assert found is not None
        assert min(found.sigma_ratios) >= 1 - 1e-9
        assert min(ratio for ratio in found.tau_star_ratios if ratio is not None) >= 1 - 1e-9


@examples(20)
@given(plain | mixed, targets)
def test_composition_needs_no_higher_threshold_than_zcdp(
    tables: list[tuple[TableDraft, float]], target: Target
) -> None:
    """Every division that zCDP allows is allowed by composition, so the highest τ* of the best one is no higher."""
    drafts, shares = zip(*tables, strict=True)
    prices = compare_tables(drafts, shares, target)
    composed, by_rho = prices["composition"], prices["zcdp"]

    assert composed is not None
    assert by_rho is not None
    if tau_stars(composed):
        assert max(tau_stars(composed)) <= max(tau_stars(by_rho)) * (1 + 1e-9)
    else:
        assert all(ours.sigma <= theirs.sigma for ours, theirs in zip(composed.tables, by_rho.tables, strict=True))


@pytest.mark.parametrize("way", ["composition", "zcdp"])
@pytest.mark.parametrize("shares", [[1, 1, 1], "balanced"])
def test_no_other_division_has_a_lower_highest_threshold(way: WayName, shares: Shares) -> None:
    """σ a little larger or smaller: the τ* that is then left by the bound is higher."""
    found = price(LEVELS, shares, way)

    for factor in (0.99, 0.999, 1.001, 1.01, 1.1):
        other = [Mechanism(c_u=each.c_u, tau_star=1e9, sigma=each.sigma * factor) for each in found.tables]
        assert highest_at(other, found, way) > max(tau_stars(found)) * (1 - 1e-9)


def highest_at(tables: list[Mechanism], found: PricedTables, way: WayName) -> float:
    """The least highest τ* at these σ, if the hazards keep their proportions, by bisection."""
    hazards = [each.hazard for each in found.tables if isinstance(each, Mechanism)]

    def scaled(factor: float) -> list[Mechanism]:
        return [
            Mechanism(c_u=each.c_u, tau_star=threshold(each, factor * hazard), sigma=each.sigma)
            for each, hazard in zip(tables, hazards, strict=True)
        ]

    def meets(factor: float) -> bool:
        release = Joint(scaled(factor))
        if way == "zcdp":
            return fits(ZCDP, release, TARGET.epsilon, TARGET.delta)
        return fits_together(Fraction(release.mu_squared), Fraction(release.hazard), TARGET.epsilon, TARGET.delta)

    low, high = 0.0, 2.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if meets(middle) else (low, middle)
    return max(each.tau_star for each in scaled(low)) if low else math.inf


def threshold(table: Mechanism, hazard: float) -> float:
    """The τ* with which −C_u ln p is about this hazard."""
    quantile = reference.mp.sqrt(2) * reference.mp.erfinv(
        2 * reference.mp.exp(-reference.mp.mpf(hazard) / table.c_u) - 1
    )
    return 1 + table.sigma * float(quantile)


def test_public_groups_alone_cost_the_same_composed() -> None:
    """Without thresholds, the bound of composition is the exact δ of the noise."""
    prices = compare_tables([table(1, is_public=True), table(16, is_public=True)], [1, 3], TARGET)

    composed, by_rho, separate = (prices[way] for way in ("composition", "zcdp", "separate"))
    assert composed is not None
    assert by_rho is not None
    assert separate is not None
    assert composed.sigma_ratios == pytest.approx((1, 1), rel=1e-12)
    assert composed.tau_star_ratios == (None, None)
    assert min(by_rho.sigma_ratios) > 1.05
    assert min(separate.sigma_ratios) > 1.1


def test_one_table_alone_is_its_own_certificate() -> None:
    separate = price([table(51914)], [1], "separate", Target(0.349, 1e-5))

    assert separate.sigma_ratios == pytest.approx((1,), rel=1e-12)
    assert separate.tau_star_ratios == pytest.approx((1,), rel=1e-12)


def test_a_way_that_cannot_meet_the_target_is_none() -> None:
    """The fixed noise on the columns of one table takes nearly its share of what one release may spend."""
    free = price([table(4), table(4)], [1, 1], "shares").tables[0].sigma
    noisy = TableDraft(Draft(c_u=4, tau=1, tau_star=None, sigma=None, columns=0.999 / free))
    prices = compare_tables([noisy, table(4)], [1, 1], TARGET)

    assert prices["shares"] is not None
    assert prices["zcdp"] is None
    assert prices["separate"] is None


def test_a_delta_that_has_no_half_has_no_certificates_of_their_own() -> None:
    """A share of the least δ is no double. Public groups need no threshold, so one release can still meet it."""
    public = [table(1, is_public=True), table(1, is_public=True)]
    prices = compare_tables(public, [1, 1], Target(1.0, LEAST_DOUBLE))

    assert prices["shares"] is not None
    assert prices["separate"] is None


def test_a_target_that_shares_cannot_meet_is_refused() -> None:
    noisy = TableDraft(Draft(c_u=4, tau=1, tau_star=None, sigma=None, columns=1.0))
    with pytest.raises(InfeasibleTarget) as refused:
        compare_tables([noisy, table(4)], [1, 1], TARGET)

    assert refused.value.pointer == "tables/0/aggregates"


@pytest.mark.parametrize(
    ("drafts", "shares", "pointer", "bound"),
    [
        ([table(1), table(2)], [1], "shares", "2 numbers"),
        ([table(1), table(2)], [1, -1], "tables/1/share", "greater than 0"),
        ([table(1), TableDraft(Draft(c_u=1, tau=1, tau_star=None, sigma=3.0))], [1, 1], "tables/1", "must omit"),
        ([], [], "tables", "1 to 64"),
    ],
)
def test_what_calibration_refuses_is_refused(
    drafts: list[TableDraft], shares: list[float], pointer: str, bound: str
) -> None:
    assert_refused(lambda: compare_tables(drafts, shares, TARGET), pointer, bound)
