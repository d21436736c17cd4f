"""Published counts drawn from their exact conditional distribution, without waiting for rare ones."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, log_ndtr, ndtri_exp

__all__ = ["Doubles", "fewest_covered", "most_covered", "published"]

Doubles = NDArray[np.float64]
_FLAKE = 1e-6


def published(counts: Doubles, tau_star: float, sigma: float, size: int, seed: int) -> Doubles:
    """``size`` rows of noisy counts, each given that it is at least τ*: Φ̄ of it is uniform below Φ̄ of τ*."""
    uniform = np.random.default_rng(seed).random((size, len(counts)))
    least = (tau_star - counts) / sigma
    noise = -ndtri_exp(log_ndtr(-least) + np.log1p(-uniform))
    return np.maximum(counts + sigma * noise, tau_star)


def fewest_covered(level: float, size: int) -> int:
    """Fewer intervals of so many cover with probability at most 10⁻⁶, if each covers with this level."""
    return int(_quantile(level, size, _FLAKE))


def most_covered(level: float, size: int) -> int:
    return int(_quantile(level, size, 1 - _FLAKE))


def _quantile(p: float, size: int, probability: float) -> int:
    """The smallest k with P(at most k of ``size``) ≥ probability."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if bdtr(middle, size, p) >= probability else (middle + 1, high)
    return low
