"""Composition: certified upper and lower bounds, exact sums, and exact accounting of a single release."""

from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsh.accounting import case_study
from gsh.accounting.accountings import EXACT, at_delta, at_epsilon
from gsh.accounting.composition import (
    NOTHING,
    Cost,
    Part,
    Spent,
    cost_of,
    delta_at,
    epsilon_at,
    fits,
    lower_delta,
    lower_epsilon,
)
from gsh.accounting.mechanism import Mechanism, PlainGaussian
from gsh.accounting.numerics.doubles import next_below
from tests import reference
from tests.gsh.accounting.draws import allowed, assert_refused, cases, examples, log_uniform, mechanism_of
from tests.reference import Case, composition, mp

URLS = case_study.PRINTED
MIXED = (
    Case(51_914, 1, 13_948.0, 2228.0, 0.0, 0.0),
    Case(3, 1, 120.0, 20.0, 0.01, 0.0),
    Case(50, 2, 300.0, 40.0, 0.0, 0.0),
    Case(1, 1, 40.0, 9.0, 0.0, 0.0),
)


def spent_on(releases: Sequence[Case]) -> Spent:
    spent = NOTHING
    for case in releases:
        spent = spent.plus(mechanism_of(case), cost_of(mechanism_of(case)))
    return spent


def parts_of(releases: Sequence[Case]) -> list[Part]:
    return [Part(cost_of(mechanism_of(case)), 1) for case in releases]


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.349, 1.0, 5.0, 30.0])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_k_releases_against_sixty_digits(count: int, epsilon: float) -> None:
    """Never below the bound in 60 digits, and above it by no more than the rounding of S and D brings."""
    truth = composition.upper(MIXED[:count], epsilon)

    certified = delta_at(spent_on(MIXED[:count]), epsilon)

    assert truth <= certified <= float(truth * (1 + mp.mpf(2) ** -40))


@examples(60)
@given(st.lists(cases(most_c_u=10**6, most_gap=30.0), min_size=2, max_size=4), st.floats(0, 20))
def test_the_bounds_bracket_the_worst_of_all_splits(releases: list[Case], epsilon: float) -> None:
    """lower ≤ the largest over all 2^k splits ≤ upper, for any releases."""
    worst = composition.lower(releases, epsilon)

    assert lower_delta(parts_of(releases), epsilon) <= worst <= delta_at(spent_on(releases), epsilon)


@examples(100)
@given(cases())
def test_a_cost_is_the_next_double_above(case: Case) -> None:
    cost = cost_of(mechanism_of(case))

    assert cost.mu_squared in allowed(composition.s_of(case))
    assert cost.hazard in allowed(composition.d_of(case))


@examples(100)
@given(cases())
def test_one_release_is_what_exact_accounting_says_to_the_last_bit(case: Case) -> None:
    mechanism = mechanism_of(case)
    once = NOTHING.plus(mechanism, cost_of(mechanism))

    assert delta_at(once, case.epsilon) == at_epsilon(EXACT, mechanism, case.epsilon).delta
    assert lower_delta([Part(cost_of(mechanism), 1)], case.epsilon) <= delta_at(once, case.epsilon)


@pytest.mark.parametrize("delta", [1e-6, 1.1e-5, 1e-3])
def test_one_release_has_the_epsilon_of_exact_accounting(delta: float) -> None:
    assert epsilon_at(NOTHING.plus(URLS, cost_of(URLS)), delta) == at_delta(EXACT, URLS, delta).epsilon


def test_nothing_spent_costs_nothing() -> None:
    assert (delta_at(NOTHING, 0.0), epsilon_at(NOTHING, 1e-300), lower_delta([], 1.0)) == (0.0, 0.0, 0.0)
    assert fits(NOTHING, 0.0, 1e-300)


def test_ten_thousand_tiny_charges_add_up_to_no_less_than_they_cost() -> None:
    """In doubles, 1 + 2^−60 is 1 however often that is done."""
    large, tiny = PlainGaussian(c_u=1, sigma=1.0), PlainGaussian(c_u=1, sigma=2.0**30)
    spent = NOTHING.plus(large, cost_of(large))
    for _ in range(10_000):
        spent = spent.plus(tiny, cost_of(tiny))

    assert spent.mu_squared == 1 + 10_000 * Fraction(1, 2**60)
    assert spent.releases == 10_001
    assert spent == NOTHING.plus(large, cost_of(large)).plus(tiny, cost_of(tiny), 10_000)
    assert 1.0 + 2.0**-60 == 1.0


@examples(40)
@given(log_uniform(1e-3, 10), st.integers(1, 200), st.floats(0.01, 5))
def test_gaussians_compose_as_one_gaussian(mu: float, times: int, epsilon: float) -> None:
    """D = 0: the bound is the exact curve of μ√k, and the lower bound meets it."""
    release = PlainGaussian(c_u=1, sigma=1 / mu)
    cost = cost_of(release)
    truth = reference.gaussian(mp.sqrt(times) / mp.mpf(release.sigma), epsilon)

    upper = delta_at(NOTHING.plus(release, cost, times), epsilon)

    assert truth <= upper <= float(truth * (1 + mp.mpf(2) ** -30)) + 5e-324
    assert float(truth * (1 - mp.mpf(2) ** -30)) - 5e-324 <= lower_delta([Part(cost, times)], epsilon) <= truth


@pytest.mark.parametrize(("sigma", "times", "epsilon"), [(5.0, 10, 1.0), (20.0, 100, 0.5), (3.0, 1, 2.0)])
def test_the_gaussian_part_agrees_with_privacy_loss_distributions(sigma: float, times: int, epsilon: float) -> None:
    """dp-accounting discretises the loss and rounds it up: it is never below, and close."""
    # Slow to import, and the only use.
    from dp_accounting import GaussianDpEvent, SelfComposedDpEvent  # noqa: PLC0415
    from dp_accounting.pld import PLDAccountant  # noqa: PLC0415

    accountant = PLDAccountant()
    accountant.compose(SelfComposedDpEvent(GaussianDpEvent(sigma), times))
    release = PlainGaussian(c_u=1, sigma=sigma)

    ours = delta_at(NOTHING.plus(release, cost_of(release), times), epsilon)

    assert ours * (1 - 1e-6) <= accountant.get_delta(epsilon) <= ours * (1 + 1e-2)


@examples(60)
@given(st.integers(1, 40), st.floats(0.05, 10))
def test_epsilon_is_the_inverse_of_delta(times: int, epsilon: float) -> None:
    spent = NOTHING.plus(URLS, cost_of(URLS), times)
    found = epsilon_at(spent, delta_at(spent, epsilon))

    assert found is not None
    assert found <= epsilon * (1 + 1e-6)
    assert fits(spent, found, delta_at(spent, epsilon))
    assert found == 0 or not fits(spent, next_below(found), delta_at(spent, epsilon))


def test_no_finite_epsilon_where_accidents_alone_exceed_delta() -> None:
    spent, parts = NOTHING.plus(URLS, cost_of(URLS), 2), [Part(cost_of(URLS), 2)]

    assert epsilon_at(spent, 2e-5) is None
    assert lower_epsilon(parts, 2e-5) is None
    upper, lower = epsilon_at(spent, 3e-5), lower_epsilon(parts, 3e-5)
    assert upper is not None
    assert lower is not None
    assert lower < upper


@examples(60)
@given(cases(most_c_u=1000, most_gap=30.0), cases(most_c_u=1000, most_gap=30.0), st.floats(0, 10))
def test_another_release_never_makes_it_cheaper(first: Case, second: Case, epsilon: float) -> None:
    one, two = spent_on([first]), spent_on([first, second])

    assert delta_at(one, epsilon) <= delta_at(two, epsilon)


def test_a_plain_gaussian_alone_is_what_its_own_curve_says() -> None:
    """Not the δ of its mu_squared, which is rounded."""
    plain = PlainGaussian(c_u=3, sigma=70.0, mu_0=0.01)
    huge = Mechanism(
        c_u=3, tau=1, tau_star=1e300, sigma=70.0, mu_0=0.01
    )  # the same noise, and a threshold that costs nothing

    assert delta_at(NOTHING.plus(plain, cost_of(plain)), 0.2) == at_epsilon(EXACT, huge, 0.2).delta


def test_a_cost_that_no_double_can_hold_is_refused() -> None:
    assert_refused(lambda: cost_of(PlainGaussian(c_u=1, sigma=1e-200)), "sigma", "at most 1e+280")
    assert_refused(lambda: PlainGaussian(c_u=0, sigma=1.0), "c_u", "1 to 10^18")
    assert cost_of(PlainGaussian(c_u=1, sigma=1e300)) == Cost(5e-324, 0.0)


def test_splitting_equal_releases_can_gain_beside_another_ratio_near_epsilon_zero() -> None:
    """So the lower bound, which keeps equal releases together, is valid there but not the sharpest."""
    plain, s, d = mp.mpf("1.6006e-4"), mp.mpf("3.9903e-4"), mp.mpf("5.5458e-3")

    def at_tau(number: int) -> mp.mpf:
        return composition.at_split(number * d, plain + (2 - number) * s, 0.0)

    neither, one, both = map(at_tau, range(3))
    shown = lower_delta([Part(Cost(float(plain), 0.0), 1), Part(Cost(float(s), float(d)), 2)], 0.0)

    assert [float(mp.nstr(each, 5)) for each in (neither, one, both)] == [0.012348, 0.012429, 0.012349]
    assert shown <= both < one
    assert shown == pytest.approx(float(both), rel=1e-12)
