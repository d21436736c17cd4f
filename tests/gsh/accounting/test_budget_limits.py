"""Limits of budgets: split into caps before the first release, so that no later choice spends more than δ."""

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsh.accounting import case_study
from gsh.accounting.budget_limits import MOST_RELEASES, Limit
from gsh.accounting.composition import NOTHING, Cost, Spent, cost_of, delta_at, fits, fits_together
from gsh.accounting.mechanism import Mechanism, PlainGaussian
from gsh.accounting.numerics.doubles import next_above, next_below
from gsh.accounting.numerics.search import first_on_grid
from tests.gsh.accounting.draws import cases, examples, log_uniform, mechanism_of
from tests.reference import Case, mp

URLS = case_study.PRINTED
GAUSSIAN = PlainGaussian(c_u=1, sigma=50.0)


def spent(release: Mechanism | PlainGaussian, times: int) -> Spent:
    return NOTHING.plus(release, cost_of(release), times) if times else NOTHING


@examples(40)
@given(st.integers(0, 30), log_uniform(0.1, 10), log_uniform(1e-6, 1e-2))
def test_as_many_equal_releases_fit_as_composition_allows_and_not_one_more(
    already: int, epsilon: float, delta: float
) -> None:
    """A budget in the proportion of its first release has no unused room, except the reserve for thresholds."""
    cost, limit = cost_of(URLS), Limit(epsilon, delta)
    settled = limit.settled_by(cost)

    many = settled.how_many_fit(spent(URLS, already), URLS, cost)

    after, one_more = spent(URLS, already + many), spent(URLS, already + many + 1)
    assert many == 0 or (settled.admits(after) and fits(after, epsilon, delta))
    assert not settled.admits(one_more)
    assert not fits(one_more, epsilon, delta) or float(settled.caps.hazard) <= delta / 8 * (1 + delta)
    assert already > 0 or limit.how_many_fit(NOTHING, URLS, cost) == many


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-4), (0.5, 2e-4), (0.0, 0.5), (8.0, 1e-4)])
def test_what_is_used_grows_evenly_with_equal_releases(epsilon: float, delta: float) -> None:
    cost, limit = cost_of(URLS), Limit(epsilon, delta).settled_by(cost_of(URLS))
    most = limit.how_many_fit(NOTHING, URLS, cost)
    shares = [limit.used(spent(URLS, times)) for times in range(most + 3)]

    assert most > 1
    assert shares[: most + 1] == pytest.approx([shares[1] * times for times in range(most + 1)], rel=1e-14)
    assert shares[most] <= 1
    assert shares[most + 1 :] == [1, 1]


@examples(60)
@given(cases(most_c_u=1000, most_gap=30.0), log_uniform(0.1, 10), log_uniform(1e-9, 0.5))
def test_the_caps_fit_to_the_last_bit_and_reserve_an_eighth_of_delta_for_thresholds(
    case: Case, epsilon: float, delta: float
) -> None:
    cost = cost_of(mechanism_of(case))
    caps = Limit(epsilon, delta).settled_by(cost).caps
    just_more = 1 + Fraction(1, 2**40)

    assert caps.mu_squared > 0
    assert caps.hazard >= -math.log1p(-delta / 8) * (1 - 1e-15)
    assert fits_together(caps.mu_squared, caps.hazard, epsilon, delta)
    assert not fits_together(caps.mu_squared * just_more, caps.hazard * just_more, epsilon, delta)


def test_noise_alone_leaves_an_eighth_to_thresholds() -> None:
    """So that a histogram can follow a plain Gaussian release. This makes the cap of mu_squared 2 % smaller."""
    caps = Limit(1.0, 1e-4).settled_by(cost_of(GAUSSIAN)).caps

    assert float(caps.hazard) == pytest.approx(1e-4 / 8, rel=1e-4)
    assert float(caps.mu_squared) == pytest.approx(0.98 * Limit(1.0, 1e-4).remaining(NOTHING).mu_squared, rel=1e-3)


def test_a_first_and_only_release_is_admitted_by_exact_accounting() -> None:
    """Composition would refuse it: exact accounting takes the larger of two costs, not their sum."""
    exact = delta_at(spent(URLS, 1), 0.349)
    limit = Limit(0.349, exact).settled_by(cost_of(URLS))

    assert limit.admits(spent(URLS, 1))
    assert not Limit(0.349, next_below(exact)).settled_by(cost_of(URLS)).admits(spent(URLS, 1))
    assert limit.used(spent(URLS, 1)) == 1
    assert limit.how_many_fit(NOTHING, URLS, cost_of(URLS)) == 1
    assert limit.how_many_fit(spent(URLS, 1), GAUSSIAN, cost_of(GAUSSIAN)) == 0


def test_a_typical_release_settles_it_before_the_first() -> None:
    typical, first = cost_of(URLS), cost_of(GAUSSIAN)
    limit = Limit(1.0, 1e-4, typical)

    assert limit.settled_by(first) == limit
    assert limit.caps == Limit(1.0, 1e-4).settled_by(typical).caps
    assert limit.remaining(NOTHING).hazard == pytest.approx(7.69e-5, rel=1e-2)


def test_what_remains_is_rounded_down_and_never_negative() -> None:
    limit = Limit(1.0, 1e-4).settled_by(cost_of(URLS))
    caps, after_three = limit.caps, spent(URLS, 3)

    remaining, none = limit.remaining(after_three), limit.remaining(spent(URLS, 100))
    assert remaining.mu_squared <= caps.mu_squared - after_three.mu_squared < next_above(remaining.mu_squared)
    assert remaining.hazard <= caps.hazard - after_three.hazard < next_above(remaining.hazard)
    assert none == Cost(0.0, 0.0)


def test_nothing_fits_once_either_sum_is_over_its_limit() -> None:
    """Not even noise alone, after a first release that exact accounting admitted above the cap of hazard."""
    limit, first = Limit(1.0, 1e-4, cost_of(GAUSSIAN)), Mechanism(c_u=3, tau=1, tau_star=88.0, sigma=20.0)

    assert limit.admits(spent(first, 1))
    assert not limit.admits(spent(first, 1).plus(GAUSSIAN, cost_of(GAUSSIAN)))
    assert limit.how_many_fit(spent(first, 1), GAUSSIAN, cost_of(GAUSSIAN)) == 0


def test_no_more_are_promised_than_can_be_counted() -> None:
    tiny = PlainGaussian(c_u=1, sigma=1e150)

    assert Limit(1.0, 1e-4).how_many_fit(NOTHING, tiny, cost_of(tiny)) == MOST_RELEASES


def adaptive_delta(s_1: float, s_2: float, d_2: float, cut: float, epsilon: float) -> float:
    """δ at ε of an analyst who spends S = s_1, sees the loss, and then spends S = s_2 above the cut, else D = d_2.

    P[accident] counts in full. Without an accident the likelihood ratio is e^(loss − D), and its part above e^ε counts.
    """
    spread = mp.sqrt(s_1)

    def density(loss: object) -> object:
        return mp.npdf(loss, mp.mpf(s_1) / 2, spread)

    def with_noise(loss: object) -> object:
        mu, rest = mp.sqrt(s_2), epsilon - loss
        return density(loss) * (mp.ncdf(mu / 2 - rest / mu) - mp.exp(rest) * mp.ncdf(-mu / 2 - rest / mu))

    def with_threshold(loss: object) -> object:
        survives = mp.exp(-d_2)
        return density(loss) * (1 - survives + survives * max(mp.mpf(0), 1 - mp.exp(epsilon + d_2 - loss)))

    low, high = mp.mpf(s_1) / 2 - 12 * spread, mp.mpf(s_1) / 2 + 12 * spread
    with mp.workdps(20):  # enough for a double, and twenty times faster than all digits of the reference
        return float(mp.quad(with_threshold, mp.linspace(low, cut, 9)) + mp.quad(with_noise, mp.linspace(cut, high, 9)))


@pytest.mark.parametrize(("epsilon", "delta", "cut"), [(1.0, 1e-4, 0.402), (1.0, 1e-2, 0.4)])
def test_choosing_after_seeing_results_cannot_spend_more(epsilon: float, delta: float, cut: float) -> None:
    """If every pair of sums that composes to δ were admitted, the second case would cost nearly twice as much."""
    unsettled = Limit(epsilon, delta)
    first = PlainGaussian(c_u=1, sigma=(0.6 * unsettled.remaining(NOTHING).mu_squared) ** -0.5)
    s_1 = cost_of(first).mu_squared

    def most(fit: Callable[[Fraction], bool]) -> float:
        return next_below(first_on_grid(lambda share: not fit(Fraction(share)), 0.0, 1.0, 2**60))

    any_noise = most(lambda more: fits_together(Fraction(s_1) + more, Fraction(0), epsilon, delta))
    any_threshold = most(lambda hazard: fits_together(Fraction(s_1), hazard, epsilon, delta))
    remaining = unsettled.settled_by(cost_of(first)).remaining(spent(first, 1))

    assert adaptive_delta(s_1, any_noise, any_threshold, cut, epsilon) > 1.5 * delta
    assert remaining.mu_squared > 0
    assert remaining.hazard > 0
    assert adaptive_delta(s_1, remaining.mu_squared, remaining.hazard, cut, epsilon) <= delta
