"""Intervals for published numbers, given that their groups were published.  [docs/accuracy.md, section 4]

A published count y is N(C, σ²) cut at τ*. The ends of its interval are the C at which the ratio

    Φ̄((y − C)/σ) / Φ̄((τ* − C)/σ)

is α/2 and 1 − α/2, and the estimate is the C at which it is ½. Noise on other columns is independent of the threshold,
so their intervals are y ± z s. So are those of the counts of public groups, which have no threshold. All are widened by
half a step of the grid that published numbers are rounded to, and by half a unit if they were rounded to a unit later.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from gsh.accounting.grid import count_grid, value_grids
from gsh.accounting.mechanism import AnyMechanism, Mechanism
from gsh.accounting.numerics.doubles import LARGEST_DOUBLE
from gsh.accounting.sensitivity import user_range
from gsh.accuracy.bounds import log_tails
from gsh.accuracy.truncation import Doubles, distances
from gsh.errors import InvalidParameter

__all__ = [
    "Interval",
    "check_counts",
    "check_values",
    "count_intervals",
    "deviation_of",
    "half_steps",
    "possible_values",
    "value_intervals",
    "z_of",
]


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """The intervals of one column, as read-only arrays: the ends and the estimate for each number."""

    low: Doubles
    estimate: Doubles
    high: Doubles

    def __post_init__(self) -> None:
        for column in (self.low, self.estimate, self.high):
            column.setflags(write=False)

    def __reduce__(self) -> tuple[type["Interval"], tuple[object, ...]]:
        """Copies are made by the constructor: a pickled array would not be read-only."""
        return Interval, (self.low, self.estimate, self.high)

    def __len__(self) -> int:
        return len(self.estimate)


def count_intervals(mechanism: AnyMechanism, counts: Doubles, level: float, unit: float = 0.0) -> Interval:
    """The intervals of published counts, which ``check_counts`` has checked.

    C is at least max(τ, 1), and at least 0 in public groups: they may have no users. ``unit`` is what the counts were
    rounded to, as below; 0 if they are as the mechanism made them.
    """
    half = half_steps(count_grid(mechanism), counts, unit)
    if not isinstance(mechanism, Mechanism):
        return _clipped(_around(counts, z_of(level) * mechanism.sigma + half), 0.0)
    beyond = counts - mechanism.tau_star
    with np.errstate(over="ignore"):
        low, estimate, high = (
            counts + shift - mechanism.sigma * distances((beyond + shift) / mechanism.sigma, log_q)
            for shift, log_q in zip((-half, 0 * half, half), log_tails(level), strict=True)
        )
    return _clipped((low, estimate, high), float(mechanism.effective_tau))


def value_intervals(mechanism: AnyMechanism, place: int, values: Doubles, level: float, unit: float = 0.0) -> Interval:
    """The intervals of published values of one of the other columns."""
    reach = z_of(level) * deviation_of(mechanism, place) + half_steps(value_grids(mechanism)[place], values, unit)
    return _clipped(_around(values, reach), *possible_values(mechanism, place))


def possible_values(mechanism: AnyMechanism, place: int) -> tuple[float, float]:
    """The least and the largest true sum of a group: only what is certain without its count.

    A group has max(τ, 1) users at least, or 0 if groups are public. So if no user adds less than a lower bound of 0 or
    more, the sum is at least so many times the bound. It has no upper bound, because the count has none.
    """
    assert mechanism.aggregates is not None
    least, most = user_range(mechanism.aggregates.sensitivity, place)
    users = mechanism.effective_tau if isinstance(mechanism, Mechanism) else 0
    return (
        min(least * users, LARGEST_DOUBLE) if least >= 0 else -LARGEST_DOUBLE,
        max(most * users, -LARGEST_DOUBLE) if most <= 0 else LARGEST_DOUBLE,
    )


def _around(numbers: Doubles, reach: Doubles) -> tuple[Doubles, Doubles, Doubles]:
    with np.errstate(over="ignore"):
        return numbers - reach, numbers, numbers + reach


def _clipped(columns: tuple[Doubles, Doubles, Doubles], least: float, most: float = LARGEST_DOUBLE) -> Interval:
    """The ends within these. The zero turns −0.0 into 0.0."""
    return Interval(*(np.clip(column, least, most) + 0.0 for column in columns))


def check_counts(mechanism: AnyMechanism, counts: Doubles, pointer: str, unit: float = 0.0) -> None:
    """Refuse numbers that this mechanism never publishes. One step below τ* may come from rounding."""
    if not np.isfinite(counts).all():
        raise InvalidParameter(pointer, "must be finite")
    if not isinstance(mechanism, Mechanism):
        return
    step = max(count_grid(mechanism), math.ulp(mechanism.tau_star))
    if counts.min(initial=mechanism.tau_star) < mechanism.tau_star - step - unit / 2:
        less = "half a unit" if unit else "one step of the noise grid"
        raise InvalidParameter(pointer, f"must be at least tau_star, less {less}")


def check_values(values: Doubles, groups: int, pointer: str) -> None:
    if len(values) != groups:
        raise InvalidParameter(pointer, "must have as many items as counts")
    if not np.isfinite(values).all():
        raise InvalidParameter(pointer, "must be finite")


def deviation_of(mechanism: AnyMechanism, place: int) -> float:
    """s_j = √Σ_jj"""
    assert mechanism.aggregates is not None
    return math.sqrt(mechanism.aggregates.covariance[place][place])


def half_steps(grid: float, numbers: Doubles, unit: float = 0.0) -> Doubles:
    """The most that rounding changes a number: to the grid, and then to a multiple of the unit.

    Beyond 2⁵³ steps, doubles are farther apart than the grid.
    """
    return np.maximum(grid / 2, np.abs(numbers) * 2.0**-53) + unit / 2


def z_of(level: float) -> float:
    """Φ̄(z) = α/2"""
    return -float(ndtri((1 - level) / 2))
