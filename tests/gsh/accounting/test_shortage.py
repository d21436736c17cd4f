"""Why releases do not fit a limit: the smallest larger one, in two digits, that admits them."""

import math
from dataclasses import replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gsh.accounting.budget_limits import Limit
from gsh.accounting.composition import NOTHING, cost_of, epsilon_at
from gsh.accounting.mechanism import Mechanism
from gsh.accounting.shortage import shortage_of


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    epsilon=st.sampled_from([0.1, 0.5, 1.0, 2.0, 8.0]),
    delta=st.sampled_from([1e-9, 1e-6, 1e-4]),
    sigma=st.floats(2, 60),
    gap=st.floats(3, 8),
    spent=st.integers(0, 5),
    more=st.integers(1, 60),
)
def test_the_limit_that_is_named_admits_the_releases_and_a_smaller_one_does_not(
    epsilon: float, delta: float, sigma: float, gap: float, spent: int, more: int
) -> None:
    release = Mechanism(c_u=4, tau=1, tau_star=1 + gap * sigma, sigma=sigma)
    cost = cost_of(release)
    limit = Limit(epsilon, delta).settled_by(cost)
    before = NOTHING.plus(release, cost, spent) if spent else NOTHING
    after = before.plus(release, cost, more)
    found = shortage_of(limit, after)

    assert (found is None) == limit.admits(after)
    assume(found is not None)
    assert found is not None
    assert found.releases == spent + more
    fitting = found.fitting
    if fitting is None:
        return
    assert fitting.admits(after)
    raised = [name for name in ("epsilon", "delta") if getattr(fitting, name) > getattr(limit, name)]
    assert raised or fitting == limit
    assert found.binding != "both" or raised == ["epsilon", "delta"]
    value = getattr(fitting, raised[-1])
    below = value - float(f"1e{int(f'{value:e}'.partition('e')[2]) - 1}") * (1 + 1e-9)
    smaller = replace(fitting, **{raised[-1]: below})
    assert below < getattr(limit, raised[-1]) or not smaller.admits(after)


def test_a_small_epsilon_is_raised_to_a_small_one() -> None:
    release = Mechanism(c_u=1, tau=1, tau_star=9e4, sigma=4400.0)
    limit = Limit(0.001, 1e-6).settled_by(cost_of(release))
    after = NOTHING.plus(release, cost_of(release), 1)
    while limit.admits(after):
        after = after.plus(release, cost_of(release), 1)
    found = shortage_of(limit, after)

    assert found is not None
    assert found.fitting is not None
    assert found.fitting.epsilon < 0.002


def test_thresholds_alone_are_never_mended_by_more_epsilon() -> None:
    """The noise is within its cap, however large a δ the thresholds need."""
    first = Mechanism(c_u=1, tau=1, tau_star=400.0, sigma=50.0)
    limit = Limit(1.0, 1e-6).settled_by(cost_of(first))
    low = Mechanism(c_u=1, tau=1, tau_star=1.5e6, sigma=1e6)
    found = shortage_of(limit, NOTHING.plus(low, cost_of(low), 1))

    assert found is not None
    assert (found.binding, found.fitting) == ("threshold", None)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    epsilon=st.sampled_from([0.5, 1.0, 2.0, 8.0]),
    delta=st.sampled_from([1e-9, 1e-6, 1e-4]),
    first=st.tuples(st.floats(5, 60), st.floats(3, 8)),
    second=st.tuples(st.floats(2, 60), st.floats(3, 8)),
)
def test_a_limit_that_pays_mostly_for_the_other_side_is_never_named(
    epsilon: float, delta: float, first: tuple[float, float], second: tuple[float, float]
) -> None:
    """After the first release both caps keep their proportion: a far larger limit would be bad advice."""
    before, more = (Mechanism(c_u=4, tau=1, tau_star=1 + gap * sigma, sigma=sigma) for sigma, gap in (first, second))
    limit = Limit(epsilon, delta).settled_by(cost_of(before))
    after = NOTHING.plus(before, cost_of(before)).plus(more, cost_of(more))
    found = shortage_of(limit.with_ray_through(limit.caps), after)

    if found is None or found.fitting is None:
        return
    threshold = -math.expm1(-float(after.hazard))
    assert found.fitting.delta <= 4.01 * max(delta, threshold)
    needed = epsilon_at(after, found.fitting.delta)
    assert found.fitting.epsilon <= 2 * max(epsilon, needed or 0)
