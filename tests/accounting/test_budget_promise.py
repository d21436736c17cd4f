"""The hull of a budget's caps: the changes that keep the promise, and the promised δ."""

from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gsh.accounting import case_study
from gsh.accounting.budget_limits import Caps, Limit, admits_change, promised_delta, same_proportion
from gsh.accounting.composition import NOTHING, Cost, Spent, cost_of, delta_at, fits_together
from gsh.accounting.mechanism import Mechanism, PlainGaussian
from tests.accounting.draws import examples, log_uniform

URLS = cost_of(case_study.PRINTED)
NOISE = Cost(1.0, 0.0)
PROPORTIONS = log_uniform(1e-8, 1e2)


@examples(100)
@given(PROPORTIONS, log_uniform(0.01, 10), log_uniform(1e-9, 0.1), st.floats(1, 20), st.floats(1, 9))
def test_raising_a_limit_at_the_same_proportion_always_passes(
    ratio: float, epsilon: float, delta: float, more_epsilon: float, more_delta: float
) -> None:
    hull = Limit(epsilon, delta, Cost(1.0, ratio)).caps

    assert admits_change(hull, Limit(epsilon * more_epsilon, delta, Cost(1.0, ratio)))
    assert admits_change(hull, Limit(epsilon, delta * more_delta, Cost(1.0, ratio)))
    assert admits_change(hull, Limit(epsilon * more_epsilon, delta * more_delta, Cost(1.0, ratio)))


@examples(60)
@given(PROPORTIONS, st.lists(st.tuples(log_uniform(0.1, 10), log_uniform(1e-7, 1e-2)), min_size=2, max_size=5))
def test_every_history_of_admitted_limits_keeps_the_promise_of_its_largest(
    ratio: float, wanted: list[tuple[float, float]]
) -> None:
    """Composition at the hull is at most the δ of one of the admitted limits."""
    limits = [Limit(epsilon, delta, Cost(1.0, ratio)) for epsilon, delta in wanted]
    hull, kept = limits[0].caps, [limits[0]]
    for limit in limits[1:]:
        if admits_change(hull, limit):
            hull, kept = hull.joined(limit.caps), [*kept, limit]

    assert any(fits_together(hull.mu_squared, hull.hazard, limit.epsilon, limit.delta) for limit in kept)


@examples(40)
@given(PROPORTIONS, PROPORTIONS)
def test_another_proportion_differs_from_the_same_one_at_another_scale(one: float, other: float) -> None:
    assume(one != other)
    limit = Limit(1.0, 1e-4, Cost(1.0, one))

    assert same_proportion(limit, Limit(2.0, 1e-3, Cost(4.0, 4.0 * one)))
    assert not same_proportion(limit, Limit(1.0, 1e-4, Cost(1.0, other)))


def test_epsilon_up_and_delta_down_would_move_the_caps_in_opposite_directions() -> None:
    """The reserve for thresholds falls while the cap of mu_squared rises, so the hull of both exceeds either limit."""
    hull = Limit(1.0, 1e-4, NOISE).caps

    assert not admits_change(hull, Limit(2.0, 5e-5, NOISE))
    assert admits_change(hull, Limit(2.0, 1e-4, NOISE))
    assert admits_change(hull, Limit(0.5, 5e-5, NOISE))


def test_the_promise_is_composition_at_the_hull() -> None:
    limit = Limit(1.0, 1e-4, URLS)
    hull, spent = limit.caps, Spent(Fraction(URLS.mu_squared), Fraction(URLS.hazard), releases=2)

    assert promised_delta(hull, spent, 1.0) == delta_at(Spent(hull.mu_squared, hull.hazard, 2), 1.0) <= 1e-4
    assert promised_delta(hull, spent, 1.0) > 0.999e-4
    assert promised_delta(hull, spent, 0.5) > 1e-4  # a lower ε: the promise still covers the old caps


def test_a_first_release_beyond_the_caps_is_promised_at_its_own_cost() -> None:
    """By exact accounting. Composition at its sums would be larger."""
    release = Mechanism(3, 1, 88.0, 20.0)
    spent, limit = NOTHING.plus(release, cost_of(release)), Limit(1.0, 1e-4, cost_of(PlainGaussian(1, 50.0)))
    assert limit.admits(spent)
    assert spent.hazard > limit.caps.hazard

    assert promised_delta(limit.caps, spent, 1.0) <= 1e-4
    assert promised_delta(Caps(Fraction(0), Fraction(0)), spent, 1.0) == delta_at(spent, 1.0)


@pytest.mark.parametrize("more", [Spent(Fraction(1), Fraction(0), 2), Spent(Fraction(0), Fraction(1, 100), 3)])
def test_the_promise_covers_sums_beyond_the_hull(more: Spent) -> None:
    """They come from earlier versions, which had no caps."""
    hull = Limit(1.0, 1e-4, URLS).caps

    assert promised_delta(hull, more, 1.0) >= delta_at(more, 1.0)
