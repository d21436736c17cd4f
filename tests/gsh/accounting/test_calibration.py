"""A calibrated value meets the target by the accounting itself, and the next value does not.

Every row (σ and τ*; τ*; σ; C_u), both methods, and every way to give the other columns: μ₀ alone, an absolute
covariance, a covariance relative to σ², each with and without caps of their own.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsh.accounting.accountings import ADD_DELTAS, EXACT, Accounting, at_epsilon
from gsh.accounting.aggregates import RelativeAggregates
from gsh.accounting.calibration.balanced import balanced
from gsh.accounting.calibration.draft import Draft, Target
from gsh.accounting.calibration.target import CalibratedMechanism, calibrate
from gsh.accounting.column_costs import Capped
from gsh.accounting.covariance import Matrix
from gsh.accounting.mechanism import MOST_C_U, Aggregates, Mechanism
from gsh.accounting.numerics.doubles import next_above, next_below
from gsh.accounting.sensitivity import Box, L1Norm, L2Norm, Sensitivity, Vectors
from gsh.errors import InfeasibleTarget
from tests.gsh.accounting.draws import examples, log_uniform

pytestmark = pytest.mark.slow

ACCOUNTINGS = (EXACT, ADD_DELTAS)
MU_0 = "mu_0"
ABSOLUTE = "absolute"
RELATIVE = "relative"
CAPPED = "capped "
COLUMNS = (MU_0, ABSOLUTE, RELATIVE, CAPPED + MU_0, CAPPED + ABSOLUTE, CAPPED + RELATIVE)

# Correlated, two and three columns.
MATRICES = (
    (((1.0, 0.6), (0.6, 2.0)), Box((0.0, -1.0), (1.0, 1.0))),
    (((1.0, -0.9), (-0.9, 1.0)), L2Norm(1.5)),
    (((2.0, 0.5, 0.1), (0.5, 1.0, -0.3), (0.1, -0.3, 4.0)), L1Norm(2.0)),
    (((2.0, 0.5, 0.1), (0.5, 1.0, -0.3), (0.1, -0.3, 4.0)), Vectors(((1.0, 0.0, 3.0), (-1.0, 1.0, 0.5)))),
)

targets = st.builds(Target, st.just(0.0) | log_uniform(1e-3, 100.0), log_uniform(1e-12, 0.1))
c_us = st.integers(1, 10) | log_uniform(1, 1e9).map(int)
taus = st.integers(0, 30)


@st.composite
def columns(
    draw: st.DrawFn, kind: str, c_u: int, target: Target
) -> Aggregates | RelativeAggregates | tuple[Capped, ...] | float:
    """Columns that use at most half of the μ that the target allows, so that noise on the counts has room."""
    sigma = calibrate(EXACT, Draft(c_u, 1, None, None), target).mechanism.sigma  # 1/σ is all of the room
    share = draw(st.floats(0.05, 0.5))
    if kind == MU_0:
        return draw(st.just(0.0) | st.just(share / sigma))
    if kind.startswith(CAPPED):
        return _capped(draw, kind, c_u, share / sigma)
    matrix, sensitivity = draw(st.sampled_from(MATRICES))
    names = tuple("abc"[: len(matrix)])
    if kind == RELATIVE:
        return RelativeAggregates(names=names, relative_covariance=matrix, sensitivity=sensitivity)
    factor = (Aggregates(names=names, covariance=matrix, sensitivity=sensitivity).mu_0 * sigma / share) ** 2
    return Aggregates(
        names=names, covariance=tuple(tuple(entry * factor for entry in row) for row in matrix), sensitivity=sensitivity
    )


def _capped(draw: st.DrawFn, kind: str, c_u: int, mu_0: float) -> Aggregates | RelativeAggregates | tuple[Capped, ...]:
    """Two columns that together cost μ₀ in each of C_u groups, in fewer groups."""
    caps = [draw(st.integers(1, c_u)), draw(st.integers(1, c_u) | st.just(c_u))]
    costs = [mu_0 * math.sqrt(c_u / cap / 2) for cap in caps]
    if kind == CAPPED + MU_0:
        return tuple(Capped(cap, cost) for cap, cost in zip(caps, costs, strict=True))
    box = Box((0.0, 0.0), (1.0, 3.0), (caps[0], None if caps[1] == c_u and draw(st.booleans()) else caps[1]))
    if kind == CAPPED + RELATIVE:
        return balanced(("a", "b"), box, c_u, draw(st.none() | st.just((0.5, 2.0))))
    return Aggregates(names=("a", "b"), covariance=((costs[0] ** -2, 0.0), (0.0, (3 / costs[1]) ** 2)), sensitivity=box)


@st.composite
def starts(draw: st.DrawFn, kind: str) -> tuple[Draft, Target]:
    """A draft without σ and τ*, and its target."""
    target, c_u, tau = draw(targets), draw(c_us), draw(taus)
    found = draw(columns(kind, c_u, target))
    if isinstance(found, tuple):
        return Draft(c_u, tau, None, None, 0.0, found), target
    return Draft(c_u, tau, None, None, found), target


def each_method_and_columns(test: Callable[..., None]) -> Callable[..., None]:
    by_columns = pytest.mark.parametrize("kind", COLUMNS)
    return pytest.mark.parametrize("accounting", ACCOUNTINGS, ids=lambda accounting: accounting.name)(by_columns(test))


@each_method_and_columns
@examples(40)
@given(data=st.data())
def test_sigma_and_tau_star_are_the_smallest(accounting: Accounting, kind: str, data: st.DataObject) -> None:
    """σ is the smallest at any τ*, and τ* is the smallest at that σ."""
    draft, target = data.draw(starts(kind))
    solved = calibrate(accounting, draft, target)
    sigma = solved.mechanism.sigma

    _assert_meets(accounting, solved, target)
    assert solved.solved == ("sigma", "tau_star")
    below = _at(draft, sigma=next_below(sigma), tau_star=next_below(math.inf))
    assert at_epsilon(EXACT, below, target.epsilon).delta_gaussian > target.delta
    _assert_no_smaller_tau_star(accounting, draft, solved.mechanism, target)


@each_method_and_columns
@examples(40)
@given(data=st.data(), excess=st.floats(1.0, 4.0))
def test_tau_star_is_the_smallest_at_a_given_sigma(
    accounting: Accounting, kind: str, data: st.DataObject, excess: float
) -> None:
    """From the smallest σ upward."""
    draft, target = data.draw(starts(kind))
    sigma = calibrate(EXACT, draft, target).mechanism.sigma * excess
    solved = calibrate(accounting, replace(draft, sigma=sigma), target)

    _assert_meets(accounting, solved, target)
    assert solved.solved == ("tau_star",)
    assert solved.mechanism.sigma == sigma
    _assert_no_smaller_tau_star(accounting, draft, solved.mechanism, target)


@each_method_and_columns
@examples(30)
@given(data=st.data(), excess=st.floats(3.0, 10.0))  # from 3 on, there is a σ for add-deltas too
def test_sigma_is_the_smallest_and_the_largest_at_a_given_tau_star(
    accounting: Accounting, kind: str, data: st.DataObject, excess: float
) -> None:
    """The ends of the interval of workable σ, each to the last double."""
    draft, target = data.draw(starts(kind))
    smallest = calibrate(EXACT, draft, target).mechanism
    draft = replace(draft, tau_star=draft.effective_tau + smallest.tau_gap * excess)
    solved = calibrate(accounting, draft, target)

    _assert_meets(accounting, solved, target)
    assert solved.solved == ("sigma",)
    assert not _meets(accounting, _at(draft, sigma=next_below(solved.mechanism.sigma)), target)
    assert solved.largest_sigma is not None
    assert solved.largest_sigma >= solved.mechanism.sigma
    assert _meets(accounting, _at(draft, sigma=solved.largest_sigma), target)
    assert not _meets(accounting, _at(draft, sigma=next_above(solved.largest_sigma)), target)


@each_method_and_columns
@examples(40)
@given(data=st.data(), excess=st.floats(2.0, 10.0))
def test_c_u_is_the_largest(accounting: Accounting, kind: str, data: st.DataObject, excess: float) -> None:
    """At least the C_u that the noise and the threshold were calibrated for, and not one more than they allow."""
    draft, target = data.draw(starts(kind))
    made_for = calibrate(accounting, draft, target).mechanism
    draft = replace(draft, sigma=made_for.sigma, tau_star=made_for.tau + made_for.tau_gap * excess)
    solved = calibrate(accounting, replace(draft, c_u=None), target)
    c_u = solved.mechanism.c_u

    _assert_meets(accounting, solved, target)
    assert solved.solved == ("c_u",)
    assert c_u >= made_for.c_u
    assert c_u == MOST_C_U or not _meets(accounting, _at(replace(draft, c_u=c_u + 1), made_for.sigma), target)


@pytest.mark.parametrize("accounting", ACCOUNTINGS, ids=lambda accounting: accounting.name)
@examples(30)
@given(c_u=st.integers(2**53, MOST_C_U), target=targets)
def test_c_u_is_the_largest_past_the_integers_of_a_double(accounting: Accounting, c_u: int, target: Target) -> None:
    """From 2^53 on a C_u has more digits than a double."""
    made_for = calibrate(accounting, Draft(c_u, 1, None, None), target).mechanism
    draft = Draft(None, 1, made_for.tau_star, made_for.sigma)
    solved = calibrate(accounting, draft, target)

    _assert_meets(accounting, solved, target)
    assert solved.mechanism.c_u >= c_u
    above = min(solved.mechanism.c_u + 1, MOST_C_U)
    assert above == solved.mechanism.c_u or not _meets(accounting, draft.complete(c_u=above), target)


@pytest.mark.parametrize("accounting", ACCOUNTINGS, ids=lambda accounting: accounting.name)
def test_c_u_stops_at_the_largest_there_is(accounting: Accounting) -> None:
    """Noise and threshold enough for anything."""
    solved = calibrate(accounting, Draft(None, 1, 1e30, 1e25), Target(1.0, 1e-5))

    assert solved.mechanism.c_u == MOST_C_U


@pytest.mark.parametrize("accounting", ACCOUNTINGS, ids=lambda accounting: accounting.name)
@pytest.mark.parametrize("delta", [0.6, 0.9, 0.99])
def test_there_is_no_largest_sigma_where_delta_allows_every_release(accounting: Accounting, delta: float) -> None:
    """δ_infinite ≤ ½ for C_u = 1, so a δ above ½ bounds σ from below only."""
    solved = calibrate(accounting, Draft(1, 1, 2.0, None), Target(1.0, delta))

    _assert_meets(accounting, solved, Target(1.0, delta))
    assert solved.largest_sigma is None


@pytest.mark.parametrize("accounting", ACCOUNTINGS, ids=lambda accounting: accounting.name)
@pytest.mark.parametrize(("matrix", "sensitivity"), MATRICES)
@examples(25)
@given(epsilon=st.floats(0.0, 5.0), delta=st.floats(0.51, 0.99), tau_star=log_uniform(1.5, 1e6))
def test_there_is_no_largest_sigma_for_a_relative_covariance_either(
    accounting: Accounting, matrix: Matrix, sensitivity: Sensitivity, epsilon: float, delta: float, tau_star: float
) -> None:
    """That σ² overflows long before σ does is no reason to refuse the smallest σ."""
    relative = RelativeAggregates(
        names=tuple("abc"[: len(matrix)]), relative_covariance=matrix, sensitivity=sensitivity
    )
    target = Target(epsilon, delta)
    solved = calibrate(accounting, Draft(1, 1, tau_star, None, relative), target)

    _assert_meets(accounting, solved, target)
    assert solved.largest_sigma is None


@pytest.mark.parametrize("accounting", ACCOUNTINGS, ids=lambda accounting: accounting.name)
def test_a_mu_0_whose_square_is_no_double_allows_no_group(accounting: Accounting) -> None:
    with pytest.raises(InfeasibleTarget):
        calibrate(accounting, Draft(None, 1, 2e307, 6e4, 1e200), Target(1.0, 1e-5))


@pytest.mark.parametrize("accounting", ACCOUNTINGS, ids=lambda accounting: accounting.name)
def test_any_threshold_will_do_where_delta_allows_every_release(accounting: Accounting) -> None:
    """The smallest τ* is then the double after τ."""
    solved = calibrate(accounting, Draft(1, 7, None, 100.0), Target(1.0, 0.6))

    assert solved.mechanism.tau_star == next_above(7.0)


def _at(draft: Draft, sigma: float, tau_star: float | None = None) -> Mechanism:
    return draft.with_sigma(sigma).complete(tau_star=tau_star)


def _meets(accounting: Accounting, mechanism: Mechanism, target: Target) -> bool:
    return at_epsilon(accounting, mechanism, target.epsilon).delta <= target.delta


def _assert_meets(accounting: Accounting, solved: CalibratedMechanism, target: Target) -> None:
    assert _meets(accounting, solved.mechanism, target)
    assert solved.point == at_epsilon(accounting, solved.mechanism, target.epsilon)


def _assert_no_smaller_tau_star(accounting: Accounting, draft: Draft, solved: Mechanism, target: Target) -> None:
    below = next_below(solved.tau_star)
    lowest = solved.effective_tau
    assert below <= lowest or not _meets(accounting, _at(draft, solved.sigma, tau_star=below), target)
