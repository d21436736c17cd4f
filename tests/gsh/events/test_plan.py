"""Plans: JSON and back, the digest, and errors that name the argument."""

import json
import math
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

import gsh
from gsh.events.lots import new_salt, salt_of_release
from gsh.events.plan import Plan, make_plan
from tests.gsh.events.tables import NASTY_PLAN, NASTY_SUMS, draws

SALT = "0123456789abcdef0123456789abcdef"
GOOD: dict[str, Any] = {
    "user": "user_id",
    "by": ["url", "country"],
    "sums": {"likes": (0, 1), "seconds": (0, 600)},
    "units": {"seconds": 2**-10},
    "c_u": 16,
    "caps": {"likes": 4},
    "salt": SALT,
}
SCHEMA = {"user_id": "string", "url": "string", "country": "string", "likes": "integer", "seconds": "double"}


@settings(max_examples=50, deadline=None)
@given(draws())
def test_a_plan_survives_json(drawn: tuple[pa.Table, dict[str, str], Plan]) -> None:
    """Also a JSON that has lost the difference between 1 and 1.0, as some databases write it."""
    plan = drawn[2]
    written = json.loads(json.dumps(plan.to_json()))
    shorter = json.loads(
        json.dumps(written), parse_float=lambda text: int(float(text)) if float(text).is_integer() else float(text)
    )

    assert Plan.from_json(written) == plan
    assert Plan.from_json(shorter).digest == plan.digest


def test_the_digest_is_of_every_part_of_a_plan() -> None:
    changes = (
        {"user": "person"},
        {"by": ["country", "url"]},
        {"sums": {"seconds": (0, 600), "likes": (0, 1)}},
        {"sums": {"likes": (0, 2), "seconds": (0, 600)}},
        {"units": {"seconds": 2**-9}},
        {"units": {"seconds": 0.01}},
        {"units": {"seconds": 0.001}},
        {"c_u": 17},
        {"caps": {"likes": 5}},
        {"tau": 2},
        {"salt": SALT[::-1]},
        {"types": {"url": "string"}},
        {"partitions": 8},
        {"names": {"count": "people"}},
        {"events": {"views": 20}},
        {"events": {"views": 21}},
        {"events": {"records": 20}},
        {"events": {"views": 20}, "caps": {"views": 4}},
        {"sums": {"likes": (0, 1)}, "means": {"seconds": (0, 600)}},
        {"sums": {"likes": (0, 1)}, "means": {"seconds": (0, 601)}},
        {"ratios": {"likes_per_second": ("likes", "seconds")}},
        {"ratios": {"per_second": ("likes", "seconds")}},
        {"ratios": {"per_second": ("likes", "count")}},
        {"round": True},
    )
    digests = {make_plan(**GOOD | change).digest for change in ({}, *changes)}

    assert len(digests) == 1 + len(changes)


def test_the_digest_is_the_same_for_every_version() -> None:
    """Certificates have it: a change here is a change of what a plan means."""
    assert NASTY_SUMS.digest == "99124364ef8e4abe04127673a8af4052d0a08a6a697a570639ee4c5ec60987dc"
    assert NASTY_SUMS.to_json()["version"] == 1
    assert make_plan(**GOOD | {"tau": None, "public_keys": "0" * 64}).to_json()["version"] == 2
    of_measures = make_plan(**GOOD | {"events": {"views": 20}, "names": {"count": "people"}})
    assert of_measures.to_json()["version"] == 3
    assert of_measures.digest == "d099deec38e8a90de4fac5f8f0e9f855338c84cd8132117e2d961289ec7ecfb2"
    assert NASTY_PLAN.to_json()["version"] == 4


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"by": []}, "by"),
        ({"by": 3}, "by"),
        ({"by": ["url", "url"]}, "by"),
        ({"by": ["url", "URL"]}, "by"),
        ({"by": ["url", "count"]}, "by"),
        ({"by": ["url", "User_ID"]}, "by"),
        ({"by": ["url", "likes_low"]}, "by"),
        ({"by": ["count_estimate"]}, "by"),
        ({"by": ["url", "likes"]}, "sums/likes"),
        ({"by": [""]}, "by/0"),
        ({"user": ""}, "user"),
        ({"user": None}, "user"),
        ({"user": "likes"}, "sums/likes"),
        ({"sums": {"likes": (0, 1), "seconds": (600, 0)}}, "sums/seconds"),
        ({"sums": {"likes": (0, 1), "seconds": (0, math.inf)}}, "sums/seconds"),
        ({"sums": {"likes": (math.nan, 1), "seconds": (0, 1)}}, "sums/likes"),
        ({"sums": {"likes": (0, 0), "seconds": (0, 1)}}, "sums/likes"),
        ({"sums": {"likes": (0.25, 0.75), "seconds": (0, 1)}}, "sums/likes"),
        ({"sums": {"likes": (0, 2**53), "seconds": (0, 1)}}, "sums/likes"),
        ({"sums": {"likes": 1, "seconds": (0, 1)}}, "sums/likes"),
        ({"sums": {"likes": ("0", 1), "seconds": (0, 1)}}, "sums/likes"),
        ({"sums": ["likes"]}, "sums"),
        ({"units": {"seconds": 0.3}}, "units/seconds"),
        ({"units": {"seconds": 0.05}}, "units/seconds"),
        ({"units": {"seconds": 1e-13}}, "units/seconds"),
        ({"units": {"seconds": 0.010000000000000002}}, "units/seconds"),
        ({"units": {"seconds": 10}}, "units/seconds"),
        ({"sums": {"seconds": (0, 2**46)}, "units": {"seconds": 0.01}, "caps": None}, "sums/seconds"),
        ({"sums": {"seconds": (0.001, 0.009)}, "units": {"seconds": 0.01}, "caps": None}, "sums/seconds"),
        ({"units": {"seconds": 0}}, "units/seconds"),
        ({"units": {"seconds": -1}}, "units/seconds"),
        ({"units": {"seconds": 2.0**-61}}, "units/seconds"),
        ({"units": {"other": 1}}, "units"),
        ({"caps": {"likes": 17}}, "caps/likes"),
        ({"caps": {"likes": 0}}, "caps/likes"),
        ({"caps": {"other": 1}}, "caps"),
        ({"events": "views"}, "events"),
        ({"events": ["views"]}, "events"),
        ({"events": {"views": 0}}, "events/views"),
        ({"events": {"views": 1.5}}, "events/views"),
        ({"events": {"views": 2**53}}, "events/views"),
        ({"events": {"": 1}}, "events/"),
        ({"events": {"likes": 1}}, "events/likes"),
        ({"events": {"Likes": 1}}, "events/Likes"),
        ({"events": {"URL": 1}}, "events/URL"),
        ({"events": {"user_id": 1}}, "events/user_id"),
        ({"events": {"count": 1}}, "events/count"),
        ({"names": "people"}, "names"),
        ({"names": {"likes": "hearts"}}, "names"),
        ({"names": {"count": ""}}, "names/count"),
        ({"names": {"count": None}}, "names/count"),
        ({"names": {"count": "User_Id"}}, "names/count"),
        ({"names": {"count": "URL"}}, "by"),
        ({"names": {"count": "likes"}}, "sums/likes"),
        ({"names": {"count": "people"}, "by": ["people_low"]}, "by"),
        ({"names": {"count": "people"}, "events": {"count": 1}}, "events/count"),
        ({"events": {"key": 1}}, "events/key"),
        ({"events": {"views": 1}, "units": {"views": 1}}, "units"),
        ({"events": {"views": 1}, "caps": {"views": 17}}, "caps/views"),
        ({"means": {"likes": (0, 1)}}, "means/likes"),
        ({"means": {"visits": (1, 1)}}, "means/visits"),
        ({"means": {"visits": (0, 0.5)}}, "means/visits"),
        ({"means": {"visits": 3}}, "means/visits"),
        ({"means": ["visits"]}, "means"),
        ({"means": {"visits": (-(2**52), 2**52)}}, "means/visits"),
        ({"means": {"visits": (0, 9)}, "events": {"visits": 9}}, "means/visits"),
        ({"means": {"visits": (0, 9)}, "events": {"visits_mean": 9}}, "means/visits"),
        ({"means": {"visits": (0, 9)}, "events": {"visits_centred": 9}}, "means/visits"),
        ({"means": {"visits": (0, 9)}, "by": ["visits_mean_low"]}, "by"),
        ({"means": {"User_ID": (0, 9)}}, "means/User_ID"),
        ({"ratios": "likes/seconds"}, "ratios"),
        ({"ratios": {"per_second": "likes/seconds"}}, "ratios/per_second"),
        ({"ratios": {"per_second": ("likes", "likes")}}, "ratios/per_second"),
        ({"ratios": {"per_second": ("count", "likes")}}, "ratios/per_second"),
        ({"ratios": {"per_second": ("likes", "views")}}, "ratios/per_second"),
        ({"ratios": {"per_second": (["likes"], "seconds")}}, "ratios/per_second"),
        ({"ratios": {"per": ("likes", "visits")}, "means": {"visits": (0, 9)}}, "ratios/per"),
        ({"ratios": {"likes": ("likes", "seconds")}}, "ratios/likes"),
        ({"ratios": {"URL": ("likes", "seconds")}}, "ratios/URL"),
        ({"ratios": {"": ("likes", "seconds")}}, "ratios/"),
        ({"ratios": {"user_id": ("likes", "seconds")}}, "ratios/user_id"),
        ({"round": 1}, "round"),
        ({"c_u": 0}, "c_u"),
        ({"c_u": 1.5}, "c_u"),
        ({"tau": -1}, "tau"),
        ({"salt": "salt"}, "salt"),
        ({"types": {"url": "text"}}, "types/url"),
        ({"types": {"url": "decimal(3,4)"}}, "types/url"),
        ({"types": {"other": "string"}}, "types"),
        ({"partitions": 0}, "partitions"),
    ],
)
def test_every_mistake_names_the_argument(change: dict[str, Any], pointer: str) -> None:
    with pytest.raises(gsh.InvalidParameter) as error:
        make_plan(**GOOD | change)

    assert error.value.pointer == pointer


@pytest.mark.parametrize(
    ("bounds", "unit", "units"),
    [
        ((0, 0.3), 0.1, (0, 3)),
        ((-0.3, 0.7), 0.1, (-3, 7)),
        ((0.29, 0.58), 0.01, (29, 58)),
        ((0.295, 0.585), 0.01, (30, 58)),
        ((0, 1e9), 1e-6, (0, 10**15)),
        ((0, 50), 0.01, (0, 5000)),
    ],
)
def test_a_decimal_unit_and_its_bounds_mean_what_they_show(
    bounds: tuple[float, float], unit: float, units: tuple[int, int]
) -> None:
    """And the range of the mechanism is never smaller than that of the exact numbers, by at most one double."""
    (measure,) = make_plan(user="u", by="k", sums={"x": bounds}, units={"x": unit}, c_u=1, salt=SALT).measures
    exact = [number * Fraction(str(unit)) for number in units]
    lower, upper = measure.range

    assert (measure.least, measure.most) == units
    assert lower <= exact[0] < math.nextafter(lower, math.inf)
    assert math.nextafter(upper, -math.inf) < exact[1] <= upper


def test_a_number_of_events_needs_a_bound_and_the_error_says_how() -> None:
    with pytest.raises(gsh.InvalidParameter, match=r"such as \{'views': 20\}"):
        make_plan(**GOOD | {"events": "views"})


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"url": None}, "by/0"),
        ({"url": "double"}, "by/0"),
        ({"user_id": "double"}, "user"),
        ({"likes": "string"}, "sums/likes"),
        ({"likes": "double"}, "units/likes"),
        ({"likes": "decimal(10,2)"}, "units/likes"),
        ({"price": "double"}, "units/price"),
        ({"price": "decimal(38,19)"}, "units/price"),
        ({"price": "string"}, "sums/price"),
    ],
)
def test_columns_must_have_types_that_engines_agree_on(change: dict[str, str | None], pointer: str) -> None:
    price = {"sums": GOOD["sums"] | {"price": (0, 1)}, "units": GOOD["units"] | {"price": 0.01}}
    plan, schema = make_plan(**GOOD | price), SCHEMA | {"price": "decimal(38,18)"}
    assert plan.kinds_in(schema | {"another": None}) == schema
    assert plan.default_kinds()["price"] == "decimal(18,2)"

    with pytest.raises(gsh.InvalidParameter) as error:
        plan.kinds_in(schema | change)

    assert error.value.pointer == pointer


@pytest.mark.parametrize(("column", "pointer"), [("user_id", "user"), ("country", "by/1"), ("likes", "sums/likes")])
def test_unknown_columns_are_refused(column: str, pointer: str) -> None:
    with pytest.raises(gsh.InvalidParameter) as error:
        make_plan(**GOOD).kinds_in({name: kind for name, kind in SCHEMA.items() if name != column})

    assert error.value.pointer == pointer


@pytest.mark.parametrize("change", [{"version": 2}, {"sums": 1}, {"sums": [{}]}, {"more": 1}])
def test_a_json_that_is_no_plan_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(gsh.InvalidParameter):
        Plan.from_json(make_plan(**GOOD).to_json() | change)


def test_the_salt_of_a_release_is_its_own() -> None:
    """The same if the job runs again; another one for another name or budget, or without a name."""
    assert salt_of_release("web", "2026-W46") == salt_of_release("web", "2026-W46")
    salts = {salt_of_release("web", "2026-W46"), salt_of_release("web", "2026-W47"), salt_of_release("app", "2026-W46")}
    assert len({*salts, salt_of_release(None, "2026-W46"), new_salt(), new_salt()}) == 6
