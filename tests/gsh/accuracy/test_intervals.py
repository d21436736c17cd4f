"""Intervals of published numbers: exact by the reference, of the stated coverage, and monotone."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_ndtr, ndtr, ndtri

import gsh
from benchmarks import coverage
from gsh.accounting.grid import count_grid
from gsh.accounting.mechanism import Aggregates, Mechanism
from gsh.accounting.sensitivity import Box, L2Norm, Vectors
from gsh.accuracy.bounds import LARGEST_LEVEL, LEAST_LEVEL
from gsh.accuracy.intervals import Interval, count_intervals, half_steps, value_intervals
from gsh.accuracy.totals import value_total
from gsh.accuracy.truncation import distances, hazard
from tests.gsh.accounting.draws import examples
from tests.gsh.accuracy.draws import Doubles, fewest_covered, most_covered, published
from tests.reference.precision import mp
from tests.reference.truncation import ends

pytestmark = pytest.mark.slow

ACCURACY = Path(__file__).parents[3] / "docs" / "accuracy.md"
SIGMA, TAU_STAR = 84.5, 495.0
MECHANISM = Mechanism(c_u=10, tau=1, tau_star=TAU_STAR, sigma=SIGMA)
OF_SINGLES = 1 - 0.1 * (1 - LARGEST_LEVEL) / 29
"""The largest level that a total asks for: that of a single count among 29."""
LEVELS = [LEAST_LEVEL, 0.95, 0.999, LARGEST_LEVEL, OF_SINGLES]
COLUMNS = Aggregates(names=("a", "b"), covariance=((4.0, 1.0), (1.0, 9.0)), sensitivity=Box((-1.0, -1.0), (1.0, 1.0)))


def covered(interval: Interval, truth: float) -> int:
    return int(((interval.low <= truth) & (truth <= interval.high)).sum())


@pytest.mark.parametrize("level", [LEAST_LEVEL, 0.95, LARGEST_LEVEL, OF_SINGLES])
def test_every_end_is_within_a_billionth_of_sigma_of_the_reference(level: float) -> None:
    """For t from 0 to 10⁶, wherever the exact end is not cut."""
    mechanism = Mechanism(c_u=10, tau=1, tau_star=1e6, sigma=1.0)
    steps = np.concatenate([[0, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 0.5, 1, 2, 4], 2.0 ** np.arange(5, 20, 7)])
    counts = np.concatenate([mechanism.tau_star + steps, [2e6]])
    counts = np.append(counts, mechanism.tau_star - 2.0**-21)  # rounded down to the grid
    half = half_steps(count_grid(mechanism), counts)

    found = count_intervals(mechanism, counts, level)

    judged = 0
    for place, count in enumerate(counts.tolist()):
        exact = ends(count, mechanism.tau_star, mechanism.sigma, level, float(half[place]))
        for name, end in zip(("low", "estimate", "high"), exact, strict=True):
            got = float(getattr(found, name)[place])
            if end > 1:
                assert abs(mp.mpf(got) - end) < 1e-9, (name, count)
                judged += 1
            else:
                assert got == 1, (name, count)
    assert judged > 30


@pytest.mark.parametrize("level", LEVELS)
def test_the_table_is_the_root_between_and_at_its_nodes(level: float) -> None:
    """Against the equation itself, at random t on a scale of ratios, also where pieces meet."""
    alpha = 1 - level
    spread = np.exp(np.random.default_rng(3).uniform(math.log(1e-3), math.log(20), 3000))
    pieces = np.concatenate([2.0**octave * (1 + np.arange(8) / 8) for octave in range(-9, 4)])
    t = np.concatenate([spread, pieces, np.nextafter(pieces, 0)])
    for log_q in (math.log(alpha / 2), math.log(0.5), math.log1p(-alpha / 2)):
        d = distances(t, log_q)

        lost = log_ndtr(-d) - log_ndtr(t - d)

        # An error of x changes the logarithm by the difference of two hazards; both logarithms are rounded.
        slope = hazard(d) - hazard(d - t)
        rounding = 4e-15 * (np.abs(log_ndtr(-d)) + 1e-4)
        assert np.all(np.abs(lost - log_q) <= 1e-9 * slope + rounding)


def test_far_above_the_threshold_it_is_the_naive_interval() -> None:
    counts = TAU_STAR + SIGMA * np.array([20.0, 1e3, 1e9])

    found = count_intervals(MECHANISM, counts, 0.95)

    z = -ndtri(0.025)
    assert found.estimate.tolist() == counts.tolist()
    assert np.allclose(found.high - counts, z * SIGMA, rtol=1e-6)
    assert np.allclose(counts - found.low, z * SIGMA, rtol=1e-6)


@pytest.mark.parametrize("true", [1, 150, 300, 400, 450, 495, 540, 600, 700, 2000])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_it_covers_the_true_count_of_a_published_group(true: int, level: float) -> None:
    """Far below, at and far above τ*. A true count of max(τ, 1) is always the lower end at the least."""
    size = 40_000
    counts = published(np.array([float(true)]), TAU_STAR, SIGMA, size, seed=true)[:, 0]

    hits = covered(count_intervals(MECHANISM, counts, level), true)

    assert hits >= fewest_covered(level, size)
    assert hits <= most_covered(level + (1 - level) / 2 if true == 1 else level, size)


def naive(counts: Doubles, level: float) -> Interval:
    reach = -float(ndtri((1 - level) / 2)) * SIGMA
    return Interval(counts - reach, counts, counts + reach)


@pytest.mark.parametrize("true", [300, 400])
def test_the_test_of_coverage_would_find_a_wrong_formula(true: int) -> None:
    """y ± 1.96 σ is one: it covers no group of 300 users, and 81 % of those of 400. So is a lost tail."""
    size = 40_000
    counts = published(np.array([float(true)]), TAU_STAR, SIGMA, size, seed=true)[:, 0]
    one_sided = count_intervals(MECHANISM, counts, 0.9)

    assert covered(naive(counts, 0.95), true) < fewest_covered(0.95, size)
    assert covered(one_sided, true) < fewest_covered(0.95, size)


@pytest.mark.parametrize("true", [300, 400, 495, 600])
def test_half_of_the_estimates_are_too_large(true: int) -> None:
    size = 40_000
    counts = published(np.array([float(true)]), TAU_STAR, SIGMA, size, seed=7)[:, 0]

    above = int((count_intervals(MECHANISM, counts, 0.95).estimate > true).sum())

    assert fewest_covered(0.5, size) <= above <= most_covered(0.5, size)
    assert (counts > true).sum() > most_covered(0.5, size)  # the published counts themselves


@given(
    t=st.floats(-(2.0**-21), 60),
    further=st.floats(0, 30),
    levels=st.tuples(st.sampled_from(LEVELS), st.sampled_from(LEVELS)),
)
@examples(100)
def test_it_rises_with_the_count_and_widens_with_the_level(
    t: float, further: float, levels: tuple[float, float]
) -> None:
    mechanism = Mechanism(c_u=10, tau=3, tau_star=50.0, sigma=8.0)
    counts = 50.0 + 8.0 * np.array([t, t + further])
    found, broader = (count_intervals(mechanism, counts, level) for level in sorted(levels))

    slack = 1e-9 * 8
    assert np.all(found.low <= found.estimate + slack)
    assert np.all(found.estimate <= found.high + slack)
    assert found.low[0] >= 3
    for column in (found.low, found.estimate, found.high):
        assert column[0] <= column[1] + slack
    assert np.all(broader.low <= found.low + slack)
    assert np.all(broader.high >= found.high - slack)


@given(st.integers(0, 2**53), st.floats(2.0**-300, 2.0**300), st.sampled_from(LEVELS))
@examples(50)
def test_every_number_is_finite_and_in_order(tau: int, sigma: float, level: float) -> None:
    tau_star = math.nextafter(max(tau, 1) + 7 * sigma, math.inf)
    counts = np.array([tau_star, tau_star + sigma, 1e300 + tau_star, 1.7976931348623157e308])

    found = count_intervals(Mechanism(c_u=1, tau=tau, tau_star=tau_star, sigma=sigma), counts, level)

    for column in (found.low, found.estimate, found.high):
        assert np.isfinite(column).all()
    assert np.all(found.low <= found.high)
    assert np.all(found.low >= max(tau, 1))


def test_an_interval_does_not_depend_on_the_others_in_its_column() -> None:
    counts = published(np.linspace(100, 900, 500), TAU_STAR, SIGMA, 100, seed=1).ravel()
    together = count_intervals(MECHANISM, counts, 0.95)

    for place in (0, 17, 16_384, 49_999):
        alone = count_intervals(MECHANISM, counts[place : place + 1], 0.95)
        assert [alone.low[0], alone.high[0]] == [together.low[place], together.high[place]]


def test_values_have_their_own_noise_and_no_threshold() -> None:
    mechanism = Mechanism(c_u=10, tau=1, tau_star=50.0, sigma=8.0, aggregates=COLUMNS)
    values = np.array([-3.5, 0.0, 1e6])

    found = value_intervals(mechanism, 1, values, 0.95)

    reach = -float(ndtri(0.025)) * 3 + 2.0**-19 / 2
    assert found.estimate.tolist() == values.tolist()
    assert np.allclose(found.high - values, reach, rtol=1e-9)
    assert np.allclose(values - found.low, reach, rtol=1e-9)


def test_the_largest_values_stay_finite() -> None:
    mechanism = Mechanism(c_u=10, tau=1, tau_star=50.0, sigma=8.0, aggregates=COLUMNS)
    largest = np.finfo(np.float64).max

    found = value_intervals(mechanism, 0, np.array([largest, -largest]), 0.95)

    assert np.isfinite(found.low).all()
    assert np.isfinite(found.high).all()


def test_rounding_to_the_grid_is_covered() -> None:
    """The interval of a rounded count contains the interval of every count that rounds to it."""
    step = count_grid(MECHANISM)
    ideal = published(np.array([450.0]), TAU_STAR, SIGMA, 2000, seed=2)[:, 0]
    rounded = np.rint(ideal / step) * step
    unwidened = np.maximum(ideal - SIGMA * distances((ideal - TAU_STAR) / SIGMA, math.log(0.025)), 1)

    assert (rounded != ideal).any()
    assert np.all(count_intervals(MECHANISM, rounded, 0.95).low <= unwidened + 1e-9)


def test_the_documents_show_the_lengths_that_the_benchmark_prints() -> None:
    assert coverage.lengths() in ACCURACY.read_text()


def test_the_probability_of_publication_explains_the_threshold() -> None:
    """A check of the draws themselves: their distribution is the normal one beyond τ*."""
    counts = published(np.array([400.0]), TAU_STAR, SIGMA, 100_000, seed=4)[:, 0]
    beyond = (600 - 400) / SIGMA
    share = float(ndtr(-beyond) / ndtr((400 - TAU_STAR) / SIGMA))

    assert fewest_covered(share, 100_000) <= (counts >= 600).sum() <= most_covered(share, 100_000)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_counts_of_public_groups_have_plain_normal_intervals(level: float) -> None:
    """They have no threshold. No true count is below 0, so no end is."""
    public = gsh.PlainGaussian(c_u=1, sigma=10)
    counts = np.array([-100.0, -3.0, 0.0, 5.0, 1000.0])
    z = ndtri((1 + level) / 2)

    found = gsh.intervals(public, counts=counts, level=level).counts

    half = count_grid(public) / 2
    assert found.low == pytest.approx(np.maximum(counts - 10 * z - half, 0))
    assert found.estimate == pytest.approx(np.maximum(counts, 0))
    assert found.high == pytest.approx(np.maximum(counts + 10 * z + half, 0))


def test_intervals_of_public_groups_cover_the_true_counts() -> None:
    """Also those of empty groups, which are cut at 0."""
    public, draws = gsh.PlainGaussian(c_u=1, sigma=10), 4000
    for true in (0, 5, 200):
        keys = [str(number) for number in range(draws)]
        counts = gsh.release(public, keys=keys, counts=[true] * draws, public_keys="posted").counts
        found = gsh.intervals(public, counts=counts, level=0.9).counts
        share = covered(found, true) / draws
        assert share > 0.9 - 5 * math.sqrt(0.09 / draws)


@pytest.mark.parametrize("sigma", [2.0, 20.0])
def test_rounded_counts_are_covered_if_the_intervals_are_widened(sigma: float) -> None:
    """And only then, near τ* at a high level: also where half a unit is little next to the noise."""
    size, level = 40_000, 0.999
    mechanism = Mechanism(c_u=10, tau=1, tau_star=1 + 8 * sigma, sigma=sigma)
    true = mechanism.tau_star - sigma
    rounded = np.rint(published(np.array([true]), mechanism.tau_star, sigma, size, seed=5)[:, 0])

    assert covered(count_intervals(mechanism, rounded, level, 1.0), true) >= fewest_covered(level, size)
    assert covered(count_intervals(mechanism, rounded, level), true) < fewest_covered(level, size)


SENSITIVITIES = {
    "at least 0": (Box((0.0, 0.0), (5.0, 5.0)), 0.0, math.inf),
    "at least 2": (Box((0.0, 2.0), (5.0, 5.0)), 14.0, math.inf),
    "at least 2, with a cap": (Box((0.0, 2.0), (5.0, 5.0), (None, 3)), 0.0, math.inf),
    "at most −2": (Box((0.0, -3.0), (5.0, -2.0)), -math.inf, -14.0),
    "anything": (Box((0.0, -1.0), (5.0, 5.0)), -math.inf, math.inf),
    "a norm": (L2Norm(3.0), -math.inf, math.inf),
    "vectors": (Vectors(((1.0, 3.0), (0.0, 2.0))), 14.0, math.inf),
}


@pytest.mark.parametrize("name", SENSITIVITIES)
def test_values_are_cut_to_what_is_certain(name: str) -> None:
    """Each of at least 7 users adds at least so much. A public group may have no users."""
    sensitivity, least, most = SENSITIVITIES[name]
    columns = Aggregates(names=("a", "b"), covariance=((4.0, 0.0), (0.0, 900.0)), sensitivity=sensitivity)
    values = np.array([-500.0, 0.0, 500.0])
    for mechanism, users in (
        (Mechanism(c_u=10, tau=7, tau_star=50.0, sigma=8.0, aggregates=columns), 7),
        (gsh.PlainGaussian(c_u=10, sigma=8.0, aggregates=columns), 0),
    ):
        found = value_intervals(mechanism, 1, values, 0.95)
        total = value_total(mechanism, 1, values - 500, 0.95, "values")
        low, high = (end if math.isinf(end) else end * users / 7 for end in (least, most))

        reach = -float(ndtri(0.025)) * 30
        expected = [np.clip(values + shift, low, high) for shift in (-reach, 0, reach)]
        assert np.allclose([found.low, found.estimate, found.high], expected, atol=1e-4)
        assert [total.low, total.high] == pytest.approx(
            np.clip([-1500 - reach * 3**0.5, -1500 + reach * 3**0.5], 3 * low, 3 * high).tolist(), rel=1e-5
        )
