"""An infeasible target is refused with advice, and the advice works."""

import math
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsh.accounting.accountings import ADD_DELTAS, EXACT, Accounting
from gsh.accounting.aggregates import RelativeAggregates
from gsh.accounting.calibration.draft import Draft, Target
from gsh.accounting.calibration.target import calibrate
from gsh.accounting.mechanism import Aggregates
from gsh.accounting.numerics.doubles import next_below
from gsh.accounting.sensitivity import Box
from gsh.errors import InfeasibleTarget
from tests.gsh.accounting.draws import examples, log_uniform

ACCOUNTINGS = (EXACT, ADD_DELTAS)
TARGET = Target(1.0, 1e-5)

CORRELATED = RelativeAggregates(
    names=("a", "b"), relative_covariance=((1.0, 0.6), (0.6, 2.0)), sensitivity=Box((0.0, -1.0), (1.0, 1.0))
)

each_method = pytest.mark.parametrize("accounting", ACCOUNTINGS, ids=lambda accounting: accounting.name)
targets = st.builds(Target, st.just(0.0) | log_uniform(0.01, 20.0), log_uniform(1e-12, 0.1))


def _refusal(accounting: Accounting, draft: Draft, target: Target) -> InfeasibleTarget:
    with pytest.raises(InfeasibleTarget) as error:
        calibrate(accounting, draft, target)
    return error.value


def _advice(error: InfeasibleTarget) -> float:
    """The number that the detail names."""
    (number,) = re.findall(r"(?:below|at least|needs) (\d+(?:\.\d+)?(?:e[-+]?\d+)?)", error.detail)
    return float(number)


@each_method
@examples(40)
@given(target=targets, c_u=st.integers(1, 10**6), short=st.floats(0.01, 0.99))
def test_too_small_a_sigma_is_told_the_smallest(accounting: Accounting, target: Target, c_u: int, short: float) -> None:
    """The advised σ works with some τ*; the double below it with none."""
    sigma = calibrate(EXACT, Draft(c_u, 1, None, None), target).mechanism.sigma * short
    error = _refusal(accounting, Draft(c_u, 1, None, sigma), target)

    assert error.pointer == "sigma"
    assert "at least" in error.detail
    assert calibrate(accounting, Draft(c_u, 1, None, _advice(error)), target).point.delta <= target.delta
    assert _refusal(accounting, Draft(c_u, 1, None, next_below(_advice(error))), target).pointer == "sigma"


@each_method
@pytest.mark.parametrize("missing", ["tau_star", "c_u"])
def test_too_small_a_sigma_is_told_the_smallest_where_the_other_noise_scales_with_it(
    accounting: Accounting, missing: str
) -> None:
    """A larger σ makes the noise on all columns larger: the advice must count on that."""
    draft = replace(Draft(1, 1, 100.0, 1.0, CORRELATED), **{missing: None})
    error = _refusal(accounting, draft, TARGET)

    assert error.pointer == "sigma"
    least = calibrate(EXACT, Draft(1, 1, None, None, CORRELATED), TARGET).mechanism.sigma
    assert _advice(error) == pytest.approx(least, rel=1e-12)
    assert calibrate(accounting, Draft(1, 1, None, _advice(error), CORRELATED), TARGET).point.delta <= TARGET.delta


@examples(40)
@given(target=targets, c_u=st.integers(1, 10**6), short=st.floats(0.01, 0.99))
def test_too_low_a_threshold_is_told_the_lowest(target: Target, c_u: int, short: float) -> None:
    """By exact accounting the advised τ* has a workable σ, and the double below has none."""
    gap = calibrate(EXACT, Draft(c_u, 1, None, None), target).mechanism.tau_gap
    error = _refusal(EXACT, Draft(c_u, 1, 1 + gap * short, None), target)

    assert error.pointer == "tau_star"
    assert "at least" in error.detail
    assert calibrate(EXACT, Draft(c_u, 1, _advice(error), None), target).point.delta <= target.delta
    assert _refusal(EXACT, Draft(c_u, 1, next_below(_advice(error)), None), target).pointer == "tau_star"


@examples(30)
@given(target=targets, c_u=st.integers(1, 10**6), short=st.floats(0.01, 0.99))
def test_too_low_a_threshold_for_adding_deltas_is_told_about_the_lowest(target: Target, c_u: int, short: float) -> None:
    """The advised τ* has a workable σ; a gap smaller by a tenth has none."""
    gap = calibrate(EXACT, Draft(c_u, 1, None, None), target).mechanism.tau_gap
    error = _refusal(ADD_DELTAS, Draft(c_u, 1, 1 + gap * short, None), target)
    advised = _advice(error) - 1

    assert error.pointer == "tau_star"
    assert advised >= gap
    assert calibrate(ADD_DELTAS, Draft(c_u, 1, _advice(error), None), target).point.delta <= target.delta
    assert _refusal(ADD_DELTAS, Draft(c_u, 1, 1 + 0.9 * advised, None), target).pointer == "tau_star"


@each_method
@examples(40)
@given(target=targets, excess=st.floats(1.1, 10.0), short=st.floats(0.01, 0.9))
def test_too_low_a_threshold_for_one_group_is_told_the_lowest(
    accounting: Accounting, target: Target, excess: float, short: float
) -> None:
    """Where not even C_u = 1 fits: the advised τ* allows it, and the double below does not."""
    sigma = calibrate(EXACT, Draft(1, 1, None, None), target).mechanism.sigma * excess
    gap = calibrate(accounting, Draft(1, 1, None, sigma), target).mechanism.tau_gap
    error = _refusal(accounting, Draft(None, 1, 1 + gap * short, sigma), target)

    assert error.pointer == "tau_star"
    assert calibrate(accounting, Draft(None, 1, _advice(error), sigma), target).mechanism.c_u == 1
    assert _refusal(accounting, Draft(None, 1, next_below(_advice(error)), sigma), target).pointer == "tau_star"


@each_method
def test_too_small_a_sigma_for_one_group_is_told_the_smallest(accounting: Accounting) -> None:
    """No threshold helps then, so the advice is about σ."""
    error = _refusal(accounting, Draft(None, 1, 1e6, 0.1), TARGET)

    assert error.pointer == "sigma"
    assert calibrate(accounting, Draft(None, 1, 1e6, _advice(error)), TARGET).mechanism.c_u >= 1


@each_method
@pytest.mark.parametrize("tau_star", [None, 1e6])
@examples(25)
@given(target=targets, c_u=st.integers(1, 10**6), excess=st.floats(1.01, 100.0))
def test_too_large_a_mu_0_is_told_the_largest(
    accounting: Accounting, tau_star: float | None, target: Target, c_u: int, excess: float
) -> None:
    """«Below» is meant: the double below the advised number is small enough for some noise on the counts."""
    most = 1 / calibrate(EXACT, Draft(c_u, 1, None, None), target).mechanism.sigma
    error = _refusal(accounting, Draft(c_u, 1, tau_star, None, most * excess), target)

    assert error.pointer == "aggregates"
    assert _advice(error) == pytest.approx(most, rel=1e-4)
    assert calibrate(EXACT, Draft(c_u, 1, None, None, next_below(_advice(error))), target).point.delta <= target.delta


@each_method
def test_too_little_noise_on_the_other_columns_is_told_the_largest_mu_0(accounting: Accounting) -> None:
    """The same with an absolute covariance: scaling Σ until μ₀ is below the advice makes it feasible."""
    aggregates = Aggregates(
        names=CORRELATED.names, covariance=CORRELATED.relative_covariance, sensitivity=CORRELATED.sensitivity
    )
    error = _refusal(accounting, Draft(3, 1, None, None, aggregates), TARGET)
    factor = (1.01 * aggregates.mu_0 / _advice(error)) ** 2
    scaled = tuple(tuple(entry * factor for entry in row) for row in aggregates.covariance)

    assert error.pointer == "aggregates"
    feasible = Draft(
        3, 1, None, None, Aggregates(names=aggregates.names, covariance=scaled, sensitivity=aggregates.sensitivity)
    )
    assert calibrate(accounting, feasible, TARGET).point.delta <= TARGET.delta


@each_method
def test_a_threshold_beyond_the_largest_double_is_told_to_take_a_smaller_sigma(accounting: Accounting) -> None:
    """σ = 1e308 would need τ* = 4e308."""
    error = _refusal(accounting, Draft(1, 1, None, 1e308), TARGET)

    assert (error.pointer, "smaller" in error.detail) == ("sigma", True)
    assert math.isfinite(calibrate(accounting, Draft(1, 1, None, 1e306), TARGET).mechanism.tau_star)


@each_method
def test_a_sigma_beyond_the_largest_double_is_not_blamed_on_columns_that_are_not_there(accounting: Accounting) -> None:
    """At δ = 5e-324 and ε = 0 a C_u of 1e18 needs σ near 1e332, counts alone."""
    draft, target = Draft(10**18, 1, None, None), Target(0.0, 5e-324)
    error = _refusal(accounting, draft, target)

    assert error.pointer in {"c_u", "epsilon", "delta", "target"}
