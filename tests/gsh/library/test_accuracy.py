"""gsh.intervals, gsh.total and gsh.utility: what goes in, what comes out, and what is refused."""

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gsh
from gsh.accuracy import utility as core
from tests.gsh.library.examples import COLUMNS, PAIRS

MECHANISM = gsh.Mechanism(c_u=3, tau=2, tau_star=1400, sigma=200, aggregates=COLUMNS)
COUNTS = [1400.5, 1600, 90000]
VALUES = {"shares": [1, 2, 3], "likes": [4.5, -5, 6]}


@pytest.mark.parametrize(
    "column",
    [np.array(COUNTS), pd.Series(COUNTS), pl.Series(COUNTS), pa.array(COUNTS), tuple(COUNTS), COUNTS],
    ids=lambda column: type(column).__module__ + "." + type(column).__name__,
)
def test_numbers_come_in_any_column(column: Any) -> None:
    expected = gsh.intervals(MECHANISM, counts=COUNTS)

    found = gsh.intervals(MECHANISM, counts=column)

    assert found.counts.low.tolist() == expected.counts.low.tolist()
    assert gsh.total(MECHANISM, counts=column).counts == gsh.total(MECHANISM, counts=COUNTS).counts


def test_what_a_release_gives_pastes_in() -> None:
    """Integers too, if the grid is 1."""
    for sigma in (200.0, 2.0**20):
        mechanism = gsh.Mechanism(c_u=3, tau_star=14 * sigma, sigma=sigma)
        private = gsh.release(mechanism, keys=range(500), counts=[int(14 * sigma)] * 500)
        found = gsh.intervals(mechanism, counts=private.counts)
        assert len(found.counts) == len(private) > 100
        assert private.counts.dtype == (np.int64 if sigma > 1000 else np.float64)


def test_each_column_has_its_own_noise_whatever_their_order() -> None:
    found = gsh.intervals(MECHANISM, counts=COUNTS, values=VALUES, level=0.5)
    totals = gsh.total(MECHANISM, counts=COUNTS, values=VALUES, level=0.5)

    widths = {name: (column.high - column.estimate)[0] for name, column in found.values.items()}
    assert list(found.values) == ["shares", "likes"]
    assert widths["likes"] / widths["shares"] == pytest.approx(2)  # their variances are 40000 and 10000
    assert totals.values["likes"].standard_error == pytest.approx(200 * 3**0.5)
    assert totals.values["likes"].estimate == 5.5


def test_some_of_the_columns_are_enough() -> None:
    assert list(gsh.intervals(MECHANISM, counts=COUNTS, values={"likes": [1, 2, 3]}).values) == ["likes"]
    assert dict(gsh.total(MECHANISM, counts=COUNTS).values) == {}


def test_nothing_in_a_result_can_be_changed() -> None:
    found, totals = gsh.intervals(MECHANISM, counts=COUNTS, values=VALUES), gsh.total(MECHANISM, counts=COUNTS)

    for made in (found, copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        with pytest.raises(ValueError, match="read-only"):
            made.counts.low[0] = 0
        with pytest.raises(TypeError):
            made.values["likes"] = made.counts
    with pytest.raises(dataclasses.FrozenInstanceError):
        totals.counts.low = 0  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(totals)).counts == totals.counts


def test_the_given_arrays_stay_as_they_were() -> None:
    counts, likes = np.array(COUNTS), np.array([1.0, 2.0, 3.0])

    gsh.intervals(MECHANISM, counts=counts, values={"likes": likes})

    assert counts.tolist() == COUNTS
    counts[0] = likes[0] = 7  # still writable


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a level below one half": ({"level": 0.4}, "level"),
    "a level of 95": ({"level": 95}, "level"),
    "a level that is a string": ({"level": "0.95"}, "level"),
    "a level that is not a number": ({"level": float("nan")}, "level"),
    "counts below the threshold": ({"counts": [1399.9]}, "counts"),
    "a count that is not a number": ({"counts": [float("nan")]}, "counts"),
    "an infinite count": ({"counts": [float("inf")]}, "counts"),
    "counts as strings": ({"counts": ["1500"]}, "counts"),
    "Booleans": ({"counts": [True]}, "counts"),
    "a missing count": ({"counts": [1500, None]}, "counts"),
    "no list": ({"counts": 1500}, "counts"),
    "a table": ({"counts": [[1500], [1600]]}, "counts"),
    "rows of different lengths": ({"counts": [[1500], [1600, 1]]}, "counts"),
    "too few values": ({"values": {"likes": [1]}}, "values/likes"),
    "values that are not finite": ({"values": {"likes": [1, 2, float("inf")]}}, "values/likes"),
    "an unknown column": ({"values": {"clicks": [1, 2, 3]}}, "values/clicks"),
    "a list of values": ({"values": [1, 2, 3]}, "values"),
}


@pytest.mark.parametrize("function", [gsh.intervals, gsh.total])
@pytest.mark.parametrize("name", REFUSED)
def test_an_error_names_the_parameter(function: Any, name: str) -> None:
    change, pointer = REFUSED[name]

    with pytest.raises(gsh.InvalidParameter) as refused:
        function(MECHANISM, **({"counts": COUNTS} | change))

    assert refused.value.pointer == pointer


def test_noise_that_is_never_drawn_has_no_intervals() -> None:
    with pytest.raises(gsh.InvalidParameter, match="standard deviation"):
        gsh.intervals(gsh.Mechanism(c_u=1, tau_star=9, sigma=1e-200), counts=[12])


def test_the_mechanism_must_be_one() -> None:
    with pytest.raises(gsh.InvalidParameter, match="mechanism"):
        gsh.intervals({"sigma": 1}, counts=[12])  # type: ignore[arg-type]


def test_the_rest_of_a_parent_has_its_columns() -> None:
    columns = gsh.Aggregates(names=["likes"], covariance=[[9]], sensitivity=gsh.box(lower=[0], upper=[1]))
    parent = gsh.PlainGaussian(c_u=1, sigma=5, aggregates=columns)
    children = gsh.Mechanism(c_u=3, tau_star=30, sigma=5, aggregates=columns)

    found = gsh.rest(parent, children, count=500, counts=[200, 100], values={"likes": (50, [20, 10])}, level=0.9)

    assert (found.level, found.counts.estimate, found.values["likes"].estimate) == (0.9, 200, 20)
    assert found.counts.low < 200 < found.counts.high


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"parent": {"c_u": 1}}, "parent"),
        ({"children": None}, "children"),
        ({"count": float("nan")}, "count"),
        ({"count": [3]}, "count"),
        ({"counts": [1.0]}, "counts"),
        ({"counts": "many"}, "counts"),
        ({"values": {"likes": (1, [2])}}, "values/likes"),
        ({"values": 3}, "values"),
        ({"level": 0.1}, "level"),
    ],
)
def test_numbers_without_a_rest_are_refused(changes: dict[str, Any], pointer: str) -> None:
    """A count below τ* was never published, and a column must be in both tables."""
    given: dict[str, Any] = {
        "parent": gsh.PlainGaussian(c_u=1, sigma=5),
        "children": gsh.Mechanism(c_u=3, tau_star=30, sigma=5),
        "count": 500,
        "counts": [200.0],
    } | changes
    with pytest.raises(gsh.InvalidParameter) as error:
        gsh.rest(given.pop("parent"), given.pop("children"), **given)

    assert error.value.pointer == pointer


SIZES, TIMES = [400, 7, 60, 1400, 7], [2, 1000, 30, 4, 500]
FORMS: dict[str, Callable[[list[int]], Any]] = {
    "list": list,
    "tuple": tuple,
    "numpy": np.array,
    "numpy objects": lambda items: [np.int16(item) for item in items],
    "pandas": pd.Series,
    "polars": pl.Series,
    "arrow": pa.array,
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("name", PAIRS)
def test_the_numbers_are_the_cores(name: str, form: Callable[[list[int]], Any]) -> None:
    mechanism, bare = PAIRS[name]
    found = gsh.utility(mechanism, sizes=form(SIZES), times=form(TIMES), below=np.int64(70), quantiles=(0.25, 0.5))
    truth = core.utility(bare, np.array(SIZES), np.array(TIMES), 70.0, (0.25, 0.5))

    assert found.sizes.tolist() == [7, 60, 400, 1400]
    assert found.times.tolist() == [1500, 30, 2, 4]
    for field in ("groups", "volume", "false_share", "relative_errors", "columns", "all_groups", "below"):
        assert getattr(found, field) == getattr(truth, field)


def test_all_sizes_or_a_histogram_of_them() -> None:
    mechanism = gsh.Mechanism(c_u=3, tau_star=120, sigma=20)
    listed = gsh.utility(mechanism, sizes=np.repeat([100, 130, 90], [3, 1, 7]))
    counted = gsh.utility(mechanism, sizes=[90, 100, 130], times=[7, 3, 1])

    assert listed.times.tolist() == [7, 3, 1]
    assert repr(listed) == repr(counted)
    assert listed.below == 120
    assert listed.quantiles == (0.5, 0.9, 0.95)


def test_the_columns_noise_is_told() -> None:
    mechanism = PAIRS["columns"][0]

    assert [(each.name, each.deviation) for each in gsh.utility(mechanism, sizes=[1500]).columns] == [
        ("likes", 200),
        ("shares", 100),
    ]
    assert mechanism.column_names == ("likes", "shares")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sizes": 5}, "sizes: must be a list or an array of integers, not int"),
        ({"sizes": "57"}, "sizes: must be a list or an array of integers, not str"),
        ({"sizes": []}, "sizes: must have at least 1 item"),
        ({"sizes": [5, 0]}, "sizes: must be integers from 1 to 2^53"),
        ({"sizes": [5, True]}, "sizes: must be integers from 1 to 2^53"),
        ({"sizes": [5, 7.0]}, "sizes: must be integers from 1 to 2^53"),
        ({"sizes": [5, None]}, "sizes: must be integers from 1 to 2^53"),
        ({"sizes": ["5", "7"]}, "sizes: must be integers from 1 to 2^53"),
        ({"sizes": [5, 10**30]}, "sizes: must be integers from 1 to 2^53"),
        ({"sizes": [5, -(10**30)]}, "sizes: must be integers from 1 to 2^53"),
        ({"sizes": np.array([5, 2**64 - 1], np.uint64)}, "sizes: must be integers from 1 to 2^53"),
        ({"sizes": np.array([5.0, 7.0])}, "sizes: must be integers from 1 to 2^53"),
        ({"sizes": np.array([True, True])}, "sizes: must be integers from 1 to 2^53"),
        ({"sizes": np.ones((2, 2), int)}, "sizes: must be integers from 1 to 2^53"),
        ({"sizes": [[5], [7]]}, "sizes: must be integers from 1 to 2^53"),
        ({"times": [1]}, "times: must have as many items as sizes"),
        ({"times": [1, 0]}, "times: must be integers from 1 to 2^53"),
        ({"times": 3}, "times: must be a list or an array of integers, not int"),
        ({"below": "9"}, "below: must be a number, not str"),
        ({"below": 0}, "below: must be greater than 0 and finite"),
        ({"quantiles": 0.5}, "quantiles: must be a list or an array of numbers, not float"),
        ({"quantiles": [0.5, 1]}, "quantiles/1: must be from 0.001 to 0.999"),
        ({"mechanism": None}, "mechanism: must be a gsh.Mechanism, not NoneType"),
    ],
    ids=lambda case: case.partition(":")[0] if isinstance(case, str) else "",
)
def test_an_invalid_argument_is_named(change: dict[str, Any], said: str) -> None:
    arguments: dict[str, Any] = {"mechanism": PAIRS["counts"][0], "sizes": [5, 7], "times": [1, 2]}

    with pytest.raises(gsh.InvalidParameter) as raised:
        gsh.utility(**arguments | change)

    assert str(raised.value) == said
