"""gsh.means and gsh.ratios, and numbers that were rounded: what goes in, what comes out, and what is refused."""

import pickle
from typing import Any

import numpy as np
import pytest

import gsh
from gsh.accuracy.means import Range, mean_intervals
from gsh.accuracy.ratios import ratio_intervals

COLUMNS = gsh.Aggregates(
    names=["seconds_centred", "likes", "views"],
    covariance=[[36e6, 0, 0], [0, 400, 0], [0, 0, 900]],
    sensitivity=gsh.box(lower=[-300, 0, 0], upper=[301, 5, 20], groups=[None, 2, None]),
)
MECHANISM = gsh.Mechanism(c_u=3, tau=2, tau_star=120, sigma=20, aggregates=COLUMNS)
PUBLIC = gsh.PlainGaussian(c_u=3, sigma=20, aggregates=COLUMNS)
COUNTS = [120.5, 150, 4000]
VALUES = {"views": [1240, 50, 9e4], "likes": [310, 95, -3], "seconds_centred": [-9000, 0, 6e5]}
MEANS = {"seconds": (0, 601)}
RATIOS = {"per_view": ("likes", "views")}
ENDS = ("low", "estimate", "high")


def same(found: gsh.Interval, other: gsh.Interval) -> bool:
    return all(np.array_equal(getattr(found, end), getattr(other, end), equal_nan=True) for end in ENDS)


@pytest.mark.parametrize("mechanism", [MECHANISM, PUBLIC])
def test_a_mean_is_that_of_its_column_around_the_middle_of_its_box(mechanism: Any) -> None:
    """The column has the name of the mean and _centred. The middle follows from the box: 301 here, not 300.5."""
    found = gsh.means(mechanism, counts=COUNTS, values=VALUES, means=MEANS, level=0.9)
    numbers = np.array(COUNTS), np.array(VALUES["seconds_centred"], float)

    assert list(found) == ["seconds"]
    assert same(found["seconds"], mean_intervals(mechanism, 0, *numbers, Range(0, 601, 300), 0.9))


def test_a_plain_sum_has_a_mean_too() -> None:
    """Its middle is 0. So is the least mean, also with a cap: beyond it a user adds 0."""
    found = gsh.means(MECHANISM, counts=COUNTS, values=VALUES, means={"views": (0, 20), "likes": (0, 5)})

    assert found["views"].estimate[2] == pytest.approx(20)  # cut
    assert found["likes"].low[2] == 0


def test_a_ratio_has_two_columns_or_a_column_and_the_count() -> None:
    found = gsh.ratios(MECHANISM, counts=COUNTS, values=VALUES, ratios=RATIOS | {"per_user": ("views", "count")})
    numbers = np.array(VALUES["likes"], float), np.array(VALUES["views"], float)

    assert same(found["per_view"], ratio_intervals(MECHANISM, (1, 2), numbers, 0.95))
    assert same(
        found["per_user"], gsh.means(MECHANISM, counts=COUNTS, values=VALUES, means={"views": (0, 20)})["views"]
    )


def test_a_ratio_is_cut_to_what_users_can_add() -> None:
    """No user has fewer than 1 or more than 4 views, so a user has at most 5 likes for each."""
    for lower, most in ((1, 5), (0, np.inf)):
        columns = gsh.Aggregates(
            names=["likes", "views"],
            covariance=[[400, 0], [0, 900]],
            sensitivity=gsh.box(lower=[0, lower], upper=[5, 4]),
        )
        mechanism = gsh.Mechanism(c_u=3, tau_star=120, sigma=20, aggregates=columns)
        numbers = {"likes": [3, -500], "views": [2, 500]}
        found = gsh.ratios(mechanism, counts=[130, 130], values=numbers, ratios=RATIOS)["per_view"]

        assert found.low.tolist() == [0, 0]
        assert found.high.tolist() == [most, 0]


def test_the_results_cannot_be_changed() -> None:
    found = gsh.means(MECHANISM, counts=COUNTS, values=VALUES, means=MEANS)

    with pytest.raises(TypeError):
        found["seconds"] = found["seconds"]  # type: ignore[index]
    with pytest.raises(ValueError, match="read-only"):
        pickle.loads(pickle.dumps(found["seconds"])).low[0] = 1


def functions() -> dict[str, Any]:
    """Each takes published numbers that may be rounded, and has an interval of every number as a list."""

    def listed(found: Any) -> list[gsh.Interval | gsh.Total]:
        return [found.counts, *found.values.values()]

    def of_rest(mechanism: Any, *, counts: Any, values: Any, **more: Any) -> Any:
        pairs = {name: (column[0], column) for name, column in values.items()}
        return listed(gsh.rest(PUBLIC, mechanism, count=9000, counts=counts, values=pairs, **more))

    return {
        "intervals": lambda *args, **more: listed(gsh.intervals(*args, **more)),
        "total": lambda *args, **more: listed(gsh.total(*args, **more)),
        "rest": of_rest,
        "means": lambda *args, **more: list(gsh.means(*args, means=MEANS, **more).values()),
        "ratios": lambda *args, **more: list(gsh.ratios(*args, ratios=RATIOS, **more).values()),
    }


@pytest.mark.parametrize("name", functions())
@pytest.mark.parametrize("mechanism", [MECHANISM, PUBLIC])
def test_intervals_of_rounded_numbers_contain_those_of_what_was_rounded(mechanism: Any, name: str) -> None:
    function, values = functions()[name], VALUES | {"likes": [310.3, 95.3, 7.8]}
    rounded = {column: np.rint(numbers) for column, numbers in values.items()} | {"likes": np.array([310.5, 95.5, 8])}
    narrow = function(mechanism, counts=[121.3, 150.4, 4000], values=values)
    wide = function(mechanism, counts=[121, 150, 4000], values=rounded, is_rounded=True, units={"likes": 0.5})

    for one, other in zip(narrow, wide, strict=True):
        assert np.all(np.asarray(other.low) <= np.asarray(one.low))
        assert np.all(np.asarray(other.high) >= np.asarray(one.high))
        assert np.any(np.asarray(other.low) < np.asarray(one.low)) or name == "ratios"


def test_a_rounded_count_may_be_half_a_unit_below_the_threshold() -> None:
    mechanism = gsh.Mechanism(c_u=1, tau_star=120.4, sigma=20)
    gsh.intervals(mechanism, counts=[120], is_rounded=True)

    for counts, rounded, less in (([119], True, "half a unit"), ([120], False, "noise grid")):
        with pytest.raises(gsh.InvalidParameter, match=less):
            gsh.intervals(mechanism, counts=counts, is_rounded=rounded)


REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "means as a list": (gsh.means, {"means": ["seconds"]}, "means"),
    "a range of one number": (gsh.means, {"means": {"seconds": (5,)}}, "means/seconds"),
    "a range as a text": (gsh.means, {"means": {"seconds": "0:"}}, "means/seconds"),
    "a range that is turned": (gsh.means, {"means": {"seconds": (601, 0)}}, "means/seconds"),
    "a range that is not the box": (gsh.means, {"means": {"seconds": (0, 600)}}, "means/seconds"),
    "a mean of no column": (gsh.means, {"means": {"clicks": (0, 1)}}, "means/clicks"),
    "a mean of values that are not there": (gsh.means, {"means": MEANS, "values": {"likes": [1, 2, 3]}}, "values"),
    "means of means": (gsh.means, {"means": {"seconds": (float("nan"), 1)}}, "means/seconds"),
    "one column": (gsh.ratios, {"ratios": {"x": ("likes",)}}, "ratios/x"),
    "the same column twice": (gsh.ratios, {"ratios": {"x": ("likes", "likes")}}, "ratios/x"),
    "the count above": (gsh.ratios, {"ratios": {"x": ("count", "likes")}}, "ratios/x/0"),
    "no such column": (gsh.ratios, {"ratios": {"x": ("likes", "clicks")}}, "ratios/x/1"),
    "a text": (gsh.ratios, {"ratios": {"x": "likes/views"}}, "ratios/x"),
    "units of exact numbers": (gsh.means, {"means": MEANS, "units": {"likes": 2}}, "units"),
    "units of no column": (gsh.means, {"means": MEANS, "is_rounded": True, "units": {"x": 2}}, "units/x"),
    "a unit of 0": (gsh.means, {"means": MEANS, "is_rounded": True, "units": {"likes": 0}}, "units/likes"),
    "units as a number": (gsh.means, {"means": MEANS, "is_rounded": True, "units": 2}, "units"),
    "a flag that is none": (gsh.means, {"means": MEANS, "is_rounded": 1}, "is_rounded"),
    "counts below the threshold": (gsh.ratios, {"ratios": RATIOS, "counts": [1, 130, 150]}, "counts"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_error_names_the_parameter(name: str) -> None:
    function, changes, pointer = REFUSED[name]

    with pytest.raises(gsh.InvalidParameter) as refused:
        function(MECHANISM, **({"counts": COUNTS, "values": VALUES} | changes))

    assert refused.value.pointer == pointer


def test_a_mean_needs_a_box() -> None:
    columns = gsh.Aggregates(names=["seconds_centred"], covariance=[[9]], sensitivity=gsh.l2(3))
    mechanism = gsh.Mechanism(c_u=3, tau_star=120, sigma=20, aggregates=columns)
    values = {"seconds_centred": [3]}

    with pytest.raises(gsh.InvalidParameter, match="box"):
        gsh.means(mechanism, counts=[130], values=values, means={"seconds": (-3, 3)})
    found = gsh.ratios(mechanism, counts=[130], values=values, ratios={"x": ("seconds_centred", "count")})["x"]
    assert -3 <= found.low[0] < found.high[0] <= 3
