"""Certified points of the privacy curve of an engine's sparse histogram: (ε, δ), rounded to the safe side."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from gsh.accounting.engines.discrete_gaussian import LEAST_SIGMA, MOST_CONVOLVED, DiscreteGaussianNoise
from gsh.accounting.engines.gaussian import GaussianNoise, RoundedGaussianNoise
from gsh.accounting.engines.geometric import GeometricNoise, TruncatedGeometric
from gsh.accounting.engines.laplace import LaplaceNoise, RoundedLaplaceNoise
from gsh.accounting.engines.noise import CountNoise, Keeps, NoiseKind, Reach
from gsh.accounting.engines.reach import MOST_ROWS, bounded_by_parts
from gsh.accounting.engines.scan import Histogram, scanned
from gsh.accounting.mechanism import Mechanism
from gsh.accounting.numerics.balls import PRECISIONS, at_precision, upper_double
from gsh.accounting.numerics.doubles import double_at, position_of
from gsh.accounting.numerics.search import bisect
from gsh.arguments import Integer, Real, integer, real
from gsh.errors import InvalidParameter

__all__ = [
    "MOST_C_U",
    "MOST_EPSILON",
    "EnginePoint",
    "as_mechanism",
    "at_delta",
    "at_epsilon",
    "histogram_of",
    "reach_of",
    "selection_of",
]

MOST_C_U = 1_000_000
"""More rows of discrete noise take long."""

_NOISES: dict[str, Callable[[float], CountNoise]] = {
    each.kind: each
    for each in (
        GaussianNoise,
        RoundedGaussianNoise,
        DiscreteGaussianNoise,
        LaplaceNoise,
        RoundedLaplaceNoise,
        GeometricNoise,
    )
}
_ENOUGH_BITS = 38
# Less noise hides no row, and its binomial tails take minutes for thousands of groups.
_LEAST_SCALE, _MOST_SCALE = 0.1, 2.0**60
# Wider noise is summed for minutes.
_MOST_DISCRETE_SIGMA = 2.0**20
MOST_EPSILON = 700.0


@dataclass(frozen=True, slots=True)
class EnginePoint:
    """One point. Every δ is rounded up, to within a share of 2⁻³⁷."""

    epsilon: float
    """Infinite if no finite ε exists."""
    delta: float
    delta_infinite: float
    """The probability that a group of one user alone is published: all groups at τ."""
    delta_noise: float
    """The δ of the noise on groups that exist without the user; an upper bound if not ``is_exact``."""
    groups_at_tau: int | None
    """How many of a user's groups are at τ in the worst split; None for a bound on all splits."""
    is_exact: bool
    """Whether δ is that of the engine, and not only a bound above it."""


def histogram_of(
    *,
    noise: NoiseKind,
    scale: Real,
    c_u: Integer,
    threshold: Real,
    tau: Integer = 1,
    keeps: Keeps = ">=",
    l_inf: Integer | None = None,
    l1: Integer | None = None,
    l2: Real | None = None,
) -> Histogram:
    """The checked parameters of an engine."""
    if noise not in _NOISES:
        raise InvalidParameter("noise", f"must be one of {', '.join(_NOISES)}")
    deviation, least = _scale(scale), real("threshold", threshold)
    users = integer("tau", tau)
    reach = reach_of(c_u, l_inf, l1, l2)
    if not 0 <= users <= 2**53:
        raise InvalidParameter("tau", "must be an integer from 0 to 2^53")
    if not abs(least) <= 2.0**60:
        raise InvalidParameter("threshold", "must be from -2^60 to 2^60")
    if noise == "discrete-gaussian" and deviation < LEAST_SIGMA and reach.groups > MOST_CONVOLVED:
        raise InvalidParameter(
            "c_u", f"must be at most {MOST_CONVOLVED} for discrete Gaussian noise with scale below 1"
        )
    if noise == "discrete-gaussian" and deviation > _MOST_DISCRETE_SIGMA:
        raise InvalidParameter("scale", "must be at most 2^20 for discrete Gaussian noise")
    if keeps not in (">=", ">"):
        raise InvalidParameter("keeps", "must be >= or >")
    if noise == "discrete-gaussian" and not reach.is_counted_once:
        raise InvalidParameter("l_inf", "must be 1 for discrete Gaussian noise: no bound is known for several rows")
    return Histogram(_NOISES[noise](deviation), reach.groups, max(users, 1), Fraction(least), keeps, reach)


def selection_of(*, scale: float, delta: float, c_u: Integer, tau: Integer = 1) -> Histogram:
    """The selection of keys by truncated geometric noise: (1/scale, delta) in each group."""
    reach = reach_of(c_u)
    noise = TruncatedGeometric(_scale(scale), delta)
    return Histogram(noise, reach.groups, max(integer("tau", tau), 1), Fraction(0), ">=", reach)


def reach_of(c_u: Integer, l_inf: Integer | None = None, l1: Integer | None = None, l2: Real | None = None) -> Reach:
    """What one user may add, checked. A bound that is not given follows from the others."""
    groups = integer("c_u", c_u)
    if not 1 <= groups <= MOST_C_U:
        raise InvalidParameter("c_u", f"must be an integer from 1 to {MOST_C_U}")
    total = None if l1 is None else integer("l1", l1)
    square = None if l2 is None else Fraction(real("l2", l2)) ** 2
    if total is not None and not 1 <= total <= MOST_C_U:
        raise InvalidParameter("l1", f"must be an integer from 1 to {MOST_C_U}")
    if square is not None and not 1 <= square <= MOST_C_U:
        raise InvalidParameter("l2", f"must be from 1 to {math.isqrt(MOST_C_U)}")
    ends = [end for end in (total, None if square is None else math.isqrt(int(square))) if end is not None]
    most = integer("l_inf", l_inf) if l_inf is not None else min(ends, default=1)
    if not 1 <= most <= MOST_ROWS:
        raise InvalidParameter("l_inf", f"must be an integer from 1 to {MOST_ROWS}: the most rows in one group")
    most = min([most, *ends])
    total = min([groups * most, *([] if total is None else [total])])
    square = min([Fraction(groups * most**2), Fraction(total * most), *([] if square is None else [square])])
    if most == 1:  # then both bound the number of groups
        groups = min(groups, total, int(square))
        return Reach(groups, 1, groups, Fraction(groups))
    return Reach(groups, most, min(total, math.isqrt(int(groups * square))), square)


def _scale(scale: Real) -> float:
    deviation = real("scale", scale)
    if not _LEAST_SCALE <= deviation <= _MOST_SCALE:
        raise InvalidParameter("scale", "must be from 0.1 to 2^60")
    return deviation


def as_mechanism(histogram: Histogram) -> Mechanism | None:
    """The mechanism of this library with the same certificate, for Gaussian noise; None for other noises."""
    noise = histogram.noise
    if not isinstance(noise, GaussianNoise) or not histogram.reach.is_counted_once:
        return None
    threshold = float(histogram.tau + noise.edge(histogram.gap, histogram.keeps))
    if threshold <= histogram.tau:
        return None
    return Mechanism(c_u=histogram.c_u, tau=histogram.tau, tau_star=threshold, sigma=noise.scale)


def at_epsilon(histogram: Histogram, epsilon: float) -> EnginePoint:
    """δ at ε."""
    if not 0 <= epsilon <= MOST_EPSILON:
        raise InvalidParameter("epsilon", f"must be from 0 to {MOST_EPSILON:g}")
    is_split = histogram.reach.is_counted_once and not isinstance(histogram.noise, TruncatedGeometric)
    evaluate = scanned if is_split else bounded_by_parts
    for bits in PRECISIONS[:6]:
        found = at_precision(bits, lambda: evaluate(histogram, arb(epsilon)))
        if found.delta.rel_accuracy_bits() >= _ENOUGH_BITS:
            break
    delta, infinite, noise = (
        min(upper_double(each), 1.0) for each in (found.delta, found.delta_infinite, found.delta_noise)
    )
    is_exact = (is_split and histogram.noise.is_exact(histogram.c_u)) or (
        found.at_tau == histogram.c_u and noise <= infinite
    )
    if isinstance(histogram.noise, TruncatedGeometric):
        is_exact = noise <= infinite * 2.0**-40  # then the keys of groups that only one user is in decide
    return EnginePoint(epsilon, delta, infinite, noise, found.at_tau, is_exact)


def at_delta(histogram: Histogram, delta: float) -> EnginePoint:
    """The smallest ε at δ, rounded up. δ falls in ε."""
    if not 0 < delta < 1:
        raise InvalidParameter("delta", "must be greater than 0 and less than 1")
    points: dict[int, EnginePoint] = {}

    def meets(position: int) -> bool:
        points[position] = at_epsilon(histogram, double_at(position))
        return points[position].delta <= delta

    first, last = position_of(0.0), position_of(MOST_EPSILON)
    if meets(first):
        return points[first]
    if not meets(last):
        return EnginePoint(math.inf, delta, points[last].delta_infinite, 0.0, histogram.c_u, points[last].is_exact)
    return points[_narrowed(meets, first, last)]


def _narrowed(meets: Callable[[int], bool], false: int, true: int) -> int:
    """A position where it is met, less than a share of 2⁻³⁷ above one where it is not."""
    fine = 1 << 15  # doubles in such a share
    coarse = bisect(lambda step: meets(min(step * fine, true)), false // fine, -(-true // fine))
    return min(coarse * fine, true)
