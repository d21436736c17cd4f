"""The conditional interval of a published count, in 40 digits and by bisection: nothing here is fast or clever.

{ C : α/2 ≤ Φ̄((y − C)/σ) / Φ̄((τ* − C)/σ) ≤ 1 − α/2 },   each end for the count that rounding may have hidden
"""

from fractions import Fraction

from mpmath import mpf

from .precision import mp

__all__ = ["DIGITS", "ends", "ratio"]

DIGITS = 40


def ratio(y: mpf, tau_star: mpf, c: mpf, sigma: mpf) -> mpf:
    """P(noisy count ≥ y | noisy count ≥ τ*) for a true count c."""
    return _tail((y - c) / sigma) / _tail((tau_star - c) / sigma)


def ends(y: float, tau_star: float, sigma: float, level: float, half: float) -> tuple[mpf, mpf, mpf]:
    """Low, estimate and high, not cut; −∞ at or below τ*. ``half`` is half a step of the grid."""
    alpha = 1 - mp.mpf(level)
    return (
        _solved(mp.mpf(y) - mp.mpf(half), tau_star, sigma, alpha / 2),
        _solved(mp.mpf(y), tau_star, sigma, mp.mpf(Fraction(1, 2))),
        _solved(mp.mpf(y) + mp.mpf(half), tau_star, sigma, 1 - alpha / 2),
    )


def _solved(y: mpf, tau_star: float, sigma: float, q: mpf) -> mpf:
    """The C at which the ratio is q. It rises with C."""
    threshold, deviation = mp.mpf(tau_star), mp.mpf(sigma)
    if y <= threshold:
        return mp.ninf
    with mp.workdps(DIGITS + 20):
        low, high = y - deviation, y + 40 * deviation
        while ratio(y, threshold, low, deviation) > q:
            low -= 2 * (y - low)
        while high - low > deviation * mp.mpf(10) ** -DIGITS * (1 + abs(y - low) / deviation):
            middle = (low + high) / 2
            if ratio(y, threshold, middle, deviation) < q:
                low = middle
            else:
                high = middle
        return (low + high) / 2


def _tail(x: mpf) -> mpf:
    return mp.erfc(x / mp.sqrt(2)) / 2
