"""An independent check of whole groups: the numbers that the recorded bits define, by the definitions alone.

The library goes from bits to quantiles by polynomials and from Σ to L in balls. It solves erfc(x/√2)/2 = q with
75 digits in mpmath, finds L by an exact decomposition in fractions, and adds in integers: an *interval* (low, high) of
integers encloses a real number in units of 2^−220. A group draws more words only while two answers are possible.
"""

import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from types import MappingProxyType

import mpmath
import numpy as np
from numpy.typing import NDArray

from gsh.accounting.mechanism import Mechanism
from gsh.histogram.arrays import Decimals
from gsh.histogram.noise import Noise, Noisy
from tests.gsh.histogram.recorded import Recorded

__all__ = ["UNIT", "Judge", "assert_as_judged", "quantiles", "tail"]

UNIT = 220
_SLACK = 4
_FAR = 1 << 2 * UNIT
_WORD = 64
_MAGNITUDE = 2**63 - 1
_DIGITS = 75
_SMALL = 1e-30
_MOST_STEPS = 30
_ROOT_OF_HALF = math.sqrt(0.5)

Interval = tuple[int, int]


class Judge:
    """The numbers that a mechanism must publish."""

    def __init__(self, mechanism: Mechanism) -> None:
        matrix = mechanism.aggregates.covariance if mechanism.aggregates is not None else ()
        self.mechanism = mechanism
        self.count_grid = _power(_exponent(Fraction(mechanism.sigma)) - 20)
        self.value_grids = [_power(_exponent(Fraction(row[j])) // 2 - 20) for j, row in enumerate(matrix)]
        self._sigma = _enclose(Fraction(mechanism.sigma) / self.count_grid)
        self._factor = _scaled_factor([[Fraction(entry) for entry in row] for row in matrix], self.value_grids)

    def release(self, counts: NDArray[np.int64], values: list[list[Fraction]], given: Iterable[bytes]) -> Noisy:
        """The ideal result. It fails if the open groups drew more words than they needed, or fewer."""
        groups = zip(counts.tolist(), values, strict=True)
        columns = len(self.value_grids)
        source = iter(given)
        kept, noisy, noisy_values = [], [], []
        for first in source:
            words = np.frombuffer(first, np.int64).reshape(1 + columns, -1).T.tolist()
            for drawn in words:
                count, row = next(groups)
                keep, number, numbers = self._group(count, row, drawn, source)
                kept.append(keep)
                noisy.append(number)
                noisy_values.append(numbers)
        assert next(groups, None) is None
        shaped = np.array(noisy_values).reshape(len(noisy), columns)
        return Noisy(np.array(kept, np.bool_), np.array(noisy, np.float64), shaped)

    def steps(self, words: list[int], more: list[int] | None = None, known: int = _WORD) -> list[Interval]:
        """v and w in steps of their grids, for all draws that begin with the words and the ``more`` bits after each."""
        more = [0] * len(words) if more is None else more
        first, *rest = [_normal(word, further, known) for word, further in zip(words, more, strict=True)]
        return [_times(self._sigma, first), *self._product(rest)]

    def columns(self, draws: list[Fraction]) -> list[Interval]:
        """L z in steps, for draws that are known exactly."""
        return self._product([_enclose(draw) for draw in draws])

    def _product(self, draws: list[Interval]) -> list[Interval]:
        return [_sum(map(_times, row, draws)) for row in self._factor]

    def _group(
        self, count: int, values: list[Fraction], words: list[int], further: Iterator[bytes]
    ) -> tuple[bool, float, list[float]]:
        more = [0] * len(words)
        for known in itertools.count(_WORD, _WORD):
            noise = self.steps(words, more, known)
            above = _at_least(noise[0], (Fraction(self.mechanism.tau_star) - count) / self.count_grid)
            numbers = [_nearest(Fraction(count), noise[0], self.count_grid)]
            numbers += map(_nearest, values, noise[1:], self.value_grids)
            if above is not None and None not in numbers:
                first, *rest = [number for number in numbers if number is not None]
                return above and count >= self.mechanism.effective_tau, first, rest
            more = [before << _WORD | _word(further) for before in more]
        raise AssertionError("unreachable")


def assert_as_judged(
    mechanism: Mechanism,
    counts: NDArray[np.int64],
    values: NDArray[np.float64],
    entropy: Recorded,
    decimals: Mapping[int, Decimals] = MappingProxyType({}),
) -> Noisy:
    """The published numbers, after a comparison with the numbers that the bits define.

    ``decimals`` are in place of some columns of ``values``.
    """
    noise, judge = Noise(mechanism), Judge(mechanism)
    wholes, rests = values.copy(), {}
    exact = [[Fraction(number) for number in row] for row in values.tolist()]
    for j, column in decimals.items():
        wholes[:, j], rests[j] = column.parts(np.arange(len(counts), dtype=np.int32))
        for row, units in zip(exact, column.units.tolist(), strict=True):
            row[j] = Fraction(units, 10**column.digits)
    published = noise.add(counts, wholes, entropy, rests)
    ideal = judge.release(counts, exact, entropy.given)

    assert (noise.count_grid, *noise.value_grids) == (judge.count_grid, *judge.value_grids)
    assert np.array_equal(published.kept, ideal.kept)
    # As integers, because a negative zero would reveal a bit of the true value.
    assert np.array_equal(published.counts.view(np.int64), ideal.counts.view(np.int64))
    assert np.array_equal(published.values.view(np.int64), ideal.values.view(np.int64))
    return published


def tail(x: mpmath.mpf) -> mpmath.mpf:
    """Φ(−x)."""
    return mpmath.erfc(x / mpmath.sqrt(2)) / 2


@functools.lru_cache(maxsize=1 << 17)
def quantiles(first: int, bits: int) -> Interval:
    """The smallest and the largest x with Φ(−x) = q, for q from ``first`` to ``first`` + 1 units of 2^−bits."""
    with mpmath.workdps(_DIGITS):
        if first == 0:
            return _solve(1, bits, _start(1, bits))[0], _FAR
        low, x = _solve(first, bits, _start(first, bits))
        step = mpmath.ldexp(_over_density(x), -bits)
        return _solve(first + 1, bits, x - step / (1 + step * x / 2))[0], low + _SLACK


def _solve(numerator: int, bits: int, x: mpmath.mpf) -> tuple[int, mpmath.mpf]:
    """The x with Φ(−x) = numerator / 2^bits, in units and rounded down, and as a number."""
    q = mpmath.ldexp(mpmath.mpf(numerator), -bits)
    for _ in range(_MOST_STEPS):
        # Halley's iteration triples the number of correct digits.
        change = (tail(x) - q) * _over_density(x)
        x += change / (1 - change * x / 2)
        if abs(change) < _SMALL:
            return int(mpmath.floor(mpmath.ldexp(x, UNIT))) - _SLACK // 2, x
    raise AssertionError("the iteration does not converge")


def _start(numerator: int, bits: int) -> mpmath.mpf:
    """Nearly the x with Φ(−x) = numerator / 2^bits: by bisection in doubles, or by asymptotics if q is too small."""
    q = mpmath.ldexp(mpmath.mpf(numerator), -bits)
    if q < 1e-290:
        height = mpmath.sqrt(-2 * mpmath.log(q))
        return height - mpmath.log(height * mpmath.sqrt(2 * mpmath.pi)) / height
    low, high, double = 0.0, 40.0, float(2 * q)
    for _ in range(55):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erfc(middle * _ROOT_OF_HALF) > double else (low, middle)
    return mpmath.mpf(low)


def _over_density(x: mpmath.mpf) -> mpmath.mpf:
    """1/φ(x)."""
    return mpmath.sqrt(2 * mpmath.pi) * mpmath.exp(x * x / 2)


def _word(source: Iterator[bytes]) -> int:
    given = next(source, b"")
    assert 8 * len(given) == _WORD, "an open group drew no more bits"
    return int.from_bytes(given, "little")


def _normal(word: int, more: int, known: int) -> Interval:
    """±Q(q) for every q that begins with the bits of the word, without its sign, and the ``more`` bits."""
    low, high = quantiles((word & _MAGNITUDE) << (known - _WORD) | more, known)
    return (-high, -low) if word < 0 else (low, high)


def _scaled_factor(matrix: list[list[Fraction]], grids: list[Fraction]) -> list[list[Interval]]:
    """L_jk / grid_j. With Σ = U D Uᵀ in fractions, U unit lower triangular, L_jk = U_jk √D_k."""
    unit: list[list[Fraction]] = []
    pivots: list[Fraction] = []
    for i, entries in enumerate(matrix):
        row: list[Fraction] = []
        for j in range(i):
            known = sum((row[k] * unit[j][k] * pivots[k] for k in range(j)), Fraction(0))
            row.append((entries[j] - known) / pivots[j])
        pivots.append(entries[i] - sum((u * u * d for u, d in zip(row, pivots, strict=True)), Fraction(0)))
        unit.append([*row, Fraction(1)])
    return [
        [_root(u * u * pivot / grid**2, negative=u < 0) for u, pivot in zip(row, pivots, strict=False)]
        for row, grid in zip(unit, grids, strict=True)
    ]


def _root(square: Fraction, negative: bool) -> Interval:
    low = math.isqrt((square.numerator << 2 * UNIT) // square.denominator)
    return (-low - 1, -low) if negative else (low, low + 1)


def _enclose(number: Fraction) -> Interval:
    scaled = number * (1 << UNIT)
    return math.floor(scaled), math.ceil(scaled)


def _times(left: Interval, right: Interval) -> Interval:
    products = [x * y for x in left for y in right]
    return min(products) >> UNIT, (max(products) >> UNIT) + 1


def _sum(terms: Iterable[Interval]) -> Interval:
    lows, highs = zip(*terms, strict=True)
    return sum(lows), sum(highs)


def _at_least(noise: Interval, bound: Fraction) -> bool | None:
    low, high = _enclose(bound)
    return True if noise[0] >= high else False if noise[1] < low else None


def _nearest(number: Fraction, noise: Interval, grid: Fraction) -> float | None:
    """number + noise to the nearest multiple of the grid, and that to the nearest double, unless two are possible."""
    low, high = _sum([_enclose(number / grid), noise])
    half = 1 << (UNIT - 1)
    multiple, other = (low + half) >> UNIT, (high + half) >> UNIT
    return float(multiple * grid) if multiple == other else None


def _exponent(number: Fraction) -> int:
    """⌊log₂⌋."""
    guess = number.numerator.bit_length() - number.denominator.bit_length()
    return guess if _power(guess) <= number else guess - 1


def _power(exponent: int) -> Fraction:
    return Fraction(2) ** exponent
