"""The sum of the true numbers of several published groups.  [docs/accuracy.md, section 6]

It says nothing about dropped groups: their numbers are not in the table. Counts have two methods.

Fewer than 30 groups, ``exact``: given the differences between the published counts, their sum is a normal variable of
variance k σ² that is seen only above a threshold k (least y − τ*) below itself. So the ends are those of a single count
with t = √k (least y − τ*)/σ, and the coverage is exact.

30 groups or more, ``normal``: E[y] − C = σ E[b] for a function b of t = (y − τ*)/σ, by Stein's identity

    h(s) = E[g'(t)] + E[(1 − g(t)) (s + t)],   s = (τ* − C)/σ,   g(t) = min(t/ε, 1),   ε = (max(z, 2)²/3k)^⅓.

Only the second term needs s. Its largest value gives a lower end, and its least value that matters gives an upper end.
The variance of y/σ − b is at most 1 + E[b] + E[b²], and a sum of many is nearly normal.
"""

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy.special import ndtr

from gsh.accounting.errors import InvalidParameter
from gsh.accounting.grid import count_grid, value_grids
from gsh.accounting.mechanism import Mechanism
from gsh.accuracy.intervals import deviation_of, half_steps, z_of
from gsh.accuracy.levels import log_tails
from gsh.accuracy.truncation import Doubles, distances

__all__ = ["MANY", "Method", "Total", "count_total", "value_total"]

Method: TypeAlias = Literal["exact", "normal"]

MANY = 30
"""From so many groups on, the sum of b is nearly normal, and shorter intervals are possible than the exact one."""
_ONE_SIGMA = float(2 * ndtr(1.0) - 1)
# Below this s, what the second term lacks is less than 0.0013 ε: such groups are hardly ever near τ*.
_LEAST_S = -2.5


@dataclass(frozen=True, slots=True)
class Total:
    """The total of one column over the published groups."""

    estimate: float
    standard_error: float
    """For an exact interval: half the length of the interval at level 0.6827. Otherwise of the normal approximation."""
    low: float
    high: float
    method: Method


def count_total(mechanism: Mechanism, counts: Doubles, level: float, pointer: str) -> Total:
    """The total of the true counts of published groups. ``check_counts`` has checked their noisy ones."""
    if not len(counts):
        return Total(0.0, 0.0, 0.0, 0.0, "exact")
    total = _exact(mechanism, counts, level) if len(counts) < MANY else _normal(mechanism, counts, level)
    if not math.isfinite(total.high):
        raise InvalidParameter(pointer, "must have a total in the range of doubles")
    return total


def value_total(mechanism: Mechanism, place: int, values: Doubles, level: float, pointer: str) -> Total:
    """The total of one of the other columns: their noise is independent of which groups were published."""
    error = deviation_of(mechanism, place) * math.sqrt(len(values))
    with np.errstate(over="ignore"):
        estimate = float(values.sum()) + 0.0
        reach = z_of(level) * error + float(half_steps(value_grids(mechanism)[place], values).sum())
    if not math.isfinite(abs(estimate) + reach):
        raise InvalidParameter(pointer, "must have a total in the range of doubles")
    return Total(estimate, error, estimate - reach, estimate + reach, "exact")


def _exact(mechanism: Mechanism, counts: Doubles, level: float) -> Total:
    root = math.sqrt(len(counts))
    half = half_steps(count_grid(mechanism), counts)
    beyond = float(counts.min()) - mechanism.tau_star
    reach, shift = float(half.sum()), float(half.max())
    least = float(mechanism.effective_tau) * len(counts)

    def end(sign: int, log_q: float) -> float:
        t = np.array([root * (beyond + sign * shift) / mechanism.sigma])
        with np.errstate(over="ignore"):
            found = counts.sum() + sign * reach - mechanism.sigma * root * distances(t, log_q)[0]
        return max(float(found), least)

    low, estimate, high = (end(sign, log_q) for sign, log_q in zip((-1, 0, 1), log_tails(level), strict=True))
    below, _, above = log_tails(_ONE_SIGMA)
    return Total(estimate, (end(1, above) - end(-1, below)) / 2, low, high, "exact")


def _normal(mechanism: Mechanism, counts: Doubles, level: float) -> Total:
    groups, sigma, z = len(counts), mechanism.sigma, z_of(level)
    most_s = (mechanism.tau_star - mechanism.effective_tau) / sigma
    width = (max(z, 2.0) ** 2 / (3 * groups)) ** (1 / 3)
    with np.errstate(over="ignore"):
        t = np.maximum((counts - mechanism.tau_star) / sigma, 0.0)
        total = float(counts.sum())
    near = t[t < width]
    reach = float(half_steps(count_grid(mechanism), counts).sum())
    least = float(mechanism.effective_tau) * groups

    def corrected(s: float) -> tuple[float, float]:
        """The sum less σ Σ b, and its standard error, if (1 − g)(s + t) is taken at this s."""
        bias = 1 / width + (1 - near / width) * (s + near)
        return total - sigma * float(bias.sum()), sigma * math.sqrt(groups + np.abs(bias).sum() + (bias**2).sum())

    (lower, lower_error), (upper, upper_error) = corrected(most_s), corrected(_LEAST_S)
    estimate, error = corrected(0.0)
    low, high = lower - z * lower_error - reach, upper + z * upper_error + reach
    return Total(max(estimate, least), error, max(low, least), max(high, least), "normal")
