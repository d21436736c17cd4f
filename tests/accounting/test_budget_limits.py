"""Limits of budgets: divided before anything is seen, so that no choice made later spends more than δ."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsh.accounting.budget_limits import MOST_RELEASES, Limit
from gsh.accounting.composition import NOTHING, Cost, Spent, cost_of, delta_at, fits, fits_together
from gsh.accounting.mechanism import Mechanism, PlainGaussian
from tests.accounting.draws import cases, examples, log_uniform, mechanism_of
from tests.reference import Case, mp

URLS = Mechanism(51914, 1, 13948.0, 2228.0)
GAUSSIAN = PlainGaussian(1, 50.0)


def spent(release: Mechanism | PlainGaussian, times: int) -> Spent:
    return NOTHING.plus(release, cost_of(release), times) if times else NOTHING


@examples(40)
@given(st.integers(0, 30), log_uniform(0.1, 10), log_uniform(1e-6, 1e-2))
def test_as_many_equal_releases_fit_as_composition_allows_and_not_one_more(
    already: int, epsilon: float, delta: float
) -> None:
    """Divided in the proportion of its first release, a budget is all for releases like it.

    But for what thresholds are left at least, where these releases need less.
    """
    cost, limit = cost_of(URLS), Limit(epsilon, delta)
    settled = limit.settled_by(cost)

    many = settled.how_many_fit(spent(URLS, already), URLS, cost)

    after, one_more = spent(URLS, already + many), spent(URLS, already + many + 1)
    assert many == 0 or (settled.admits(after) and fits(after, epsilon, delta))
    assert not settled.admits(one_more)
    assert not fits(one_more, epsilon, delta) or float(settled.division[1]) <= delta / 8 * (1 + delta)
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
def test_the_division_fits_to_the_last_bit_and_leaves_thresholds_their_share(
    case: Case, epsilon: float, delta: float
) -> None:
    cost = cost_of(mechanism_of(case))
    s, d = Limit(epsilon, delta).settled_by(cost).division
    just_more = 1 + Fraction(1, 2**40)

    assert s > 0
    assert d >= -math.log1p(-delta / 8) * (1 - 1e-15)
    assert fits_together(s, d, epsilon, delta)
    assert not fits_together(s * just_more, d * just_more, epsilon, delta)


def test_noise_alone_leaves_an_eighth_to_thresholds() -> None:
    """So that a histogram can follow a plain Gaussian release; for that S is 2 % smaller."""
    s, d = Limit(1.0, 1e-4).settled_by(cost_of(GAUSSIAN)).division

    assert float(d) == pytest.approx(1e-4 / 8, rel=1e-4)
    assert float(s) == pytest.approx(0.98 * Limit(1.0, 1e-4).remaining(NOTHING).mu_squared, rel=1e-3)


def test_a_first_and_only_release_is_admitted_by_exact_accounting() -> None:
    """Where composition would not: the larger of two, not their sum."""
    exact = delta_at(spent(URLS, 1), 0.349)
    limit = Limit(0.349, exact).settled_by(cost_of(URLS))

    assert limit.admits(spent(URLS, 1))
    assert not Limit(0.349, math.nextafter(exact, 0)).settled_by(cost_of(URLS)).admits(spent(URLS, 1))
    assert limit.used(spent(URLS, 1)) == 1
    assert limit.how_many_fit(NOTHING, URLS, cost_of(URLS)) == 1
    assert limit.how_many_fit(spent(URLS, 1), GAUSSIAN, cost_of(GAUSSIAN)) == 0


def test_a_typical_release_settles_it_before_the_first() -> None:
    typical, first = cost_of(URLS), cost_of(GAUSSIAN)
    limit = Limit(1.0, 1e-4, typical)

    assert limit.settled_by(first) == limit
    assert limit.division == Limit(1.0, 1e-4).settled_by(typical).division
    assert limit.remaining(NOTHING).hazard == pytest.approx(7.69e-5, rel=1e-2)


def test_what_remains_is_rounded_down_and_never_negative() -> None:
    limit = Limit(1.0, 1e-4).settled_by(cost_of(URLS))
    s, d = limit.division

    left, none = limit.remaining(spent(URLS, 3)), limit.remaining(spent(URLS, 100))
    assert Fraction(left.mu_squared) <= s - spent(URLS, 3).mu_squared < Fraction(math.nextafter(left.mu_squared, 1))
    assert Fraction(left.hazard) <= d - spent(URLS, 3).hazard < Fraction(math.nextafter(left.hazard, 1))
    assert none == Cost(0.0, 0.0)


def test_nothing_fits_once_either_sum_is_over_its_limit() -> None:
    """Not even noise alone, where a first release by exact accounting took more of D than there was for it."""
    limit, first = Limit(1.0, 1e-4, cost_of(GAUSSIAN)), Mechanism(3, 1, 88.0, 20.0)

    assert limit.admits(spent(first, 1))
    assert not limit.admits(spent(first, 1).plus(GAUSSIAN, cost_of(GAUSSIAN)))
    assert limit.how_many_fit(spent(first, 1), GAUSSIAN, cost_of(GAUSSIAN)) == 0


def test_no_more_are_promised_than_can_be_counted() -> None:
    tiny = PlainGaussian(1, 1e150)

    assert Limit(1.0, 1e-4).how_many_fit(NOTHING, tiny, cost_of(tiny)) == MOST_RELEASES


def adaptive_delta(s_1: float, s_2: float, d_2: float, cut: float, epsilon: float) -> float:
    """δ at ε of an analyst who spends s_1, looks, and then spends s_2 if the privacy loss is above the cut, else d_2.

    P[accident] counts in full; without one the likelihood ratio is e^(loss − d), and counts as far as it is above e^ε.
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
    with mp.workdps(20):  # as good for a double as all the digits of the reference, and twenty times faster
        return float(mp.quad(with_threshold, mp.linspace(low, cut, 9)) + mp.quad(with_noise, mp.linspace(cut, high, 9)))


@pytest.mark.parametrize(("epsilon", "delta", "cut"), [(1.0, 1e-4, 0.402), (1.0, 1e-2, 0.4)])
def test_whoever_chooses_after_looking_cannot_spend_more(epsilon: float, delta: float, cut: float) -> None:
    """Were every pair of sums admitted that composes to δ, the second case would cost nearly twice as much."""
    unsettled = Limit(epsilon, delta)
    first = PlainGaussian(1, (0.6 * unsettled.remaining(NOTHING).mu_squared) ** -0.5)
    s_1 = cost_of(first).mu_squared

    def most(fit: object) -> float:
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if fit(Fraction(middle)) else (low, middle)  # type: ignore[operator]
        return low

    any_s = most(lambda s: fits_together(Fraction(s_1) + s, Fraction(0), epsilon, delta))
    any_d = most(lambda d: fits_together(Fraction(s_1), d, epsilon, delta))
    left = unsettled.settled_by(cost_of(first)).remaining(spent(first, 1))

    assert adaptive_delta(s_1, any_s, any_d, cut, epsilon) > 1.5 * delta
    assert left.mu_squared > 0
    assert left.hazard > 0
    assert adaptive_delta(s_1, left.mu_squared, left.hazard, cut, epsilon) <= delta
