"""Ratios of two sums: their noise is normal, and independent of what was published.  [docs/accuracy.md, section 9]

Let a₁ and a₂ be the published sums, s₁² and s₂² the variances of their noise, and c its covariance. For the true ratio
ρ, a₁ − ρ a₂ is normal around 0. So Fieller's set { ρ : (a₁ − ρ a₂)² ≤ z² (s₁² − 2 ρ c + ρ² s₂²) } has exact coverage.
With

    A = a₂² − z² s₂²,   B = a₁ a₂ − z² c,   K = a₁² − z² s₁²

it is A ρ² − 2 B ρ + K ≤ 0: an interval if A > 0. If not, a₂ may be 0, and the set is everything outside an interval, or
everything. It is cut to the ratios that are possible, and the interval is what is left, with the gap if there is one.
"""

import itertools
import math
from typing import NamedTuple

import numpy as np

from gsh.accounting.grid import value_grids
from gsh.accounting.mechanism import AnyMechanism
from gsh.accounting.sensitivity import user_range
from gsh.accuracy.intervals import Interval, deviation_of, half_steps, z_of
from gsh.accuracy.truncation import Doubles

__all__ = ["NoisyNumbers", "fieller", "in_deviations", "possible_ratios", "ratio_intervals"]

_MOST_DEVIATIONS = 1e300


class NoisyNumbers(NamedTuple):
    """Published numbers, the standard deviation of their noise, and the most that rounding has changed each."""

    numbers: Doubles
    deviation: float
    half: Doubles


def ratio_intervals(
    mechanism: AnyMechanism,
    places: tuple[int, int],
    values: tuple[Doubles, Doubles],
    level: float,
    units: tuple[float, float] = (0.0, 0.0),
) -> Interval:
    """The intervals of the ratios of the true sums of two columns.

    An end is infinite, and an estimate NaN, if the numbers do not say it. ``units`` are what they were rounded to.
    """
    assert mechanism.aggregates is not None
    grids, covariance = value_grids(mechanism), mechanism.aggregates.covariance[places[0]][places[1]]
    first, second = (
        NoisyNumbers(numbers, deviation_of(mechanism, place), half_steps(grids[place], numbers, unit))
        for place, numbers, unit in zip(places, values, units, strict=True)
    )
    return fieller(
        first, second, covariance / first.deviation / second.deviation, level, possible_ratios(mechanism, places)
    )


def possible_ratios(mechanism: AnyMechanism, places: tuple[int, int]) -> tuple[float, float]:
    """The least and the largest ratio of the true sums of two columns, if no user adds less than 0 to the second.

    It is between the least and the largest ratio of what one user can add to both.
    """
    assert mechanism.aggregates is not None
    (least, most), (lower, upper) = (user_range(mechanism.aggregates.sensitivity, place) for place in places)
    if lower < 0 or upper == 0:
        return -math.inf, math.inf
    by_lower = (least / lower, most / lower) if lower > 0 else (-math.inf, math.inf)
    return least / upper if least >= 0 else by_lower[0], most / upper if most <= 0 else by_lower[1]


def fieller(
    first: NoisyNumbers, second: NoisyNumbers, correlation: float, level: float, possible: tuple[float, float]
) -> Interval:
    """The intervals of the ratios of the means of two normal numbers, over all numbers that round to these.

    They are largest and least at corners of the rounding. There is an estimate where the second number is farther from
    0 than its noise reaches.
    """
    z, scale = z_of(level), first.deviation / second.deviation
    least, most = (end / scale for end in possible)
    u, by_u = in_deviations(first.numbers, first.deviation), in_deviations(first.half, first.deviation)
    v, by_v = in_deviations(second.numbers, second.deviation), in_deviations(second.half, second.deviation)
    # Lines through 0 can then pass between the corners, farther from each than the noise reaches.
    is_coarse = np.maximum(by_u, by_v) > z * math.sqrt(max(1 - abs(correlation), 0) / 2)
    low, high = np.full_like(u, np.inf), np.full_like(u, -np.inf)
    with np.errstate(all="ignore"):
        for up, right in itertools.product((-1, 1), (-1, 1)):
            at_u, at_v = u + up * by_u, v + right * by_v
            lower, upper = _cut(at_u, at_v, correlation, z, least, most)
            between = np.where(is_coarse, np.clip(at_u / at_v, least, most), np.nan)
            low, high = np.fmin(np.minimum(low, lower), between), np.fmax(np.maximum(high, upper), between)
        is_open = is_coarse & (np.abs(v) <= by_v)
        low, high = np.where(is_open, least, low) * scale, np.where(is_open, most, high) * scale
        estimate = np.where(np.abs(v) - by_v > z, np.clip(u / v * scale, low, high), np.nan)
    return Interval(low + 0.0, estimate + 0.0, high + 0.0)


def in_deviations(numbers: Doubles, deviation: float) -> Doubles:
    """Numbers in units of their noise, limited so that all that follows is finite."""
    with np.errstate(over="ignore"):
        return np.clip(numbers / deviation, -_MOST_DEVIATIONS, _MOST_DEVIATIONS)


def _cut(u: Doubles, v: Doubles, correlation: float, z: float, least: float, most: float) -> tuple[Doubles, Doubles]:
    """Fieller's set for variances of 1, cut to what is possible: the ends of what it spans, or the nearest end."""
    largest = np.maximum(np.maximum(np.abs(u), np.abs(v)), z)  # no square overflows
    u, v, reach = u / largest, v / largest, z / largest
    a, b, k = (v - reach) * (v + reach), u * v - reach**2 * correlation, (u - reach) * (u + reach)
    inside = u * u + v * v - 2 * u * v * correlation - reach**2 * (1 - correlation**2)  # (B² − AK)/z²
    q = b + np.copysign(reach * np.sqrt(np.maximum(inside, 0)), b)
    is_bounded = a > 0
    one, other = q / np.where(a == 0, -0.0, a), np.where(q == 0, 0.0, k / q)
    low, high = np.minimum(one, other), np.maximum(one, other)
    # Of the two pieces outside (low, high), each is there or cut away.
    has_below, has_above = (low >= least) & (low > -np.inf), (high <= most) & (high < np.inf)
    is_low_nearer = least - low <= high - most
    outside_low = np.where(has_below | (~has_above & is_low_nearer), least, np.where(has_above, high, most))
    outside_high = np.where(has_above | (~has_below & ~is_low_nearer), most, np.where(has_below, low, least))
    is_split = ~is_bounded & (inside > 0)
    return (
        np.where(is_bounded, np.clip(low, least, most), np.where(is_split, np.maximum(outside_low, least), least)),
        np.where(is_bounded, np.clip(high, least, most), np.where(is_split, np.minimum(outside_high, most), most)),
    )
