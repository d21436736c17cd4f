"""The worst split of one user's groups, some at τ and the others above it, among which exact accounting finds δ.

    δ(ε) = max over all splits of  T = 1 − e^(−D) (1 − f(√S, ε + D)),     S of the groups above τ,  D of those at τ

In each table S is concave and piecewise linear in the number of groups above τ, with a corner at each cap of columns,
and each group at τ adds d = −ln p to D. Sort the pieces of all tables by d/B, B the slope of a piece, and put them at τ
in this order: this is the *frontier*. T rises in S and in D, and no split has more S than the frontier at the same D.
Its corners, the *cuts*, are splits. On each segment the segment lemma says that the ends are enough, wherever
ε + D ≥ 0.105 or (ε + D)/√S − √S/2 ≥ ½. Both grow along the frontier.  [docs/math/joint-tables.md]

Public groups are never at τ: their S stays to the end.

Where the lemma does not hold, branch and bound encloses the maximum along the frontier. If one table alone has a
threshold, the splits are its whole numbers of groups. With several, the maximum over all real points is an upper
bound. The derivative along a segment is

    T′ = e^(−D) q,   q = d Φ(a) − B φ(a)/(2√S),   a = (ε + D)/√S − √S/2

Where the sign of q is certain, or where the lemma's condition (h + a)(h + b) > 1 holds, the ends of an interval are
enough. Otherwise T ≤ T(middle) + max |T′| · half width, and T ≤ T(S of the left end, D of the right end).
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple

from flint import arb

from gsh.accounting import gaussian
from gsh.accounting.mechanism import (
    AnyMechanism,
    Mechanism,
    PlainGaussian,
    Release,
    log_p_ball,
    mechanisms_of,
    mu_ball,
    mu_squared_ball,
    release_of,
)
from gsh.accounting.numerics.balls import PRECISIONS, approximate, at_precision, ball_of, round_up, upper_double
from gsh.accounting.numerics.doubles import LARGEST_DOUBLE
from gsh.accounting.numerics.normal_tail import tail

__all__ = [
    "ENOUGH_EPSILON",
    "Frontier",
    "Ground",
    "Worst",
    "epsilon_guess",
    "frontier_after_survey",
    "frontier_of",
    "most_at_tau",
    "number_of_splits",
    "scale_guess",
    "worst_of",
    "worst_on",
]

ENOUGH_EPSILON = 0.105
"""From this ε on the lemma holds for every S: a point takes one evaluation for each cut."""
_BITS = 192
# The first of these precisions nearly always tells d/B of two pieces apart. If the last does not, S grows by a share
# that covers both orders.
_ORDER_BITS, _TIE = (PRECISIONS[0], 160), 2.0**-120
# An interval is given up if no point of it can exceed the best one by more than this share: far less than half an ulp.
_SHARE = 2.0**-60
# Searches visit a few hundred places. After these, the bounds of the intervals that are left decide.
_MOST_PLACES = 2000
_HALVINGS = 45
_REFINEMENTS = 3


class _Piece(NamedTuple):
    """Groups of one table between two caps: from ``most`` groups above τ down to ``most − groups``."""

    table: Mechanism
    groups: int
    most: int

    def slope(self) -> arb:
        """B: what one more group above τ adds to S."""
        costs = self.table.costs
        total = 1 / arb(self.table.sigma) ** 2 + arb(costs.mu_0) ** 2
        for part in costs.capped:
            if part.groups >= self.most:
                total += arb(part.mu_0) ** 2
        return total


class Ground(NamedTuple):
    """The frontier in balls, at the present precision: S and D of each segment, and their sums at each cut."""

    segments: list[tuple[arb, arb]]
    squares: list[arb]
    """S at each cut, that of public groups included: sums of what is left. A difference would not be 0 at the end."""
    hazards: list[arb]
    """D at each cut."""

    @classmethod
    def of(cls, segments: list[tuple[arb, arb]], public: arb) -> "Ground":
        squares = list(accumulate((square for square, _ in reversed(segments)), initial=public))
        return cls(segments, squares[::-1], list(accumulate((hazard for _, hazard in segments), initial=arb(0))))

    @property
    def hazard(self) -> arb:
        """D of all groups at τ."""
        return self.hazards[-1]


@dataclass(frozen=True, slots=True)
class Frontier:
    """The pieces of all tables with thresholds, in the order in which they are put at τ. Equal ones are one segment.

    A position on it is a number of groups at τ.
    """

    segments: tuple[tuple[_Piece, ...], ...]
    public: Release | None
    has_ties: bool
    """Whether a segment has pieces that cannot be told apart. Then S is larger by a share that covers every order."""
    is_integral: bool
    """Whether only whole positions are splits: one table has a threshold."""
    ends: tuple[int, ...]
    """The positions of all cuts, from 0 to the number of all groups."""

    @property
    def cuts(self) -> tuple[int, ...]:
        """The cuts that neither δ_gaussian nor δ_infinite covers."""
        return self.ends[1 : None if self.public is not None else -1]

    def ground(self, hazard_of: Callable[[Mechanism], arb] = lambda table: -log_p_ball(table)) -> Ground:
        """The frontier in balls. ``hazard_of`` is what each group at τ costs: d."""
        hazards: dict[int, arb] = {}
        segments = []
        for pieces in self.segments:
            square = hazard = arb(0)
            for piece in pieces:
                table = piece.table
                each = hazards.get(id(table))
                if each is None:
                    each = hazards[id(table)] = hazard_of(table)
                square += piece.groups * piece.slope()
                hazard += piece.groups * each
            segments.append((square * (1 + arb(_TIE)) if self.has_ties else square, hazard))
        return Ground.of(segments, arb(0) if self.public is None else mu_squared_ball(self.public))

    def costs_at(self, ground: Ground, position: Fraction | int) -> tuple[arb, arb]:
        """S and D of a split."""
        index = self.segment_at(position)
        start, end = self.ends[index : index + 2]
        if position in (start, end):
            cut = index if position == start else index + 1
            return ground.squares[cut], ground.hazards[cut]
        within = Fraction(position - start, end - start)
        square, hazard = ground.segments[index]
        return ground.squares[index + 1] + square * ball_of(1 - within), ground.hazards[index] + hazard * ball_of(
            within
        )

    def segment_at(self, position: Fraction | int) -> int:
        """The segment that starts at a position or contains it; the last one at the end."""
        return min(bisect_right(self.ends, position), len(self.segments)) - 1


@dataclass(frozen=True, slots=True)
class Worst:
    """The positions among which the worst split is, up to a ``share`` by which another one may be larger."""

    frontier: Frontier
    positions: tuple[Fraction | int, ...]
    share: float = 0.0

    def ground(self) -> Ground:
        """The frontier in balls, for ``largest``."""
        return self.frontier.ground()

    def largest(self, epsilon: float, ground: Ground | None = None) -> arb:
        """The largest T, increased by the share; 0 without positions. ``ground`` is the frontier's, if it is known."""
        if not self.positions:
            return arb(0)
        ground = ground or self.frontier.ground()
        largest = arb(0)
        for position in self.positions:
            square, hazard = self.frontier.costs_at(ground, position)
            largest = largest.max(gaussian.delta_with_accident(square.sqrt(), hazard, epsilon))
        return largest * (1 + arb(self.share)) if self.share else largest


def most_at_tau(tables: Sequence[AnyMechanism]) -> tuple[int, ...]:
    """The most groups of each table that can be at τ: none if its groups are public."""
    return tuple(table.c_u if isinstance(table, Mechanism) else 0 for table in tables)


def number_of_splits(release: Release) -> int:
    """How many splits a scan of all of them evaluates (theorem.py)."""
    if isinstance(release, Mechanism):
        return release.c_u
    return math.prod(most + 1 for most in most_at_tau(mechanisms_of(release)))


@lru_cache(maxsize=4096)
def frontier_of(release: Release) -> Frontier:
    """The frontier of a release. Its costs alone decide: give it without columns."""
    tables = mechanisms_of(release)
    secret = [table for table in tables if isinstance(table, Mechanism)]
    public = [table for table in tables if isinstance(table, PlainGaussian)]
    return _frontier(secret, public, is_integral=len(secret) == 1)


@lru_cache(maxsize=4096)
def frontier_after_survey(release: Release) -> Frontier:
    """The frontier of all releases whose tables have the same S and D, and the same S of columns with caps.

    C_u and caps may depend on a survey. So every real position counts, and columns with caps count as public: with a
    large enough C_u nearly all groups can be at τ while one above τ changes these columns.  [docs/math/two-stages.md]
    """
    tables = mechanisms_of(release)
    secret = [table for table in tables if isinstance(table, Mechanism)]
    public = [table for table in tables if isinstance(table, PlainGaussian)]
    return _frontier(
        [_without_caps(table) for table in secret],
        [*public, *(_capped_alone(table) for table in secret if table.costs.capped)],
        is_integral=False,
    )


def _without_caps(table: Mechanism) -> Mechanism:
    """The table without its columns with caps."""
    mu_0 = table.costs.mu_0
    return Mechanism(c_u=table.c_u, tau=table.tau, tau_star=table.tau_star, sigma=table.sigma, mu_0=mu_0)


def _capped_alone(table: Mechanism) -> PlainGaussian:
    """The columns with caps of a table, without its counts."""
    (mu,) = round_up(lambda: [table.costs.capped_squared.sqrt()])
    return PlainGaussian(c_u=1, sigma=LARGEST_DOUBLE, mu_0=mu)


def _frontier(secret: Sequence[Mechanism], public: Sequence[PlainGaussian], *, is_integral: bool) -> Frontier:
    pieces = [piece for table in secret for piece in _pieces(table)]
    segments: tuple[tuple[_Piece, ...], ...]
    if len(secret) == 1:
        segments, has_ties = tuple((piece,) for piece in pieces), False
    else:
        for bits in _ORDER_BITS:
            segments, has_ties = at_precision(bits, lambda: _sorted(pieces))
            if not has_ties:
                break
    lengths = (sum(piece.groups for piece in segment) for segment in segments)
    return Frontier(
        segments=segments,
        public=release_of(public) if public else None,
        has_ties=has_ties,
        is_integral=is_integral,
        ends=tuple(accumulate(lengths, initial=0)),
    )


def _pieces(table: Mechanism) -> list[_Piece]:
    """The pieces of a table, from C_u groups above τ to none."""
    tops = [table.c_u, *reversed(table.caps)]
    return [_Piece(table, most - least, most) for most, least in zip(tops, [*tops[1:], 0], strict=True)]


def _sorted(pieces: Sequence[_Piece]) -> tuple[tuple[tuple[_Piece, ...], ...], bool]:
    """The pieces by falling d/B, in segments: balls cannot order pieces of one segment. And whether it matters."""
    ratios = [(-log_p_ball(piece.table) / piece.slope(), piece) for piece in pieces]
    ratios.sort(key=lambda pair: pair[0].mid(), reverse=True)
    segments: list[list[_Piece]] = []
    has_ties = False
    for i, (ratio, piece) in enumerate(ratios):
        if i and not ratio < ratios[i - 1][0]:
            has_ties = has_ties or _differ(piece, segments[-1][-1])
            segments[-1].append(piece)
        else:
            segments.append([piece])
    return tuple(map(tuple, segments)), has_ties


def _differ(one: _Piece, other: _Piece) -> bool:
    """Whether two pieces may have different d/B: not if the noise, the gap and the slope are the same."""
    alike = one.table.sigma == other.table.sigma and one.table.costs == other.table.costs
    gaps = [Fraction(piece.table.tau_star) - piece.table.effective_tau for piece in (one, other)]
    return not (alike and gaps[0] == gaps[1] and one.most == other.most)


def epsilon_guess(release: Release, delta: float) -> arb:
    """Approximately the ε at which the largest T is δ."""
    frontier = frontier_of(release)

    def at_positions(positions: Sequence[Fraction | int]) -> arb:
        ground = frontier.ground()
        guess = gaussian.epsilon_at(mu_ball(release), arb(delta))
        for position in positions:
            square, hazard = frontier.costs_at(ground, position)
            found = gaussian.epsilon_with_accident(square.sqrt(), hazard, delta)
            if found.is_finite():
                guess = guess.max(found) if guess.is_finite() else found
        return guess

    guess = approximate(lambda: at_positions(frontier.cuts))
    # Near ε = 0 the worst split may be between the cuts, and there again at the ε that it leads to.
    for _ in range(_REFINEMENTS):
        near = max(float(guess), 0.0)
        if not frontier.cuts or near >= ENOUGH_EPSILON:
            break
        worst = worst_of(release, near).positions
        guess = approximate(lambda worst=worst: at_positions(worst))  # type: ignore[misc]
    return guess


def scale_guess(frontier: Frontier, ground: Ground, epsilon: float, delta: arb) -> arb:
    """Approximately the largest factor of every d with which T is at most δ at every cut, if the noise alone fits."""
    guess = -(-delta).log1p() / ground.hazard
    for position in frontier.cuts:
        square, hazard = frontier.costs_at(ground, position)
        low, high = arb(0), guess
        if gaussian.delta_with_accident(square.sqrt(), hazard * high, epsilon) <= delta:
            continue
        for _ in range(_HALVINGS):
            middle = ((low + high) / 2).mid()
            fits = gaussian.delta_with_accident(square.sqrt(), hazard * middle, epsilon) <= delta
            low, high = (middle, high) if fits else (low, middle)
        guess = low
    return guess


def worst_of(release: Release, epsilon: float) -> Worst:
    """The positions among which the worst split is, besides δ_gaussian and δ_infinite. None for one plain table."""
    return worst_on(frontier_of(release.without_columns), epsilon)


def worst_on(frontier: Frontier, epsilon: float) -> Worst:
    """The same for a frontier."""
    cuts = frontier.cuts
    if not cuts or epsilon >= ENOUGH_EPSILON or not frontier.segments:
        return Worst(frontier, cuts)
    # f cancels at a small μ, and μ ≥ 1/σ.
    largest = max(piece.table.sigma for segment in frontier.segments for piece in segment)
    bits = _BITS + max(0, math.frexp(largest)[1])
    return at_precision(bits, lambda: _Search(frontier, epsilon).worst())


@dataclass(frozen=True, slots=True)
class _Place:
    """What is known at one position. At an end without public groups S is 0, and only δ and ε + D are known."""

    position: Fraction | int
    epsilon: arb
    """ε + D"""
    hazard: arb
    root: arb
    """√S"""
    a: arb
    below: arb
    """Φ(a)"""
    density: arb
    """φ(a)"""
    delta: arb
    has_lemma: bool

    @property
    def is_empty(self) -> bool:
        return bool(self.root.is_zero())


class _Search:
    """Branch and bound along the frontier at one ε."""

    def __init__(self, frontier: Frontier, epsilon: float) -> None:
        self._frontier = frontier
        self._epsilon = epsilon
        self._ground = frontier.ground()
        self._norm = (2 * arb.pi()).sqrt()
        self._places: dict[Fraction | int, _Place] = {}

    def worst(self) -> Worst:
        frontier = self._frontier
        best = self._place(0).delta
        if self._place(0).has_lemma or best > 1 - arb(_SHARE):
            return Worst(frontier, frontier.cuts)
        for cut in frontier.ends:
            best = best.max(self._place(cut).delta)
        intervals: list[tuple[int, Fraction | int, Fraction | int]] = [
            (index, start, end) for index, (start, end) in enumerate(pairwise(frontier.ends))
        ]
        bounds = []
        while intervals:
            index, start, end = intervals.pop()
            left, right = self._place(start), self._place(end)
            if (frontier.is_integral and end - start < 2) or self._ends_are_enough(index, left, right):
                continue
            middle = self._place((start + end) // 2 if frontier.is_integral else Fraction(start + end, 2))
            best = best.max(middle.delta)
            bound = self._bound(index, left, middle, right)
            if bound <= best * (1 + arb(_SHARE)) or len(self._places) > _MOST_PLACES:
                bounds.append(bound)
            else:
                intervals += [(index, start, middle.position), (index, middle.position, end)]
        largest = {position for position, place in self._places.items() if not place.delta < best}
        beyond = [bound for bound in bounds if not bound <= best]
        share = max((max(upper_double(bound / best - 1), _SHARE) for bound in beyond), default=0.0)
        return Worst(frontier, tuple(sorted(largest | set(frontier.cuts))), share)

    def _place(self, position: Fraction | int) -> _Place:
        if position not in self._places:
            square, hazard = self._frontier.costs_at(self._ground, position)
            root, epsilon = square.sqrt(), self._epsilon + hazard
            a = arb(0) if root.is_zero() else epsilon / root - root / 2
            self._places[position] = _Place(
                position,
                epsilon,
                hazard,
                root,
                a,
                below=tail(-a),
                density=(-a * a / 2).exp() / self._norm,
                delta=gaussian.delta_with_accident(root, hazard, self._epsilon),
                has_lemma=bool(epsilon >= ENOUGH_EPSILON) or bool(a >= 0.5),
            )
        return self._places[position]

    def _slopes(self, index: int, left: _Place, right: _Place) -> tuple[arb, arb]:
        """The least and the largest q between two places of one segment. a and Φ(a) grow, √S falls."""
        start, end = self._frontier.ends[index : index + 2]
        slope, rate = (total / (end - start) for total in self._ground.segments[index])
        largest = left.density.max(right.density)
        if not (left.a > 0 or right.a < 0):
            largest = 1 / self._norm
        least = left.density.min(right.density)
        return (
            rate * left.below - slope * largest / (2 * right.root),
            rate * right.below - slope * least / (2 * left.root),
        )

    def _ends_are_enough(self, index: int, left: _Place, right: _Place) -> bool:
        """Whether T has no maximum inside, because it is monotone or because of the lemma."""
        if left.has_lemma or right.is_empty:
            return left.has_lemma
        least, largest = self._slopes(index, left, right)
        return bool(least > 0) or bool(largest < 0) or self._lemma_holds(left, right)

    def _lemma_holds(self, left: _Place, right: _Place) -> bool:
        """Whether (h + a)(h + √(a² + 2e)) > 1 between two places: h + a and e grow, and h falls.  [Lemma 2]"""
        nearest = (left.a * left.a).min(right.a * right.a) if left.a > 0 or right.a < 0 else arb(0)
        first, last = left.density / left.below, right.density / right.below
        return bool((first + left.a) * (last + (nearest + 2 * left.epsilon).sqrt()) > 1)

    def _bound(self, index: int, left: _Place, middle: _Place, right: _Place) -> arb:
        """An upper bound on T from ``left`` to ``right``."""
        at_most = gaussian.delta_with_accident(left.root, right.hazard, self._epsilon)
        if right.is_empty:
            return at_most
        least, largest = self._slopes(index, left, right)
        steepest = abs(least).max(abs(largest))
        width = max(middle.position - left.position, right.position - middle.position)
        return at_most.min(middle.delta + (-left.hazard).exp() * steepest * ball_of(Fraction(width)))
