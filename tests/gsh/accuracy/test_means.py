"""Means per user: covered wherever the groups are, those of Fieller far above τ*, and never outside their range."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsh.accounting.mechanism import Aggregates, AnyMechanism, Mechanism, PlainGaussian
from gsh.accounting.sensitivity import Box
from gsh.accuracy.bounds import LARGEST_LEVEL
from gsh.accuracy.intervals import Interval, z_of
from gsh.accuracy.means import SHARE_OF_BOUND, Range, mean_intervals
from gsh.accuracy.truncation import Doubles, distances
from tests.gsh.accounting.draws import examples
from tests.gsh.accuracy.draws import fewest_covered, published
from tests.reference.precision import mp

pytestmark = pytest.mark.slow

SIGMA, TAU, TAU_STAR = 20.0, 20, 120.0
SCORES = Range(-1.0, 1.0)
SECONDS = Range(0.0, 601.0, 300.0)
"""The middle is off by half a unit."""
SIZE = 10_000
OF_TEST, OF_COUNT = 1 - SHARE_OF_BOUND, SHARE_OF_BOUND / 2
"""The shares of α with which the conditional test and the lower end of the count may fail."""


def table(deviation: float, of: Range = SCORES, *, is_public: bool = False) -> AnyMechanism:
    sensitivity = Box((of.lower - of.middle,), (of.upper - of.middle,))
    columns = Aggregates(names=("a",), covariance=((deviation**2,),), sensitivity=sensitivity)
    if is_public:
        return PlainGaussian(c_u=3, sigma=SIGMA, aggregates=columns)
    return Mechanism(c_u=3, tau=TAU, tau_star=TAU_STAR, sigma=SIGMA, aggregates=columns)


def drawn(
    mechanism: AnyMechanism, true: float, mean: float, deviation: float, of: Range = SCORES
) -> tuple[Doubles, Doubles]:
    """Published counts and sums of groups with this count and this mean."""
    rng = np.random.default_rng(4)
    if isinstance(mechanism, Mechanism):
        counts = published(np.array([true]), TAU_STAR, SIGMA, SIZE, seed=3)[:, 0]
    else:
        counts = true + SIGMA * rng.standard_normal(SIZE)
    return counts, true * (mean - of.middle) + deviation * rng.standard_normal(SIZE)


def covered(found: Interval, truth: float) -> int:
    return int(((found.low <= truth) & (truth <= found.high)).sum())


def fieller_ends(counts: Doubles, sums: Doubles, deviation: float, z: float) -> tuple[Doubles, Doubles]:
    """Its roots, as every textbook has them, for counts of more than z deviations."""
    a = counts**2 - (z * SIGMA) ** 2
    middle = counts * sums / a
    reach = z * np.sqrt((counts * deviation) ** 2 + (sums * SIGMA) ** 2 - (z * SIGMA * deviation) ** 2) / a
    return middle - reach, middle + reach


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("ratio", [0.3, 3.0])
@pytest.mark.parametrize("mean", [-0.2, 0.95])
@pytest.mark.parametrize("at", [-5, -3, 0, 2, 20])
def test_the_mean_of_a_published_group_is_covered(at: float, mean: float, ratio: float, level: float) -> None:
    """The least count is τ, which is 5 σ below τ*."""
    deviation = ratio * SIGMA
    mechanism, true = table(deviation), TAU_STAR + at * SIGMA
    counts, sums = drawn(mechanism, true, mean, deviation)
    found = mean_intervals(mechanism, 0, counts, sums, SCORES, level)

    assert covered(found, mean) >= fewest_covered(level, SIZE)


def test_a_middle_that_is_off_by_half_a_unit_is_fine() -> None:
    deviation = 3000.0
    mechanism = table(deviation, SECONDS)
    for mean in (0.0, 110.0, 601.0):
        counts, sums = drawn(mechanism, 100.0, mean, deviation, SECONDS)
        found = mean_intervals(mechanism, 0, counts, sums, SECONDS, 0.95)

        assert covered(found, mean) >= fewest_covered(0.95, SIZE)
        assert np.all((found.low >= 0) & (found.high <= 601))


@pytest.mark.parametrize("at", [-4, -2])
def test_the_interval_of_fieller_does_not_cover_below_the_threshold(at: float) -> None:
    """The tests above would find it: it forgets that noise has raised the counts."""
    deviation, true = 0.3 * SIGMA, TAU_STAR + at * SIGMA
    counts, sums = drawn(table(deviation), true, 0.95, deviation)
    low, high = fieller_ends(counts, sums, deviation, z_of(0.95))

    assert ((low <= 0.95) & (high >= 0.95)).sum() < fewest_covered(0.95, SIZE) / 2


@pytest.mark.parametrize("level", [0.5, 0.95, LARGEST_LEVEL])
def test_far_above_the_threshold_it_is_fieller_at_nearly_all_of_alpha(level: float) -> None:
    deviation = 15.0
    counts = TAU_STAR + SIGMA * np.array([16.0, 30, 1000, 1e6])
    for mean in (-0.3, 0.0, 0.7):
        found = mean_intervals(table(deviation), 0, counts, mean * counts, SCORES, level)
        low, high = fieller_ends(counts, mean * counts, deviation, z_of(1 - OF_TEST * (1 - level)))

        assert np.allclose(found.low, low, atol=1e-6 * (high - low).max())
        assert np.allclose(found.high, high, atol=1e-6 * (high - low).max())
        assert np.allclose(found.estimate, mean)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_without_noise_of_the_sum_it_is_the_interval_of_the_count(level: float) -> None:
    """s → 0: then C = b/μ, and the ends are b over those of the count, at 0.96 α."""
    deviation, counts = 1e-6 * SIGMA, TAU_STAR + SIGMA * np.array([0.6, 1, 2, 5, 20])
    sums, tail = np.full(5, 15.0), OF_TEST * (1 - level) / 2
    found = mean_intervals(table(deviation), 0, counts, sums, SCORES, level)
    low = counts - SIGMA * distances((counts - TAU_STAR) / SIGMA, math.log(tail))
    bound = counts - SIGMA * distances((counts - TAU_STAR) / SIGMA, math.log(OF_COUNT * (1 - level)))

    expected = np.minimum(15 / np.maximum(low, np.maximum(bound, TAU)), 1)
    assert np.allclose(found.high, expected, rtol=1e-4)
    assert np.allclose(found.low, 15 / (counts + z_of(1 - 2 * tail) * SIGMA), rtol=1e-4)


@given(
    st.floats(0.05, 8),
    st.floats(-6, 6),
    st.floats(0.1, 10),
    st.sampled_from([0.5, 0.95, 0.999]),
)
@examples(60)
def test_the_interval_is_what_the_test_and_the_bound_leave(t: float, q: float, ratio: float, level: float) -> None:
    """By the equation itself, in 40 digits: no mean outside is left, and the ends are."""
    deviation, alpha = ratio * SIGMA, 1 - level
    y, b = TAU_STAR + t * SIGMA, q * ratio * SIGMA
    found = mean_intervals(table(deviation), 0, np.array([y]), np.array([b]), SCORES, level)
    z, most_noise = z_of(1 - OF_TEST * alpha), z_of(1 - OF_COUNT * alpha) * deviation
    least = max(TAU, y - SIGMA * float(distances(np.array([t]), math.log(OF_COUNT * alpha))[0]))

    def is_left(mean: float, slack: float) -> bool:
        bounds = min(0.0, b - most_noise) / least - slack, max(0.0, b + most_noise) / least + slack
        x, tail = at_mean(mean, y, b, deviation)
        return bounds[0] <= mean <= bounds[1] and x >= -z - slack and tail >= (OF_TEST / 2 - slack) * alpha

    (low,), (high,) = found.low, found.high
    for mean in np.linspace(-1, 1, 81).tolist():
        if is_left(mean, -1e-6):
            assert low - 1e-6 <= mean <= high + 1e-6
    if low < high:
        assert is_left(low, 1e-3)
        assert is_left(high, 1e-3)


def at_mean(mean: float, y: float, b: float, deviation: float) -> tuple[float, float]:
    """x and R(μ)."""
    b = b if mean >= 0 else -b
    size = abs(mean)
    spread = math.hypot(deviation, size * SIGMA)
    x, whole = mp.mpf(size * y - b) / spread, mp.mpf(2)
    if size > 0:
        whole = mp.erfc((x - mp.mpf(spread) * (y - TAU_STAR) / (size * SIGMA**2)) / mp.sqrt(2))
    return float(x), float(mp.erfc(x / mp.sqrt(2)) / whole)


@given(
    st.lists(st.tuples(st.floats(-(2.0**-16), 40), st.floats(-30, 30)), min_size=1, max_size=30),
    st.floats(0.01, 100),
    st.tuples(*[st.sampled_from([0.5, 0.9, 0.95, 0.999, LARGEST_LEVEL])] * 2),
)
@examples(60)
def test_the_estimate_is_inside_and_a_higher_level_is_wider(
    pairs: list[tuple[float, float]], ratio: float, levels: tuple[float, float]
) -> None:
    deviation = ratio * SIGMA
    counts, sums = np.array([TAU_STAR + SIGMA * t for t, _ in pairs]), np.array([q * deviation for _, q in pairs])
    for mechanism in (table(deviation, SECONDS), table(deviation, SECONDS, is_public=True)):
        narrow, wide = (mean_intervals(mechanism, 0, counts, sums, SECONDS, level) for level in sorted(levels))

        for found in (narrow, wide):
            known = ~np.isnan(found.estimate)
            assert known.all() or isinstance(mechanism, PlainGaussian)
            assert np.all((found.low <= found.estimate) & (found.estimate <= found.high) | ~known)
            assert np.all((SECONDS.lower <= found.low) & (found.low <= found.high) & (found.high <= SECONDS.upper))
        assert np.all((wide.low <= narrow.low + 1e-6) & (narrow.high <= wide.high + 1e-6))


@given(st.floats(0, 12), st.floats(-8, 8), st.floats(0.1, 10), st.floats(0, 2), st.floats(0, 2))
@examples(60)
def test_rounding_is_covered(t: float, q: float, ratio: float, by_count: float, by_sum: float) -> None:
    """The interval of rounded numbers contains those of all numbers that round to them."""
    deviation, units = ratio * SIGMA, (4.0, 4.0)
    y, b = TAU_STAR + SIGMA * t, q * deviation
    corners = np.array([(y + i * by_count, b + j * by_sum) for i in (-1, 0, 1) for j in (-1, 0, 1)])
    corners = corners[corners[:, 0] >= TAU_STAR]
    for is_public in (False, True):
        mechanism = table(deviation, is_public=is_public)
        wide = mean_intervals(mechanism, 0, np.array([y]), np.array([b]), SCORES, 0.95, units)
        narrow = mean_intervals(mechanism, 0, corners[:, 0], corners[:, 1], SCORES, 0.95)

        assert np.all(wide.low <= narrow.low + 1e-9)
        assert np.all(wide.high >= narrow.high - 1e-9)


def test_an_interval_does_not_depend_on_the_others_in_its_column() -> None:
    counts, sums = drawn(table(10.0), 100.0, 0.2, 10.0)
    together = mean_intervals(table(10.0), 0, counts, sums, SCORES, 0.95)

    for place in (0, 17, SIZE - 1):
        alone = mean_intervals(table(10.0), 0, counts[place : place + 1], sums[place : place + 1], SCORES, 0.95)
        assert [alone.low[0], alone.high[0]] == [together.low[place], together.high[place]]


@pytest.mark.parametrize("true", [0.0, 15.0, 40.0, 400.0])
def test_means_of_public_groups_are_covered_also_if_nobody_is_there(true: float) -> None:
    deviation = 10.0
    mechanism = table(deviation, is_public=True)
    counts, sums = drawn(mechanism, true, 0.4, deviation)
    found = mean_intervals(mechanism, 0, counts, sums, SCORES, 0.95)

    assert covered(found, 0.4) >= fewest_covered(0.95, SIZE)
    assert np.all(np.isnan(found.estimate) == (np.abs(counts) <= z_of(0.95) * SIGMA + 2.0**-17))


@pytest.mark.parametrize("sigma", [2.0**-300, 2.0**300])
@pytest.mark.parametrize("deviation", [2.0**-300, 2.0**300])
@pytest.mark.parametrize("size", [2.0**-300, 1.0, 2.0**300])
def test_every_number_is_finite_and_in_order(sigma: float, deviation: float, size: float) -> None:
    columns = Aggregates(names=("a",), covariance=((deviation**2,),), sensitivity=Box((-1.0,), (1.0,)))
    tau_star = 2 + 7 * sigma
    mechanism = Mechanism(c_u=1, tau=0, tau_star=tau_star, sigma=sigma, aggregates=columns)
    counts = np.array([tau_star, tau_star + sigma, 1e300 + tau_star, 1.7976931348623157e308] * 3)
    sums = np.repeat([0.0, 1e308, -deviation], 4)
    found = mean_intervals(mechanism, 0, counts, sums, Range(-size, size), 0.95)

    for column in (found.low, found.estimate, found.high):
        assert np.isfinite(column).all()
    assert np.all((found.low <= found.estimate) & (found.estimate <= found.high))
