"""Means per user of published groups, given that they were published.  [docs/accuracy.md, section 8]

A column has the sum of x − m over the users of each group, with m near the middle of the range of x. A published group
has the count y and the sum b, with noise of the deviations σ and s. Its mean is θ = m + μ with μ = Σ (x − m)/C. Only
groups with y ≥ τ* are published, which ties b/y to μ. Two things are known of μ, and the interval is what they share:

- The conditional test rejects the true μ with probability 0.96 α. Without a threshold, |μ| y ∓ b (− for μ > 0) would be
  normal around 0 with the variance ν² = s² + μ² σ². Given publication, and a sum that is independent of it, it is cut
  ν t below what was seen. So this is uniform on (0, 1):

      R(μ) = Φ̄(x)/Φ̄(x − t),   x = (|μ| y ∓ b)/ν,   t = ν (y − τ*)/(|μ| σ²).

- The bound fails with probability 0.04 α: C is at least c, and the noise of b is at most z₂ s. So μ ≥ (b − z₂ s)/c if
  that is negative, and μ ≤ (b + z₂ s)/c if that is positive.

The far end is sought from the outside. If x at both ends of a range of μ exceeds the quantile of the range's outer end,
it does so in all of the range: x rises, or rises and falls, and the quantile rises. So each step rejects a range, and
after every step the end is valid. The near end is Fieller's: a μ that is too small without a threshold is too small.

Public groups have no threshold. Their means are ratios (ratios.py).
"""

import math
from typing import NamedTuple

import numpy as np

from gsh.accounting.grid import count_grid, value_grids
from gsh.accounting.mechanism import AnyMechanism, Mechanism
from gsh.accounting.numerics.doubles import LARGEST_DOUBLE
from gsh.accuracy.intervals import Interval, count_intervals, deviation_of, half_steps, z_of
from gsh.accuracy.ratios import NoisyNumbers, fieller, in_deviations
from gsh.accuracy.truncation import Doubles, distances

__all__ = ["SHARE_OF_BOUND", "Range", "mean_intervals"]

SHARE_OF_BOUND = 0.04
"""The share of α with which the bound may fail, half of it for C and half for the noise of the sum."""
_MOST_STEPS = 100
_CLOSE = 1e-12


class Range(NamedTuple):
    """What one user has: at least ``lower``, at most ``upper``. The column has the sum of x − ``middle``."""

    lower: float
    upper: float
    middle: float = 0.0


def mean_intervals(
    mechanism: AnyMechanism,
    place: int,
    counts: Doubles,
    sums: Doubles,
    of: Range,
    level: float,
    units: tuple[float, float] = (0.0, 0.0),
) -> Interval:
    """The intervals of the means per user, from published counts and the published sums of x − middle.

    ``units`` are what the counts and the sums were rounded to. For public groups an estimate is NaN where the count may
    be 0.
    """
    deviation = deviation_of(mechanism, place)
    half_sums = half_steps(value_grids(mechanism)[place], sums, units[1])
    half_counts = half_steps(count_grid(mechanism), counts, units[0])
    least, most = of.lower - of.middle, of.upper - of.middle
    if isinstance(mechanism, Mechanism):
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            given = _Counts(mechanism, counts, half_counts, level, units[0])
            low = -_upper_ends(given, deviation, half_sums - sums, -least)
            high = _upper_ends(given, deviation, half_sums + sums, most)
            low = np.clip(low, least, most)
            high = np.maximum(np.clip(high, least, most), low)
            estimate = np.clip(sums / given.estimates, low, high)
    else:
        found = fieller(
            NoisyNumbers(sums, deviation, half_sums),
            NoisyNumbers(counts, mechanism.sigma, half_counts),
            0.0,
            level,
            (least, most),
        )
        low, estimate, high = found.low, found.estimate, found.high
    return Interval(*(np.clip(end + of.middle, of.lower, of.upper) + 0.0 for end in (low, estimate, high)))


class _Counts:
    """What the counts say, in units of σ, at the parts of α."""

    def __init__(self, mechanism: Mechanism, counts: Doubles, half: Doubles, level: float, unit: float) -> None:
        alpha = 1 - level
        tail = (1 - SHARE_OF_BOUND) * alpha / 2
        self.sigma = mechanism.sigma
        self.outer, self.inner, self.beyond = (
            in_deviations(numbers, self.sigma)
            for numbers in (counts - half, counts + half, counts - half - mechanism.tau_star)
        )
        self.z, self.log_tail = z_of(1 - 2 * tail), math.log(tail)
        self.z_of_sums = z_of(1 - SHARE_OF_BOUND / 2 * alpha)
        # An interval at 1 − 0.04 α has a lower end that fails with probability 0.02 α.
        self.least = count_intervals(mechanism, counts, 1 - SHARE_OF_BOUND * alpha, unit).low
        self.estimates = count_intervals(mechanism, counts, level, unit).estimate


def _upper_ends(given: _Counts, deviation: float, sums: Doubles, most: float) -> Doubles:
    """The largest μ that is left, at most ``most``. For the least one, the sums and the result change their signs.

    It is computed as k = μ σ/s. Only the far end, k > 0, needs to be sought.
    """
    q = in_deviations(sums, deviation)
    bound = np.clip((sums + given.z_of_sums * deviation) / given.least, 0.0, max(most, 0.0))
    furthest = np.minimum(bound * (given.sigma / deviation), LARGEST_DOUBLE)
    k = _sought(given, q, furthest)
    found = np.where(k == furthest, bound, k * (deviation / given.sigma))
    is_negative = (k == 0) & (q < -given.z)
    found[is_negative] = -_near(given.inner[is_negative], -q[is_negative], given.z) * (deviation / given.sigma)
    return found


def _sought(given: _Counts, q: Doubles, furthest: Doubles) -> Doubles:
    """The largest k that the test does not reject, from 0 to ``furthest``: x = (k p − q)/√(1 + k²) is not too large."""
    k = furthest.copy()
    left = np.flatnonzero(k > 0)
    for _ in range(_MOST_STEPS):
        if not len(left):
            break
        at, p, own_q = k[left], given.outer[left], q[left]
        root = np.hypot(1.0, at)
        quantile = distances(given.beyond[left] * (root / at), given.log_tail)
        is_rejected = at / root * p - own_q / root > quantile
        k[left] = np.where(is_rejected, np.minimum(_far(p, own_q, quantile), at), at)
        left = left[is_rejected & (at - k[left] > _CLOSE * at)]
    return k


def _far(p: Doubles, q: Doubles, z: Doubles) -> Doubles:
    """The k from which on x exceeds z, where it does somewhere; 0 if it does so everywhere."""
    size = np.maximum(p, np.abs(q))
    p, q, z = p / size, q / size, z / size
    root = z * np.sqrt(np.maximum(p * p + q * q - z * z, 0))
    return np.where(q < 0, np.maximum((z + q) * (z - q) / (root - p * q), 0.0), (p * q + root) / ((p - z) * (p + z)))


def _near(p: Doubles, q: Doubles, z: float) -> Doubles:
    """The k at which (k p − q)/√(1 + k²) is −z, for q > z."""
    size = np.maximum(p, q)
    p, q, reach = p / size, q / size, z / size
    return (q - reach) * (q + reach) / (p * q + reach * np.sqrt(p * p + q * q - reach * reach))
