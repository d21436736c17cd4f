"""The mechanism as a value: μ rounded up, the gap rounded down, and τ = 0 acting as τ = 1."""

from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gsh.accounting.accountings import EXACT, at_epsilon
from gsh.accounting.mechanism import Aggregates, Mechanism, effective_tau
from gsh.accounting.numerics.doubles import LARGEST_DOUBLE, next_above, next_below
from gsh.accounting.sensitivity import Box
from tests import reference
from tests.gsh.accounting.draws import allowed, cases, examples, log_uniform, mechanism_of
from tests.reference import Case


@examples(300)
@given(tau=st.integers(0, 2**80), excess=log_uniform(1e-9, 1e30))
def test_the_gap_is_rounded_down_and_by_less_than_an_ulp(tau: int, excess: float) -> None:
    """A smaller gap is less private. Compared in exact rational arithmetic."""
    tau_star = effective_tau(tau) + excess
    assume(tau_star > effective_tau(tau))
    gap = Mechanism(c_u=1, tau=tau, tau_star=tau_star, sigma=1.0).tau_gap
    truth = Fraction(tau_star) - effective_tau(tau)

    assert Fraction(gap) <= truth < Fraction(next_above(gap))


@pytest.mark.parametrize(
    ("tau", "tau_star", "gap"),
    [
        (1, 2.5, 1.5),
        (1, next_above(1.0), 2.0**-52),
        (2**53 - 2, float(2**53 - 1), 1.0),
        (1, float(2**53), float(2**53 - 1)),
        (1, float(2**53 + 2), float(2**53)),  # 2^53 + 1 is not a double: down, not to even
        (1, float(2**54 + 4), next_below(float(2**54 + 4))),
        (2**53 + 1, float(2**53 + 2), 1.0),  # τ itself is not a double
        (1, LARGEST_DOUBLE, next_below(LARGEST_DOUBLE)),
    ],
)
def test_the_gap_of_thresholds_past_the_integers_of_a_double(tau: int, tau_star: float, gap: float) -> None:
    """From 2^53 on, τ* − τ need not be a double."""
    assert Mechanism(c_u=1, tau=tau, tau_star=tau_star, sigma=1.0).tau_gap == gap


@pytest.mark.parametrize(("tau", "effective"), [(0, 1), (1, 1), (2, 2), (10**30, 10**30)])
def test_a_tau_of_zero_acts_as_one(tau: int, effective: int) -> None:
    """Empty groups are never listed."""
    assert effective_tau(tau) == effective
    assert Mechanism(c_u=1, tau=tau, tau_star=1e31, sigma=1.0).effective_tau == effective


@examples(200)
@given(cases())
def test_mu_is_rounded_up(case: Case) -> None:
    """μ² = C_u (1/σ² + μ₀²)"""
    mu = reference.mp.sqrt(
        case.c_u * (1 / reference.mp.mpf(case.sigma) ** 2 + reference.mp.mpf(case.mu_0) ** 2),
    )
    lowest, highest = allowed(mu)

    assert lowest <= at_epsilon(EXACT, mechanism_of(case), case.epsilon).mu <= highest


@examples(50)
@given(cases())
def test_mechanisms_are_values(case: Case) -> None:
    """Equal when their parameters are, also as keys."""
    assert mechanism_of(case) == mechanism_of(case)
    assert len({mechanism_of(case), mechanism_of(case)}) == 1


def test_a_mechanism_takes_mu_0_from_its_aggregates() -> None:
    """μ₀ follows from Σ and the sensitivity. The caller cannot choose it."""
    aggregates = Aggregates(names=("spend",), covariance=((4.0,),), sensitivity=Box((0.0,), (6.0,)))

    assert Mechanism(c_u=2, tau=1, tau_star=9.0, sigma=3.0, aggregates=aggregates).costs.mu_0 == aggregates.mu_0 == 3.0
