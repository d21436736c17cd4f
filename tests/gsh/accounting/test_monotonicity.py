"""δ is monotone in every parameter, as the mathematics says, and rounding keeps the order."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gsh.accounting import theorem
from gsh.accounting.accountings import ADD_DELTAS, EXACT, Accounting, at_delta, at_epsilon
from gsh.accounting.numerics.doubles import next_above
from tests import reference
from tests.gsh.accounting.draws import cases, examples, log_uniform, mechanism_of
from tests.reference import Case

pytestmark = pytest.mark.slow

ACCOUNTINGS = (EXACT, ADD_DELTAS)

accountings = st.sampled_from(ACCOUNTINGS)
# From the next double to a hundred times as much.
factors = st.just(1.0) | log_uniform(1 + 1e-12, 100.0)


def _more(value: float, factor: float) -> float:
    return max(value * factor, next_above(value))


@examples(150)
@given(case=cases(), factor=factors, accounting=accountings)
def test_delta_falls_as_epsilon_grows(case: Case, factor: float, accounting: Accounting) -> None:
    """And δ_infinite does not move at all."""
    mechanism = mechanism_of(case)
    less, more = (at_epsilon(accounting, mechanism, e) for e in (case.epsilon, _more(case.epsilon, factor)))

    assert less.delta >= more.delta
    assert less.delta_gaussian >= more.delta_gaussian
    assert less.delta_infinite == more.delta_infinite


@examples(150)
@given(case=cases(), factor=factors)
def test_more_noise_lowers_delta_gaussian_and_raises_delta_infinite(case: Case, factor: float) -> None:
    """σ pulls both ways: that is why a given τ* has a largest σ too."""
    mechanism = mechanism_of(case)
    noisier = replace(mechanism, sigma=_more(case.sigma, factor))
    less, more = (at_epsilon(EXACT, m, case.epsilon) for m in (mechanism, noisier))

    assert less.delta_gaussian >= more.delta_gaussian
    assert less.delta_infinite <= more.delta_infinite


@examples(150)
@given(case=cases(), factor=factors, accounting=accountings)
def test_delta_falls_as_tau_star_grows(case: Case, factor: float, accounting: Accounting) -> None:
    """A higher threshold is more private, and the noise cost stays the same."""
    mechanism = mechanism_of(case)
    higher = replace(mechanism, tau_star=_more(case.tau_star, factor))
    less, more = (at_epsilon(accounting, m, case.epsilon) for m in (mechanism, higher))

    assert less.delta >= more.delta
    assert less.delta_infinite >= more.delta_infinite
    assert less.delta_gaussian == more.delta_gaussian


@examples(150)
@given(case=cases(most_c_u=10**9), more=st.integers(1, 10**9), accounting=accountings)
def test_delta_grows_with_c_u(case: Case, more: int, accounting: Accounting) -> None:
    """More groups per user, less privacy, from the noise and from the threshold."""
    mechanism = mechanism_of(case)
    few, many = (
        at_epsilon(accounting, replace(mechanism, c_u=c_u), case.epsilon) for c_u in (case.c_u, case.c_u + more)
    )

    assert few.delta <= many.delta
    assert few.delta_gaussian <= many.delta_gaussian
    assert few.delta_infinite <= many.delta_infinite


@examples(150)
@given(case=cases(), factor=factors, accounting=accountings)
def test_delta_grows_with_mu_0(case: Case, factor: float, accounting: Accounting) -> None:
    """What the other columns reveal adds to the noise part only."""
    mechanism = mechanism_of(case)
    revealing = replace(mechanism, mu_0=_more(case.mu_0, factor))
    less, more = (at_epsilon(accounting, m, case.epsilon) for m in (mechanism, revealing))

    assert less.delta <= more.delta
    assert less.delta_gaussian <= more.delta_gaussian
    assert less.delta_infinite == more.delta_infinite


@examples(150)
@given(case=cases(), more=st.integers(1, 100), accounting=accountings)
def test_delta_grows_with_tau(case: Case, more: int, accounting: Accounting) -> None:
    """At the same τ* a higher τ makes the gap smaller."""
    assume(case.tau + more < case.tau_star)
    mechanism = mechanism_of(case)
    low, high = (
        at_epsilon(accounting, replace(mechanism, tau=tau), case.epsilon) for tau in (case.tau, case.tau + more)
    )

    assert low.delta <= high.delta
    assert low.delta_infinite <= high.delta_infinite
    assert low.delta_gaussian == high.delta_gaussian


@examples(100)
@given(case=cases(most_gap=35.0), shares=st.tuples(st.floats(0, 0.99), st.floats(0, 0.99)), accounting=accountings)
def test_epsilon_falls_as_delta_grows(case: Case, shares: tuple[float, float], accounting: Accounting) -> None:
    """The inverse is monotone as well."""
    mechanism = mechanism_of(case)
    infinite = at_epsilon(EXACT, mechanism, 0.0).delta_infinite
    low, high = (infinite + share * (1 - infinite) for share in sorted(shares))
    assume(high < 1)
    more, less = (at_delta(accounting, mechanism, delta).epsilon for delta in (low, high))

    assert more is not None
    assert less is not None
    assert more >= less


@pytest.mark.parametrize("case", reference.CASES[::5], ids=str)
def test_every_term_of_the_scan_grows_with_c_u(case: Case) -> None:
    """A user who may touch more groups may still touch as few as before."""
    mechanism = mechanism_of(case)
    few, many = (theorem.evaluate(replace(mechanism, c_u=c_u), case.epsilon) for c_u in (case.c_u, case.c_u + 1))

    assert few.delta <= many.delta
    assert few.t1.value <= many.t1.value
    assert few.t2.value <= many.t2.value
