"""The δ that zCDP has for Gaussian noise, by trying orders: Canonne, Kamath & Steinke 2020 (arXiv 2004.00010), Cor. 13.

It knows nothing of where the best order is, but that ln δ is convex in α.
"""

from mpmath import mpf

from .precision import mp

_STEPS = 700  # golden section: 1.6^−700 of the width, far beyond the digits that a flat minimum needs


def zcdp(mu: mpf | float, epsilon: mpf | float) -> mpf:
    """The smallest δ at ε ≥ 0 that ρ = μ²/2 allows to claim.

    δ = min over α > 1 of  e^((α − 1)(αρ − ε)) (1 − 1/α)^α / (α − 1)
    """
    rho, epsilon = mp.mpf(mu) ** 2 / 2, mp.mpf(epsilon)

    def log_delta(log_excess: mpf) -> mpf:
        alpha = 1 + mp.exp(log_excess)
        return (alpha - 1) * (alpha * rho - epsilon) + alpha * mp.log1p(-1 / alpha) - log_excess

    golden = (mp.sqrt(5) - 1) / 2
    low, high = mp.mpf(-400), mp.mpf(400)  # ln(α − 1); a function of one valley stays one under a change of variable
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = log_delta(left), log_delta(right)
    for _ in range(_STEPS):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = log_delta(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = log_delta(right)
    return mp.exp(min(at_left, at_right))
