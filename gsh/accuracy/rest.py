"""The rest of a parent: its true number less those of its published children.  [docs/accuracy.md, section 7]

    R = P − Σ C_i over the published children,   D = P's published number − Σ y_i,   ν² = σ_p² + k σ²

Given which children are published, R is a fixed number. It may be negative if users are in several children.

Fewer than 30 children, ``exact``: the coverage is proven. The interval is what two intervals share, of which one fails
with probability 0.9 α at most, and the other with 0.1 α at most:

- Given the differences between the children, and D's complement, −D is a normal variable around −R with variance ν²
  that is seen only above a threshold t = ν (least y − τ*)/σ² standard deviations below itself; and if the parent has a
  threshold too, only below one t_p = ν (P − τ_p*)/σ_p² above itself. So R = D + ν x, where

      [Φ̄(x) − Φ̄(x + t_p)] / [Φ̄(x − t) − Φ̄(x + t_p)] = q.

- The parent's interval less those of the children, each at level 1 − 0.05 α/k, and the parent's at 1 − 0.05 α.

30 children or more, ``normal``: the total of the children by its normal method (totals.py), and the parent's noise.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from gsh.accounting.grid import count_grid, value_grids
from gsh.accounting.mechanism import AnyMechanism, Mechanism
from gsh.accuracy.bounds import log_tails
from gsh.accuracy.intervals import Interval, count_intervals, deviation_of, half_steps, z_of
from gsh.accuracy.totals import MANY, SHARE_OF_SINGLES, Plain, Total, normal_parts, shared
from gsh.accuracy.truncation import Doubles, distances

__all__ = ["count_rest", "value_rest"]

_FAR = 8.0
"""A parent this many σ above its threshold is treated as if it had none: the cut part has probability 10⁻¹⁵."""
_NO_CUT = 100.0
"""A cut this many standard deviations away changes no double."""
_HALVINGS = 80


@dataclass(frozen=True, slots=True, eq=False)
class _Published:
    """A parent and its published children."""

    parent: AnyMechanism
    children: AnyMechanism
    count: float
    counts: Doubles
    unit: float
    """What all of them were rounded to, or 0."""

    @property
    def difference(self) -> float:
        """D"""
        return self.count - float(self.counts.sum())

    @property
    def deviation(self) -> float:
        """ν"""
        return math.hypot(self.parent.sigma, self.children.sigma * math.sqrt(len(self.counts)))

    @property
    def half(self) -> float:
        """The most that rounding has changed D."""
        return self.own_half + float(half_steps(count_grid(self.children), self.counts, self.unit).sum())

    @property
    def own_half(self) -> float:
        """The most that rounding has changed the parent's count."""
        return float(half_steps(count_grid(self.parent), np.array([self.count]), self.unit)[0])


def count_rest(
    parent: AnyMechanism, children: AnyMechanism, count: float, counts: Doubles, level: float, unit: float = 0.0
) -> Total:
    """The rest of a parent's count. A table with public groups has no threshold."""
    given = _Published(parent, children, count, counts, unit)
    error = given.deviation
    if not len(counts):
        alone = _intervals(parent, np.array([count]), level, unit)
        low, estimate, high = (float(column[0]) for column in (alone.low, alone.estimate, alone.high))
        return Total(estimate, error, low, high, "exact")
    if not isinstance(children, Mechanism):
        return _without_thresholds(given, level)
    return _normal(given, children, level) if len(counts) >= MANY else _exact(given, level)


def value_rest(
    parent: AnyMechanism,
    children: AnyMechanism,
    places: tuple[int, int],
    value: float,
    values: Doubles,
    level: float,
    unit: float = 0.0,
) -> Total:
    """The rest of a parent's value in another column: its noise is independent of what was published."""
    own, theirs = (
        Plain(numbers, deviation_of(table, place), value_grids(table)[place], unit)
        for table, place, numbers in zip((parent, children), places, (np.array([value]), values), strict=True)
    )
    error = math.hypot(own.error, theirs.error)
    estimate, reach = value - float(values.sum()) + 0.0, z_of(level) * error + own.half + theirs.half
    return Total(estimate, error, estimate - reach, estimate + reach, theirs.method)


def _exact(given: _Published, level: float) -> Total:
    alpha = 1 - level
    part, unit = SHARE_OF_SINGLES / 2 * alpha, given.unit
    parent = _intervals(given.parent, np.array([given.count]), 1 - part, unit)
    singles = _intervals(given.children, given.counts, 1 - part / len(given.counts), unit)
    low, high = float(parent.low[0] - singles.high.sum()), float(parent.high[0] - singles.low.sum())
    low, high = shared((low, high), _conditional(given, 1 - (1 - SHARE_OF_SINGLES) * alpha))
    return Total(min(max(_estimate(given), low), high), given.deviation, low, high, "exact")


def _estimate(given: _Published) -> float:
    """The parent's estimate less those of the children, each median-unbiased."""
    parent = _intervals(given.parent, np.array([given.count]), 0.5, given.unit).estimate
    return float(parent[0] - _intervals(given.children, given.counts, 0.5, given.unit).estimate.sum())


def _conditional(given: _Published, level: float) -> tuple[float, float]:
    """The interval of R, given the differences between the children and D's complement."""
    deviation, children, parent = given.deviation, given.children, given.parent
    shift = float(half_steps(count_grid(children), given.counts, given.unit).max())

    def end(sign: int, log_q: float) -> float:
        """``sign`` is that of the rounding that moves the end outwards."""
        t = t_p = math.inf
        if isinstance(children, Mechanism):
            least = float(given.counts.min()) - sign * shift
            t = deviation * (least - children.tau_star) / children.sigma**2
        if isinstance(parent, Mechanism):
            t_p = deviation * (given.count + sign * given.own_half - parent.tau_star) / parent.sigma**2
        return given.difference + sign * given.half + deviation * _distance(t, t_p, log_q)

    below, _, above = log_tails(level)
    return end(-1, above), end(1, below)


def _distance(t: float, t_p: float, log_q: float) -> float:
    """The x at which the ratio above is q. It falls with x."""
    if t_p >= _NO_CUT:
        return float(distances(np.array([min(t, _NO_CUT)]), log_q)[0])
    if t <= 0 or t_p <= 0:
        return math.inf if t <= 0 else -math.inf
    low, high = -1.0, 1.0
    while _log_ratio(low, t, t_p) < log_q:
        low *= 2
    while _log_ratio(high, t, t_p) > log_q:
        high *= 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _log_ratio(middle, t, t_p) > log_q else (low, middle)
    return (low + high) / 2


def _log_ratio(x: float, t: float, t_p: float) -> float:
    return _log_between(x, x + t_p) - _log_between(x - t, x + t_p)


def _log_between(a: float, b: float) -> float:
    """ln(Φ̄(a) − Φ̄(b)), a < b, from the side on which both are small."""
    if a + b < 0:
        a, b = -b, -a
    near, far = float(log_ndtr(-a)), float(log_ndtr(-b)) if math.isfinite(b) else -math.inf
    return near + math.log(-math.expm1(far - near)) if far < near else -math.inf


def _normal(given: _Published, children: Mechanism, level: float) -> Total:
    own = given.parent.sigma
    is_cut = isinstance(given.parent, Mechanism) and given.count < given.parent.tau_star + _FAR * own
    part = 1 - (1 - level) / 2 if is_cut else level
    z, parts = z_of(part), normal_parts(children, given.counts[np.newaxis], part, given.unit)
    (least,), (most,), (low_error,), (error,), (estimate,) = parts
    if is_cut:  # what the parent and the children leave out, each with half of α
        alone = _intervals(given.parent, np.array([given.count]), part, given.unit)
        low, high = alone.low[0] - most - z * error, alone.high[0] - least + z * low_error
        middle = float(alone.estimate[0]) - estimate
    else:
        low = given.count - most - z * math.hypot(own, error) - given.own_half
        high = given.count - least + z * math.hypot(own, low_error) + given.own_half
        middle = given.count - estimate
    low, high = float(low), float(high)
    return Total(float(min(max(middle, low), high)), math.hypot(own, float(error)), low, high, "normal")


def _without_thresholds(given: _Published, level: float) -> Total:
    """Children that are public: nothing was chosen by their noise."""
    low, high = _conditional(given, level)
    return Total(min(max(given.difference, low), high), given.deviation, low, high, "exact")


def _intervals(table: AnyMechanism, counts: Doubles, level: float, unit: float) -> Interval:
    """Counts of public groups are normal, and their intervals y ± z σ."""
    if isinstance(table, Mechanism):
        return count_intervals(table, counts, level, unit)
    reach = z_of(level) * table.sigma + half_steps(count_grid(table), counts, unit)
    return Interval(counts - reach, counts + 0.0, counts + reach)
