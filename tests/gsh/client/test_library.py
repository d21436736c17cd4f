"""Code moves between ``gsh.…`` and ``service.…`` without change: the same calls, the same values, to the last digit."""

import asyncio
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gsh
from tests.app.process import Service

pytestmark = pytest.mark.slow

MECHANISM = gsh.Mechanism(c_u=51914, tau=1, tau_star=13948, sigma=2228)
SENSITIVITIES = [
    gsh.box(lower=[0, -1], upper=[1, 5]),
    gsh.l1(2),
    gsh.l2(1.5),
    gsh.vectors([[1, 0], [1, 1]]),
]
COLUMNS = [
    gsh.Aggregates(names=["likes", "shares"], covariance=[[400, 10], [10, 100]], sensitivity=each)
    for each in SENSITIVITIES
]
RELATIVE = [
    gsh.RelativeAggregates(names=["a/b", "~"], relative_covariance=[[1, 0], [0, 0.25]], sensitivity=each)
    for each in SENSITIVITIES
]
WIDE = gsh.Aggregates(names=["likes"], covariance=[[10**6]], sensitivity=gsh.l1(2))
SUMS = {"views": (0, 20), "likes": (0, 5)}
CAPPED = gsh.Mechanism(
    c_u=16,
    tau_star=130,
    sigma=20,
    aggregates=gsh.Aggregates(
        names=["views", "likes"],
        covariance=[[10**4, 0], [0, 10**3]],
        sensitivity=gsh.box(lower=[0, 0], upper=[5, 1], groups=[None, 4]),
    ),
)

TABLES = {
    "by_url": gsh.Mechanism(c_u=16, tau_star=161.5, sigma=29.27),
    "detail": CAPPED,
    "by_day": gsh.PlainGaussian(c_u=2, sigma=11),
}
LEVELS = {
    "by_country": gsh.Table(c_u=1, tau=None),
    "by_url": gsh.Table(c_u=16, share=2),
    "detail": gsh.Table(c_u=np.int64(16), tau=3, sums=SUMS, caps={"likes": 4}, share=0.5),
}
FIXED = gsh.Aggregates(names=["likes"], covariance=[[36]], sensitivity=gsh.l1(1))

PLAN = gsh.SurveyPlan((gsh.SurveyNoise(42.25),), mu_squared=0.0548, hazard=7.9e-7)

SAME: dict[str, Callable[[Any], Any]] = {
    "exact": lambda to: to.exact(MECHANISM, epsilon=0.349),
    "exact at delta": lambda to: to.exact(MECHANISM, delta=np.float64(1.1e-5)),
    "no finite epsilon": lambda to: to.exact(MECHANISM, delta=1e-6),
    "curve": lambda to: to.exact(MECHANISM, epsilon=np.linspace(0, 1, 7)),
    "inverse curve": lambda to: to.add_deltas(MECHANISM, delta=[1e-3, 1e-5, 1e-7]),
    "no curve": lambda to: to.exact(MECHANISM, epsilon=[]),
    "add deltas": lambda to: to.add_deltas(MECHANISM, epsilon=-0.0),
    "mu_0": lambda to: to.exact(gsh.Mechanism(c_u=3, tau_star=90, sigma=17, mu_0=0.01), epsilon=1),
    "calibrate": lambda to: to.calibrate(c_u=51914, epsilon=0.349, delta=1e-5),
    "calibrate c_u": lambda to: to.calibrate(tau_star=15000, sigma=2300, epsilon=0.349, delta=1e-5),
    "calibrate sigma": lambda to: to.calibrate(c_u=51914, tau_star=14900, epsilon=0.349, delta=1e-5),
    "calibrate tau_star": lambda to: to.calibrate(c_u=np.int64(51914), sigma=2400, tau=7, epsilon=0.349, delta=1e-5),
    "calibrate mu_0": lambda to: to.calibrate(c_u=5, mu_0=0.01, epsilon=1, delta=1e-6),
    "calibrate by adding": lambda to: to.calibrate(c_u=5, epsilon=1, delta=1e-6, accounting="add-deltas"),
    "compare": lambda to: to.compare(c_u=51914, epsilon=0.349, delta=1e-5),
    "compare, not all": lambda to: to.compare(c_u=100, mu_0=0.0236, epsilon=1, delta=1e-6),
    **{
        f"columns {place}": lambda to, columns=columns: to.add_deltas(
            gsh.Mechanism(c_u=3, tau_star=120, sigma=20, aggregates=columns), epsilon=1
        )
        for place, columns in enumerate(COLUMNS)
    },
    **{
        f"calibrate columns {place}": lambda to, columns=columns: to.calibrate(
            c_u=5, epsilon=1, delta=1e-6, aggregates=columns
        )
        for place, columns in enumerate([*RELATIVE, WIDE])
    },
    "sums": lambda to: to.calibrate(c_u=16, epsilon=1, delta=1e-6, sums=SUMS),
    "sums with caps": lambda to: to.calibrate(c_u=16, epsilon=1, delta=1e-6, sums=SUMS, caps={"likes": 4}),
    "sums with weights": lambda to: to.calibrate(
        c_u=16, epsilon=1, delta=1e-6, sums=SUMS, weights={"likes": np.float64(2)}, accounting="add-deltas"
    ),
    "largest c_u of sums": lambda to: to.calibrate(sigma=100, tau_star=700, epsilon=1, delta=1e-6, sums=SUMS),
    "capped": lambda to: to.exact(
        gsh.Mechanism(c_u=30, tau_star=300, sigma=40, mu_0=0.01, capped={4: 0.02, 9: 1e-5}), epsilon=[0.5, 1]
    ),
    "capped columns": lambda to: to.exact(CAPPED, epsilon=1),
    "calibrate capped": lambda to: to.calibrate(c_u=30, epsilon=1, delta=1e-6, capped={4: 0.02}),
    "compare sums": lambda to: to.compare(c_u=16, epsilon=1, delta=1e-6, sums=SUMS, caps={"likes": 4}),
    "compare capped": lambda to: to.compare(c_u=16, epsilon=1, delta=1e-6, mu_0=0.01, capped={2: 0.03}),
    "compare capped, not without": lambda to: to.compare(c_u=100, epsilon=1, delta=1e-6, capped={2: 0.03}),
    "compare capped columns": lambda to: to.compare(
        c_u=16,
        epsilon=1,
        delta=1e-6,
        aggregates=gsh.RelativeAggregates(
            names=["likes"], relative_covariance=[[0.5]], sensitivity=gsh.box(lower=[0], upper=[1], groups=[3])
        ),
    ),
    "exact tables": lambda to: to.exact(TABLES, epsilon=[0.01, 1]),
    "exact tables at delta": lambda to: to.exact(TABLES, delta=1e-3),
    "add deltas of tables": lambda to: to.add_deltas(TABLES, epsilon=1),
    "exact, public groups": lambda to: to.exact(gsh.PlainGaussian(c_u=2, sigma=11), epsilon=1),
    "calibrate tables": lambda to: to.calibrate_tables(LEVELS, epsilon=1, delta=1e-6),
    "calibrate balanced tables": lambda to: to.calibrate_tables(LEVELS, epsilon=1, delta=1e-6, shares="balanced"),
    "compare tables": lambda to: to.compare_tables(LEVELS, epsilon=1, delta=1e-6),
    "compare tables, not all": lambda to: to.compare_tables(
        {"a": gsh.Table(c_u=1, aggregates=FIXED), "b": gsh.Table(c_u=16)}, epsilon=1, delta=1e-6
    ),
    "exact after a survey": lambda to: to.exact(MECHANISM, epsilon=[0.1, 0.349], survey=gsh.SurveyNoise(98)),
    "exact after two surveys": lambda to: to.exact(
        TABLES, delta=1e-3, survey=(gsh.SurveyNoise(98), gsh.SurveyNoise(9))
    ),
    "add deltas after a survey": lambda to: to.add_deltas(MECHANISM, epsilon=0.349, survey=PLAN),
    "calibrate before a survey": lambda to: to.calibrate(c_u=64, epsilon=1, delta=1e-6, survey=gsh.SurveyShare(0.01)),
    "calibrate after a survey": lambda to: to.calibrate(c_u=300, epsilon=1, delta=1e-6, survey=PLAN),
    "calibrate tables before surveys": lambda to: to.calibrate_tables(
        LEVELS, epsilon=1, delta=1e-6, survey=[gsh.SurveyShare(0.01), gsh.SurveyNoise(50)]
    ),
    "compare columns": lambda to: to.compare(c_u=5, tau=2, epsilon=1, delta=1e-6, aggregates=RELATIVE[0]),
}


@pytest.mark.parametrize("name", SAME)
def test_the_service_gives_what_the_library_gives(service: gsh.Client, running: Service, name: str) -> None:
    async def awaited() -> Any:
        async with gsh.AsyncClient(running.url) as client:
            return await SAME[name](client)

    expected = SAME[name](gsh)
    for found in (SAME[name](service), asyncio.run(awaited())):
        assert type(found) is type(expected)
        assert found == expected
        assert repr(found) == repr(expected)


UTILITY: dict[str, Callable[[Any], Any]] = {
    "histogram": lambda to: to.utility(MECHANISM, sizes=[10, 5000, 14000, 10**5], times=[10**6, 900, 90, 8]),
    "sizes": lambda to: to.utility(CAPPED, sizes=np.arange(1, 300) % 140 + 1, quantiles=(0.5, 0.999), below=90),
    "none": lambda to: to.utility(gsh.Mechanism(c_u=1, tau=50, tau_star=90, sigma=1), sizes=[3, 3, 4]),
}


@pytest.mark.parametrize("name", UTILITY)
def test_the_service_tells_the_same_utility(service: gsh.Client, name: str) -> None:
    expected, found = UTILITY[name](gsh), UTILITY[name](service)

    assert repr(found) == repr(expected)
    for field in dataclasses.fields(expected):
        assert np.array_equal(getattr(found, field.name), getattr(expected, field.name)), field.name
    assert found.columns == expected.columns
    assert not found.probabilities.flags.writeable


PUBLISHED: dict[str, Callable[[Any], Any]] = {
    "counts": lambda to: to.intervals(MECHANISM, counts=[13950.5, 15000, 10**6]),
    "values": lambda to: to.intervals(CAPPED, counts=np.array([131, 400]), values={"likes": [7, -3.5]}, level=0.99),
    "nothing": lambda to: to.intervals(CAPPED, counts=[]),
    "total": lambda to: to.total(CAPPED, counts=[131.5, 400, 150], values={"views": [1, 2, 3], "likes": [7, 8, 9]}),
    "rounded": lambda to: to.intervals(
        CAPPED, counts=[131, 400], values={"likes": [7, 3.5]}, is_rounded=True, units={"likes": 0.5}
    ),
    "total of rounded": lambda to: to.total(CAPPED, counts=range(140, 200), is_rounded=True),
    "total of many": lambda to: to.total(MECHANISM, counts=np.linspace(13948, 10**6, 2000), level=0.5),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_service_says_the_same_of_published_numbers(service: gsh.Client, name: str) -> None:
    expected, found = PUBLISHED[name](gsh), PUBLISHED[name](service)

    assert type(found) is type(expected)
    assert repr(found) == repr(expected)
    for column, other in [
        (found.counts, expected.counts),
        *((found.values[n], expected.values[n]) for n in found.values),
    ]:
        for field in dataclasses.fields(other):
            assert np.array_equal(getattr(column, field.name), getattr(other, field.name))


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 10**18),
    st.floats(1e-3, 1e6),
    st.floats(1e-3, 1e6),
    st.floats(0, 50),
    st.floats(1e-300, 0.99),
)
def test_points_are_the_same_to_the_last_digit(
    service: gsh.Client, c_u: int, sigma: float, gap: float, epsilon: float, delta: float
) -> None:
    mechanism = gsh.Mechanism(c_u=c_u, tau_star=1 + gap, sigma=sigma)

    assert service.exact(mechanism, epsilon=epsilon) == gsh.exact(mechanism, epsilon=epsilon)
    assert service.exact(mechanism, delta=[delta]) == gsh.exact(mechanism, delta=[delta])


AVERAGED = gsh.Mechanism(
    c_u=3,
    tau_star=120,
    sigma=20,
    aggregates=gsh.Aggregates(
        names=["seconds_centred", "likes", "views"],
        covariance=[[36e6, 0, 0], [0, 400, 0], [0, 0, 900]],
        sensitivity=gsh.box(lower=[-300, 0, 0], upper=[300, 5, 20]),
    ),
)
NUMBERS: dict[str, Any] = {
    "counts": [150, 400],
    "values": {"seconds_centred": [-9000, -60000], "likes": [310, 95], "views": [1240, 50]},
}
AVERAGES: dict[str, Callable[[Any], Any]] = {
    "means": lambda to: to.means(AVERAGED, **NUMBERS, means={"seconds": (0, 600), "likes": (0, 5)}, level=0.9),
    "ratios": lambda to: to.ratios(AVERAGED, **NUMBERS, ratios={"x": ("likes", "views"), "y": ("views", "count")}),
    "rounded": lambda to: to.means(
        AVERAGED, **NUMBERS, means={"seconds": (0, 600)}, is_rounded=True, units={"seconds_centred": 0.5}
    ),
}


@pytest.mark.parametrize("name", AVERAGES)
def test_the_service_says_the_same_of_means_and_ratios(service: gsh.Client, name: str) -> None:
    """Also where an end is infinite, and where there is no estimate."""
    expected, found = AVERAGES[name](gsh), AVERAGES[name](service)

    assert list(found) == list(expected)
    for column, other in expected.items():
        for end in ("low", "estimate", "high"):
            assert np.array_equal(getattr(found[column], end), getattr(other, end), equal_nan=True)


def test_a_calibration_brings_its_survey(service: gsh.Client) -> None:
    found = service.calibrate(c_u=64, epsilon=1, delta=1e-6, survey=gsh.SurveyShare(0.01))

    assert service.exact(found, epsilon=1) == found.privacy
    assert service.exact(found.mechanism, epsilon=1).delta < found.privacy.delta


@pytest.mark.parametrize("survey", [3, [], [gsh.SurveyShare(0.5)] * 2, gsh.SurveyNoise(1), [gsh.SurveyShare(0.1)] * 65])
def test_the_same_surveys_are_refused(service: gsh.Client, survey: Any) -> None:
    errors = []
    for to in (gsh, service):
        with pytest.raises(gsh.Error) as error:
            to.calibrate(c_u=64, epsilon=1, delta=1e-6, survey=survey)  # type: ignore[attr-defined]
        errors.append(error.value)

    assert {error.pointer.removeprefix("/") for error in errors} == {"survey"}


NAMES = ["exact", "add_deltas", "calibrate", "calibrate_tables", "compare", "compare_tables", "utility", "intervals"]


@pytest.mark.parametrize("name", [*NAMES, "total", "means", "ratios"])
def test_the_functions_of_the_library_have_the_same_parameters(name: str) -> None:
    """A new parameter of the library must come to the client as well."""
    of_library = inspect.signature(getattr(gsh, name)).parameters
    for kind in (gsh.Client, gsh.AsyncClient):
        _, *of_client = inspect.signature(getattr(kind, name)).parameters.values()
        assert {each.name: each.default for each in of_client} == {
            each.name: each.default for each in of_library.values()
        }


@pytest.mark.parametrize("sigma", [4.0, 2.0**21])
def test_lists_of_groups_come_back_as_groups(service: gsh.Client, sigma: float) -> None:
    """As integers if the grid is 1, with read-only arrays, sorted, and with a certificate."""
    columns = gsh.Aggregates(names=["likes"], covariance=[[sigma**2]], sensitivity=gsh.box(lower=[0], upper=[1]))
    mechanism = gsh.Mechanism(c_u=2, tau_star=8 * sigma, sigma=sigma, aggregates=columns)
    counts = np.array([100, 200, 0]) * int(sigma)
    given = {"keys": [("b", 1.0), "a", None], "counts": counts, "values": {"likes": [1.5, 2.5, 3.5]}}
    expected, found = gsh.release(mechanism, **given), service.release(mechanism, **given)

    assert found.keys == expected.keys == ("a", ("b", 1))
    assert found.counts.dtype == expected.counts.dtype
    assert found.values["likes"].dtype == expected.values["likes"].dtype
    assert np.all(np.abs(found.counts - expected.counts) < 20 * sigma)
    assert not found.counts.flags.writeable
    assert isinstance(found, gsh.Groups)
    assert found.certificate.mu == mechanism.mu
    copied = pickle.loads(pickle.dumps(found))
    assert (list(copied), copied.certificate) == (list(found), found.certificate)
    nothing = service.release(mechanism, keys=[], counts=[], values={"likes": []})
    assert (len(nothing), nothing.counts.dtype) == (0, expected.counts.dtype)


def test_a_table_comes_back_as_a_table(service: gsh.Client) -> None:
    mechanism = gsh.Mechanism(c_u=2, tau_star=30, sigma=4)
    table = pa.table({"url": ["b", "a"], "users": [500, 600]})
    for call in (gsh.release, service.release):
        found = call(mechanism, table, key_columns=["url"], count_column="users")
        assert isinstance(found, pa.Table)
        assert found["url"].to_pylist() == ["a", "b"]
        named = call(mechanism=mechanism, table=table, key_columns=["url"], count_column="users")
        assert named.schema.equals(found.schema)


def test_an_error_about_tables_names_the_table(service: gsh.Client) -> None:
    """As the library does, by its name and not by its place in the request."""
    levels = {
        "by url": gsh.Table(c_u=1),
        "b": gsh.Table(c_u=16, aggregates=gsh.Aggregates(names=["likes"], covariance=[[1e-6]], sensitivity=gsh.l1(1))),
    }
    named = {"a": levels["by url"], "b": levels["b"]}
    for to in (gsh, service):
        with pytest.raises(gsh.InfeasibleTarget, match=r"^tables/b/aggregates: must have more noise"):
            to.calibrate_tables(named, epsilon=1, delta=1e-6)  # type: ignore[attr-defined]
    with pytest.raises(gsh.InvalidParameter, match=r"^tables/by url: must be 1 to 64"):
        service.calibrate_tables(levels, epsilon=1, delta=1e-6)


def test_a_budget_previews_and_plans_several_tables(service: gsh.Client, budget: str) -> None:
    service.budgets.put(budget, epsilon=1, delta=1e-6, reason="smaller")
    found = service.calibrate_tables(LEVELS, epsilon=1, delta=1e-6)

    assert service.budgets.preview(budget, found).fits
    assert service.budgets.preview(budget, found.tables) == service.budgets.preview(budget, found)
    plan = service.budgets.calibrate_tables(budget, LEVELS, releases=3)
    assert (plan.budget, plan.releases, list(plan.tables)) == (budget, 3, list(LEVELS))
    assert sum(plan.shares.values()) == pytest.approx(1)
    assert service.budgets.preview(budget, plan.tables).more == 3
    divided = service.budgets.put(budget, epsilon=1, delta=1e-6, mechanism=plan.tables, reason="divided")
    assert divided.limit.mu_squared is not None


def test_tables_are_charged_once_and_opened_with_one_certificate(service: gsh.Client, budget: str) -> None:
    found = service.calibrate_tables(LEVELS, epsilon=1, delta=1e-6)

    charges = [service.budgets.charge(budget, found, once=f"{budget}-a") for _ in range(2)]
    assert [charge.is_replayed for charge in charges] == [False, True]
    opened = service.releases.open(found.tables, budget=budget, once=f"{budget}-b", delta=1e-6)
    assert [table["name"] for table in opened.certificate["tables"]] == list(LEVELS)
    assert opened.seed == service.releases.open(found.tables, budget=budget, once=f"{budget}-b", delta=1e-6).seed
