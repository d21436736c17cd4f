"""Whatever the theorem does not cover is refused, with a pointer to the parameter and the bound it broke."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsh.accounting.accountings import EXACT, at_delta, at_epsilon
from gsh.accounting.aggregates import RelativeAggregates
from gsh.accounting.calibration.draft import Draft, Target
from gsh.accounting.calibration.target import calibrate
from gsh.accounting.mechanism import Aggregates, Mechanism
from gsh.accounting.sensitivity import Box
from gsh.errors import AccountingError, InvalidParameter
from tests.gsh.accounting.draws import assert_refused, examples

MECHANISM = Mechanism(c_u=3, tau=1, tau_star=20.0, sigma=4.0)
TARGET = Target(1.0, 1e-5)
ONE = ((1.0,),)
BOX = Box((0.0,), (1.0,))
SUM = Aggregates(names=("spend",), covariance=ONE, sensitivity=BOX)


@pytest.mark.parametrize(
    ("field", "values", "bound"),
    [
        ("c_u", [0, -1, 10**18 + 1], "integer from 1 to 10^18"),
        ("c_u", [1.0, 1.5, True, None, "3", math.nan], "must be an integer, not"),
        ("tau", [-1], "integer, at least 0"),
        ("tau", [1.0, True, None, "1", math.nan], "must be an integer, not"),
        ("sigma", [0.0, -0.0, -1.0, math.inf, math.nan], "greater than 0 and finite"),
        ("sigma", [True, None, "1"], "must be a number, not"),
        ("tau_star", [1.0, 4.0, 5.0, -math.inf, math.inf, math.nan], "greater than tau"),
        ("tau_star", [True, None, "9"], "must be a number, not"),
        ("mu_0", [-1e-300, -1.0, math.inf, math.nan], "at least 0 and finite"),
        ("mu_0", [True, "1"], "must be a number, not"),
    ],
)
def test_a_mechanism_outside_the_theorem_is_refused(field: str, values: list[object], bound: str) -> None:
    """Each field by itself, wrong kinds of values included."""
    for value in values:
        fields = {"c_u": 3, "tau": 5, "tau_star": 20.0, "sigma": 4.0, "mu_0": 0.0, field: value}
        assert_refused(lambda fields=fields: Mechanism(**fields), field, bound)


@pytest.mark.parametrize("tau", [0, 1])
def test_a_threshold_of_one_is_refused_even_where_tau_is_zero(tau: int) -> None:
    """τ = 0 acts as 1, so the gap would be 0."""
    assert_refused(lambda: Mechanism(c_u=3, tau=tau, tau_star=1.0, sigma=4.0), "tau_star", "greater than 1")


def test_a_tau_beyond_every_double_is_refused() -> None:
    """τ is any integer; no τ* is above this one."""
    assert_refused(lambda: Mechanism(c_u=3, tau=10**400, tau_star=1e308, sigma=4.0), "tau_star", "greater than tau")


def test_mu_0_together_with_a_covariance_is_refused() -> None:
    """Two sources of one number could disagree."""
    assert_refused(
        lambda: Mechanism(c_u=3, tau=1, tau_star=20.0, sigma=4.0, mu_0=0.5, aggregates=SUM),
        "mu_0",
        "must be omitted if aggregates are given",
    )


def test_mu_0_of_a_covariance_that_overflows_is_refused() -> None:
    """Δ = 1e308 under a variance of 5e-324 has no finite μ₀."""
    assert_refused(
        lambda: Aggregates(names=("spend",), covariance=((5e-324,),), sensitivity=Box((0.0,), (1e308,))),
        "covariance",
        "finite",
    )


def test_mu_that_overflows_is_refused() -> None:
    """σ = 5e-324 has no finite μ, though δ has a value."""
    assert_refused(
        lambda: at_epsilon(EXACT, Mechanism(c_u=1, tau=1, tau_star=2.0, sigma=5e-324), 1.0),
        "sigma",
        "large enough that μ is a finite double",
    )


@pytest.mark.parametrize("epsilon", [-1e-300, -1.0, math.inf, -math.inf, math.nan])
def test_an_epsilon_outside_its_range_is_refused(epsilon: float) -> None:
    """Wherever it is given."""
    for refused in (lambda: Target(epsilon, 1e-5), lambda: at_epsilon(EXACT, MECHANISM, epsilon)):
        assert_refused(refused, "epsilon", "at least 0 and finite")


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, 2.0, math.inf, math.nan])
def test_a_delta_outside_its_range_is_refused(delta: float) -> None:
    """δ = 0 cannot be had, δ = 1 promises nothing."""
    for refused in (lambda: Target(1.0, delta), lambda: at_delta(EXACT, MECHANISM, delta)):
        assert_refused(refused, "delta", "greater than 0 and less than 1")


def test_an_epsilon_beyond_every_double_is_refused() -> None:
    """σ = 1e-200: the ε that δ = 0.1 needs is near 1e399."""
    assert_refused(
        lambda: at_delta(EXACT, Mechanism(c_u=1, tau=1, tau_star=2.0, sigma=1e-200), 0.1),
        "sigma",
        "ε is a finite double",
    )


@pytest.mark.parametrize(
    "draft",
    [Draft(3, 1, 20.0, 4.0), Draft(None, 1, None, 4.0), Draft(None, 1, 20.0, None), Draft(None, 1, None, None)],
    ids=lambda draft: "+".join(draft.missing) or "nothing",
)
def test_a_draft_that_leaves_out_the_wrong_things_is_refused(draft: Draft) -> None:
    """One unknown, or σ and τ* together."""
    assert_refused(lambda: calibrate(EXACT, draft, TARGET), "", "omit exactly the fields to solve for")


@pytest.mark.parametrize(
    ("draft", "pointer"),
    [
        (Draft(0, 1, None, None), "c_u"),
        (Draft(0, 1, None, None, 0.1), "c_u"),
        (Draft(-1, 1, 20.0, None, 0.1), "c_u"),
        (Draft(0, 1, None, 4.0), "c_u"),
        (Draft(3, -1, None, None), "tau"),
        (Draft(3, -1, None, 4.0), "tau"),
        (Draft(3, 5, 5.0, None), "tau_star"),
        (Draft(None, 5, 5.0, 4.0), "tau_star"),
        (Draft(3, 1, None, -1.0), "sigma"),
        (Draft(3, 1, None, math.nan), "sigma"),
        (Draft(None, 1, 20.0, 0.0), "sigma"),
        (Draft(3, 1, None, None, -0.1), "mu_0"),
        (Draft(3, 1, None, None, math.nan), "mu_0"),
        (Draft(3, 1, None, None, math.inf), "mu_0"),
        (Draft(3, 1, None, 0.0, RelativeAggregates(names=("a",), relative_covariance=ONE, sensitivity=BOX)), "sigma"),
        (
            Draft(3, 1, None, math.nan, RelativeAggregates(names=("a",), relative_covariance=ONE, sensitivity=BOX)),
            "sigma",
        ),
        (
            Draft(3, 1, None, math.inf, RelativeAggregates(names=("a",), relative_covariance=ONE, sensitivity=BOX)),
            "sigma",
        ),
    ],
    ids=repr,
)
def test_a_draft_outside_the_theorem_is_refused_like_a_mechanism(draft: Draft, pointer: str) -> None:
    """Invalid comes before infeasible: no target would help."""
    with pytest.raises(InvalidParameter) as error:
        calibrate(EXACT, draft, TARGET)
    assert error.value.pointer == pointer


@pytest.mark.parametrize("sigma", [1e200, 1e-200])
def test_a_relative_covariance_that_leaves_the_doubles_is_refused(sigma: float) -> None:
    """σ² overflows or vanishes: the error says so, and names a field that was sent."""
    draft = Draft(3, 1, None, sigma, RelativeAggregates(names=("a",), relative_covariance=ONE, sensitivity=BOX))
    with pytest.raises(AccountingError) as error:
        calibrate(EXACT, draft, Target(1.0, 0.9))
    assert error.value.pointer in {"sigma", "aggregates/relative_covariance"}


@examples(100)
@given(st.floats(), st.floats(), st.floats(), st.floats())
def test_a_mechanism_is_made_or_refused_and_nothing_else(a: float, b: float, c: float, d: float) -> None:
    """Any double in any parameter: no other exception, and no NaN in the result."""
    try:
        point = at_epsilon(EXACT, Mechanism(c_u=3, tau=1, tau_star=a, sigma=b, mu_0=c), d)
    except InvalidParameter:
        return
    assert 0 < point.delta <= 1
    assert 0 < point.delta_gaussian <= 1
    assert 0 < point.delta_infinite <= 1
