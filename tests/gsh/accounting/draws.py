"""Random inputs for the tests of the core, the doubles that a certified result may have, and checks of refusals.

Hypothesis is derandomised: a failure repeats on the next run, on every machine.
"""

import math
from collections.abc import Callable
from statistics import NormalDist

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from mpmath import mpf

from gsh.accounting.column_costs import Capped
from gsh.accounting.mechanism import Mechanism
from gsh.accounting.numerics.doubles import next_above
from gsh.errors import InvalidParameter
from tests import reference
from tests.reference import Case
from tests.surroundings import some_of

__all__ = ["allowed", "assert_refused", "capped_cases", "cases", "examples", "log_uniform", "mechanism_of"]


def examples(count: int) -> settings:
    """This many examples, the same ones every time, without a limit on their time."""
    most = some_of(count)
    return settings(max_examples=most, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def allowed(truth: mpf) -> tuple[float, float]:
    """The smallest double ≥ truth and the one after it: a certified result is one of the two."""
    lowest = reference.round_up(truth)
    return lowest, next_above(lowest)


def assert_refused(refused: Callable[[], object], pointer: str, bound: str) -> None:
    """``refused()`` raises ``InvalidParameter`` that names the parameter and, in its detail, the bound."""
    with pytest.raises(InvalidParameter) as error:
        refused()
    assert error.value.pointer == pointer
    assert bound in error.value.detail
    assert str(error.value) == f"{pointer}: {error.value.detail}"


def log_uniform(low: float, high: float) -> st.SearchStrategy[float]:
    """Doubles spread evenly over the orders of magnitude from ``low`` to ``high``."""
    return st.floats(math.log(low), math.log(high)).map(math.exp).map(lambda x: min(max(x, low), high))


def mechanism_of(case: Case) -> Mechanism:
    capped = tuple(Capped(n, mu) for n, mu in case.capped)
    return Mechanism(
        c_u=case.c_u, tau=case.tau, tau_star=case.tau_star, sigma=case.sigma, mu_0=case.mu_0, capped=capped
    )


@st.composite
def cases(draw: st.DrawFn, most_c_u: int = 10**18, most_gap: float = 1e3) -> Case:
    """A mechanism with μ(C_u) from 1e-12 to 1e6 and τ* − τ from 1e-6 σ upward, and an ε from 0 to 1e4."""
    c_u = draw(st.integers(1, most_c_u) | log_uniform(1, most_c_u).map(int))
    tau = draw(st.integers(1, 30))
    mu = draw(log_uniform(1e-12, 1e6))
    share = draw(st.just(0.0) | st.floats(0.01, 0.99))  # of μ² that comes from μ₀
    sigma = math.sqrt(c_u / (1 - share)) / mu
    tau_star = max(tau + draw(log_uniform(1e-6, most_gap)) * sigma, next_above(float(tau)))
    epsilon = draw(st.just(0.0) | log_uniform(1e-6, 1e4))
    return Case(c_u, tau, tau_star, sigma, mu * math.sqrt(share / c_u), epsilon)


@st.composite
def capped_cases(draw: st.DrawFn, most_c_u: int, epsilons: st.SearchStrategy[float]) -> Case:
    """A mechanism with one to three capped columns, whose threshold costs about as much as its noise.

    Only there the worst split of the groups can be one in between.
    """
    c_u = draw(st.integers(2, most_c_u))
    caps = sorted(draw(st.sets(st.integers(1, c_u - 1), min_size=1, max_size=3)))
    mu = draw(log_uniform(0.01, 4))
    shares = [draw(st.floats(0.05, 1)) for _ in (0, *caps)]
    parts = [mu**2 * share / sum(shares) for share in shares]
    sigma = math.sqrt(c_u / parts[0])
    hazard = mu * draw(log_uniform(0.03, 3))
    gap = max(-NormalDist().inv_cdf(min(-math.expm1(-hazard / c_u), 0.49)), 1e-3) * sigma
    capped = tuple((n, math.sqrt(part / n)) for n, part in zip(caps, parts[1:], strict=True))
    return Case(c_u, 1, 1 + gap, sigma, 0.0, draw(epsilons), capped)
