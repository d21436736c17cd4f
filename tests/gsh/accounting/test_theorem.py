"""Screening in doubles is accurate enough to keep the worst split, and the scan gives the δ of the closed form."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mpmath import mpf

from gsh.accounting import theorem
from gsh.accounting.accountings import EXACT, at_epsilon
from gsh.accounting.case_study import C_U, CASE_STUDY, TARGET
from gsh.accounting.mechanism import Mechanism
from gsh.accounting.numerics.doubles import next_above, next_below
from tests import reference
from tests.gsh.accounting.draws import cases, examples, log_uniform, mechanism_of
from tests.reference import Case

mp = reference.mp

# A split is dropped when it seems worse by _WINDOW, so two errors together must stay below that.
SCREENING_ERROR = 1e-10

# (a, μ) on each side of each border between cases, and far inside each case.
POINTS = [
    (a, mu)
    for a in (-30.0, -1.0, -1e-12, 0.0, 1e-12, 1.0, 30.0, next_below(50.0), 50.0, next_above(50.0), 80.0, 1e3)
    for mu in (1e-9, 1e-3, 0.5, next_below(1.0), 1.0, next_above(1.0), 3.0, 30.0, 1e3, 1e4)
    if a + mu / 2 >= 0
]


@pytest.mark.parametrize(("a", "mu"), POINTS)
def test_screening_is_accurate_in_every_regime(a: float, mu: float) -> None:
    """ln(T/(1 − T)) in doubles, within 1e-10 wherever the value is neither the least double nor one."""
    for log_d in (-math.inf, -740.0, -690.0, -300.0, -30.0, -1.0, 0.0, 3.0):
        _assert_screening_is_accurate(a, mu, log_d, SCREENING_ERROR)


@examples(600)
@given(
    a=st.floats(-40.0, 60.0),
    mu=log_uniform(1e-12, 1e4),
    log_d=st.just(-math.inf) | st.floats(-760.0, 4.0),
)
@example(a=38.0, mu=1e4, log_d=-math.inf)
def test_screening_is_accurate_at_random_points(a: float, mu: float, log_d: float) -> None:
    """The same at random, up to the largest μ that a scan can meet near the middle of f."""
    _assert_screening_is_accurate(a, mu, log_d, SCREENING_ERROR)


@examples(150)
@given(a=st.floats(-9.0, 38.0), mu=log_uniform(1e4, 1e6))
def test_screening_stays_within_half_its_window_at_extreme_mu(a: float, mu: float) -> None:
    """ε/μ − μ/2 cancels there: the error grows, but two of them still fit into the window."""
    _assert_screening_is_accurate(a, mu, -math.inf, theorem._WINDOW / 2)


@pytest.mark.parametrize(("a", "mu"), [(a, mu) for a, mu in POINTS if a >= 30])
def test_ln_f_keeps_its_relative_accuracy_far_out(a: float, mu: float) -> None:
    """Beyond the least double only the order of the splits matters, and ln f still has thirteen digits."""
    e = mu * (a + mu / 2)
    log_f, _ = theorem._log_gaussian(np.array([mu]), np.array([e]))
    truth = mp.log(reference.gaussian(mu, e))

    assert abs(mpf(float(log_f[0])) - truth) <= 1e-13 * abs(truth)


@pytest.mark.parametrize("x", [1e-6, 0.5, 3.0, 8.0, next_below(20.0), 20.0, next_above(20.0), 38.0])
def test_the_rate_of_the_threshold_is_accurate_on_both_sides_of_its_border(x: float) -> None:
    """ln(−ln Φ(x)), which every split shares."""
    truth = mp.log(-mp.log1p(-mp.erfc(mp.mpf(x) / mp.sqrt(2)) / 2))

    assert abs(mpf(theorem._log_minus_log_p(x)) - truth) <= 1e-12


@examples(300)
@given(
    sigma=log_uniform(1e-300, 1e300),
    gap=log_uniform(1e-6, 1e12),
    c_u=st.integers(1, 40),
    mu_0=st.just(0.0) | log_uniform(1e-300, 1e150),
    epsilon=st.just(0.0) | log_uniform(1e-300, 1e300),
)
def test_screening_is_never_undefined(sigma: float, gap: float, c_u: int, mu_0: float, epsilon: float) -> None:
    """One NaN would hide its whole chunk of splits."""
    log_rate = theorem._log_minus_log_p(gap)
    a_equal = np.arange(c_u)
    with np.errstate(all="ignore"):
        mu = np.hypot(1 / sigma, mu_0) * np.sqrt(c_u - a_equal)
        for screen in (theorem._added_screen, theorem._removed_screen):
            log_d, e = screen(epsilon, np.log(a_equal) + log_rate)
            assert not np.isnan(theorem._log_odds(mu, e, log_d)).any()


@examples(60)
@given(cases(most_c_u=100_000, most_gap=40.0))
def test_the_scan_agrees_with_the_closed_form_to_the_last_bit(case: Case) -> None:
    """Two routes that share f and nothing else, at C_u no reference could scan."""
    mechanism = mechanism_of(case)
    point = at_epsilon(EXACT, mechanism, case.epsilon)
    terms = theorem.evaluate(mechanism, case.epsilon)

    assert terms.delta == point.delta
    assert terms.t1.value == point.delta_infinite
    assert terms.t3.value <= terms.t2.value
    assert terms.t2.value >= point.delta_gaussian


@pytest.mark.parametrize("c_u", [theorem._CHUNK - 1, theorem._CHUNK, theorem._CHUNK + 1, 2 * theorem._CHUNK + 1])
@pytest.mark.parametrize("sigmas", [2.0, 4.5, 9.0])
def test_no_split_is_lost_between_two_chunks(c_u: int, sigmas: float) -> None:
    """The worst split of T2 is an end: the very first (a₌ = 0), or the very last before T1."""
    sigma = math.sqrt(c_u)
    mechanism = Mechanism(c_u=c_u, tau=1, tau_star=1 + sigmas * sigma, sigma=sigma)
    point = at_epsilon(EXACT, mechanism, 1.0)
    terms = theorem.evaluate(mechanism, 1.0)

    assert terms.delta == point.delta
    assert terms.t2.a_equal in {0, c_u - 1}
    assert terms.t2.value >= point.delta_gaussian


def test_the_case_study_of_the_paper_is_accounted_by_the_scan() -> None:
    """[KKWZ Sec. 6]: all three terms, at the smallest σ and τ* that meet (0.349, 1e-5)."""
    mechanism = CASE_STUDY
    terms = theorem.evaluate(mechanism, TARGET.epsilon)

    assert terms.delta <= 1e-5
    assert terms.delta == at_epsilon(EXACT, mechanism, TARGET.epsilon).delta
    assert (terms.t2.a_plus, terms.t2.a_equal) == (C_U, 0)
    assert terms.t2.value == terms.t3.value


def _assert_screening_is_accurate(a: float, mu: float, log_d: float, error: float) -> None:
    e = mu * (a + mu / 2)
    if e < 0:
        return
    with np.errstate(all="ignore"):
        odds = float(theorem._log_odds(np.array([mu]), np.array([e]), np.array([log_d]))[0])
    d = mp.exp(mp.mpf(log_d)) if math.isfinite(log_d) else mp.zero
    f = reference.gaussian(mu, e)
    term = -mp.expm1(-d) + mp.exp(-d) * f
    # Near one the odds are lost in 1 − f, but there their exact value decides nothing.
    truth = mp.log(term / (mp.exp(-d) * (1 - f))) if 1 - f > mp.mpf(10) ** -50 else mp.inf
    if theorem._LOG_LEAST_DOUBLE < truth < theorem._LOG_ODDS_OF_ONE:
        assert abs(mp.mpf(odds) - truth) <= error
    elif truth <= theorem._LOG_LEAST_DOUBLE:
        assert odds <= theorem._LOG_LEAST_DOUBLE + error
    else:
        assert odds >= theorem._LOG_ODDS_OF_ONE - error
