"""A bound on δ where a user adds several rows to a group, or where keys alone are published.  [docs/math/engines.md]

A group that exists because of s rows of one user is published with the probability q(T − τ − s + 1) = 1 − e^(−h(s)).
All groups of a user together have at most the hazard

    c = min(C h(m), Δ₁ max h(s)/s, Δ₂² max h(s)/s²),   s = 1 … m, the most rows in one group,

and with any bound H(ε) on the noise of all rows, for every split of the rows:  δ ≤ 1 − e^(−c) (1 − H(ε)).
"""

from flint import arb

from gsh.accounting.engines.scan import Histogram, Scanned, hazard_of
from gsh.accounting.numerics.balls import ball_of

__all__ = ["MOST_ROWS", "bounded_by_parts"]

MOST_ROWS = 1000
"""The most rows of a user in one group."""


def bounded_by_parts(histogram: Histogram, epsilon: arb) -> Scanned:
    """The bound at ε, and its two parts."""
    noise = histogram.noise.excess_within(histogram.reach, epsilon)
    assert noise is not None
    hazard = _hazard(histogram)
    if hazard is None:
        return Scanned(arb(1), arb(1), noise, None)
    infinite = -(-hazard).expm1()
    return Scanned((-hazard).exp() * noise + infinite, infinite, noise, None)


def _hazard(histogram: Histogram) -> arb | None:
    """h(s) of each s, and from them the most in all groups."""
    reach = histogram.reach
    hazards = []
    for rows in range(1, reach.l_inf + 1):
        hazard = hazard_of(histogram, rows)
        if hazard is None:
            return None
        hazards.append(hazard)
    in_l1, in_l2 = arb(0), arb(0)
    for rows, hazard in enumerate(hazards, 1):
        in_l1, in_l2 = in_l1.max(hazard / rows), in_l2.max(hazard / rows**2)
    return (reach.groups * hazards[-1]).min(reach.l1 * in_l1).min(ball_of(reach.square) * in_l2)
