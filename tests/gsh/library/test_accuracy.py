"""gsh.intervals and gsh.total: what goes in, what comes out, and what is refused."""

import copy
import dataclasses
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gsh
from tests.gsh.library.examples import COLUMNS

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

    widths = {name: (column.high - column.low)[0] for name, column in found.values.items()}
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
