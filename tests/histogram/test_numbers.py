"""Columns of counts and values: which types and ranges are accepted. All others are refused."""

import numpy as np
import pyarrow as pa
import pytest

from gsh.histogram.errors import InvalidGroups
from gsh.histogram.numbers import checked_counts, checked_values


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int32(), pa.int64(), pa.uint64()], ids=str)
def test_counts_may_have_any_integer_type(kind: pa.DataType) -> None:
    assert checked_counts(pa.array([0, 1, 127], kind), "/counts").tolist() == [0, 1, 127]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, -1]),
        pa.array([1, None]),
        pa.array([2**53 + 1]),
        pa.array([2**64 - 1], pa.uint64()),
        pa.array([1.0]),
        pa.array([1.5]),
        pa.array(["1"]),
        pa.array([True]),
        pa.nulls(1),
    ],
    ids=lambda column: f"{column.type} {column.to_pylist()}",
)
def test_a_column_that_has_no_counts_is_refused(column: pa.Array) -> None:
    with pytest.raises(InvalidGroups) as refused:
        checked_counts(column, "/counts")

    assert refused.value.pointer == "/counts"


def test_the_largest_count_is_two_to_the_53() -> None:
    assert checked_counts(pa.array([2**53]), "/counts").tolist() == [2**53]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1.0, float("nan")]),
        pa.array([float("inf")]),
        pa.array([-float("inf")], pa.float32()),
        pa.array([1.0, None]),
        pa.array([2**53 + 1]),
        pa.array([-(2**53) - 1]),
        pa.array([2**64 - 1], pa.uint64()),
        pa.array(["1.0"]),
        pa.array([True]),
        pa.nulls(1),
    ],
    ids=lambda column: f"{column.type} {column.to_pylist()}",
)
def test_a_column_that_has_no_values_is_refused(column: pa.Array) -> None:
    """An integer that is not a double would be rounded before the noise, and that changes its sensitivity."""
    with pytest.raises(InvalidGroups) as refused:
        checked_values(column, 0.5, "/values")

    assert refused.value.pointer == "/values"


@pytest.mark.parametrize("value", [1.7976931348623157e308, -5e-324, 0.1, -(2.0**60)])
def test_any_finite_double_is_a_value(value: float) -> None:
    assert checked_values(pa.array([value]), 0.5, "/values").tolist() == [value]


def test_a_value_on_a_grid_of_one_must_fit_into_an_integer() -> None:
    assert checked_values(pa.array([2.0**62, -(2.0**62)]), 1.0, "/values").tolist() == [2.0**62, -(2.0**62)]
    for value in (2.0**62 * 1.0000001, -1e300):
        with pytest.raises(InvalidGroups, match="grid of 1"):
            checked_values(pa.array([value]), 1.0, "/values")


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.int8(), pa.uint64()], ids=str)
def test_smaller_numbers_become_doubles_exactly(kind: pa.DataType) -> None:
    assert checked_values(pa.array(np.array([0, 1, 100]).astype(kind.to_pandas_dtype())), 0.5, "/values").tolist() == [
        0,
        1,
        100,
    ]
