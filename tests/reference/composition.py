"""Several releases together, in 60 digits: the bound for adaptive composition, and the worst of every split.

A release at which all C_u groups of the user sit at τ adds D; one at which they are far above it adds S:

    S = C_u (1/σ² + μ₀²),   D = −C_u ln p
    T(D₁, S₂) = 1 − e^(−D₁) (1 − f(√S₂, ε + D₁))

The upper bound takes all releases both ways at once; the lower one is the largest T over all 2^k splits.
"""

from collections.abc import Sequence
from itertools import product

from mpmath import mpf

from .cases import Case
from .paper import gaussian, log_p
from .precision import mp


def upper(cases: Sequence[Case], epsilon: float) -> mpf:
    return at_split(sum(map(d_of, cases)), sum(map(s_of, cases)), epsilon)


def lower(cases: Sequence[Case], epsilon: float) -> mpf:
    return max(
        at_split(
            sum((d_of(case) for case, at in zip(cases, split, strict=True) if at), mp.zero),
            sum((s_of(case) for case, at in zip(cases, split, strict=True) if not at), mp.zero),
            epsilon,
        )
        for split in product((False, True), repeat=len(cases))
    )


def s_of(case: Case) -> mpf:
    return case.c_u * (1 / mp.mpf(case.sigma) ** 2 + mp.mpf(case.mu_0) ** 2)


def d_of(case: Case) -> mpf:
    return -case.c_u * log_p(case)


def at_split(d: mpf, s: mpf, epsilon: float) -> mpf:
    return -mp.expm1(-d) + mp.exp(-d) * gaussian(mp.sqrt(s), epsilon + d)
