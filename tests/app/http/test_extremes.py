"""Any double is an answer or a 422, never a 500 and never NaN or infinity.

Well-formed requests from the ends of the range of doubles, which make arithmetic overflow, underflow and cancel.
"""

import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gsh.accounting.numerics.doubles import next_above
from tests.app.client import CASE_STUDY, Client, Json, problem_errors
from tests.surroundings import some_of

pytestmark = pytest.mark.slow

LEAST, LARGEST = 5e-324, 1.7976931348623157e308
LANDMARKS = [LEAST, 2.2250738585072014e-308, 1e-300, 1e-161, 1e-154, 1e-100, 1e-17, 1e-5, 0.5, 1.0, 2.0]
LANDMARKS += [1e5, 2.0**53, 1e17, 1e100, 1e154, 1e160, 1e300, LARGEST]
NULLABLE = {"epsilon", "delta_gaussian", "largest_sigma", "comparison", "solution"}

positive = st.one_of(st.sampled_from(LANDMARKS), st.floats(LEAST, LARGEST))
epsilons = st.one_of(st.just(0.0), positive)
deltas = st.one_of(st.sampled_from([LEAST, 1e-300, 1e-5, 0.5, 1 - 2**-53]), st.floats(LEAST, 1 - 2**-53))
c_us = st.sampled_from([1, 2, 1000, 10**6, 10**18])
taus = st.sampled_from([0, 1, 2, 10**6, 2**53 + 1, 10**300, 10**400])


@st.composite
def columns(draw: st.DrawFn, field: str) -> Json:
    size = draw(st.integers(1, 3))
    bounds = st.lists(positive, min_size=size, max_size=size)
    diagonal = draw(bounds)
    sensitivity = draw(
        st.one_of(
            st.fixed_dictionaries({"kind": st.sampled_from(["l1", "l2"]), "bound": epsilons}),
            st.fixed_dictionaries({"kind": st.just("box"), "lower": st.just([-1.0] * size), "upper": bounds}),
            st.fixed_dictionaries({"kind": st.just("vectors"), "vectors": st.lists(bounds, min_size=1, max_size=3)}),
        )
    )
    return {
        "names": [f"column {k}" for k in range(size)],
        field: [[diagonal[i] if i == j else 0.0 for j in range(size)] for i in range(size)],
        "sensitivity": sensitivity,
    }


mu_0s = st.fixed_dictionaries({"mu_0": epsilons})
complete = st.fixed_dictionaries(
    {"c_u": c_us, "tau": taus, "tau_star": positive, "sigma": positive},
    optional={"aggregates": st.one_of(mu_0s, columns("covariance"))},
)
any_columns = st.one_of(mu_0s, columns("covariance"), columns("relative_covariance"))
drafts = st.one_of(
    st.fixed_dictionaries({"tau": taus, **given_values}, optional={"aggregates": any_columns})
    for given_values in (
        {"c_u": c_us},
        {"c_u": c_us, "sigma": positive},
        {"c_u": c_us, "sigma": st.lists(positive, min_size=1, max_size=3)},
        {"c_u": c_us, "tau_star": positive},
        {"tau_star": positive, "sigma": positive},
    )
)


def numbers(document: Any, name: str = "") -> Iterator[tuple[str, float | None]]:
    """Every number and null of a document, with the field that it is in."""
    if isinstance(document, dict):
        for key, value in document.items():
            yield from numbers(value, key)
    elif isinstance(document, list):
        for value in document:
            yield from numbers(value, name)
    elif document is None or (isinstance(document, int | float) and not isinstance(document, bool)):
        yield name, document


def check(client: Client, path: str, body: Json) -> None:
    response = client.post(path, body)
    if response.status_code != 200:
        assert problem_errors(response, 422, response.json()["type"].removeprefix("/problems/"))
        return
    for name, value in numbers(response.json()):
        assert value is not None or name in NULLABLE
        assert value is None or math.isfinite(value)
        if name.startswith("delta") and value is not None:
            assert 0 <= value <= 1


thorough = settings(
    max_examples=some_of(150),
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.mark.parametrize("accounting", ["exact", "add-deltas"])
@thorough
@given(mechanism=complete, epsilon=epsilons)
def test_accounting_at_any_epsilon(client: Client, accounting: str, mechanism: Json, epsilon: float) -> None:
    check(client, f"/account/{accounting}", {"mechanism": mechanism, "epsilon": epsilon})


@pytest.mark.parametrize("accounting", ["exact", "add-deltas"])
@thorough
@given(mechanism=complete, delta=deltas)
def test_accounting_at_any_delta(client: Client, accounting: str, mechanism: Json, delta: float) -> None:
    check(client, f"/account/{accounting}", {"mechanism": mechanism, "delta": delta})


@thorough
@given(mechanism=complete, epsilon=epsilons, c_u=st.sampled_from([1, 2, 1000]))
def test_the_theorem_at_any_epsilon(client: Client, mechanism: Json, epsilon: float, c_u: int) -> None:
    body = {"mechanism": mechanism | {"c_u": c_u}, "epsilon": epsilon, "theorem": True}

    check(client, "/account/exact", body)


@pytest.mark.parametrize("accounting", ["exact", "add-deltas"])
@thorough
@given(mechanism=drafts, epsilon=epsilons, delta=deltas)
def test_calibrating_for_any_target(
    client: Client, accounting: str, mechanism: Json, epsilon: float, delta: float
) -> None:
    body = {"mechanism": mechanism, "epsilon": epsilon, "delta": delta, "accounting": accounting}

    check(client, "/calibrate", body)


@pytest.mark.parametrize(
    "mechanism",
    [
        {"c_u": 1, "tau": 1, "sigma": 1e100},
        {"c_u": 1, "tau": 1, "sigma": [1e100]},
        {"c_u": 1, "tau": 1, "tau_star": 1e3},
        {"tau": 1, "tau_star": 1e3, "sigma": 1e100},
    ],
    ids=["tau_star", "a frontier", "sigma", "c_u"],
)
def test_a_covariance_too_large_for_doubles_is_no_server_error(client: Client, mechanism: Json) -> None:
    """σ² Σ/σ² beyond 1.8·10³⁰⁸."""
    aggregates = {"names": ["a"], "relative_covariance": [[1e305]], "sensitivity": {"kind": "l2", "bound": 1}}

    check(client, "/calibrate", {"mechanism": mechanism | {"aggregates": aggregates}, "epsilon": 1, "delta": 1e-05})


def test_a_double_is_unchanged_in_the_answer(client: Client) -> None:
    """Shortest decimal digits, so an answer is the same number in the next request."""
    sigma = next_above(2228.0)

    answer = client.answer("/account/exact", {"mechanism": CASE_STUDY | {"sigma": sigma}, "epsilon": 0.1 + 0.2})

    assert answer["mechanism"]["sigma"] == sigma
    assert answer["points"][0]["epsilon"] == 0.1 + 0.2
