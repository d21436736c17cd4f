"""The caps of all limits of a budget are on one ray, and the promise is composition at the largest."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gsh.accounting import case_study
from gsh.accounting.budget_limits import Caps, Limit, promised_delta, same_proportion
from gsh.accounting.composition import NOTHING, Cost, Spent, cost_of, delta_at
from gsh.accounting.mechanism import Mechanism, PlainGaussian
from tests.gsh.accounting.draws import examples, log_uniform

URLS = cost_of(case_study.PRINTED)
NOISE = Cost(1.0, 0.0)
PROPORTIONS = log_uniform(1e-8, 1e2)


@examples(60)
@given(st.none() | PROPORTIONS, log_uniform(0.01, 10), log_uniform(1e-9, 0.1))
def test_the_ray_changes_no_cap_of_the_limit_that_fixes_it(ratio: float | None, epsilon: float, delta: float) -> None:
    """Neither with the reserve for thresholds nor without it, to the last bit."""
    limit = Limit(epsilon, delta, Cost(1.0, ratio or 0.0))

    assert limit.with_ray_through(limit.caps).caps == limit.caps


@examples(60)
@given(
    st.none() | PROPORTIONS,
    st.lists(st.tuples(log_uniform(0.1, 10), log_uniform(1e-7, 1e-2)), min_size=2, max_size=5),
)
def test_the_caps_of_all_limits_are_multiples_of_one_vector_and_fit_to_the_last_bit(
    ratio: float | None, wanted: list[tuple[float, float]]
) -> None:
    """So of two limits, one has both caps larger: they never cross, and a hull is one of them."""
    limits = [Limit(epsilon, delta, Cost(1.0, ratio or 0.0)) for epsilon, delta in wanted]
    ray = limits[0].with_ray_through(limits[0].caps).ray
    caps = [replace(limit, ray=ray).caps for limit in limits]
    hull, just_more = max(caps, key=lambda each: each.mu_squared), 1 + Fraction(1, 2**51)

    for each, limit in zip(caps, limits, strict=True):
        assert each.is_parallel_to(limits[0].caps)
        assert each.joined(hull) == hull
        assert each.fit(limit.epsilon, limit.delta)
        assert not each.times(just_more).fit(limit.epsilon, limit.delta)


@examples(40)
@given(PROPORTIONS, PROPORTIONS)
def test_another_proportion_differs_from_the_same_one_at_another_scale(one: float, other: float) -> None:
    assume(one != other)
    limit = Limit(1.0, 1e-4, Cost(1.0, one))

    assert same_proportion(limit, Limit(2.0, 1e-3, Cost(4.0, 4.0 * one)))
    assert not same_proportion(limit, Limit(1.0, 1e-4, Cost(1.0, other)))


def test_without_a_ray_the_caps_of_one_proportion_cross() -> None:
    """The reserve for thresholds falls with δ while the cap of mu_squared rises with ε."""
    one, other = Limit(1.0, 1e-4, NOISE), Limit(2.0, 5e-5, NOISE)
    joined = one.caps.joined(other.caps)
    on_the_ray = replace(other, ray=one.with_ray_through(one.caps).ray)

    assert joined not in (one.caps, other.caps)
    assert not joined.fit(2.0, 5e-5)
    assert on_the_ray.caps.joined(one.caps) == on_the_ray.caps


def test_the_promise_is_composition_at_the_hull() -> None:
    limit = Limit(1.0, 1e-4, URLS)
    hull, spent = limit.caps, Spent(Fraction(URLS.mu_squared), Fraction(URLS.hazard), releases=2)

    assert promised_delta(hull, spent, 1.0) == delta_at(Spent(hull.mu_squared, hull.hazard, 2), 1.0) <= 1e-4
    assert promised_delta(hull, spent, 1.0) > 0.999e-4
    assert promised_delta(hull, spent, 0.5) > 1e-4  # a lower ε: the promise still covers the old caps


def test_a_first_release_beyond_the_caps_is_promised_at_its_own_cost() -> None:
    """By exact accounting. Composition at its sums would be larger."""
    release = Mechanism(c_u=3, tau=1, tau_star=88.0, sigma=20.0)
    spent, limit = NOTHING.plus(release, cost_of(release)), Limit(1.0, 1e-4, cost_of(PlainGaussian(c_u=1, sigma=50.0)))
    assert limit.admits(spent)
    assert spent.hazard > limit.caps.hazard

    assert promised_delta(limit.caps, spent, 1.0) <= 1e-4
    assert promised_delta(Caps(Fraction(0), Fraction(0)), spent, 1.0) == delta_at(spent, 1.0)


@pytest.mark.parametrize("more", [Spent(Fraction(1), Fraction(0), 2), Spent(Fraction(0), Fraction(1, 100), 3)])
def test_the_promise_covers_sums_beyond_the_hull(more: Spent) -> None:
    """They come from earlier versions, which had no caps."""
    hull = Limit(1.0, 1e-4, URLS).caps

    assert promised_delta(hull, more, 1.0) >= delta_at(more, 1.0)
