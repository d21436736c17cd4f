"""Ideal Gaussian noise, exactly rounded: a group's numbers plus real-valued noise, on a power-of-two grid.

Doubles with a proven error bound decide nearly every group. A group is *open* if the bound allows two grid points, or
both sides of the threshold. Ball arithmetic then decides it, with more random bits as needed. So the published numbers
are a function of the ideal real numbers alone.  [docs/math/noise.md]
"""

import functools
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

import numpy as np
from flint import arb, ctx

from gsh.accounting.column_costs import ColumnCosts
from gsh.accounting.covariance import Matrix, Triangle, cholesky, dot, prove_positive_definite
from gsh.accounting.gaussian import quantile
from gsh.accounting.grid import count_grid, value_grids
from gsh.accounting.mechanism import AnyMechanism, Mechanism
from gsh.accounting.numerics import balls
from gsh.accounting.numerics.balls import ball_of
from gsh.accounting.numerics.doubles import next_above
from gsh.histogram.arrays import Doubles, Flags, Integers, Rest
from gsh.histogram.entropy import Entropy
from gsh.histogram.quantiles import MAGNITUDE, normals, polynomials

__all__ = ["Noise", "Noisy"]

# Arrays of 120 KiB: from 128 KiB on, the C library may ask the system for new memory each time.
_DRAWS_AT_ONCE = 15 << 10
_WORD = 64
_HALF_ULP = 2.0**-53


@dataclass(frozen=True, slots=True)
class Noisy:
    """For each group, in the given order: whether it is kept, and its numbers on the grid."""

    kept: Flags
    counts: Doubles
    values: Doubles


class Noise:
    """The noise of one mechanism: v ~ N(0, σ²) on counts and w ~ N(0, Σ) on the other columns.

    If the groups are public, there is no threshold, and every group is kept. ``rounded`` is what published counts and
    then each other column are rounded to, after the noise and after the threshold.
    """

    def __init__(self, mechanism: AnyMechanism, rounded: tuple[float, ...] | None = None) -> None:
        self._mechanism = mechanism
        self.rounded = rounded
        self._q = polynomials()
        self._matrix = matrix = mechanism.aggregates.covariance if mechanism.aggregates is not None else ()
        self.count_grid, self.value_grids = count_grid(mechanism), value_grids(mechanism)
        self._in_grids = mechanism.sigma / self.count_grid
        # The product with σ/grid is rounded once, and the sum with the fraction of a count once more.
        self._count_error = self._in_grids * (self._q.error + 4 * _HALF_ULP * self._q.largest) + 4 * _HALF_ULP
        # Each bit beyond those that prove the pivots positive halves the error of L.
        self._bits = prove_positive_definite(matrix, "aggregates/covariance") if matrix else 0
        self._factor, self._factor_error, self._draw_error = self._scaled_factor()

    @property
    def steps(self) -> tuple[float, ...]:
        """The steps of published counts and of each other column."""
        return self.rounded or (self.count_grid, *self.value_grids)

    @property
    def is_public(self) -> bool:
        """Whether the groups are public: all are kept, also those without a user."""
        return not isinstance(self._mechanism, Mechanism)

    @property
    def lacks_covariance(self) -> bool:
        """Whether the mechanism has further columns with μ₀ alone: enough for accounting, not to draw noise."""
        return self._mechanism.aggregates is None and self._mechanism.costs != ColumnCosts()

    def add(
        self,
        counts: Integers,
        values: Doubles,
        entropy: Entropy,
        rests: Mapping[int, Rest] = MappingProxyType({}),
    ) -> Noisy:
        """Noisy numbers for every group, kept or not: the work does not depend on the counts.

        Counts must be at most 2⁵³ and values finite. The caller has checked that. ``rests`` are added to the columns
        of values that have decimals.
        """
        shape = len(counts), len(self.value_grids)
        if values.shape != shape:
            raise ValueError("values must have a row for each group and a column for each aggregate")
        noisy = Noisy(np.empty(len(counts), np.bool_), np.empty(len(counts)), np.empty(shape))
        length = _DRAWS_AT_ONCE // (1 + len(self.value_grids)) or 1
        for start in range(0, len(counts), length):
            chunk = slice(start, start + length)
            own = {j: rest.at(chunk) for j, rest in rests.items()}
            part = self._add(counts[chunk], values[chunk], entropy, own)
            noisy.kept[chunk], noisy.counts[chunk], noisy.values[chunk] = part.kept, part.counts, part.values
        return noisy

    def _add(self, counts: Integers, values: Doubles, entropy: Entropy, rests: Mapping[int, Rest]) -> Noisy:
        columns = len(self.value_grids)
        words = np.frombuffer(entropy(8 * len(counts) * (1 + columns)), np.int64).reshape(1 + columns, len(counts))
        noise, segment = normals(words[0], self._q)
        noise *= self._in_grids
        error = self._count_error.take(segment)
        kept, opened = self._kept(counts, noise, error)
        noisy, unsettled = _round(counts.astype(np.float64), noise, error, self.count_grid)
        opened |= unsettled
        noisy_values = np.empty(values.shape)
        if columns:
            standard, segments = normals(words[1:], self._q)
            errors = self._q.error.take(segments)
            with np.errstate(invalid="ignore"):  # an infinite bound times a zero of the factor: the group is open
                noises = self._factor @ standard
                bounds = self._draw_error @ errors + self._factor_error @ np.abs(standard)
            for j, grid in enumerate(self.value_grids):
                noisy_values[:, j], unsettled = _round(values[:, j], noises[j], bounds[j], grid, rests.get(j))
                opened |= unsettled
        for i in np.flatnonzero(opened):
            exact: list[float | Fraction] = values[i].tolist()
            for j, rest in rests.items():
                exact[j] = Fraction(exact[j]) + Fraction(int(rest.units[i]), 10**rest.digits)
            kept[i], noisy[i], noisy_values[i] = self._settle(int(counts[i]), exact, words[:, i], entropy)
        return Noisy(kept, noisy, noisy_values)

    def _kept(self, counts: Integers, noise: Doubles, error: Doubles) -> tuple[Flags, Flags]:
        """Which groups are kept, and for which of them ``error`` leaves it open."""
        if not isinstance(self._mechanism, Mechanism):
            return np.ones(len(counts), np.bool_), np.zeros(len(counts), np.bool_)
        with np.errstate(over="ignore"):  # a distance beyond all doubles is beyond all noise
            distance = noise - (self._mechanism.tau_star - counts) / self.count_grid
        kept = (distance >= 0) & (counts >= self._mechanism.effective_tau)
        # τ* − C is rounded, and so is the distance.
        return kept, (1 - 8 * _HALF_ULP) * np.abs(distance) <= error + 8 * _HALF_ULP * np.abs(noise)

    def _settle(
        self, count: int, values: list[float | Fraction], words: Integers, entropy: Entropy
    ) -> tuple[bool, float, list[float]]:
        """One group, in balls: every draw gets another word of random bits until the group is not open."""
        signs = [-1 if word < 0 else 1 for word in words]
        draws = [int(word) & MAGNITUDE for word in words]
        for known in itertools.count(_WORD, _WORD):
            attempt = functools.partial(self._attempt, count, values, signs, draws, known)
            settled = balls.at_precision(self._bits + 2 * known, attempt)
            if settled is not None:
                return settled
            draws = [draw << _WORD | int.from_bytes(entropy(_WORD // 8), "little") for draw in draws]
        raise AssertionError("unreachable")

    def _attempt(
        self, count: int, values: list[float | Fraction], signs: list[int], draws: list[int], known: int
    ) -> tuple[bool, float, list[float]] | None:
        """The group's numbers if ``known`` bits of each draw determine them, else None."""
        standard = [sign * _quantiles(draw, known) for sign, draw in zip(signs, draws, strict=True)]
        noise = self._mechanism.sigma * standard[0]
        is_kept = self._is_kept(count, noise)
        numbers = [_on_grid(count, noise, self.count_grid)]
        for row, value, grid in zip(_ball_factor(self._matrix, ctx.prec), values, self.value_grids, strict=True):
            numbers.append(_on_grid(value, dot(row, standard[1 : 1 + len(row)]), grid))
        if is_kept is None or None in numbers:
            return None
        first, *rest = [number for number in numbers if number is not None]
        return is_kept, first, rest

    def _is_kept(self, count: int, noise: arb) -> bool | None:
        """Whether a group is kept; None if the ball of its noise allows both."""
        if not isinstance(self._mechanism, Mechanism):
            return True
        missing = ball_of(Fraction(self._mechanism.tau_star) - count)
        if not (noise >= missing or noise < missing):
            return None
        return bool(noise >= missing) and count >= self._mechanism.effective_tau

    def _scaled_factor(self) -> tuple[Doubles, Doubles, Doubles]:
        """L in units of the grids, and two bounds on the error of L z: one times |z|, one times the error of z."""

        def compute() -> tuple[Doubles, Doubles, Doubles]:
            size = len(self.value_grids)
            middle, radius = np.zeros((size, size)), np.zeros((size, size))
            factor = _ball_factor(self._matrix, ctx.prec)
            for i, (row, grid) in enumerate(zip(factor, self.value_grids, strict=True)):
                for j, entry in enumerate(row):
                    middle[i, j] = float((entry / grid).mid())
                    radius[i, j] = next_above(float((entry / grid).rad()))
            ours = radius + (size + 4) * 2 * _HALF_ULP * np.abs(middle)
            # A little more covers the rounding of the bounds themselves.
            return middle, ours * (1 + 2**-10), (np.abs(middle) + ours) * (1 + 2**-10)

        return balls.at_precision(self._bits + 2 * _WORD, compute)


def _round(
    numbers: Doubles, noise: Doubles, error: Doubles, grid: float, rest: Rest | None = None
) -> tuple[Doubles, Flags]:
    """numbers + grid · noise, rounded to the grid, and a flag for each number that ``error`` leaves open.

    Whole multiples of the grid are split off first, exactly, so that a large number loses nothing. If a grid point is
    not a double, the result is the nearest double. With a ``rest``, numbers are whole, and it is added to them.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = numbers / grid
        huge = ~np.isfinite(scaled)
        scaled[huge] = 0.0
        whole = np.rint(scaled)
        near = noise + (scaled - whole)
        further: Doubles | float = 0.0
        if rest is not None:  # below 1, and so the bound on its rounding depends on nothing else
            steps = rest.units / 10.0**rest.digits / grid
            further = np.rint(steps)
            near += steps - further
            error = error + 4 * _HALF_ULP / grid
        nearest = np.rint(near)
        unsettled = ~(np.abs(near - nearest) + error + 4 * _HALF_ULP * np.abs(near) < 0.5)
        nearest += further
        # The second term also turns −0.0 into 0.0, because the sign of a zero would reveal the sign of a number.
        return (whole + nearest) * grid + np.where(huge, numbers, 0.0), unsettled


@functools.lru_cache(maxsize=8)
def _ball_factor(matrix: Matrix, _precision: int) -> Triangle:
    """L with Σ = L Lᵀ, in balls at the present precision. It is cached, because a wide Σ takes long."""
    factor = cholesky(matrix)
    assert factor is not None  # the proof needed fewer bits than these
    return factor


def _quantiles(draw: int, known: int) -> arb:
    """Q(q) for every q from ``draw`` to ``draw`` + 1, in units of 2^−known."""
    if draw == 0:
        return balls.ANYTHING
    unit = arb(2) ** -known
    return quantile(draw * unit).union(quantile((draw + 1) * unit))


def _on_grid(number: float | Fraction, noise: arb, grid: float) -> float | None:
    """number + noise, rounded to the grid and then to a double; None if the ball allows two grid points."""
    scaled = Fraction(number) / Fraction(grid)
    # As in doubles, whole multiples stay out of the ball: the bits needed must not depend on the size of the number.
    whole = round(scaled)
    multiple = (noise / grid + ball_of(scaled - whole) + arb(1) / 2).floor().unique_fmpz()
    if multiple is None:
        return None
    return float((whole + int(multiple)) * Fraction(grid))
