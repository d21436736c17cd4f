"""The splits of a user's C_u groups, a₌ at τ and the others above it, among which exact accounting finds the worst.

    δ(ε) = max over a₌ of  T(a₌) = 1 − e^(−D) (1 − f(√S, ε + D)),     S = S(C_u − a₌),   D = −a₌ ln p

S(a) is concave and piecewise linear, with a corner at each cap of columns that have one. On each piece the segment
lemma says that the ends are enough, wherever ε + D ≥ 0.105 or (ε + D)/√S − √S/2 ≥ ½. Both grow with a₌, so the lemma
holds from some a₌ on. With ε ≥ 0.105 it holds everywhere.  [docs/math/column-caps.md]

Below that a₌, branch and bound encloses the maximum. The derivative along a piece is

    T′ = e^(−D) q,   q = −ln p Φ(a) − B φ(a)/(2√S),   a = (ε + D)/√S − √S/2,   B the slope of S(a₊)

Where the sign of q is certain, or where the lemma's condition (h + a)(h + b) > 1 holds, the ends of an interval are
enough. Otherwise T ≤ T(middle) + max |T′| · half width.
"""

import math
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from flint import arb

from gsh.accounting import gaussian
from gsh.accounting.mechanism import Mechanism, log_p_ball, mu_ball, mu_squared_ball
from gsh.accounting.numerics.balls import approximate, at_precision, upper_double
from gsh.accounting.numerics.normal_tail import tail

__all__ = ["ENOUGH_EPSILON", "Splits", "at_split", "epsilon_guess", "hazard_guess", "splits_of"]

ENOUGH_EPSILON = 0.105
"""From this ε on the lemma holds for every S: a point takes one evaluation for each cap."""
_BITS = 192
# An interval is given up if no a₌ in it can exceed the best one by more than this share: far less than half an ulp.
_SHARE = 2.0**-60
# Searches visit a few hundred places. After these, the bounds of the intervals that are left decide.
_MOST_PLACES = 2000
_HALVINGS = 45
_REFINEMENTS = 3


@dataclass(frozen=True, slots=True)
class Splits:
    """The a₌ among which the worst is, up to a ``share`` by which another one may be larger."""

    a_equal: tuple[int, ...]
    share: float = 0.0

    def largest(self, mechanism: Mechanism, epsilon: float) -> arb:
        """The largest T, increased by the share; 0 without splits."""
        if not self.a_equal:
            return arb(0)
        log_p = log_p_ball(mechanism)
        largest = at_split(mechanism, log_p, epsilon, self.a_equal[0])
        for a_equal in self.a_equal[1:]:
            largest = largest.max(at_split(mechanism, log_p, epsilon, a_equal))
        return largest * (1 + arb(self.share)) if self.share else largest


def at_split(mechanism: Mechanism, log_p: arb, epsilon: float, a_equal: int) -> arb:
    """T(a₌), as a ball."""
    mu = mu_squared_ball(mechanism, mechanism.c_u - a_equal).sqrt()
    return gaussian.delta_with_accident(mu, -a_equal * log_p, epsilon)


def epsilon_guess(mechanism: Mechanism, delta: float) -> arb:
    """About the ε at which the largest T is δ."""
    guess = approximate(lambda: _epsilon_at_splits(mechanism, delta, _corners(mechanism)))
    # Near ε = 0 the worst split may be between the corners, and there again at the ε that it leads to.
    for _ in range(_REFINEMENTS):
        near = max(float(guess), 0.0)
        if not mechanism.caps or near >= ENOUGH_EPSILON:
            break
        worst = splits_of(mechanism, near).a_equal
        guess = approximate(partial(_epsilon_at_splits, mechanism, delta, worst))
    return guess


def _epsilon_at_splits(mechanism: Mechanism, delta: float, splits: tuple[int, ...]) -> arb:
    """About the ε at which the largest T over some splits, or the noise alone, is δ."""
    log_p = log_p_ball(mechanism)
    guess = gaussian.epsilon_at(mu_ball(mechanism), arb(delta))
    for a_equal in splits:
        mu = mu_squared_ball(mechanism, mechanism.c_u - a_equal).sqrt()
        found = gaussian.epsilon_with_accident(mu, -a_equal * log_p, delta)
        if found.is_finite():
            guess = guess.max(found) if guess.is_finite() else found
    return guess


def hazard_guess(mechanism: Mechanism, epsilon: float, delta: arb) -> arb:
    """About the largest −ln p with which T is at most δ at every corner and at a₌ = C_u, if the noise alone fits."""
    guess = -(-delta).log1p() / mechanism.c_u
    for a_equal in _corners(mechanism):
        mu = mu_squared_ball(mechanism, mechanism.c_u - a_equal).sqrt()
        low, high = arb(0), guess
        if gaussian.delta_with_accident(mu, a_equal * high, epsilon) <= delta:
            continue
        for _ in range(_HALVINGS):
            middle = ((low + high) / 2).mid()
            fits = gaussian.delta_with_accident(mu, a_equal * middle, epsilon) <= delta
            low, high = (middle, high) if fits else (low, middle)
        guess = low
    return guess


def splits_of(mechanism: Mechanism, epsilon: float) -> Splits:
    """The splits among which the worst is, without a₌ = 0 and a₌ = C_u. Without caps below C_u there are none."""
    corners = _corners(mechanism)
    if not corners or epsilon >= ENOUGH_EPSILON:
        return Splits(corners)
    # f cancels at a small μ, and μ ≥ 1/σ.
    bits = _BITS + max(0, math.frexp(mechanism.sigma)[1])
    return at_precision(bits, lambda: _Search(mechanism, epsilon).splits(corners))


def _corners(mechanism: Mechanism) -> tuple[int, ...]:
    return tuple(mechanism.c_u - cap for cap in reversed(mechanism.caps))


@dataclass(frozen=True, slots=True)
class _Place:
    """What is known at one a₌."""

    a_equal: int
    epsilon: arb
    """ε + D"""
    root: arb
    """√S"""
    a: arb
    below: arb
    """Φ(a)"""
    density: arb
    """φ(a)"""
    delta: arb
    has_lemma: bool


class _Search:
    """Branch and bound over the splits at one ε."""

    def __init__(self, mechanism: Mechanism, epsilon: float) -> None:
        self._mechanism = mechanism
        self._epsilon = epsilon
        self._log_p = log_p_ball(mechanism)
        self._norm = (2 * arb.pi()).sqrt()
        self._places: dict[int, _Place] = {}

    def splits(self, corners: tuple[int, ...]) -> Splits:
        c_u = self._mechanism.c_u
        best = self._place(0).delta
        if self._place(0).has_lemma or best > 1 - arb(_SHARE):
            return Splits(corners)
        ends = (0, *corners, c_u - 1)
        for a_equal in ends:
            best = best.max(self._place(a_equal).delta)
        pieces = [(left, right) for left, right in pairwise(ends) if left < right]
        bounds = []
        while pieces:
            left, right = (self._place(end) for end in pieces.pop())
            if right.a_equal - left.a_equal < 2 or self._ends_are_enough(left, right):
                continue
            middle = self._place((left.a_equal + right.a_equal) // 2)
            best = best.max(middle.delta)
            bound = self._bound(left, middle, right)
            if bound <= best * (1 + arb(_SHARE)) or len(self._places) > _MOST_PLACES:
                bounds.append(bound)
            else:
                pieces += [(left.a_equal, middle.a_equal), (middle.a_equal, right.a_equal)]
        largest = {a_equal for a_equal, place in self._places.items() if not place.delta < best}
        beyond = [bound for bound in bounds if not bound <= best]
        share = max((max(upper_double(bound / best - 1), _SHARE) for bound in beyond), default=0.0)
        return Splits(tuple(sorted(largest | set(corners))), share)

    def _place(self, a_equal: int) -> _Place:
        if a_equal not in self._places:
            mechanism = self._mechanism
            square = mu_squared_ball(mechanism, mechanism.c_u - a_equal)
            root, hazard = square.sqrt(), -a_equal * self._log_p
            epsilon = self._epsilon + hazard
            a = epsilon / root - root / 2
            self._places[a_equal] = _Place(
                a_equal,
                epsilon,
                root,
                a,
                below=tail(-a),
                density=(-a * a / 2).exp() / self._norm,
                delta=gaussian.delta_with_accident(root, hazard, self._epsilon),
                has_lemma=bool(epsilon >= ENOUGH_EPSILON) or bool(a >= 0.5),
            )
        return self._places[a_equal]

    def _slopes(self, left: _Place, right: _Place) -> tuple[arb, arb]:
        """The least and the largest q between two places of one piece. a and Φ(a) grow, √S falls."""
        slope = (left.root**2 - right.root**2) / (right.a_equal - left.a_equal)
        largest = left.density.max(right.density)
        if not (left.a > 0 or right.a < 0):
            largest = 1 / self._norm
        least = left.density.min(right.density)
        return (
            -self._log_p * left.below - slope * largest / (2 * right.root),
            -self._log_p * right.below - slope * least / (2 * left.root),
        )

    def _ends_are_enough(self, left: _Place, right: _Place) -> bool:
        """Whether T has no maximum inside, because it is monotone or because of the lemma."""
        least, largest = self._slopes(left, right)
        return bool(least > 0) or bool(largest < 0) or self._lemma_holds(left, right)

    def _lemma_holds(self, left: _Place, right: _Place) -> bool:
        """Whether (h + a)(h + √(a² + 2e)) > 1 between two places: h + a and e grow, and h falls.  [Lemma 2]"""
        if left.has_lemma:
            return True
        nearest = (left.a * left.a).min(right.a * right.a) if left.a > 0 or right.a < 0 else arb(0)
        first, last = left.density / left.below, right.density / right.below
        return bool((first + left.a) * (last + (nearest + 2 * left.epsilon).sqrt()) > 1)

    def _bound(self, left: _Place, middle: _Place, right: _Place) -> arb:
        """An upper bound on T from ``left`` to ``right``."""
        least, largest = self._slopes(left, right)
        steepest = abs(least).max(abs(largest))
        width = max(middle.a_equal - left.a_equal, right.a_equal - middle.a_equal)
        return middle.delta + (left.a_equal * self._log_p).exp() * steepest * width
