"""Ratios of two sums: Fieller's set in all its cases, exactly covered, and cut to what is possible."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import means
from gsh.accounting.mechanism import Aggregates, PlainGaussian
from gsh.accounting.sensitivity import Box
from gsh.accuracy.intervals import Interval, z_of
from gsh.accuracy.ratios import NoisyNumbers, fieller, ratio_intervals
from gsh.accuracy.truncation import Doubles
from tests.gsh.accounting.draws import examples
from tests.gsh.accuracy.draws import fewest_covered, most_covered

pytestmark = pytest.mark.slow

SIZE = 20_000
EVERYTHING = (-math.inf, math.inf)
NONE = np.zeros(1)


def mechanism(first: float, second: float, covariance: float = 0.0) -> PlainGaussian:
    columns = Aggregates(
        names=("a", "b"),
        covariance=((first**2, covariance), (covariance, second**2)),
        sensitivity=Box((-1.0, -1.0), (1.0, 1.0)),
    )
    return PlainGaussian(c_u=1, sigma=1, aggregates=columns)


def alone(
    u: float, v: float, possible: tuple[float, float] = EVERYTHING, correlation: float = 0.0, level: float = 0.95
) -> tuple[float, float, float]:
    """The interval of one ratio of numbers with noise of deviation 1."""
    found = fieller(
        NoisyNumbers(np.array([u]), 1.0, NONE), NoisyNumbers(np.array([v]), 1.0, NONE), correlation, level, possible
    )
    return float(found.low[0]), float(found.estimate[0]), float(found.high[0])


def covered(found: Interval, truth: float) -> int:
    return int(((found.low <= truth) & (truth <= found.high)).sum())


def drawn(pair: tuple[float, float], deviations: tuple[float, float], covariance: float) -> tuple[Doubles, Doubles]:
    matrix = [[deviations[0] ** 2, covariance], [covariance, deviations[1] ** 2]]
    rows = np.random.default_rng(8).multivariate_normal(pair, matrix, SIZE)
    return rows[:, 0], rows[:, 1]


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("pair", [(2.0, 40.0), (0.0, 3.0), (9.0, 10.0), (-30.0, 200.0)])
@pytest.mark.parametrize("covariance", [0.0, -3.0, 5.0])
def test_the_ratio_is_covered(pair: tuple[float, float], covariance: float, level: float) -> None:
    """Exactly so, where the set is an interval; otherwise the gap is filled, which covers more."""
    deviations = (2.0, 3.0)
    numbers = drawn(pair, deviations, covariance)
    found = ratio_intervals(mechanism(*deviations, covariance), (0, 1), numbers, level)

    hits = covered(found, pair[0] / pair[1])
    assert hits >= fewest_covered(level, SIZE)
    if pair[1] >= 40:
        assert hits <= most_covered(level, SIZE)


def test_the_test_of_coverage_would_find_noise_that_is_taken_as_independent() -> None:
    numbers = drawn((30.0, 40.0), (2.0, 3.0), -5.0)
    found = ratio_intervals(mechanism(2.0, 3.0), (0, 1), numbers, 0.95)

    assert covered(found, 0.75) < fewest_covered(0.95, SIZE)


@given(
    st.tuples(st.floats(-9, 9), st.floats(-9, 9)),
    st.floats(-0.95, 0.95),
    st.tuples(st.floats(-5, 5), st.floats(-5, 5)),
    st.sampled_from([0.5, 0.95, 0.9999]),
)
@examples(150)
def test_the_interval_is_what_the_set_spans(
    pair: tuple[float, float], correlation: float, ends: tuple[float, float], level: float
) -> None:
    """By the definition of the set at many ratios."""
    (u, v), (least, most), z = pair, sorted(ends), z_of(level)
    low, _, high = alone(u, v, (least, most), correlation, level)
    ratios = np.linspace(least, most, 2001)
    inside = ratios[(u - ratios * v) ** 2 <= z**2 * (1 - 2 * ratios * correlation + ratios**2)]
    step = (most - least) / 2000

    assert least <= low <= high <= most
    if len(inside):
        assert low <= inside.min() + 1e-9
        assert high >= inside.max() - 1e-9
        assert low >= inside.min() - step - 1e-9
        assert high <= inside.max() + step + 1e-9
    else:
        assert high - low <= step + 1e-9


def test_what_a_small_second_number_leaves() -> None:
    for u in (1, 9):  # everything; two pieces, and the gap is filled
        low, estimate, high = alone(u, 1)
        assert (low, high) == EVERYTHING
        assert math.isnan(estimate)
    low, _, high = alone(9, 1, (0, math.inf))
    assert (9 - low) ** 2 == pytest.approx(z_of(0.95) ** 2 * (1 + low**2))  # at least
    assert high == math.inf
    z = z_of(0.95)
    assert alone(9, z, (0, math.inf))[::2] == (pytest.approx((81 - z * z) / (18 * z)), math.inf)  # A = 0
    assert alone(-9, z)[::2] == (-math.inf, pytest.approx(-(81 - z * z) / (18 * z)))


def test_nothing_left_is_the_nearest_end() -> None:
    assert alone(90, 30, (0, 1)) == (1, 1, 1)
    assert alone(-90, 30, (0, 1)) == (0, 0, 0)
    low, high = alone(9, 1, (-1, 1))[::2]  # both pieces are outside; that of positive ratios is nearer
    assert (low, high) == (1, 1)
    assert alone(-9, 1, (-1, 1))[::2] == (-1, -1)


def test_far_from_0_it_is_the_estimate_with_its_normal_error() -> None:
    low, estimate, high = alone(3e5, 1e6)

    assert estimate == pytest.approx(0.3)
    assert high - low == pytest.approx(2 * z_of(0.95) * math.hypot(1, 0.3) / 1e6, rel=1e-6)


@given(
    st.tuples(st.floats(-9, 9), st.floats(-9, 9)),
    st.floats(0.01, 3),
    st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
    st.sampled_from([EVERYTHING, (0.0, math.inf), (-0.5, 2.0)]),
)
@examples(150)
def test_rounding_is_covered(
    pair: tuple[float, float], half: float, moved: tuple[float, float], possible: tuple[float, float]
) -> None:
    """The interval of rounded numbers contains those of all numbers that round to them, wherever they are."""
    halves = np.array([half])
    first, second = (NoisyNumbers(np.array([number]), 1.0, halves) for number in pair)
    wide = fieller(first, second, 0.0, 0.95, possible)
    low, _, high = alone(pair[0] + half * moved[0], pair[1] + half * moved[1], possible)

    assert wide.low[0] <= low + 1e-9
    assert wide.high[0] >= high - 1e-9


@pytest.mark.parametrize("size", [2.0**-300, 1.0, 2.0**300])
@pytest.mark.parametrize("deviation", [2.0**-300, 2.0**300])
def test_extreme_numbers_have_ordered_ends(size: float, deviation: float) -> None:
    numbers = np.array([-size, 0.0, size, 1e308])
    pairs = np.array([(one, other) for one in numbers for other in numbers])
    found = ratio_intervals(mechanism(deviation, 1.0), (0, 1), (pairs[:, 0], pairs[:, 1]), 0.95)

    assert not np.isnan(found.low).any()
    assert np.all(found.low <= found.high)


def test_the_documents_show_the_ratios_that_the_benchmark_prints() -> None:
    assert means.ratios() in (Path(__file__).parents[3] / "docs" / "accuracy.md").read_text()
