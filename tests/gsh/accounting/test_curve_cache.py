"""The cache of curve points: the same answers, bounded, and never one mechanism's value for another."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gsh.accounting.accountings import ADD_DELTAS, EXACT, Accounting, Point, at_delta, at_epsilon
from gsh.accounting.curve_cache import CurveCache, Variable
from gsh.accounting.mechanism import Aggregates, Mechanism
from gsh.accounting.numerics.doubles import next_above
from gsh.accounting.sensitivity import Box, L2Norm
from tests.gsh.accounting.draws import cases, examples, mechanism_of
from tests.reference import Case

MECHANISM = Mechanism(c_u=10, tau=5, tau_star=30.0, sigma=4.0, mu_0=0.25)
ACCOUNTINGS = (EXACT, ADD_DELTAS)


@pytest.mark.parametrize("accounting", ACCOUNTINGS, ids=lambda accounting: accounting.name)
@pytest.mark.parametrize("variable", ["epsilon", "delta"])
def test_a_cached_point_is_the_point(accounting: Accounting, variable: Variable) -> None:
    """First and second time, for ε and for δ of the same value."""
    cache = CurveCache(8)
    evaluate = {"epsilon": at_epsilon, "delta": at_delta}[variable]

    for _ in range(2):
        assert cache.point(accounting, MECHANISM, variable, 0.5) == evaluate(accounting, MECHANISM, 0.5)
    assert (cache.hits, cache.misses) == (1, 1)


def test_hits_and_misses_are_counted() -> None:
    """Metrics read them."""
    cache = CurveCache(8)
    for epsilon in (0.1, 0.2, 0.1, 0.1, 0.3):
        cache.point(EXACT, MECHANISM, "epsilon", epsilon)

    assert (cache.hits, cache.misses) == (2, 3)


def test_an_equal_mechanism_built_anew_hits() -> None:
    """The key is the value, so that requests share points."""
    cache = CurveCache(8)
    for _ in range(2):
        aggregates = Aggregates(names=("spend",), covariance=((4.0,),), sensitivity=Box((0.0,), (6.0,)))
        cache.point(EXACT, Mechanism(c_u=10, tau=5, tau_star=30.0, sigma=4.0, aggregates=aggregates), "epsilon", 1.0)

    assert (cache.hits, cache.misses) == (1, 1)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_the_least_recently_used_point_is_dropped_and_no_other(size: int) -> None:
    """The cache keeps ``size`` points, so memory is bounded."""
    cache = CurveCache(size)
    epsilons = [0.1 * k for k in range(size + 1)]
    for epsilon in epsilons[:size]:
        cache.point(EXACT, MECHANISM, "epsilon", epsilon)
    cache.point(EXACT, MECHANISM, "epsilon", epsilons[0])  # now the most recent point
    assert (cache.hits, cache.misses) == (1, size)

    cache.point(EXACT, MECHANISM, "epsilon", epsilons[size])
    kept = [*epsilons[2:], *(epsilons[:1] if size > 1 else [])]
    for epsilon in kept:
        cache.point(EXACT, MECHANISM, "epsilon", epsilon)
    assert (cache.hits, cache.misses) == (1 + len(kept), size + 1)

    cache.point(EXACT, MECHANISM, "epsilon", epsilons[1] if size > 1 else epsilons[0])
    assert cache.misses == size + 2


def test_a_cache_of_size_zero_keeps_nothing() -> None:
    """Caching can be switched off."""
    cache = CurveCache(0)
    for _ in range(3):
        assert cache.point(EXACT, MECHANISM, "epsilon", 1.0) == at_epsilon(EXACT, MECHANISM, 1.0)

    assert (cache.hits, cache.misses) == (0, 3)


@examples(150)
@given(
    case=cases(),
    field=st.sampled_from(["c_u", "tau", "tau_star", "sigma", "mu_0"]),
    accounting=st.sampled_from(ACCOUNTINGS),
)
def test_neighbouring_mechanisms_never_share_a_point(case: Case, field: str, accounting: Accounting) -> None:
    """One ulp, or one integer, in a single field makes another mechanism."""
    mechanism = mechanism_of(case)
    value = getattr(mechanism, field)
    neighbour_value = value + 1 if isinstance(value, int) else next_above(value)
    assume(field != "tau" or neighbour_value < mechanism.tau_star)
    assume(field != "c_u" or neighbour_value <= 10**18)
    neighbour = replace(mechanism, **{field: neighbour_value})
    cache = CurveCache(8)

    for asked in (mechanism, neighbour, mechanism, neighbour):
        assert cache.point(accounting, asked, "epsilon", case.epsilon) == at_epsilon(accounting, asked, case.epsilon)
    assert (cache.hits, cache.misses) == (2, 2)


def test_neighbouring_queries_never_share_a_point() -> None:
    """Nor do two methods, two variables, or two values an ulp apart."""
    cache = CurveCache(16)
    asked = [
        (accounting, variable, value)
        for accounting in ACCOUNTINGS
        for variable in ("epsilon", "delta")
        for value in (0.5, next_above(0.5))
    ]
    points: list[Point] = [cache.point(accounting, MECHANISM, variable, value) for accounting, variable, value in asked]

    assert (cache.hits, cache.misses) == (0, len(asked))
    for (accounting, variable, value), point in zip(asked, points, strict=True):
        assert point == {"epsilon": at_epsilon, "delta": at_delta}[variable](accounting, MECHANISM, value)


@pytest.mark.parametrize(
    "other",
    [
        Aggregates(
            names=("spend", "visits"),
            covariance=((4.0, 1.0), (1.0, 2.0)),
            sensitivity=Box((0.0, 0.0), (next_above(6.0), 1.0)),
        ),
        Aggregates(
            names=("spend", "visits"),
            covariance=((next_above(4.0), 1.0), (1.0, 2.0)),
            sensitivity=Box((0.0, 0.0), (6.0, 1.0)),
        ),
        Aggregates(names=("spend", "visits"), covariance=((4.0, 1.0), (1.0, 2.0)), sensitivity=L2Norm(6.0)),
    ],
    ids=["sensitivity", "covariance", "kind"],
)
def test_mechanisms_that_differ_in_their_aggregates_never_share_a_point(other: Aggregates) -> None:
    """Σ and the sensitivity are part of the key."""
    cache = CurveCache(8)
    first = Aggregates(
        names=("spend", "visits"), covariance=((4.0, 1.0), (1.0, 2.0)), sensitivity=Box((0.0, 0.0), (6.0, 1.0))
    )

    for aggregates in (first, other):
        mechanism = Mechanism(c_u=10, tau=5, tau_star=30.0, sigma=4.0, aggregates=aggregates)
        assert cache.point(EXACT, mechanism, "epsilon", 1.0) == at_epsilon(EXACT, mechanism, 1.0)
    assert (cache.hits, cache.misses) == (0, 2)


def test_a_wide_covariance_is_no_part_of_the_key() -> None:
    """A point depends on μ₀, not on the columns behind it, so the cache does not keep them."""
    aggregates = Aggregates(names=("spend",), covariance=((4.0,),), sensitivity=Box((0.0,), (6.0,)))
    mechanism = Mechanism(c_u=10, tau=5, tau_star=30.0, sigma=4.0, aggregates=aggregates)
    cache = CurveCache(8)
    with_columns = cache.point(EXACT, mechanism, "epsilon", 1.0)

    assert mechanism.without_columns == Mechanism(c_u=10, tau=5, tau_star=30.0, sigma=4.0, mu_0=aggregates.mu_0)
    assert cache.point(EXACT, mechanism.without_columns, "epsilon", 1.0) is with_columns
    assert (cache.hits, cache.misses) == (1, 1)
