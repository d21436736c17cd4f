"""What outputs prove about the privacy of an engine: bounds on δ from below.  [docs/math/engines.md]

A block is a user's groups: x at τ, and the others far above the threshold. Many blocks with the user and as many
without are samples of P and Q. For every event E that is fixed before,

    δ(ε) ≥ P(E) − e^ε Q(E),

and Clopper and Pearson's bounds for both probabilities give a lower bound with confidence. E is the event that
distinguishes best if the engine is as stated. With c = −ln p and the loss ℓ of the far groups:

    the user is added      a group at τ is shown, or Σ ℓ > ε + cx
    the user is removed    no group at τ is shown, and −Σ ℓ > ε − cx
"""

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, betaincinv

from gsh.accounting.engines.scan import Histogram
from gsh.accounting.numerics.balls import approximate

__all__ = ["Direction", "chance_of_equals", "event", "hazard_of", "least_probability", "most_equal", "shown_delta"]

Direction = Literal["added", "removed"]
Counts = NDArray[np.float64]

_FINE = 2.0**-10
"""Noise that is not whole numbers takes each value with less than this probability."""


def shown_delta(hits: int, others: int, samples: int, epsilon: float, doubt: float) -> float:
    """A lower bound on P(E) − e^ε Q(E): E came so often with the user, and so often without."""
    return least_probability(hits, samples, doubt / 2) - math.exp(epsilon) * (
        1 - least_probability(samples - others, samples, doubt / 2)
    )


def least_probability(hits: int, samples: int, doubt: float) -> float:
    """Clopper and Pearson's lower bound: it is above the probability with at most this chance."""
    return float(betaincinv(hits, samples - hits + 1, doubt)) if hits else 0.0


def event(histogram: Histogram, noise: Counts, at_tau: Counts, epsilon: float, direction: Direction) -> NDArray[Any]:
    """Whether E came, by block. ``noise`` has the far counts less the users without the one; NaN is not shown."""
    shown = ~np.isnan(at_tau).all(axis=1) if at_tau.shape[1] else np.zeros(len(noise), dtype=bool)
    shift = hazard_of(histogram) * at_tau.shape[1]
    ratio = np.nan_to_num(_loss(histogram, noise), nan=0.0).sum(axis=1)
    if direction == "added":
        return np.asarray(shown | (ratio > epsilon + shift))
    return np.asarray(~shown & (-ratio > epsilon - shift))


def hazard_of(histogram: Histogram) -> float:
    """c = −ln p."""
    noise = histogram.noise
    return float(approximate(lambda: -(-noise.published(histogram.gap, histogram.keeps)).log1p()))


def _loss(histogram: Histogram, noise: Counts) -> Counts:
    """ln P/Q of one row: its noise is z without the user, and z − 1 with the user."""
    scale = histogram.noise.scale
    if histogram.noise.kind.endswith("gaussian"):
        return np.asarray((2 * noise - 1) / (2 * scale**2))
    return np.asarray((np.abs(noise) - np.abs(noise - 1)) / scale)


def chance_of_equals(histogram: Histogram, *, is_whole: bool) -> float:
    """The most probability that one value of the noise can have."""
    if not is_whole:
        return _FINE
    scale = histogram.noise.scale
    if histogram.noise.kind.endswith("gaussian"):  # 1/W with W = 1 + 2 e^(−1/2σ²) + … > σ √(2π)
        return min(1 / (scale * math.sqrt(2 * math.pi)), 1 / (1 + 2 * math.exp(-1 / (2 * scale**2))))
    return -math.expm1(-0.5 / scale) if histogram.noise.kind != "geometric" else math.tanh(0.5 / scale)


def most_equal(values: Counts, chance: float) -> tuple[int, float]:
    """How often the most frequent value is there, and a bound on the chance of that if the values are independent."""
    most = int(np.unique(values, return_counts=True)[1].max(initial=0))
    return most, min(1.0, len(values) * float(bdtrc(most - 2, len(values) - 1, chance))) if most > 1 else 1.0
