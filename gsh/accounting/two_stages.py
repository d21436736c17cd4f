"""A survey of the users, and then tables whose bounds were chosen from it: the exact δ.  [docs/math/two-stages.md]

The survey is a histogram over the users in public bins, with Gaussian noise: S_h = Σ 1/σ_h². S and D of the tables are
fixed before it. C_u, σ, τ* and all the rest may depend on what it shows. Its privacy loss L is N(S_h/2, S_h), and the
tables have ε − L left. For each L the worse of "all groups above τ" and "all at τ" can occur:

    δ(ε) = E h(ε − L),    h(t) = f(√S, t) up to ε*,  1 − e^(−D) from there on,    f(√S, ε*) = 1 − e^(−D)           (2s)

This holds if all tables have the same shares of S and of D, none has caps on columns, and

    D ≤ √(S/2π)   and   1 − e^(−D) ≤ f(√S, D).                                                                    (c)

Practice always has (c). In the other cases chords.py has an upper bound. Integrated by parts, so that nothing cancels:

    δ(ε) = 1 − e^(−D) + ∫_{−∞}^{ε*} W(t) g(t) dt,     W(t) = Φ((t − ε)/√S_h + √S_h/2)
                                                      g(t) = −f′ = e^t Φ(−t/√S − √S/2)

W rises from 0 to 1 within some √S_h, and g falls from e^t to 0 within some √S. Between such places t_A and t_B arb
integrates. The rest is known except for factors that are nearly 1:

    from −∞ to t_A     between Φ(−t_A/√S − √S/2) and 1 times ∫_{−∞}^{t_A} W e^t
    from t_B to ε*     between W(t_B) and W(ε*) times f(t_B) − f(ε*)

So ε* need not be exact: near ε* the second factor is 0.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from flint import acb, arb, ctx

from gsh.accounting import gaussian
from gsh.accounting.chords import Mixture, mixture_of
from gsh.accounting.mechanism import (
    AnyMechanism,
    PlainGaussian,
    Surveyed,
    hazard_ball,
    mechanisms_of,
    mu_squared_ball,
    survey_ball,
)
from gsh.accounting.numerics.balls import PRECISIONS, approximate, at_most
from gsh.accounting.numerics.doubles import LEAST_DOUBLE
from gsh.accounting.numerics.newton import secant
from gsh.accounting.numerics.normal_tail import tail

__all__ = [
    "Costs",
    "TwoStages",
    "composed",
    "delta",
    "epsilon_guess_after",
    "has_condition",
    "height",
    "is_exact",
    "worst_after",
]

# Beyond these bits, the bounds on both sides of δ decide: only numbers beyond 1e300 need more.
_MOST_BITS, _MOST_EVALUATIONS = 2560, 4000
# The integral is computed to all bits of the precision but some, and to no more than decide a rounding.
_SPARE_BITS, _ENOUGH_BITS = 8, 160
# Rounding σ and τ* up makes equal shares of S and of D differ. So much is neglected: S and D are increased by it.
_UNEVEN = 2.0**-40


class Costs(NamedTuple):
    """The noise cost S_h of a survey, and S and D of the tables."""

    survey: arb
    square: arb
    hazard: arb

    @property
    def infinite(self) -> arb:
        """1 − e^(−D)"""
        return -(-self.hazard).expm1()

    @property
    def mu(self) -> arb:
        """√(S_h + S)"""
        return (self.survey + self.square).sqrt()


@dataclass(frozen=True, slots=True)
class TwoStages:
    """δ by (2s), at any ε."""

    release: Surveyed

    def ground(self) -> None:
        """There is no frontier."""

    def largest(self, epsilon: float, _ground: object = None) -> arb:
        """δ(ε), if the tables have the least S and D with which their shares are the same."""
        survey, tables = survey_ball(self.release.survey), self.release.tables
        factor = _unevenness(mechanisms_of(tables))
        costs = Costs(survey, factor * mu_squared_ball(tables), factor * hazard_ball(tables))
        return delta(costs, arb(epsilon))


def worst_after(release: Surveyed, epsilon: float) -> TwoStages | Mixture:
    """What decides δ at ε besides δ_infinite and the δ of all noise."""
    return TwoStages(release) if is_exact(release) else mixture_of(release, epsilon)


def epsilon_guess_after(release: Surveyed, delta: float) -> arb:
    """About the ε at which ``worst_after`` has δ: between those of all noise alone and of composition."""

    def missing(epsilon: float) -> float:
        worst = worst_after(release, epsilon)
        return height(float(approximate(lambda: worst.largest(epsilon)))) - height(delta)

    def mu() -> arb:
        return mu_squared_ball(release).sqrt()

    low = float(approximate(lambda: gaussian.epsilon_at(mu(), arb(delta))))
    high = float(approximate(lambda: gaussian.epsilon_with_accident(mu(), hazard_ball(release), delta)))
    return arb(secant(missing, max(low, 0.0), max(high, 0.0)))


def height(probability: float) -> float:
    """√(−2 ln q): of a privacy curve nearly a straight line."""
    return math.sqrt(-2 * math.log(min(max(probability, LEAST_DOUBLE), 1.0)))


@lru_cache(maxsize=4096)
def is_exact(release: Surveyed) -> bool:
    """Whether (2s) holds: then δ is exact. It is exact too if all groups are public: then all noise adds up."""
    tables = mechanisms_of(release.tables)
    if all(isinstance(table, PlainGaussian) for table in tables):
        return True
    if any(isinstance(table, PlainGaussian) or table.costs.capped for table in tables):
        return False
    if not at_most(lambda: (_unevenness(tables), arb(1 + _UNEVEN))):
        return False
    return has_condition(lambda: (mu_squared_ball(release.tables), hazard_ball(release)))


def has_condition(costs: Callable[[], tuple[arb, arb]]) -> bool:
    """Whether (c) holds for S and D."""

    def noise() -> tuple[arb, arb]:
        square, hazard = costs()
        return hazard, (square / (2 * arb.pi())).sqrt()

    def threshold() -> tuple[arb, arb]:
        square, hazard = costs()
        return -(-hazard).expm1(), gaussian.delta(square.sqrt(), hazard)

    return at_most(noise) and at_most(threshold)


def _unevenness(tables: Sequence[AnyMechanism]) -> arb:
    """The least factor of S and D with which all tables have the same shares of both:  Σ max(S_k/S, D_k/D)."""
    if len(tables) == 1 or all(isinstance(table, PlainGaussian) for table in tables):
        return arb(1)  # public groups have no D: only the sum of all S counts
    squares, hazards = [mu_squared_ball(table) for table in tables], [hazard_ball(table) for table in tables]
    square, hazard = sum(squares, arb(0)), sum(hazards, arb(0))
    parts = ((each / square).max(other / hazard) for each, other in zip(squares, hazards, strict=True))
    return sum(parts, arb(0))


def delta(costs: Costs, epsilon: arb) -> arb:
    """δ(ε) by (2s), if (c) holds.

    It is between the δ of all noise together and that of composition, which are the answer if the integral is none.
    """
    below = costs.infinite.max(gaussian.delta(costs.mu, epsilon))
    within = below.union(composed(costs, epsilon))
    if ctx.prec > _MOST_BITS or not below > 0:
        return within
    found = _integrated(costs, epsilon, below)
    return found.intersection(within) if found.is_finite() and found.overlaps(within) else within


def composed(costs: Costs, epsilon: arb) -> arb:
    """δ(ε) as if the tables were a release, chosen after seeing the survey: an upper bound without a condition."""
    return gaussian.delta_with_accident(costs.mu, costs.hazard, epsilon)


def _integrated(costs: Costs, epsilon: arb, below: arb) -> arb:
    """δ(ε), given a lower bound."""
    bits, scale, mu, infinite = min(ctx.prec, _ENOUGH_BITS), costs.survey.sqrt(), costs.square.sqrt(), costs.infinite
    middle = epsilon - costs.survey / 2
    reach = (bits * arb(2).log() * 2).sqrt()

    def survey_left(t: arb) -> arb:
        return tail((middle - t) / scale)

    near = _switch(mu, infinite)
    step = arb(2) ** (-bits // 2) * (scale * mu).sqrt()
    start = (middle - scale * (reach**2 - 2 * below.log()).sqrt()).max(-mu * (mu / 2 + reach)).mid()
    end = (near - step).min(middle + scale * reach).mid()
    start = start.min(end)
    gained, after = gaussian.delta(mu, end), gaussian.delta(mu, (near + step).mid())
    if not gained >= infinite:
        return arb.nan()
    most = survey_left((near + step).mid()) if after <= infinite else arb(1)
    # ∫ W e^t up to the start, by parts.
    whole = start.exp() * survey_left(start) - epsilon.exp() * tail((middle - start) / scale + scale)
    return (
        infinite
        + whole * tail(start / mu + mu / 2).union(arb(1))
        + _integral(scale, mu, middle, start, end, below)
        + (gained - infinite) * survey_left(end).union(most)
    )


def _integral(scale: arb, mu: arb, middle: arb, start: arb, end: arb, below: arb) -> arb:
    """∫ W g between two reals."""
    root = arb(2).sqrt()
    rising, falling, quarter = scale * root, mu * root, mu / (2 * root)

    def integrand(t: acb, _is_analytic: bool) -> acb:
        return ((middle - t) / rising).erfc() * (t / falling + quarter).erfc() * t.exp()

    bits = min(ctx.prec - _SPARE_BITS, _ENOUGH_BITS)
    found = acb.integral(
        integrand,
        start,
        end,
        rel_tol=arb(2) ** -bits,
        abs_tol=4 * below * arb(2) ** -bits,
        eval_limit=_MOST_EVALUATIONS,
    )
    return found.real / 4


def _switch(mu: arb, infinite: arb) -> arb:
    """About ε*, where f(√S, ε*) = 1 − e^(−D), to half of the precision in force."""
    epsilon = gaussian.epsilon_at(mu, infinite).mid()
    for _ in range((ctx.prec // PRECISIONS[0]).bit_length() - 1):
        epsilon = (epsilon + (gaussian.delta(mu, epsilon) - infinite) / _falling(mu, epsilon)).mid()
    return epsilon


def _falling(mu: arb, t: arb) -> arb:
    """g(t) = −f′"""
    return t.exp() * tail(t / mu + mu / 2)
