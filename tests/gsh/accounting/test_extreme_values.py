"""The limits of the accounting, the paper's corollaries, and which part binds."""

import math
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gsh.accounting import theorem
from gsh.accounting.accountings import ADD_DELTAS, EXACT, Accounting, at_delta, at_epsilon
from gsh.accounting.calibration.draft import Draft, Target
from gsh.accounting.calibration.target import calibrate
from gsh.accounting.mechanism import Mechanism
from gsh.accounting.numerics.doubles import next_above, next_below
from tests import reference
from tests.gsh.accounting.draws import allowed, cases, examples, log_uniform, mechanism_of
from tests.reference import Case

ACCOUNTINGS = (EXACT, ADD_DELTAS)
LARGEST = next_below(math.inf)
LEAST = next_above(0.0)

mp = reference.mp


@examples(100)
@given(cases())
def test_without_a_threshold_what_remains_is_the_gaussian_mechanism(case: Case) -> None:
    """τ* → ∞: δ_infinite is the least double, and δ the analytic Gaussian's."""
    point = at_epsilon(EXACT, replace(mechanism_of(case), tau_star=LARGEST), case.epsilon)
    lowest, highest = allowed(reference.delta_gaussian(case))

    assert point.delta_infinite == LEAST
    assert lowest <= point.delta <= highest


@examples(100)
@given(case=cases(), accounting=st.sampled_from(ACCOUNTINGS))
def test_at_huge_epsilon_what_remains_is_the_threshold(case: Case, accounting: Accounting) -> None:
    """ε → ∞: no ε pays for a group that should not exist."""
    point = at_epsilon(accounting, mechanism_of(case), 1e300)
    lowest, highest = allowed(reference.delta_infinite(case))

    assert point.delta_gaussian == LEAST
    # By adding the deltas the remaining sliver may cost one more double.
    assert lowest <= point.delta <= (highest if accounting is EXACT else next_above(highest))


@examples(50)
@given(case=cases(), accounting=st.sampled_from(ACCOUNTINGS), delta=log_uniform(1e-12, 0.5))
def test_tau_zero_acts_as_tau_one(case: Case, accounting: Accounting, delta: float) -> None:
    """Empty groups are never enumerated."""
    one = replace(mechanism_of(case), tau=1)
    zero = replace(one, tau=0)

    assert at_epsilon(accounting, zero, case.epsilon) == at_epsilon(accounting, one, case.epsilon)
    assert at_delta(accounting, zero, delta) == at_delta(accounting, one, delta)
    assert zero.tau_gap == one.tau_gap


@pytest.mark.parametrize("accounting", ACCOUNTINGS, ids=lambda accounting: accounting.name)
@pytest.mark.parametrize("missing", ["tau_star", "sigma", "c_u"])
def test_tau_zero_is_calibrated_as_tau_one(accounting: Accounting, missing: str) -> None:
    """And the scan treats it so too."""
    drafts = [replace(Draft(5, tau, 200.0, 20.0), **{missing: None}) for tau in (0, 1)]
    zero, one = (calibrate(accounting, draft, Target(1.0, 1e-3)) for draft in drafts)

    assert replace(zero.mechanism, tau=1) == one.mechanism
    assert theorem.evaluate(zero.mechanism, 1.0) == theorem.evaluate(one.mechanism, 1.0)


@examples(200)
@given(cases())
def test_exact_is_below_add_deltas_and_at_least_half_of_it(case: Case) -> None:
    """max ≤ exact < add-deltas [KKWZ Thm. 4.1, Cor. 5.4.1]; and a sum is at most twice its larger part."""
    exact = at_epsilon(EXACT, mechanism_of(case), case.epsilon)
    added = at_epsilon(ADD_DELTAS, mechanism_of(case), case.epsilon)

    assert exact.delta == max(exact.delta_infinite, exact.delta_gaussian)
    assert exact.delta <= added.delta <= min(1.0, next_above(2 * exact.delta))


@pytest.mark.parametrize("case", [case for case in reference.CASES if case.c_u <= 50], ids=str)
def test_the_paper_orders_the_three_accounts(case: Case) -> None:
    """max(δ_infinite, δ_gaussian) ≤ δ_exact < δ_add, with equality on the left for C_u = 1, in the reference itself."""
    smaller, larger = sorted((reference.delta_infinite(case), reference.delta_gaussian(case)))
    exact, added = reference.delta(case), reference.add_deltas(case)

    assert larger <= exact <= added
    # A part smaller by a hundred orders of magnitude is lost in the sum.
    assert exact < added or smaller < larger * mp.mpf(10) ** -100
    assert case.c_u > 1 or exact == larger


@examples(60)
@given(epsilon=log_uniform(0.01, 10.0), delta=log_uniform(1e-12, 0.2), excess=st.floats(1.01, 3.0))
def test_the_ratio_of_the_gaps_for_one_group_is_the_papers(epsilon: float, delta: float, excess: float) -> None:
    """Φ⁻¹(1 − δ + δ_gaussian)/Φ⁻¹(1 − δ), add-deltas to exact  [KKWZ Cor. 5.4.2]"""
    target = Target(epsilon, delta)
    sigma = calibrate(EXACT, Draft(1, 1, None, None), target).mechanism.sigma * excess
    # σ is of the order of 1 to 1000 here, so that the rounding of τ* costs few digits of the gap.
    exact, added = (
        calibrate(accounting, Draft(1, 1, None, sigma), target).mechanism.tau_gap for accounting in ACCOUNTINGS
    )
    noise = reference.gaussian(1 / mp.mpf(sigma), epsilon)
    ratio = _upper_quantile(delta - noise) / _upper_quantile(mp.mpf(delta))

    assert added / exact == pytest.approx(float(ratio), rel=1e-11)


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "binding"),
    [
        (Mechanism(c_u=3, tau=1, tau_star=1e6, sigma=5.0), 1.0, "gaussian"),
        (Mechanism(c_u=3, tau=1, tau_star=2.0, sigma=5.0), 1.0, "infinite"),
        (Mechanism(c_u=3, tau=1, tau_star=1e6, sigma=1e-9), 1.0, "gaussian"),
        (
            Mechanism(c_u=10**18, tau=1, tau_star=2.0, sigma=1e-3),
            0.0,
            "gaussian",
        ),  # both round up to 1: a tie goes to the noise
        (Mechanism(c_u=1, tau=1, tau_star=1e30, sigma=1e25), 1e4, "gaussian"),  # both round up to the least double
    ],
)
def test_the_larger_part_binds_the_exact_account(mechanism: Mechanism, epsilon: float, binding: str) -> None:
    """What to change first to lower δ."""
    assert at_epsilon(EXACT, mechanism, epsilon).binding == binding
    assert at_epsilon(ADD_DELTAS, mechanism, epsilon).binding == "both"


@examples(100)
@given(cases())
def test_the_binding_part_is_the_one_that_delta_equals(case: Case) -> None:
    """For every evaluation by exact accounting."""
    point = at_epsilon(EXACT, mechanism_of(case), case.epsilon)

    assert point.delta == {"infinite": point.delta_infinite, "gaussian": point.delta_gaussian}[point.binding]
    assert (point.binding == "infinite") == (point.delta_infinite > point.delta_gaussian)


@examples(60)
@given(case=cases(most_gap=35.0), share=st.floats(0.01, 0.99))
def test_epsilon_at_delta_is_bound_by_the_noise(case: Case, share: float) -> None:
    """The smallest ε at a δ above δ_infinite has δ_gaussian just at δ, or is 0."""
    mechanism = mechanism_of(case)
    infinite = at_epsilon(EXACT, mechanism, 0.0).delta_infinite
    delta = infinite + share * (1 - infinite)
    assume(infinite < delta < 1)
    point = at_delta(EXACT, mechanism, delta)

    assert point.epsilon == 0 or point.binding == "gaussian"


def _upper_quantile(q: reference.mp.mpf) -> reference.mp.mpf:
    """Φ⁻¹(1 − q), by Newton's method on ln Φ(−x) in the reference's own arithmetic."""
    x = mp.mpf(0)
    for _ in range(200):
        tail = mp.erfc(x / mp.sqrt(2)) / 2
        step = mp.log(tail / q) * tail / mp.npdf(x)
        x += step
        if abs(step) < mp.mpf(10) ** -40:
            return x
    raise ArithmeticError("no quantile")
