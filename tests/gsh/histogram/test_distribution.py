"""A million draws from recorded bits have the distribution they should; planted faults do not."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import binom, chi2

from gsh.accounting.mechanism import Aggregates, Mechanism
from gsh.accounting.sensitivity import Box
from gsh.histogram.noise import Noise
from tests.gsh.histogram.recorded import Recorded
from tests.normality import UNLIKELY, kolmogorov_smirnov

pytestmark = pytest.mark.slow

DRAWS = 1_000_000
SIGMA = 7.3
COVARIANCE = ((400.0, 150.0, 0.0), (150.0, 100.0, -20.0), (0.0, -20.0, 900.0))

Doubles = NDArray[np.float64]


@pytest.fixture(scope="module")
def standard() -> Doubles:
    """Noise on counts, in units of σ."""
    noise = Noise(Mechanism(c_u=1, tau=1, tau_star=1e9, sigma=SIGMA))
    return noise.add(np.full(DRAWS, 10), np.empty((DRAWS, 0)), Recorded("distribution")).counts / SIGMA - 10 / SIGMA


@pytest.fixture(scope="module")
def columns() -> Doubles:
    aggregates = Aggregates(names=("a", "b", "c"), covariance=COVARIANCE, sensitivity=Box((0.0,) * 3, (1.0,) * 3))
    noise = Noise(Mechanism(c_u=1, tau=1, tau_star=1e9, sigma=SIGMA, aggregates=aggregates))
    values = np.full((DRAWS, 3), 0.1)
    noisy = noise.add(np.full(DRAWS, 10), values, Recorded("columns"))
    return np.column_stack([noisy.counts - 10, noisy.values - values])


def tail_count(sample: Doubles, beyond: float) -> float:
    """The two-sided p-value of how many are further out than that."""
    seen, expected = int((np.abs(sample) > beyond).sum()), 2 * ndtr(-beyond)
    return float(2 * min(binom.cdf(seen, len(sample), expected), binom.sf(seen - 1, len(sample), expected)))


def whiteness(sample: Doubles, covariance: Doubles) -> float:
    """The p-value of the sample covariance, by the χ² of the squared, whitened entries."""
    whitened = np.linalg.solve(np.linalg.cholesky(covariance), sample.T)
    moments = whitened @ whitened.T / sample.shape[0] - np.eye(sample.shape[1])
    scale = np.where(np.eye(len(moments), dtype=bool), 2.0, 1.0)
    upper = np.triu_indices(len(moments))
    statistic = float((moments**2 / scale)[upper].sum() * sample.shape[0])
    return float(chi2.sf(statistic, len(upper[0])))


def full_covariance() -> Doubles:
    covariance = np.zeros((4, 4))
    covariance[0, 0] = SIGMA**2
    covariance[1:, 1:] = COVARIANCE
    return covariance


def test_the_noise_is_normal(standard: Doubles) -> None:
    assert kolmogorov_smirnov(standard) > UNLIKELY


@pytest.mark.parametrize("beyond", [3.0, 4.0, 4.5])
def test_the_tails_have_the_right_weight(standard: Doubles, beyond: float) -> None:
    assert tail_count(standard, beyond) > UNLIKELY


def test_columns_have_the_covariance_and_are_independent_of_the_count(columns: Doubles) -> None:
    assert whiteness(columns, full_covariance()) > UNLIKELY


def test_each_column_is_normal(columns: Doubles) -> None:
    for j in range(4):
        assert kolmogorov_smirnov(columns[:, j] / np.sqrt(full_covariance()[j, j])) > UNLIKELY


def test_groups_are_independent_of_their_neighbours(standard: Doubles) -> None:
    """The correlation at lags 1 to 3 and across chunks is within chance."""
    for lag in (1, 2, 3, 15 << 10):
        correlation = float((standard[lag:] * standard[:-lag]).mean())
        assert abs(correlation) < 5 / np.sqrt(DRAWS)


def test_the_statistics_notice_planted_faults(standard: Doubles, columns: Doubles) -> None:
    """A σ off by one or two per cent, tails cut at 4, a correlation lost or with the wrong sign: each is detected."""
    assert kolmogorov_smirnov(standard * 1.02) < UNLIKELY
    assert tail_count(np.clip(standard, -4, 4), 4.0) < UNLIKELY
    assert whiteness(columns * [1, -1, 1, 1], full_covariance()) < UNLIKELY
    lost = columns.copy()
    lost[:, 2] = np.roll(lost[:, 2], 1)
    assert whiteness(lost, full_covariance()) < UNLIKELY
    assert whiteness(columns * [1.01, 1, 1, 1], full_covariance()) < UNLIKELY
