"""ε(δ) undoes δ(ε) to the last double: the ε returned meets δ, the one below does not, and None means never."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gsh.accounting.accountings import ADD_DELTAS, EXACT, Accounting, at_delta, at_epsilon, fits
from gsh.accounting.mechanism import Mechanism
from gsh.accounting.numerics.doubles import next_below
from tests import reference
from tests.gsh.accounting.draws import cases, examples, log_uniform, mechanism_of
from tests.reference import Case

pytestmark = pytest.mark.slow

ACCOUNTINGS = (EXACT, ADD_DELTAS)
LARGEST = next_below(math.inf)

deltas = log_uniform(1e-300, 0.999) | st.floats(0.01, 0.99)


@pytest.mark.parametrize("accounting", ACCOUNTINGS, ids=lambda accounting: accounting.name)
@pytest.mark.parametrize("case", reference.CASES[::3] + reference.LARGE_CASES, ids=str)
@pytest.mark.parametrize("delta", [1e-300, 1e-9, 0.1, 0.75])
def test_epsilon_meets_delta_and_the_double_below_does_not(accounting: Accounting, case: Case, delta: float) -> None:
    """On the fixed grid."""
    _assert_epsilon_is_the_smallest(accounting, mechanism_of(case), delta)


@examples(200)
@given(case=cases(), delta=deltas, accounting=st.sampled_from(ACCOUNTINGS))
def test_epsilon_is_the_smallest_for_random_mechanisms(case: Case, delta: float, accounting: Accounting) -> None:
    """The same at random. If no ε exists, δ_infinite alone exceeds δ."""
    _assert_epsilon_is_the_smallest(accounting, mechanism_of(case), delta)


@examples(200)
@given(case=cases(most_gap=35.0), accounting=st.sampled_from(ACCOUNTINGS))
def test_there_is_no_epsilon_exactly_where_delta_is_below_delta_infinite(case: Case, accounting: Accounting) -> None:
    """At δ_infinite rounded up a finite ε exists; one double below, none does."""
    mechanism = mechanism_of(case)
    infinite = at_epsilon(EXACT, mechanism, 0.0).delta_infinite
    assume(5e-324 < infinite < 1)

    assert at_delta(accounting, mechanism, infinite).epsilon is not None
    nothing = at_delta(accounting, mechanism, next_below(infinite))
    assert nothing.epsilon is None
    assert nothing.delta_gaussian is None
    assert nothing.delta_infinite == infinite
    assert nothing.delta == next_below(infinite)
    assert nothing.binding == {"exact": "infinite", "add-deltas": "both"}[accounting.name]


@examples(150)
@given(case=cases(most_gap=35.0), accounting=st.sampled_from(ACCOUNTINGS))
def test_a_round_trip_from_epsilon_never_comes_back_larger(case: Case, accounting: Accounting) -> None:
    """δ(ε) is met at ε, so the smallest ε that meets it is at most ε."""
    mechanism = mechanism_of(case)
    delta = at_epsilon(accounting, mechanism, case.epsilon).delta
    assume(delta < 1)
    epsilon = at_delta(accounting, mechanism, delta).epsilon

    assert epsilon is not None
    assert epsilon <= case.epsilon


@examples(100)
@given(case=cases(most_gap=35.0), share=st.floats(1e-3, 0.99))
def test_exact_epsilon_is_the_analytic_gaussians(case: Case, share: float) -> None:
    """docs/math/closed-form.md, section 6: above δ_infinite the threshold costs nothing."""
    mechanism = mechanism_of(case)
    infinite = at_epsilon(EXACT, mechanism, 0.0).delta_infinite
    delta = infinite + share * (1 - infinite)
    assume(delta < 1)
    without = Mechanism(c_u=case.c_u, tau=case.tau, tau_star=LARGEST, sigma=case.sigma, mu_0=case.mu_0)

    assert at_delta(EXACT, mechanism, delta).epsilon == at_delta(EXACT, without, delta).epsilon


@examples(200)
@given(case=cases(), delta=deltas, accounting=st.sampled_from(ACCOUNTINGS))
def test_fits_says_what_the_account_says(case: Case, delta: float, accounting: Accounting) -> None:
    """The predicate of every search is the accounting itself."""
    mechanism = mechanism_of(case)

    assert fits(accounting, mechanism, case.epsilon, delta) == (
        at_epsilon(accounting, mechanism, case.epsilon).delta <= delta
    )


@pytest.mark.parametrize("accounting", ACCOUNTINGS, ids=lambda accounting: accounting.name)
@pytest.mark.parametrize(
    ("mechanism", "delta"),
    [
        (Mechanism(c_u=1, tau=1, tau_star=1e308, sigma=1e300), 5e-324),  # ε near 1e-299
        (Mechanism(c_u=1, tau=1, tau_star=1e10, sigma=1e-100), 1e-10),  # ε near 1e200
        (Mechanism(c_u=10**18, tau=1, tau_star=1e12, sigma=1.0), 0.5),
        (
            Mechanism(c_u=1, tau=1, tau_star=1e9, sigma=1.0),
            0.38292492254802624,
        ),  # 2Φ(½) − 1, rounded up: ε = 0 or nearly
    ],
)
def test_epsilon_is_the_smallest_at_the_edges_of_doubles(
    accounting: Accounting, mechanism: Mechanism, delta: float
) -> None:
    """Tiny and huge ε take the same promise."""
    _assert_epsilon_is_the_smallest(accounting, mechanism, delta)


def _assert_epsilon_is_the_smallest(accounting: Accounting, mechanism: Mechanism, delta: float) -> None:
    point = at_delta(accounting, mechanism, delta)
    if point.epsilon is None:
        assert at_epsilon(accounting, mechanism, LARGEST).delta_infinite > delta
        return
    reached = at_epsilon(accounting, mechanism, point.epsilon)

    assert point == reached._replace(delta=delta)
    assert reached.delta <= delta
    assert point.epsilon == 0 or at_epsilon(accounting, mechanism, next_below(point.epsilon)).delta > delta


def test_epsilon_is_found_where_its_exponential_is_no_double() -> None:
    """e^ε overflows past 709, and the start in doubles with it."""
    mechanism = Mechanism(c_u=1, tau=1, tau_star=1e6, sigma=1 / 20.085536923187668)
    point = at_delta(EXACT, mechanism, 5.690259110086638e-147)

    assert point.epsilon is not None
    assert 700 < point.epsilon < 1000
    assert at_epsilon(EXACT, mechanism, point.epsilon).delta <= 5.690259110086638e-147
