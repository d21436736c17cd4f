"""Columns of counts and values: which types and ranges are accepted. All others are refused."""

from collections.abc import Callable
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from gsh.accounting.mechanism import Aggregates, Mechanism, PlainGaussian
from gsh.accounting.sensitivity import Box
from gsh.errors import InvalidGroups
from gsh.histogram.arrays import Decimals
from gsh.histogram.noise import Noise
from gsh.histogram.numbers import checked_counts, checked_values
from gsh.histogram.roles import Roles
from gsh.histogram.tables import check_table
from tests.gsh.histogram.recorded import Recorded

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
        pa.array([Decimal("0.5"), None], pa.decimal128(38, 1)),
        pa.array([Decimal(2**53 + 1).scaleb(-3)], pa.decimal128(38, 3)),
        pa.array([-Decimal(2**53 + 1).scaleb(-3)], pa.decimal256(76, 3)),
        pa.array([Decimal(1).scaleb(-19)], pa.decimal128(38, 19)),
        pa.array([Decimal(100)], pa.decimal128(38, -2)),
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


@pytest.mark.parametrize("kind", [pa.decimal32(9, 2), pa.decimal64(18, 2), pa.decimal128(38, 2), pa.decimal256(76, 2)])
def test_decimals_are_whole_numbers_of_their_last_digit(kind: pa.DataType) -> None:
    shown = [0, 10, -2550, -1, 999_999_999] + ([2**53, -(2**53)] if kind.precision > 9 else [])
    column = pa.array([None, *(Decimal(units).scaleb(-2) for units in shown)], kind)
    values = checked_values(column[1:], 0.5, "/values")

    assert isinstance(values, Decimals)
    assert (values.units.tolist(), values.digits) == (shown, 2)


@pytest.mark.parametrize(("largest", "digits"), [("90071992547409.92", 2), ("9007199254740992", 0), ("900719.92", 9)])
def test_zeros_at_the_end_of_all_decimals_do_not_count(largest: str, digits: int) -> None:
    """So many digits have the decimals of CSV, of a sum, or of another engine."""
    values = checked_values(pa.array([Decimal(largest), Decimal("0")], pa.decimal128(38, 9)), 0.5, "/values")

    assert isinstance(values, Decimals)
    assert values.digits == digits
    assert [Decimal(units).scaleb(-digits) for units in values.units.tolist()] == [Decimal(largest), 0]


def test_an_error_about_decimals_names_their_last_digit() -> None:
    with pytest.raises(InvalidGroups, match=r"units of the last digit, if they are decimals: here 10\^-3"):
        checked_values(pa.array([Decimal(2**53 + 1).scaleb(-3)], pa.decimal128(38, 9)), 0.5, "/values")


@pytest.mark.parametrize("public", [None, ["a", "b", "c"]])
def test_a_table_with_decimals_is_released_exactly(public: list[str] | None) -> None:
    """Their digest does not depend on zeros at the end, and differs from that of doubles."""
    kinds = {"two": pa.decimal128(38, 2), "nine": pa.decimal256(60, 9), "double": pa.float64()}
    aggregates = Aggregates(names=("paid",), covariance=((4.0**-30,),), sensitivity=Box((0.0,), (1.0,)))
    mechanism = Mechanism(c_u=3, tau=1, tau_star=2.0, sigma=0.25, aggregates=aggregates)
    noise = Noise(mechanism if public is None else PlainGaussian(c_u=3, sigma=0.25, aggregates=aggregates))
    paid = [Decimal("12.30"), Decimal("-0.07")]
    tables = {
        name: pa.table({"key": ["b", "a"], "count": [900, 800], "paid": pa.array(paid).cast(kind)})
        for name, kind in kinds.items()
    }
    roles = Roles(("key",), "count", ("paid",))
    checked = {name: check_table(noise, table, roles, public) for name, table in tables.items()}
    released = checked["two"].release(Recorded("decimals")).read_all()

    assert checked["two"].digest() == checked["nine"].digest() != checked["double"].digest()
    expected = {"a": -0.07, "b": 12.3} | ({} if public is None else {"c": 0.0})
    found = dict(zip(released["key"].to_pylist(), released["paid"].to_pylist(), strict=True))
    assert found == {key: pytest.approx(value, abs=2**-26) for key, value in expected.items()}


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
