"""Columns of counts and values: which types and ranges are accepted. All others are refused."""

from collections.abc import Callable
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from gsh.accounting.mechanism import Aggregates, Mechanism
from gsh.accounting.sensitivity import Box
from gsh.errors import InvalidGroups
from gsh.histogram.noise import Noise
from gsh.histogram.numbers import checked_counts, checked_values
from gsh.histogram.roles import Roles
from gsh.histogram.tables import check_table

WHOLE_DECIMALS = [pa.decimal32(9), pa.decimal64(18), pa.decimal128(38), pa.decimal256(76)]


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int32(), pa.int64(), pa.uint64(), *WHOLE_DECIMALS], ids=str)
def test_counts_may_have_any_integer_type(kind: pa.DataType) -> None:
    assert checked_counts(pa.array([0, 1, 127], kind), "/counts").tolist() == [0, 1, 127]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, -1]),
        pa.array([1, None]),
        pa.array([2**53 + 1]),
        pa.array([2**64 - 1], pa.uint64()),
        *(pa.array([Decimal(2**53 + 1)], kind) for kind in WHOLE_DECIMALS[1:]),
        pa.array([Decimal(10**38 - 1)], pa.decimal128(38)),
        pa.array([Decimal(10**75)], pa.decimal256(76)),
        pa.array([Decimal(-1)], pa.decimal32(5)),
        pa.array([Decimal(1), None], pa.decimal32(5)),
        pa.array([Decimal("1.0")], pa.decimal128(38, 1)),
        pa.array([Decimal(100)], pa.decimal128(38, -2)),
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
        *(pa.array([sign * Decimal(2**53 + 1)], kind) for kind in WHOLE_DECIMALS[1:] for sign in (1, -1)),
        pa.array([Decimal(10**75)], pa.decimal256(76)),
        pa.array([Decimal(1), None], pa.decimal128(38)),
        pa.array([Decimal("0.5")], pa.decimal128(38, 1)),
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


@pytest.mark.parametrize("kind", WHOLE_DECIMALS, ids=str)
def test_decimals_of_scale_0_are_the_integers_that_they_show(kind: pa.DataType) -> None:
    shown = [0, 1, -(2**53), 2**53] if kind.precision > 9 else [0, 1, -999_999_999, 999_999_999]
    column = pa.array(list(map(Decimal, shown)), kind)

    assert checked_values(column, 0.5, "/values").tolist() == shown
    assert checked_counts(column.take(pa.array([3, 1])), "/counts").tolist() == [shown[3], 1]


def test_the_error_says_what_to_do_with_other_decimals() -> None:
    with pytest.raises(InvalidGroups, match="cast other decimals to doubles"):
        checked_values(pa.array([Decimal("0.50")]), 0.5, "/values")


SUMS = (
    "SELECT k AS key, sum(n) AS count, sum(v) AS likes FROM (VALUES ('a', 5, -2), ('a', 7, 1), ('b', 1, 0)) x(k, n, v)"
)


@pytest.mark.parametrize(
    "form",
    [
        pa.table,
        lambda sums: pa.table(sums.pl()),
        lambda sums: pa.Table.from_pandas(sums.pl().to_pandas()),
        lambda sums: pa.Table.from_pandas(pa.table(sums).to_pandas(types_mapper=pd.ArrowDtype)),
    ],
    ids=["duckdb", "polars", "pandas", "pandas on arrow"],
)
def test_sums_of_duckdb_are_numbers(form: Callable[[duckdb.DuckDBPyRelation], pa.Table]) -> None:
    """They are 128-bit integers there, and decimals everywhere else."""
    table = form(duckdb.sql(f"{SUMS} GROUP BY k"))
    assert pa.types.is_decimal(table.schema.field("count").type)
    integers = pa.table({"key": ["a", "b"], "count": [12, 1], "likes": [-1, 0]})
    aggregates = Aggregates(names=("likes",), covariance=((4.0,),), sensitivity=Box((0.0,), (1.0,)))
    noise = Noise(Mechanism(c_u=3, tau=1, tau_star=100.0, sigma=5.0, aggregates=aggregates))

    checked = [check_table(noise, each, Roles(("key",), "count", ("likes",))) for each in (table, integers)]

    assert checked[0].counts[checked[0].order].tolist() == [12, 1]
    assert checked[0].values[0][checked[0].order].tolist() == [-1, 0]
    assert checked[0].digest() == checked[1].digest()


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.int8(), pa.uint64()], ids=str)
def test_smaller_numbers_become_doubles_exactly(kind: pa.DataType) -> None:
    assert checked_values(pa.array(np.array([0, 1, 100]).astype(kind.to_pandas_dtype())), 0.5, "/values").tolist() == [
        0,
        1,
        100,
    ]
