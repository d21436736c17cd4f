"""gsh.utility is the core's: the same numbers for lists, arrays and columns, and errors by parameter name."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gsh
from gsh.accuracy import utility as core
from tests.gsh.library.examples import PAIRS

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
