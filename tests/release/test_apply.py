"""The mechanism applied to whole tables: who is kept, in what order, in which type; and what is no table of groups."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gsh.accounting.mechanism import Aggregates, Mechanism
from gsh.accounting.sensitivity import Box
from gsh.release import apply as released_by
from gsh.release.apply import counts_of, release, values_of
from gsh.release.errors import InvalidGroups
from gsh.release.noise import Noise
from tests.release.recorded import Recorded

COLUMNS = Aggregates(("a", "b"), ((4.0, 1.0), (1.0, 2.0**40)), Box((0.0, 0.0), (1.0, 1.0)))
MECHANISM = Mechanism(3, 5, 40.0, 10.0, aggregates=COLUMNS)


def table(groups: int) -> tuple[Any, list[Any], Any]:
    draw = np.random.default_rng(11)
    return (
        draw.integers(0, 80, groups),
        [draw.normal(size=groups), draw.integers(-9, 9, groups) * 1.0],
        draw.permutation(groups),
    )


def test_rows_are_visited_in_the_order_given_and_only_kept_ones_come_back() -> None:
    """The same bits drive the noise of the same rows, directly and through the mechanism."""
    counts, values, order = table(5000)
    noise = Noise(MECHANISM)
    direct = noise.add(counts[order], np.column_stack(values)[order], Recorded("table"))

    released = release(noise, counts, values, order, Recorded("table"))

    assert released.rows.tolist() == order[direct.kept].tolist()
    assert released.counts.tolist() == direct.counts[direct.kept].tolist()
    assert [column.tolist() for column in released.values] == direct.values[direct.kept].T.tolist()
    assert 1000 < len(released.rows) < 4000
    assert (counts[released.rows] >= 5).all()


def test_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row is visited once, whatever the size of a block."""
    counts = np.full(1000, 10**6)
    order = np.arange(1000)
    monkeypatch.setattr(released_by, "_BLOCK", 7)

    released = release(Noise(Mechanism(1, 1, 40.0, 10.0)), counts, [], order, Recorded("blocks"))

    assert released.rows.tolist() == order.tolist()


def test_no_groups_release_nothing() -> None:
    counts, values, order = table(0)
    released = release(Noise(MECHANISM), counts, values, order, Recorded("nothing"))

    assert (len(released.rows), len(released.counts), [len(column) for column in released.values]) == (0, 0, [0, 0])


@pytest.mark.parametrize(
    ("sigma", "kind"), [(2.0**20, "int64"), (1.5 * 2**20, "int64"), (2.0**21, "float64"), (10.0, "float64")]
)
def test_numbers_are_integers_where_the_grid_is_one_and_doubles_elsewhere(sigma: float, kind: str) -> None:
    noise = Noise(Mechanism(1, 1, 10.0**7, sigma))
    released = release(noise, np.full(50, 2**40), [], np.arange(50), Recorded("type"))

    assert (noise.count_grid == 1) == (kind == "int64")
    assert released.counts.dtype == kind
    assert len(set(released.counts.tolist())) > 40


def test_each_column_has_the_type_of_its_own_grid() -> None:
    counts, values, order = table(500)
    released = release(Noise(MECHANISM), counts, values, order, Recorded("types"))

    assert [column.dtype for column in (released.counts, *released.values)] == ["float64", "float64", "int64"]


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int32(), pa.int64(), pa.uint64()], ids=str)
def test_counts_of_any_integer_type_are_taken(kind: pa.DataType) -> None:
    assert counts_of(pa.array([0, 1, 127], kind), "/counts").tolist() == [0, 1, 127]


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
def test_what_is_no_count_is_refused(column: pa.Array) -> None:
    with pytest.raises(InvalidGroups) as refused:
        counts_of(column, "/counts")

    assert refused.value.pointer == "/counts"


def test_the_largest_count_is_two_to_the_53() -> None:
    assert counts_of(pa.array([2**53]), "/counts").tolist() == [2**53]


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
def test_what_is_no_aggregate_is_refused(column: pa.Array) -> None:
    """An integer that is no double would have to be rounded before the noise, which changes its sensitivity."""
    with pytest.raises(InvalidGroups) as refused:
        values_of(column, 0.5, "/values")

    assert refused.value.pointer == "/values"


@pytest.mark.parametrize("value", [1.7976931348623157e308, -5e-324, 0.1, -(2.0**60)])
def test_any_finite_double_is_an_aggregate(value: float) -> None:
    assert values_of(pa.array([value]), 0.5, "/values").tolist() == [value]


def test_an_aggregate_that_is_to_become_an_integer_must_fit_into_one() -> None:
    assert values_of(pa.array([2.0**62, -(2.0**62)]), 1.0, "/values").tolist() == [2.0**62, -(2.0**62)]
    for value in (2.0**62 * 1.0000001, -1e300):
        with pytest.raises(InvalidGroups, match="grid of 1"):
            values_of(pa.array([value]), 1.0, "/values")


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.int8(), pa.uint64()], ids=str)
def test_smaller_numbers_become_doubles_exactly(kind: pa.DataType) -> None:
    assert values_of(pa.array(np.array([0, 1, 100]).astype(kind.to_pandas_dtype())), 0.5, "/values").tolist() == [
        0,
        1,
        100,
    ]
