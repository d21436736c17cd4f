"""The hull of a budget's caps: which changes keep the promise, and what is promised."""

from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gsh.accounting.budget_limits import Limit
from gsh.accounting.budget_promise import Caps, admits_change, promised_delta, same_proportion
from gsh.accounting.composition import NOTHING, Cost, Spent, cost_of, delta_at, fits_together
from gsh.accounting.mechanism import Mechanism, PlainGaussian
from tests.accounting.draws import examples, log_uniform

URLS = cost_of(Mechanism(51914, 1, 13948.0, 2228.0))
NOISE = Cost(1.0, 0.0)
PROPORTIONS = log_uniform(1e-8, 1e2)


@examples(100)
@given(PROPORTIONS, log_uniform(0.01, 10), log_uniform(1e-9, 0.1), st.floats(1, 20), st.floats(1, 9))
def test_raising_a_limit_at_the_same_proportion_always_passes(
    ratio: float, epsilon: float, delta: float, more_epsilon: float, more_delta: float
) -> None:
    hull = Caps.of(Limit(epsilon, delta, Cost(1.0, ratio)))

    assert admits_change(hull, Limit(epsilon * more_epsilon, delta, Cost(1.0, ratio)))
    assert admits_change(hull, Limit(epsilon, delta * more_delta, Cost(1.0, ratio)))
    assert admits_change(hull, Limit(epsilon * more_epsilon, delta * more_delta, Cost(1.0, ratio)))


@examples(60)
@given(PROPORTIONS, st.lists(st.tuples(log_uniform(0.1, 10), log_uniform(1e-7, 1e-2)), min_size=2, max_size=5))
def test_every_history_of_admitted_limits_keeps_the_promise_of_its_largest(
    ratio: float, wanted: list[tuple[float, float]]
) -> None:
    """Under whichever of them a release is made, composition at the hull is at most the δ of one limit that was set."""
    limits = [Limit(epsilon, delta, Cost(1.0, ratio)) for epsilon, delta in wanted]
    hull, kept = Caps.of(limits[0]), [limits[0]]
    for limit in limits[1:]:
        if admits_change(hull, limit):
            hull, kept = hull.joined(Caps.of(limit)), [*kept, limit]

    assert any(fits_together(hull.mu_squared, hull.hazard, limit.epsilon, limit.delta) for limit in kept)


@examples(40)
@given(PROPORTIONS, PROPORTIONS)
def test_another_proportion_is_told_from_the_same_one_at_another_scale(one: float, other: float) -> None:
    assume(one != other)
    limit = Limit(1.0, 1e-4, Cost(1.0, one))

    assert same_proportion(limit, Limit(2.0, 1e-3, Cost(4.0, 4.0 * one)))
    assert not same_proportion(limit, Limit(1.0, 1e-4, Cost(1.0, other)))


def test_epsilon_up_and_delta_down_would_move_the_caps_in_opposite_directions() -> None:
    """The eighth of δ for thresholds falls while S rises, so the hull of both is larger than either limit allows."""
    hull = Caps.of(Limit(1.0, 1e-4, NOISE))

    assert not admits_change(hull, Limit(2.0, 5e-5, NOISE))
    assert admits_change(hull, Limit(2.0, 1e-4, NOISE))
    assert admits_change(hull, Limit(0.5, 5e-5, NOISE))


def test_the_promise_is_composition_at_the_hull() -> None:
    limit = Limit(1.0, 1e-4, URLS)
    hull, spent = Caps.of(limit), Spent(Fraction(URLS.mu_squared), Fraction(URLS.hazard), releases=2)

    assert promised_delta(hull, spent, 1.0) == delta_at(Spent(hull.mu_squared, hull.hazard, 2), 1.0) <= 1e-4
    assert promised_delta(hull, spent, 1.0) > 0.999e-4
    assert promised_delta(hull, spent, 0.5) > 1e-4  # lowered: what was allowed before is promised at the new ε


def test_a_first_release_beyond_its_share_is_promised_what_it_costs() -> None:
    """By exact accounting; (1) at its sums would be larger."""
    release = Mechanism(3, 1, 88.0, 20.0)
    spent, limit = NOTHING.plus(release, cost_of(release)), Limit(1.0, 1e-4, cost_of(PlainGaussian(1, 50.0)))
    assert limit.admits(spent)
    assert spent.hazard > limit.division[1]

    assert promised_delta(Caps.of(limit), spent, 1.0) <= 1e-4
    assert promised_delta(Caps(Fraction(0), Fraction(0)), spent, 1.0) == delta_at(spent, 1.0)


@pytest.mark.parametrize("more", [Spent(Fraction(1), Fraction(0), 2), Spent(Fraction(0), Fraction(1, 100), 3)])
def test_sums_beyond_the_hull_are_promised_too(more: Spent) -> None:
    """Of earlier versions, which kept no caps."""
    hull = Caps.of(Limit(1.0, 1e-4, URLS))

    assert promised_delta(hull, more, 1.0) >= delta_at(more, 1.0)
