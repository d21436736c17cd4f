"""Invalid columns are refused: names that clash, matrices that are not covariances, boxes that are empty."""

import math

import pytest

from gsh.accounting.calibration.draft import Target
from gsh.accounting.column_costs import mu_0
from gsh.accounting.mechanism import Aggregates, RelativeAggregates
from gsh.accounting.numerics.doubles import next_above
from gsh.accounting.sensitivity import Box, L1Norm, L2Norm, Sensitivity, Vectors
from gsh.errors import InvalidParameter
from tests.gsh.accounting.draws import assert_refused

TARGET = Target(1.0, 1e-5)
ONE = ((1.0,),)
TWO = ((1.0, 0.5), (0.5, 1.0))


@pytest.mark.parametrize(
    ("names", "pointer", "bound"),
    [
        (("spend", "spend"), "names", "unique"),
        (("key", "spend"), "names", "key or count"),
        (("spend", "count"), "names", "key or count"),
        (("spend",), "covariance", "one row and one column per name"),
        (("spend", "visits", "age"), "covariance", "one row and one column per name"),
    ],
)
def test_names_that_do_not_fit_are_refused(names: tuple[str, ...], pointer: str, bound: str) -> None:
    """Names become columns of the release, next to its own key and count."""
    assert_refused(lambda: Aggregates(names=names, covariance=TWO, sensitivity=L2Norm(1.0)), pointer, bound)
    relative = pointer.replace("covariance", "relative_covariance")
    assert_refused(
        lambda: RelativeAggregates(names=names, relative_covariance=TWO, sensitivity=L2Norm(1.0)), relative, bound
    )


@pytest.mark.parametrize(
    ("matrix", "bound"),
    [
        ((), "square"),
        (((1.0, 0.5),), "square"),
        (((1.0,), (0.5, 1.0)), "square"),
        (((1.0, 0.5, 0.0), (0.5, 1.0, 0.0)), "square"),
        (((1.0, 0.5), (0.4, 1.0)), "symmetric"),
        (((1.0, math.nan), (math.nan, 1.0)), "finite"),
        (((0.0,),), "positive definite"),
        (((-1.0,),), "positive definite"),
        (((math.nan,),), "finite"),
        (((1.0, 1.0), (1.0, 1.0)), "positive definite"),
        (((1.0, 2.0), (2.0, 1.0)), "positive definite"),
        (((1.0, 0.0), (0.0, 0.0)), "positive definite"),
        (((1.0, 0.9, 0.9), (0.9, 1.0, -0.9), (0.9, -0.9, 1.0)), "positive definite"),
        (((0.3, 0.6), (0.6, 1.2)), "positive definite"),  # singular: 0.6 is twice 0.3 as a double too
        (((0.3, next_above(0.6)), (next_above(0.6), 1.2)), "positive definite"),  # by an ulp on the wrong side
    ],
)
@pytest.mark.parametrize("pointer", ["covariance", "relative_covariance"])
def test_a_matrix_that_is_no_covariance_is_refused(matrix: tuple, bound: str, pointer: str) -> None:
    """Not square, not symmetric, singular, indefinite."""
    assert_refused(lambda: mu_0(matrix, L2Norm(1.0), pointer), pointer, bound)


def test_a_relative_covariance_is_refused_by_its_own_name() -> None:
    """The pointer names the field that was sent, not a value computed from it."""
    assert_refused(
        lambda: RelativeAggregates(
            names=("a", "b"), relative_covariance=((1.0, 2.0), (2.0, 1.0)), sensitivity=L2Norm(1.0)
        ),
        "relative_covariance",
        "positive definite",
    )


@pytest.mark.parametrize(
    ("sensitivity", "pointer", "bound"),
    [
        (Box((0.0,), (1.0, 1.0)), "sensitivity/lower", "one number per column"),
        (Box((0.0, 0.0), (1.0,)), "sensitivity/upper", "one number per column"),
        (Box((0.0, 2.0), (1.0, 1.0)), "sensitivity/lower/1", "at most upper"),
        (L1Norm(-1.0), "sensitivity/bound", "at least 0"),
        (L2Norm(-1e-300), "sensitivity/bound", "at least 0"),
        (Vectors(()), "sensitivity/vectors", "at least one"),
        (Vectors(((1.0, 1.0), (1.0,))), "sensitivity/vectors/1", "one number per column"),
    ],
    ids=repr,
)
def test_a_sensitivity_that_does_not_fit_is_refused(sensitivity: Sensitivity, pointer: str, bound: str) -> None:
    """Wrong lengths, crossed bounds, negative radii, empty lists."""
    assert_refused(lambda: mu_0(TWO, sensitivity), pointer, bound)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("kind", ["lower", "upper", "l1", "l2", "vectors"])
def test_a_sensitivity_that_is_not_finite_is_refused(kind: str, value: float) -> None:
    """μ₀ = 0 for a change without bound would be the worst of all answers."""
    sensitivity: Sensitivity = {
        "lower": Box((value,), (1.0,)),
        "upper": Box((0.0,), (value,)),
        "l1": L1Norm(value),
        "l2": L2Norm(value),
        "vectors": Vectors(((1.0,), (value,))),
    }[kind]

    with pytest.raises(InvalidParameter) as error:
        mu_0(ONE, sensitivity)
    assert error.value.pointer.startswith("sensitivity")


@pytest.mark.parametrize("matrix", [((math.inf,),), ((1.0, 0.0), (0.0, math.inf)), ((1.0, math.inf), (math.inf, 1.0))])
@pytest.mark.parametrize("kind", [Box, L2Norm])
def test_a_covariance_that_is_not_finite_is_refused(matrix: tuple, kind: type) -> None:
    """Infinite noise is no noise that can be drawn, and would make μ₀ = 0."""
    size = len(matrix)
    sensitivity = Box((0.0,) * size, (1.0,) * size) if kind is Box else L2Norm(1.0)

    with pytest.raises(InvalidParameter) as error:
        mu_0(matrix, sensitivity)
    assert error.value.pointer == "covariance"


def test_a_box_of_many_correlated_columns_is_refused() -> None:
    """2^21 corners are too many; independent columns have no limit."""
    size = 21
    matrix = tuple(tuple(1.0 if i == j else 0.01 for j in range(size)) for i in range(size))

    assert_refused(
        lambda: mu_0(matrix, Box((0.0,) * size, (1.0,) * size)),
        "sensitivity/kind",
        "at most 20 columns",
    )
