"""An upper bound on δ after a survey, for any tables: chords of their privacy curve.  [docs/math/two-stages.md]

    δ(ε) ≤ E h(ε − L),     L ~ N(S_h/2, S_h) the privacy loss of the survey

h(t) is the exact δ of the tables at t ≥ 0, and h(−t) = 1 − e^(−t) (1 − h(t)) covers both directions. As a supremum of
hockey sticks h is convex in α = e^t, so it is below its chords between points (αᵢ, hᵢ). With slopes mᵢ after αᵢ, m = 0
after the last point, and h = 1 at α = 0, the chords are a mixture of hockey sticks, and so is their mean:

    δ(ε) ≤ h_N + Σ (mᵢ − mᵢ₋₁) αᵢ f(√S_h, ε − tᵢ)

The points are where f(√S, t) bends, where it reaches 1 − e^(−D), and at ε. Those are left out that ε − L reaches with
a negligible probability. Where the bound of composition is smaller, that is the answer.
"""

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from flint import arb

from gsh.accounting import gaussian
from gsh.accounting.frontier import frontier_after_survey, worst_on
from gsh.accounting.mechanism import FixedTables, Surveyed, hazard_ball, mu_squared_ball, survey_ball
from gsh.accounting.numerics.balls import approximate, round_up

__all__ = ["Mixture", "mixture_of"]

_POINTS = 32.0
"""Points for each unit of a and of a²/2: h is then about 1/(8 · 32²) of itself below its chords, at most."""
_NEAR_ONE = -6.0
_NEAR_INFINITE = 2.0**-16
_NEGLIGIBLE = 2.0**-40


@dataclass(frozen=True, slots=True)
class Mixture:
    """The points that matter at one ε, by rising t, with h rounded up there."""

    release: Surveyed
    places: tuple[float, ...]
    values: tuple[float, ...]

    def ground(self) -> None:
        """There is no frontier."""

    def largest(self, epsilon: float, _ground: object = None) -> arb:
        """The bound at ε, or that of composition if it is smaller."""
        survey, tables = survey_ball(self.release.survey), self.release.tables
        square, hazard = mu_squared_ball(tables), hazard_ball(tables)
        composed = gaussian.delta_with_accident((survey + square).sqrt(), hazard, epsilon)
        return composed.min(self._mean(survey.sqrt(), epsilon))

    def _mean(self, scale: arb, epsilon: float) -> arb:
        points = [(arb(0), arb(1)), *((arb(t).exp(), h) for t, h in zip(self.places, self._heights(), strict=True))]
        slopes = [(after - before) / (high - low) for (low, before), (high, after) in pairwise(points)]
        total = points[-1][1]
        for t, (alpha, _), (before, after) in zip(self.places, points[1:], pairwise([*slopes, arb(0)]), strict=True):
            total += (after - before) * alpha * gaussian.delta(scale, arb(epsilon) - t)
        return total

    def _heights(self) -> list[arb]:
        """h at each place: its upper bound at t ≥ 0, and what follows from it below."""
        return [
            arb(value) if t >= 0 else -arb(t).expm1() + arb(t).exp() * value
            for t, value in zip(self.places, self.values, strict=True)
        ]


def mixture_of(release: Surveyed, epsilon: float) -> Mixture:
    """The points that matter at ε: those that ε − L reaches, the next one on each side, and ε itself."""
    low, high = _reached(release, epsilon)
    positive = _places(release.tables)
    every = sorted({*(-t for t in positive), *positive, epsilon})
    kept = every[max(bisect_left(every, low) - 1, 0) : bisect_right(every, high) + 1]
    return Mixture(release, tuple(kept), tuple(_height(release.tables, abs(t)) for t in kept))


def _reached(release: Surveyed, epsilon: float) -> tuple[float, float]:
    """Where ε − L is but with a probability that is negligible next to δ."""

    def middle() -> arb:
        return epsilon - survey_ball(release.survey) / 2

    def reach() -> arb:
        survey = survey_ball(release.survey)
        infinite = -(-hazard_ball(release)).expm1()
        noise = gaussian.delta((survey + mu_squared_ball(release.tables)).sqrt(), arb(epsilon))
        return (2 * survey * -(infinite.max(noise) * _NEGLIGIBLE).log()).sqrt()

    centre, width = float(approximate(middle)), float(approximate(reach))
    return centre - width, centre + width


@lru_cache(maxsize=256)
def _places(tables: FixedTables) -> tuple[float, ...]:
    """The t ≥ 0 of the points, from 0 up: where a = t/√S − √S/2 has even steps of a + max(a, 0)²/2, and ε*."""

    def mu_ball() -> arb:
        return mu_squared_ball(tables).sqrt()

    def reaching(part: float) -> float:
        return float(approximate(lambda: gaussian.epsilon_at(mu_ball(), part * _infinite(tables))))

    mu, last = float(approximate(mu_ball)), reaching(_NEAR_INFINITE)
    first = _stretched(max(-mu / 2, _NEAR_ONE))
    length = max(_stretched(last / mu - mu / 2) - first, 0.0)
    steps = math.ceil(length * _POINTS) + 1
    inner = (mu * (_unstretched(first + length * k / steps) + mu / 2) for k in range(steps + 1))
    return (0.0, *sorted({t for t in (*inner, reaching(1.0)) if t > 0}))


def _stretched(a: float) -> float:
    return a + max(a, 0.0) ** 2 / 2


def _unstretched(share: float) -> float:
    return share if share <= 0 else math.sqrt(1 + 2 * share) - 1


def _infinite(tables: FixedTables) -> arb:
    return -(-hazard_ball(tables)).expm1()


@lru_cache(maxsize=1 << 15)
def _height(tables: FixedTables, t: float) -> float:
    """The exact δ of the tables at t ≥ 0, rounded up, whatever C_u and the caps are."""
    worst = worst_on(frontier_after_survey(tables), t)

    def delta() -> list[arb]:
        noise = gaussian.delta(mu_squared_ball(tables).sqrt(), arb(t))
        return [_infinite(tables).max(noise).max(worst.largest(t))]

    return round_up(delta, ceilings=(1.0,))[0]
