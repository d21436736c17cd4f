"""The numbers of the paper's case study, recomputed.  [KKWZ Sec. 6; docs/math/case-study.md]"""

from dataclasses import replace

import pytest

from gsh.accounting.accountings import ADD_DELTAS, EXACT, Accounting, at_delta, at_epsilon
from gsh.accounting.calibration.draft import Draft
from gsh.accounting.calibration.target import calibrate
from gsh.accounting.case_study import C_U, CASE_STUDY, OUTLINE, PRINTED, TARGET, TAU, WHOLE
from gsh.accounting.mechanism import Mechanism


def test_the_smallest_noise_and_threshold() -> None:
    """σ = 2228.4826…, τ* = 13 951.05…: the paper's 2228 and 13 948 are rounded."""
    calibration = calibrate(EXACT, OUTLINE, TARGET)

    assert calibration.mechanism == CASE_STUDY
    assert calibration.mechanism.sigma == pytest.approx(2228.4826, abs=1e-4)
    assert calibration.mechanism.tau_star == pytest.approx(13_951.05, abs=1e-2)
    assert calibration.point.delta <= TARGET.delta
    assert calibration.solved == ("sigma", "tau_star")


def test_the_printed_parameters_miss_the_target_by_less_than_a_hundredth() -> None:
    point = at_epsilon(EXACT, PRINTED, TARGET.epsilon)

    assert TARGET.delta < point.delta <= 1.0032e-5


def test_the_whole_parameters_are_the_smallest_that_meet_the_target() -> None:
    """A larger σ needs a larger τ*: 13952, the whole number above the calibrated τ*, is too small for σ = 2229."""
    assert at_epsilon(EXACT, WHOLE, TARGET.epsilon).delta <= TARGET.delta
    for less in (replace(WHOLE, tau_star=WHOLE.tau_star - 1), replace(WHOLE, sigma=WHOLE.sigma - 1)):
        assert at_epsilon(EXACT, less, TARGET.epsilon).delta > TARGET.delta


def test_the_rounded_sigma_of_the_paper_just_fails() -> None:
    """σ = 2228 has δ_gaussian = 1.00310384851268789e-05, a little more than it was meant to have."""
    point = at_epsilon(EXACT, Mechanism(c_u=C_U, tau=TAU, tau_star=1e9, sigma=2228.0), TARGET.epsilon)

    assert point.delta_gaussian == pytest.approx(1.00310384851268789e-05, rel=1e-15)
    assert point.delta > TARGET.delta


@pytest.mark.parametrize(("gap", "infinite"), [(13_947.0, 1.00008664e-05), (16_176.0, 1.00237266e-08)])
def test_delta_infinite_at_the_gaps_of_the_paper(gap: float, infinite: float) -> None:
    """At σ = 2228."""
    point = at_epsilon(EXACT, Mechanism(c_u=C_U, tau=TAU, tau_star=1 + gap, sigma=2228.0), TARGET.epsilon)

    assert point.delta_infinite == pytest.approx(infinite, rel=1e-8)


@pytest.mark.parametrize(
    ("sigma", "accounting", "gap"),
    [
        (2240.0, EXACT, 14_022.149),
        (2240.0, ADD_DELTAS, 14_916.871),
        (2300.0, EXACT, 14_397.742),
        (2300.0, ADD_DELTAS, 14_748.987),
        (2396.0, EXACT, 14_998.691),
        (2396.0, ADD_DELTAS, 15_148.717),
        (2699.0, EXACT, 16_895.437),
        (2699.0, ADD_DELTAS, 16_912.292),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_the_smallest_gap_at_a_given_sigma(sigma: float, accounting: Accounting, gap: float) -> None:
    """Adding the deltas costs up to 900 users of threshold near the smallest σ."""
    calibration = calibrate(accounting, Draft(C_U, TAU, None, sigma), TARGET)

    assert calibration.mechanism.tau_gap == pytest.approx(gap, abs=1e-3)
    assert calibration.solved == ("tau_star",)


def test_a_half_and_half_split_of_delta_needs_more_of_both() -> None:
    """δ/2 for the noise and δ/2 for the threshold, each at its minimum: σ = 2334.738 and τ* = 14 866.526."""
    halves = calibrate(EXACT, OUTLINE, replace(TARGET, delta=TARGET.delta / 2)).mechanism

    assert halves.sigma == pytest.approx(2334.738, abs=1e-3)
    assert halves.tau_star == pytest.approx(14_866.526, abs=1e-3)


@pytest.mark.parametrize(("delta", "ratio"), [(1.0023727e-8, 2.0), (1e-7, 1.1), (1e-6, 1.01), (1e-5, 1.001)])
def test_how_much_adding_the_deltas_over_states(delta: float, ratio: float) -> None:
    """Figure 1(b): δ_add/δ_exact at the gap 16 176, for ε up to 0.504…"""
    mechanism = Mechanism(c_u=C_U, tau=TAU, tau_star=16_177.0, sigma=2228.0)
    epsilon = at_delta(EXACT, mechanism, delta).epsilon
    assert epsilon is not None
    over = at_epsilon(ADD_DELTAS, mechanism, epsilon).delta / at_epsilon(EXACT, mechanism, epsilon).delta

    assert 0.1 <= epsilon < 0.505
    assert over == pytest.approx(ratio, rel=3e-4)


def test_the_largest_c_u_at_the_solved_parameters_is_the_one_started_from() -> None:
    """Calibrating there and back."""
    solved = calibrate(EXACT, OUTLINE, TARGET).mechanism
    back = calibrate(EXACT, Draft(None, 1, solved.tau_star, solved.sigma), TARGET)

    assert back.mechanism.c_u == C_U
    assert back.solved == ("c_u",)


def test_the_largest_sigma_at_the_solved_threshold_is_hardly_larger_than_the_smallest() -> None:
    """Both minima are reached together: at the smallest τ* the workable interval closes."""
    solved = calibrate(EXACT, OUTLINE, TARGET).mechanism
    interval = calibrate(EXACT, Draft(C_U, TAU, solved.tau_star, None), TARGET)

    assert interval.mechanism.sigma == solved.sigma
    assert interval.largest_sigma == pytest.approx(solved.sigma, rel=1e-12)
    assert interval.largest_sigma >= solved.sigma
