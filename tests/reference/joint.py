"""Several tables in one release: every split of a user's groups in all tables, in both directions.

A table of public groups is a case with τ* = ∞: its p is 1, and its groups are never at τ.
"""

import math
from itertools import product

from mpmath import mpf

from .cases import Case
from .paper import gaussian, log_p, squared
from .precision import mp

__all__ = ["delta"]


def delta(tables: tuple[Case, ...], epsilon: float) -> mpf:
    """The smallest δ at ε ≥ 0: the largest over all splits, of a user who is added or removed."""
    rates = [mp.zero if math.isinf(table.tau_star) else -log_p(table) for table in tables]
    most = [0 if math.isinf(table.tau_star) else table.c_u for table in tables]
    largest = mp.zero
    for at_tau in product(*(range(each + 1) for each in most)):
        hazard = mp.fsum(rate * x for rate, x in zip(rates, at_tau, strict=True))
        mu = mp.sqrt(mp.fsum(squared(table, table.c_u - x) for table, x in zip(tables, at_tau, strict=True)))
        added = -mp.expm1(-hazard) + mp.exp(-hazard) * gaussian(mu, epsilon + hazard)
        largest = max(largest, added, gaussian(mu, epsilon - hazard))
    return largest
