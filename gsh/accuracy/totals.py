"""The sum of the true numbers of several published groups.  [docs/accuracy.md, section 6]

It says nothing about dropped groups: their numbers are not in the table. Counts have two methods.

Fewer than 30 groups, ``exact``: the coverage is proven. One group has its own interval. Several have what two intervals
share, of which one fails with probability 0.9 α at most, and the other with 0.1 α at most:

- Given the differences between the published counts, their sum is a normal variable of variance k σ² that is seen only
  above a threshold k (least y − τ*) below itself. So its ends are those of a single count with t = √k (least y − τ*)/σ.
- The sums of the ends of the single intervals, each at level 1 − 0.1 α/k.

30 groups or more, ``normal``: E[y] − C = σ E[b] for a function b of t = (y − τ*)/σ, by Stein's identity

    b = g'(t) + (1 − g(t)) (s + t),   s = (τ* − C)/σ,   g(t) = min(t/width, 1),   width = (max(z, 2)²/3k)^⅓.

Only the second term needs s. Its largest value gives a lower end, and its least value that matters gives an upper end.
The variance of y/σ − b is E[g² + g'²] ≤ E[1 + g' + g'²], whatever s is, and a sum of many is nearly normal. If few
counts are near τ* by chance, Σ b and the variance are both too small. So the lower end counts within two widths of τ*.
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.special import log_ndtr

from gsh.accounting.grid import count_grid, value_grids
from gsh.accounting.mechanism import AnyMechanism, Mechanism
from gsh.accuracy.bounds import log_tails
from gsh.accuracy.intervals import count_intervals, deviation_of, half_steps, z_of
from gsh.accuracy.truncation import Doubles, distances
from gsh.errors import InvalidParameter

__all__ = [
    "LEAST_S",
    "MANY",
    "SHARE_OF_SINGLES",
    "Method",
    "Total",
    "count_total",
    "normal_parts",
    "normal_totals",
    "share_near",
    "shared",
    "value_total",
]

Method: TypeAlias = Literal["exact", "normal"]

MANY = 30
"""From so many groups on, the sum of b is nearly normal, and shorter intervals are possible than the exact one."""
LEAST_S = -2.5
"""Groups of a smaller s are hardly ever near τ*. For them E[b] is too large here by less than 0.0024 width."""
SHARE_OF_SINGLES = 0.1
"""The share of α with which the intervals of the single groups may fail."""


@dataclass(frozen=True, slots=True)
class Total:
    """The total of one column over the published groups."""

    estimate: float
    standard_error: float
    """Of the normal approximation, for both methods."""
    low: float
    high: float
    method: Method


def count_total(mechanism: AnyMechanism, counts: Doubles, level: float, pointer: str) -> Total:
    """The total of the true counts of published groups. ``check_counts`` has checked their noisy ones."""
    if not isinstance(mechanism, Mechanism):
        return _plain_total(counts, mechanism.sigma, count_grid(mechanism), level, pointer)
    if not len(counts):
        return Total(0.0, 0.0, 0.0, 0.0, "exact")
    total = _normal(mechanism, counts, level)
    if len(counts) < MANY:
        total = _exact(mechanism, counts, level, total)
    if not math.isfinite(total.high):
        raise InvalidParameter(pointer, "must have a total in the range of doubles")
    return total


def value_total(mechanism: AnyMechanism, place: int, values: Doubles, level: float, pointer: str) -> Total:
    """The total of one of the other columns: their noise is independent of which groups were published."""
    return _plain_total(values, deviation_of(mechanism, place), value_grids(mechanism)[place], level, pointer)


def _plain_total(values: Doubles, deviation: float, grid: float, level: float, pointer: str) -> Total:
    """The total of numbers with normal noise and without a threshold."""
    error = deviation * math.sqrt(len(values))
    with np.errstate(over="ignore", invalid="ignore"):
        estimate = float(values.sum()) + 0.0
        reach = z_of(level) * error + float(half_steps(grid, values).sum())
    if not math.isfinite(abs(estimate) + reach):
        raise InvalidParameter(pointer, "must have a total in the range of doubles")
    return Total(estimate, error, estimate - reach, estimate + reach, "exact")


def _exact(mechanism: Mechanism, counts: Doubles, level: float, normal: Total) -> Total:
    """The estimate of the normal method, brought into an interval of proven coverage."""
    if len(counts) == 1:
        alone = count_intervals(mechanism, counts, level)
        low, estimate, high = (float(column[0]) for column in (alone.low, alone.estimate, alone.high))
        return Total(estimate, normal.standard_error, low, high, "exact")
    alpha = 1 - level
    singles = count_intervals(mechanism, counts, 1 - SHARE_OF_SINGLES * alpha / len(counts))
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = float(singles.low.sum()), float(singles.high.sum())
    low, high = shared((low, high), _conditional(mechanism, counts, 1 - (1 - SHARE_OF_SINGLES) * alpha))
    return Total(min(max(normal.estimate, low), high), normal.standard_error, low, high, "exact")


def shared(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    """What two intervals share; the first one if they share nothing."""
    if second[0] <= first[1] and first[0] <= second[1]:
        return max(first[0], second[0]), min(first[1], second[1])
    return first


def _conditional(mechanism: Mechanism, counts: Doubles, level: float) -> tuple[float, float]:
    """The interval of the sum, given the differences between the counts."""
    deviation = mechanism.sigma * math.sqrt(len(counts))
    half = half_steps(count_grid(mechanism), counts)
    beyond, shift = float(counts.min()) - mechanism.tau_star, float(half.max())
    least = float(mechanism.effective_tau) * len(counts)

    def end(sign: int, log_q: float) -> float:
        t = np.array([len(counts) * (beyond + sign * shift) / deviation])
        with np.errstate(over="ignore", invalid="ignore"):
            found = counts.sum() + sign * half.sum() - deviation * distances(t, log_q)[0]
        return max(float(found), least)

    below, _, above = log_tails(level)
    return end(-1, below), end(1, above)


def _normal(mechanism: Mechanism, counts: Doubles, level: float) -> Total:
    found = normal_totals(mechanism, counts[np.newaxis], level)
    estimate, error, low, high = (float(column[0]) for column in found)
    return Total(estimate, error, low, high, "normal")


def normal_totals(
    mechanism: Mechanism, rows: Doubles, level: float, window: int = 2
) -> tuple[Doubles, Doubles, Doubles, Doubles]:
    """The normal method for many tables at once, one per row: estimates, standard errors, lower and upper ends.

    The lower end counts groups within ``window`` widths of τ*. With 1 it has the standard error of the upper end, and
    covers too rarely at high levels.
    """
    z, parts = z_of(level), normal_parts(mechanism, rows, level, window)
    with np.errstate(over="ignore", invalid="ignore"):
        half = half_steps(count_grid(mechanism), rows).sum(axis=1)
        least = float(mechanism.effective_tau) * rows.shape[1]
        low, high = parts.least - z * parts.low_error - half, parts.most + z * parts.error + half
    return np.maximum(parts.estimate, least), parts.error, np.maximum(low, least), np.maximum(high, least)


class NormalParts(NamedTuple):
    """The sums less σ Σ b for the extreme s and for s = 0, and the standard errors, for many tables at once."""

    least: Doubles
    most: Doubles
    low_error: Doubles
    error: Doubles
    estimate: Doubles


def normal_parts(mechanism: Mechanism, rows: Doubles, level: float, window: int = 2) -> NormalParts:
    groups, sigma, z = rows.shape[1], mechanism.sigma, z_of(level)
    most_s = (mechanism.tau_star - mechanism.effective_tau) / sigma
    width = (max(z, 2.0) ** 2 / (3 * groups)) ** (1 / 3)
    with np.errstate(over="ignore", invalid="ignore"):
        t = np.maximum((rows - mechanism.tau_star) / sigma, 0.0)
        sums = rows.sum(axis=1)
        beyond = np.maximum(1 - t / width, 0.0)  # 1 − g
        near, within = (t < width).sum(axis=1), (t < window * width).sum(axis=1)
        factors, rests = beyond.sum(axis=1), (beyond * t).sum(axis=1)

        def corrected(s: float) -> Doubles:
            """The sums less σ Σ b, if all groups have this s."""
            with_s = np.where(factors > 0, s * factors, 0.0)
            return np.asarray(sums - sigma * (near / width + with_s + rests))

        def error(like_near: Doubles) -> Doubles:
            return np.asarray(sigma * np.sqrt(groups + like_near * (1 / width + 1 / width**2)))

        low_error = error(share_near(most_s, width, window) * within)
        return NormalParts(corrected(most_s), corrected(LEAST_S), low_error, error(near), corrected(0.0))


def share_near(s: float, width: float, window: int = 2) -> float:
    """κ = P(t < width)/P(t < window · width) at this s. It rises with s."""
    whole, one, all_of_it = (float(log_ndtr(-(s + widths * width))) for widths in (0, 1, window))
    if not math.isfinite(one):
        return 1.0
    return math.expm1(one - whole) / math.expm1(all_of_it - whole)
