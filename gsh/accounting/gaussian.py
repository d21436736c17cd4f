"""The analytic Gaussian mechanism: its δ as a function of (μ, ε), alone or with an accident, and the inverses.

An *accident* happens with probability 1 − e^(−D) if a user is there, and never without: then the output shows it. It
models rows at τ, and the threshold cost of several releases.

All functions take and return balls, so they run inside ``balls.at_precision``. The inverses are guesses, by Newton's
method on midpoints. Their callers decide the last bit with a certified comparison.
"""

import math

from flint import arb

from gsh.accounting.numerics.newton import newton
from gsh.accounting.numerics.normal_tail import tail

__all__ = ["delta", "delta_with_accident", "epsilon_at", "epsilon_with_accident", "mu_at", "quantile"]

_DOUBLE_STEPS = 12
_ROOT_OF_HALF = math.sqrt(0.5)
_ROOT_OF_TWO_PI = math.sqrt(2 * math.pi)
_MOST_CHANGE = 50.0  # of ln μ: a larger one comes from a value that is all cancellation
_MOST_EXPONENT = 700.0  # e^ε is a double up to 709


def quantile(q: arb) -> arb:
    """The x with Φ(−x) = q."""
    return (2 * q).erfcinv() * arb(2).sqrt()


def delta(mu: arb, epsilon: arb) -> arb:
    """δ of the Gaussian mechanism at any real ε.  [Balle & Wang 2018, Thm. 8; KKWZ Thm. 2.2]

    f(μ, ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)
    """
    gained, paid = _sides(mu, epsilon)
    return gained - paid


def delta_with_accident(mu: arb, hazard: arb, epsilon: arb | float) -> arb:
    """1 − e^(−D) (1 − f(μ, ε + D)), in a form without cancellation. μ may be 0.  [KKWZ Lemma 5.2]"""
    noise = arb(0) if mu.is_zero() else delta(mu, epsilon + hazard)
    return (-hazard).exp() * noise - (-hazard).expm1()


def epsilon_with_accident(mu: arb, hazard: arb, target: arb | float) -> arb:
    """Approximately the ε at which the same is δ."""
    if mu.is_zero():
        return arb(0)
    return epsilon_at(mu, (target + (-hazard).expm1()) * hazard.exp()) - hazard


def epsilon_at(mu: arb, target: arb) -> arb:
    """Approximately the real ε with f(μ, ε) = δ.

    √(−2 ln f) is nearly a straight line in ε, so Newton's method on it needs few steps. It starts from the bound
    f ≤ Φ(μ/2 − ε/μ).
    """
    height = _height(target)

    def step(epsilon: arb) -> arb:
        gained, paid = _sides(mu, epsilon)
        value = gained - paid
        here = _height(value)
        return epsilon - (here - height) * here * value / paid

    start = _epsilon_in_doubles(float(mu), float(target))
    return newton(step, mu * (mu / 2 + quantile(target)) if start is None else arb(start))


def _epsilon_in_doubles(mu: float, target: float) -> float | None:
    """The same in doubles, or None if they are out of range: a start that saves most of the steps in balls."""
    if not (1e-6 < mu < 30 and 1e-200 < target < 0.5):
        return None
    height = math.sqrt(-2 * math.log(target))
    epsilon = mu * (mu / 2 + height)
    for _ in range(_DOUBLE_STEPS):
        if epsilon > _MOST_EXPONENT:
            return None
        gained, paid = _sides_in_doubles(mu, epsilon)
        value = gained - paid
        if not (0 < value < 1 and paid > 0):
            return None
        here = math.sqrt(-2 * math.log(value))
        change = (here - height) * here * value / paid
        epsilon -= change
        if abs(change) < 1e-9 * abs(epsilon):
            break
    return epsilon if math.isfinite(epsilon) else None


def mu_at(epsilon: arb, target: arb) -> arb:
    """Approximately the μ with f(μ, ε) = δ.

    ln f is concave and rising in ln μ, so Newton's method in these variables converges from the left. The bounds
    f(μ, ε) ≤ μ/√(2π) and f(μ, ε) ≤ Φ(μ/2 − ε/μ) give such a start.
    """

    def step(mu: arb) -> arb:
        centre, half = epsilon / mu, mu / 2
        value = delta(mu, epsilon)
        density = (-((centre - half) ** 2) / 2).exp() / (2 * arb.pi()).sqrt()
        return mu * (-(value / target).log() * value / (mu * density)).exp()

    start = _mu_in_doubles(float(epsilon), float(target))
    if start is not None:
        return newton(step, arb(start))
    z = quantile(target)
    root = (z * z + 2 * epsilon).sqrt()
    by_tail = 2 * epsilon / (z + root) if z > 0 else root - z
    return newton(step, (target * (2 * arb.pi()).sqrt()).max(by_tail))


def _mu_in_doubles(epsilon: float, target: float) -> float | None:
    """The same in doubles, or None if they are out of range. It starts from the same bounds, with √(−2 ln δ) for z."""
    if not (0 <= epsilon < _MOST_EXPONENT and 1e-200 < target < 0.5):
        return None
    height = math.sqrt(-2 * math.log(target))
    mu = max(target * _ROOT_OF_TWO_PI, 2 * epsilon / (height + math.sqrt(height * height + 2 * epsilon)))
    for _ in range(_DOUBLE_STEPS):
        gained, paid = _sides_in_doubles(mu, epsilon)
        value, density = gained - paid, math.exp(-((epsilon / mu - mu / 2) ** 2) / 2) / _ROOT_OF_TWO_PI
        if not (value > 0 and density > 0):
            return None
        change = math.log(value / target) * value / (mu * density)
        if not abs(change) < _MOST_CHANGE:
            return None
        mu *= math.exp(-change)
        if abs(change) < 1e-9:
            break
    return mu


def _sides_in_doubles(mu: float, epsilon: float) -> tuple[float, float]:
    centre, half = epsilon / mu, mu / 2
    gained = math.erfc((centre - half) * _ROOT_OF_HALF) / 2
    return gained, math.exp(epsilon) * math.erfc((centre + half) * _ROOT_OF_HALF) / 2


def _sides(mu: arb, epsilon: arb) -> tuple[arb, arb]:
    """The two terms of f. The second is also −∂f/∂ε."""
    centre, half = epsilon / mu, mu / 2
    return tail(centre - half), epsilon.exp() * tail(centre + half)


def _height(probability: arb) -> arb:
    """√(−2 ln q): roughly the point where a normal tail of probability q starts."""
    return (-2 * probability.log()).sqrt()
