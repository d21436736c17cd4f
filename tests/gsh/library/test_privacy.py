"""exact and add_deltas say what the core says, bit for bit."""

import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gsh
from gsh.accounting.accountings import ADD_DELTAS, EXACT, Accounting, at_delta, at_epsilon
from tests.gsh.library.examples import PAIRS

ACCOUNTINGS: list[tuple[Callable[..., Any], Accounting]] = [(gsh.exact, EXACT), (gsh.add_deltas, ADD_DELTAS)]
by_accounting = pytest.mark.parametrize(("account", "accounting"), ACCOUNTINGS, ids=["exact", "add-deltas"])
by_mechanism = pytest.mark.parametrize("name", PAIRS)


@by_accounting
@by_mechanism
@pytest.mark.parametrize("epsilon", [0, 0.1, 0.349, 3, 50.0])
def test_delta_is_the_cores_double(
    account: Callable[..., gsh.Privacy], accounting: Accounting, name: str, epsilon: float
) -> None:
    mechanism, core = PAIRS[name]
    point = at_epsilon(accounting, core, epsilon)

    found = account(mechanism, epsilon=epsilon)

    assert (found.epsilon, found.delta, found.delta_gaussian, found.delta_infinite, found.binding, found.mu) == point
    assert found.accounting == accounting.name


@by_accounting
@by_mechanism
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-4, 0.5])
def test_epsilon_is_the_cores_double_or_infinite(
    account: Callable[..., gsh.Privacy], accounting: Accounting, name: str, delta: float
) -> None:
    mechanism, core = PAIRS[name]
    point = at_delta(accounting, core, delta)

    found = account(mechanism, delta=delta)

    assert found.epsilon == (math.inf if point.epsilon is None else point.epsilon)
    assert (found.delta, found.delta_infinite, found.binding) == (delta, point.delta_infinite, point.binding)


def test_both_a_finite_and_an_infinite_epsilon_are_among_the_cases() -> None:
    mechanism, _ = PAIRS["counts"]

    assert math.isinf(gsh.exact(mechanism, delta=1e-5).epsilon)
    assert math.isfinite(gsh.exact(mechanism, delta=1.1e-5).epsilon)


@by_accounting
@pytest.mark.parametrize(
    "as_given",
    [list, tuple, np.array, lambda given: pd.Series(given, index=[7, 5, 3]), pl.Series, pa.array],
    ids=["list", "tuple", "array", "pandas", "polars", "arrow"],
)
def test_a_curve_is_its_points_in_the_order_asked(
    account: Callable[..., Any], accounting: Accounting, as_given: Callable[[Any], Any]
) -> None:
    mechanism, core = PAIRS["columns"]
    epsilons = [2.0, 0.25, 1.0]
    deltas = [at_epsilon(accounting, core, epsilon).delta for epsilon in epsilons]

    curve = account(mechanism, epsilon=as_given(epsilons))

    assert list(curve) == [account(mechanism, epsilon=epsilon) for epsilon in epsilons]
    assert (curve.epsilon.tolist(), curve.delta.tolist()) == (epsilons, deltas)
    assert curve[1:].delta.tolist() == deltas[1:]
    assert len(curve) == 3
    by_delta = account(mechanism, delta=as_given(deltas))
    assert by_delta.epsilon.tolist() == [account(mechanism, delta=delta).epsilon for delta in deltas]


def test_each_variable_of_a_point_is_an_array_of_the_curve() -> None:
    mechanism, _ = PAIRS["counts"]

    curve = gsh.exact(mechanism, epsilon=[0.1, 0.349, 3.0])

    for name in {field.name for field in fields(gsh.Privacy)} - {"accounting"}:
        assert getattr(curve, name).tolist() == [getattr(point, name) for point in curve], name
    assert set(curve.binding.tolist()) == {"gaussian", "infinite"}


def test_an_array_without_dimensions_is_a_number() -> None:
    mechanism, _ = PAIRS["counts"]

    assert gsh.exact(mechanism, epsilon=np.array(0.349)) == gsh.exact(mechanism, epsilon=0.349)


def test_an_empty_curve_has_no_points() -> None:
    mechanism, _ = PAIRS["counts"]

    assert len(gsh.exact(mechanism, epsilon=[])) == 0
    assert repr(gsh.exact(mechanism, epsilon=[])) == "<Curve of 0 points>"


def test_negative_zero_is_zero() -> None:
    """The two are equal, and so are their results, to the sign."""
    mechanism, _ = PAIRS["counts"]

    assert math.copysign(1, gsh.exact(mechanism, epsilon=-0.0).epsilon) == 1


@pytest.mark.parametrize("asked", [{}, {"epsilon": 1.0, "delta": 1e-5}, {"epsilon": None}], ids=str)
def test_exactly_one_of_epsilon_and_delta_is_asked(asked: dict[str, Any]) -> None:
    mechanism, _ = PAIRS["counts"]

    with pytest.raises(gsh.InvalidParameter, match=r"^epsilon: give exactly one of epsilon and delta"):
        gsh.exact(mechanism, **asked)
