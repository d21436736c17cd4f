"""δ of the Gaussian mechanism by zCDP, from ρ = μ²/2 of the noise alone.  [docs/math/other-accountings.md]

ρ-zCDP [Bun & Steinke 2016, Prop. 1.6] gives (ε, δ) for every order α > 1. The best order counts:

    δ = min over α > 1 of  e^((α − 1)(αρ − ε)) (1 − 1/α)^α / (α − 1)        [Canonne, Kamath & Steinke 2020, Cor. 13]

With x = α − 1 the logarithm is  x(1 + x)ρ − xε + x ln x − (1 + x) ln(1 + x).  It is convex in x, and its minimum over x
is concave in ρ. Every order gives a valid δ, so an order near the best one errs to the safe side.
"""

from flint import arb

from gsh.accounting.numerics.newton import newton

__all__ = ["delta", "mu_at"]


def delta(mu: arb, epsilon: arb) -> arb:
    """δ at ε ≥ 0 of noise with ρ = μ²/2."""
    rho = mu * mu / 2
    return _log_delta(rho, epsilon, _best_order(rho, epsilon)).exp()


def mu_at(epsilon: arb, target: arb) -> arb:
    """Approximately the μ at which δ meets the target.

    ln δ is concave in ρ with slope x(1 + x), so Newton's method converges from the left. Two weaker bounds start it
    there: ρ + 2√(ρ ln(1/δ)) = ε [Bun & Steinke 2016, Prop. 1.3], and the order α = e/δ.
    """
    bits = -target.log()
    by_tail = (bits + epsilon).sqrt() - bits.sqrt()
    order = arb(1).exp() / target

    def step(rho: arb) -> arb:
        x = _best_order(rho, epsilon)
        return rho - (_log_delta(rho, epsilon, x) + bits) / (x * (1 + x))

    return (2 * newton(step, (by_tail * by_tail).max(1 / (order * order)))).sqrt()


def _log_delta(rho: arb, epsilon: arb, x: arb) -> arb:
    return x * ((1 + x) * rho - epsilon) - x * (1 / x).log1p() - x.log1p()


def _best_order(rho: arb, epsilon: arb) -> arb:
    """Approximately the x = α − 1 with  (1 + 2x)ρ − ε − ln(1 + 1/x) = 0,  from the left, where Newton converges."""

    def step(x: arb) -> arb:
        slope = (1 + 2 * x) * rho - epsilon - (1 / x).log1p()
        return x - slope / (2 * rho + 1 / (x * (1 + x)))

    by_noise = (epsilon / rho - 1) / 2
    by_order = (1 / (2 * rho)).min((epsilon - rho - 1).exp())
    return newton(step, by_noise.max(by_order))
