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

Numbers that were rounded to a unit may each be wrong by half of it. Of 30 or more, that would be too much: far from a
threshold the errors of rounding have mean 0 and variance 1/12, unless the noise is less than the unit. Near τ* counts
keep half a unit each, and the widths end where no rounded count can be on both sides.
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.special import log_ndtr

from gsh.accounting.grid import count_grid, value_grids
from gsh.accounting.mechanism import AnyMechanism, Mechanism
from gsh.accuracy.bounds import log_tails
from gsh.accuracy.intervals import count_intervals, deviation_of, half_steps, possible_values, z_of
from gsh.accuracy.truncation import Doubles, distances
from gsh.errors import InvalidParameter

__all__ = [
    "LEAST_S",
    "MANY",
    "SHARE_OF_SINGLES",
    "Method",
    "Plain",
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
_NEAR = 3.0
"""Counts of so many σ above τ* may be rounded as if there were no threshold."""
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


def count_total(mechanism: AnyMechanism, counts: Doubles, level: float, pointer: str, unit: float = 0.0) -> Total:
    """The total of the true counts of published groups. ``check_counts`` has checked their noisy ones."""
    if not isinstance(mechanism, Mechanism):
        noise = Plain(counts, mechanism.sigma, count_grid(mechanism), unit)
        return _plain_total(noise, level, pointer, (0.0, math.inf))
    if not len(counts):
        return Total(0.0, 0.0, 0.0, 0.0, "exact")
    total = _normal(mechanism, counts, level, unit)
    if len(counts) < MANY:
        total = _exact(mechanism, counts, level, total, unit)
    if not math.isfinite(total.high):
        raise InvalidParameter(pointer, "must have a total in the range of doubles")
    return total


def value_total(
    mechanism: AnyMechanism, place: int, values: Doubles, level: float, pointer: str, unit: float = 0.0
) -> Total:
    """The total of one of the other columns: their noise is independent of which groups were published."""
    noise = Plain(values, deviation_of(mechanism, place), value_grids(mechanism)[place], unit)
    least, most = possible_values(mechanism, place)
    return _plain_total(noise, level, pointer, (least * len(values), most * len(values)))


@dataclass(frozen=True, slots=True, eq=False)
class Plain:
    """Numbers with normal noise of one deviation, without a threshold, on a grid and then rounded to a unit."""

    numbers: Doubles
    deviation: float
    grid: float
    unit: float

    @property
    def _has_random_rounding(self) -> bool:
        return self.unit > 0 and len(self.numbers) >= MANY and self.deviation >= self.unit

    @property
    def error(self) -> float:
        """The standard error of the sum."""
        step = self.unit if self._has_random_rounding else 0.0
        return math.hypot(self.deviation, step / math.sqrt(12)) * math.sqrt(len(self.numbers))

    @property
    def half(self) -> float:
        """The most that rounding has changed the sum, as far as it is not in the error."""
        unit = 0.0 if self._has_random_rounding else self.unit
        with np.errstate(over="ignore"):
            return float(half_steps(self.grid, self.numbers, unit).sum())

    @property
    def method(self) -> Method:
        return "normal" if self._has_random_rounding else "exact"


def _plain_total(noise: Plain, level: float, pointer: str, possible: tuple[float, float]) -> Total:
    """The total of numbers without a threshold, cut to the totals that are possible."""
    with np.errstate(over="ignore", invalid="ignore"):
        estimate = float(noise.numbers.sum()) + 0.0
        reach = z_of(level) * noise.error + noise.half
    if not math.isfinite(abs(estimate) + reach):
        raise InvalidParameter(pointer, "must have a total in the range of doubles")
    low, middle, high = (
        min(max(end, possible[0]), possible[1]) for end in (estimate - reach, estimate, estimate + reach)
    )
    return Total(middle, noise.error, low, high, noise.method)


def _exact(mechanism: Mechanism, counts: Doubles, level: float, normal: Total, unit: float) -> Total:
    """The estimate of the normal method, brought into an interval of proven coverage."""
    if len(counts) == 1:
        alone = count_intervals(mechanism, counts, level, unit)
        low, estimate, high = (float(column[0]) for column in (alone.low, alone.estimate, alone.high))
        return Total(estimate, normal.standard_error, low, high, "exact")
    alpha = 1 - level
    singles = count_intervals(mechanism, counts, 1 - SHARE_OF_SINGLES * alpha / len(counts), unit)
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = float(singles.low.sum()), float(singles.high.sum())
    low, high = shared((low, high), _conditional(mechanism, counts, 1 - (1 - SHARE_OF_SINGLES) * alpha, unit))
    return Total(min(max(normal.estimate, low), high), normal.standard_error, low, high, "exact")


def shared(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    """What two intervals share; the first one if they share nothing."""
    if second[0] <= first[1] and first[0] <= second[1]:
        return max(first[0], second[0]), min(first[1], second[1])
    return first


def _conditional(mechanism: Mechanism, counts: Doubles, level: float, unit: float) -> tuple[float, float]:
    """The interval of the sum, given the differences between the counts."""
    deviation = mechanism.sigma * math.sqrt(len(counts))
    half = half_steps(count_grid(mechanism), counts, unit)
    beyond, shift = float(counts.min()) - mechanism.tau_star, float(half.max())
    least = float(mechanism.effective_tau) * len(counts)

    def end(sign: int, log_q: float) -> float:
        t = np.array([len(counts) * (beyond + sign * shift) / deviation])
        with np.errstate(over="ignore", invalid="ignore"):
            found = counts.sum() + sign * half.sum() - deviation * distances(t, log_q)[0]
        return max(float(found), least)

    below, _, above = log_tails(level)
    return end(-1, below), end(1, above)


def _normal(mechanism: Mechanism, counts: Doubles, level: float, unit: float) -> Total:
    found = normal_totals(mechanism, counts[np.newaxis], level, unit)
    estimate, error, low, high = (float(column[0]) for column in found)
    return Total(estimate, error, low, high, "normal")


def normal_totals(
    mechanism: Mechanism, rows: Doubles, level: float, unit: float = 0.0, window: int = 2
) -> tuple[Doubles, Doubles, Doubles, Doubles]:
    """The normal method for many tables at once, one per row: estimates, standard errors, lower and upper ends.

    The lower end counts groups within ``window`` widths of τ*. With 1 it has the standard error of the upper end, and
    covers too rarely at high levels.
    """
    z, parts = z_of(level), normal_parts(mechanism, rows, level, unit, window)
    with np.errstate(over="ignore", invalid="ignore"):
        least = float(mechanism.effective_tau) * rows.shape[1]
        low, high = parts.least - z * parts.low_error, parts.most + z * parts.error
    return np.maximum(parts.estimate, least), parts.error, np.maximum(low, least), np.maximum(high, least)


class NormalParts(NamedTuple):
    """The sums less σ Σ b for the extreme s and for s = 0, and the standard errors, for many tables at once.

    The extreme sums have half a step, or half a unit, of each count that rounding may have changed by so much.
    """

    least: Doubles
    most: Doubles
    low_error: Doubles
    error: Doubles
    estimate: Doubles


def normal_parts(mechanism: Mechanism, rows: Doubles, level: float, unit: float = 0.0, window: int = 2) -> NormalParts:
    groups, sigma, z = rows.shape[1], mechanism.sigma, z_of(level)
    most_s = (mechanism.tau_star - mechanism.effective_tau) / sigma
    width = _boundary(mechanism, (max(z, 2.0) ** 2 / (3 * groups)) ** (1 / 3), unit)
    whole = _boundary(mechanism, window * width, unit)
    with np.errstate(over="ignore", invalid="ignore"):
        # Where the count was before it was rounded: at least and at most.
        first, last = ((rows + shift - mechanism.tau_star) / sigma for shift in (-unit / 2, unit / 2))
        t = np.maximum((rows - mechanism.tau_star) / sigma, 0.0)
        first, last = np.maximum(first, 0.0), np.maximum(last, 0.0)
        near, within = (t < width).sum(axis=1), (t < whole).sum(axis=1)
        sums = rows.sum(axis=1)
        is_sure = (t < max(width, _NEAR)) | (sigma < unit)
        half = half_steps(count_grid(mechanism), rows).sum(axis=1) + unit / 2 * is_sure.sum(axis=1)
        varied = (unit / sigma) ** 2 / 12 * (~is_sure).sum(axis=1)

        def corrected(s: float, at: Doubles, choose: np.ufunc, *others: Doubles) -> Doubles:
            """The sums less σ Σ b, if all groups have this s, with the chosen one of several values of 1 − g."""
            beyond = (np.maximum(1 - other / width, 0.0) for other in others)
            second = choose.reduce([np.where(each > 0, each * (s + at), 0.0) for each in beyond])
            return np.asarray(sums - sigma * (near / width + second.sum(axis=1)))

        def error(like_near: Doubles) -> Doubles:
            return np.asarray(sigma * np.sqrt(groups + varied + like_near * (1 / width + 1 / width**2)))

        return NormalParts(
            corrected(most_s, last, np.maximum, first, last) - half,
            corrected(LEAST_S, first, np.minimum, first, last) + half,
            error(share_near(most_s, width, whole / width) * within),
            error(near),
            corrected(0.0, t, np.maximum, t),
        )


def _boundary(mechanism: Mechanism, width: float, unit: float) -> float:
    """This width or a little more, to end between two multiples of the unit: rounding moves no count over it."""
    if not unit:
        return width
    end = (mechanism.tau_star + width * mechanism.sigma) / unit
    return ((math.floor(end + 0.5) + 0.5) * unit - mechanism.tau_star) / mechanism.sigma


def share_near(s: float, width: float, window: float = 2) -> float:
    """κ = P(t < width)/P(t < window · width) at this s. It rises with s."""
    whole, one, all_of_it = (float(log_ndtr(-(s + widths * width))) for widths in (0, 1, window))
    if not math.isfinite(one):
        return 1.0
    return math.expm1(one - whole) / math.expm1(all_of_it - whole)
