"""δ of an engine's sparse histogram: the worst split of a user's groups.  [docs/math/engines.md]

Of the C groups of a user, x are at τ and the others far above the threshold. With p = 1 − q, c = −ln p, G = 1 − H:

    T2(x) = 1 − p^x G_{C−x}(ε + cx)      the user is added
    T3(x) = 1 − G_{C−x}(ε − cx)          the user is removed; at most T2(x) for Gaussian and Laplace noise
    δ(ε)  = the largest of them over x = 0 … C

The two ends are not enough for other noises than the Gaussian. G falls in the number of rows and rises in ε. So for
l ≤ x ≤ r:  T2(x) ≤ 1 − p^r G_{C−l}(ε + cl)  and  T3(x) ≤ 1 − G_{C−l}(ε − cr). Branch and bound narrows these intervals
until none of them can exceed the best split by more than a share of 2⁻⁴⁰.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import count

from flint import arb

from gsh.accounting.engines.noise import CountNoise, Keeps, Reach, of_sign

__all__ = ["Histogram", "Scanned", "hazard_of", "scanned"]

_SHARE = 2.0**-40


@dataclass(frozen=True, slots=True)
class Histogram:
    """The sparse histogram of an engine, checked."""

    noise: CountNoise
    c_u: int
    tau: int
    threshold: Fraction
    keeps: Keeps
    reach: Reach

    @property
    def gap(self) -> Fraction:
        return self.threshold - self.tau


@dataclass(frozen=True, slots=True)
class Scanned:
    """Balls, at the present precision."""

    delta: arb
    delta_infinite: arb
    delta_noise: arb
    at_tau: int | None
    """The number of groups at τ in the worst split that was found; None for a bound on all splits."""


def hazard_of(histogram: Histogram, rows: int = 1) -> arb | None:
    """c = −ln(1 − q) of a group that exists because of so many rows; None if q is so near 1 that δ rounds to 1."""
    published = histogram.noise.published(histogram.gap - (rows - 1), histogram.keeps)
    return -(-published).log1p() if published < 1 else None


def scanned(histogram: Histogram, epsilon: arb) -> Scanned:
    """δ at ε, and its two ends: all groups at τ, and none."""
    noise, groups = histogram.noise, histogram.c_u
    hazard = hazard_of(histogram)
    if hazard is None:
        return Scanned(arb(1), arb(1), noise.excess(groups, epsilon), groups)

    def excess(rows: int, at: arb) -> arb:
        if not rows:
            return (-at.expm1()).max(arb(0))
        if at >= 0:
            return noise.excess(rows, at)
        if at <= 0:
            return of_sign(noise.excess(rows, -at), -at)
        return noise.excess(rows, at.max(arb(0))).union(noise.excess(rows, arb(0)))  # a ball around 0

    def added(at_tau: int, rows: int, shift: int) -> arb:
        """1 − p^r G_{C−l}(ε + cl), without cancellation."""
        kept = (-hazard * at_tau).exp()
        return kept * excess(rows, epsilon + hazard * shift) - (-hazard * at_tau).expm1()

    bounds: list[Callable[[int, int], arb]] = [lambda left, right: added(right, groups - left, left)]
    if not noise.is_ordered:
        bounds.append(lambda left, right: excess(groups - left, epsilon - hazard * right))

    best, place = arb(0), 0
    heap: list[tuple[float, int, Callable[[int, int], arb], int, int, arb]] = []
    order = count()

    def look(bound: Callable[[int, int], arb], left: int, right: int) -> None:
        """Keep an interval between two splits that were evaluated, if it can exceed the best."""
        if right - left > 1:
            most = bound(left + 1, right - 1)
            heapq.heappush(heap, (-float(most.upper()), next(order), bound, left, right, most))

    def evaluate(bound: Callable[[int, int], arb], x: int) -> arb:
        nonlocal best, place
        value = bound(x, x)
        if float(value.mid()) > float(best.mid()):
            place = x
        best = best.max(value)
        return value

    ends = evaluate(bounds[0], 0), evaluate(bounds[0], groups)
    if noise.are_ends_enough:
        return Scanned(best, ends[1], ends[0], place)
    for bound in bounds[1:]:
        evaluate(bound, 0), evaluate(bound, groups)
    for bound in bounds:
        look(bound, 0, groups)
    while heap:
        _, _, bound, left, right, most = heapq.heappop(heap)
        if most <= best * (1 + _SHARE):
            break
        if right - left == 2:
            evaluate(bound, left + 1)
            continue
        middle = (left + right) // 2
        evaluate(bound, middle)
        look(bound, left, middle)
        look(bound, middle, right)
    else:
        return Scanned(best, ends[1], ends[0], place)
    return Scanned(best.union((best * (1 + _SHARE)).max(best)), ends[1], ends[0], place)
