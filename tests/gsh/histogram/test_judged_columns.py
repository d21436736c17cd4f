"""Every published number, in correlated columns too, equals an independent evaluation of the same bits."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gsh.accounting.covariance import Matrix
from gsh.accounting.mechanism import Aggregates, Mechanism
from gsh.accounting.numerics.doubles import next_below
from gsh.accounting.sensitivity import L2Norm
from gsh.histogram import noise as noise_of_release
from gsh.histogram.arrays import Decimals
from gsh.histogram.noise import Noise
from gsh.histogram.quantiles import MAGNITUDE, normals, polynomials
from tests.gsh.accounting.draws import examples
from tests.gsh.histogram.ideal import UNIT, Judge, assert_as_judged, quantiles
from tests.gsh.histogram.recorded import Recorded, awkward_words
from tests.surroundings import some_of

pytestmark = pytest.mark.slow

Doubles = NDArray[np.float64]
Words = NDArray[np.int64]

LARGEST = 1.7976931348623157e308
AGGREGATES = [
    0.1,
    1e300,
    -1e300,
    1e-300,
    -0.1,
    0.0,
    -0.0,
    5e-324,
    LARGEST,
    -1e-300,
    1 / 3,
    -123456789.1,
    2.0**53,
    -LARGEST,
]
HILBERT = tuple(tuple(1 / (i + j + 1) for j in range(8)) for i in range(8))
# Fibonacci numbers: the determinant is F₇₇F₇₅ − F₇₆² = 1, so the last pivot is 2⁻¹⁰⁴ of the entry.
F_77, F_76, F_75 = 5527939700884757.0, 3416454622906707.0, 2111485077978050.0

COVARIANCES: dict[str, tuple[Matrix, int]] = {
    "one column": (((400.0,),), 750),
    "one column, just below a power of 4": (((next_below(4.0),),), 300),
    "two columns": (((400.0, 150.0), (150.0, 100.0)), 1000),
    "correlation 0.999999": (((1.0, 0.999999), (0.999999, 1.0)), 1000),
    "barely definite": (((F_77, F_76), (F_76, F_75)), 500),
    "two scales": (((1e-200, 0.5), (0.5, 1e200)), 700),
    "diagonal": (((1e-6, 0.0), (0.0, 9e14)), 700),
    "three columns": (((400.0, 150.0, 0.0), (150.0, 100.0, -20.0), (0.0, -20.0, 900.0)), 1000),
    "barely definite three times over": (
        ((F_77, F_76, 0.0, 0.0), (F_76, F_75, 1.0, 0.0), (0.0, 1.0, F_77 + 1, 1.0), (0.0, 0.0, 1.0, 4.0)),
        500,
    ),
    "eight columns": (HILBERT, 500),
}


def mechanism_with(covariance: Matrix, tau_star: float = 1e4, sigma: float = 2229.0) -> Mechanism:
    names = tuple(f"column {j}" for j in range(len(covariance)))
    return Mechanism(
        c_u=3,
        tau=2,
        tau_star=tau_star,
        sigma=sigma,
        aggregates=Aggregates(names=names, covariance=covariance, sensitivity=L2Norm(1e-3)),
    )


def chosen_words(rows: int, groups: int, seed: str) -> Words:
    """A row for each draw of a group: awkward words by chance in one group of two, ordinary ones otherwise."""
    source = Recorded(seed)
    ordinary = np.frombuffer(source(8 * rows * groups), np.int64).reshape(rows, groups)
    pick = np.frombuffer(source(4 * rows * groups), np.uint32).reshape(rows, groups)
    awkward = awkward_words()
    return np.where(pick % 2 == 0, awkward[pick // 2 % len(awkward)], ordinary)


def near_ties(judge: Judge, words: Words) -> Doubles:
    """Aggregates that bring the sum next to a half-way point: at 2⁻¹ to 2⁻⁶² steps or as near as a double can."""
    nudges = itertools.cycle(Fraction(sign, 2**d) for d in range(1, 63) for sign in (1, -1))
    rows = []
    for i, group in enumerate(words.T.tolist()):
        row = []
        for (low, high), grid in zip(judge.steps(group)[1:], judge.value_grids, strict=True):
            middle = Fraction(low + high, 2 << UNIT) if high - low < 1 << UNIT else Fraction(0)
            # A small aggregate comes nearest; every fourth is larger than the noise.
            whole = math.floor(middle) + (2**24 if i % 4 == 0 else 0)
            row.append(float((whole + Fraction(1, 2) - middle + next(nudges)) * grid))
        rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize("name", COVARIANCES)
def test_columns_are_the_ideal_ones_correctly_rounded(name: str) -> None:
    """Aggregates that are huge, tiny, negative, not on the grid, and such that the sum is next to a half-way point."""
    covariance, most = COVARIANCES[name]
    groups = max(some_of(most), 250)  # so that even one column comes as near to a tie as ``near_ties`` has distances
    mechanism = mechanism_with(covariance)
    columns = len(covariance)
    words = chosen_words(1 + columns, groups, name)
    values = np.resize(np.array(AGGREGATES), (groups, columns))
    values[1::2] = near_ties(Judge(mechanism), words[:, 1::2])
    entropy = Recorded(name, words)
    assert_as_judged(mechanism, np.resize(np.array([1, 2, 9000, 10**4, 11_000]), groups), values, entropy)

    assert len(entropy.given) > groups // 8  # the near ties were open, and some needed more bits


def near_ties_of(ties: Doubles, digits: int) -> Decimals:
    """The decimal numbers next to those of ``near_ties``, on either side."""
    bound = 2**53
    nearest = [round(Fraction(tie) * 10**digits) + nudge for tie, nudge in zip(ties, itertools.cycle((0, 1, -1)))]
    return Decimals(np.array([min(max(units, -bound), bound) for units in nearest]), digits)


@pytest.mark.parametrize("scale", [2.0**-80, 2.0**-30, 1.0, 2.0**20, 2.0**90])
def test_decimals_are_added_exactly(scale: float) -> None:
    """Sums next to a half-way point, with few and many digits, under noise far below a cent and far above all sums."""
    matrix = ((400.0, 150.0, 0.0), (150.0, 100.0, 0.0), (0.0, 0.0, 4.0))
    mechanism = mechanism_with(tuple(tuple(entry * scale**2 for entry in row) for row in matrix))
    groups = max(some_of(600), 250)
    words = chosen_words(4, groups, f"decimals {scale}")
    ties = near_ties(Judge(mechanism), words)
    for first, second in ((2, 12), (1, 18), (9, 5)):
        decimals = {0: near_ties_of(ties[:, 0], first), 1: near_ties_of(ties[:, 1], second)}
        extremes = [0, 1, -1, 2**53, -(2**53), 10**second - 1, -(10 ** min(second, 15)) - 1]
        decimals[1].units[: len(extremes)] = np.clip(extremes, -(2**53), 2**53)
        entropy = Recorded(f"decimals {scale}", words)
        assert_as_judged(mechanism, np.resize(np.array([1, 2, 9000]), groups), ties, entropy, decimals)


def test_a_decimal_is_not_its_nearest_double() -> None:
    """Here the grid is four times as far as doubles are apart, so that the rounding of a value would show."""
    mechanism, groups = mechanism_with(((4.0**-12,),)), 200
    units = (2**20 + np.arange(groups)) * 10**9 + np.arange(groups) ** 3
    doubles, counts = (units / 10.0**9)[:, np.newaxis], np.full(groups, 9000)
    exactly = assert_as_judged(mechanism, counts, doubles, Recorded("cents"), {0: Decimals(units, 9)})
    nearly = assert_as_judged(mechanism, counts, doubles, Recorded("cents"))

    assert 5 < np.count_nonzero(exactly.values != nearly.values) < 60


def test_a_zero_has_no_sign() -> None:
    """Small noise of either sign on aggregates that are nearly zero, or zero of either sign."""
    values = np.array([[0.0], [-0.0], [1e-300], [-1e-300]] * 2)
    small = 2**63 - 2**35  # a q just below ½
    words = np.array([[2**62] * 8, [small] * 4 + [small - 2**63] * 4])
    published = assert_as_judged(mechanism_with(((400.0,),)), np.full(8, 9000), values, Recorded("zero", words))

    assert (published.values == 0).all()
    assert not np.signbit(published.values).any()


def test_chunks_and_their_further_words_follow_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Open groups draw between one chunk's words and the next one's."""
    monkeypatch.setattr(noise_of_release, "_DRAWS_AT_ONCE", 3 * 64)
    mechanism = mechanism_with(((400.0, 150.0), (150.0, 100.0)))
    entropy = Recorded("chunks", np.zeros(3 * 64, np.int64))
    assert_as_judged(mechanism, np.full(150, 9000), np.full((150, 2), 0.1), entropy)

    assert [len(given) for given in entropy.given if len(given) > 8] == [24 * 64, 24 * 64, 24 * 22]


def test_values_of_another_shape_are_refused() -> None:
    """A surplus column would come back as old contents of memory."""
    noise = Noise(mechanism_with(((400.0,),)))
    for shape in ((3, 2), (3, 0), (2, 1), (3,)):
        with pytest.raises(ValueError, match="a row for each group"):
            noise.add(np.ones(3, np.int64), np.zeros(shape), Recorded("shape"))


@st.composite
def covariances(draw: st.DrawFn) -> Matrix:
    """B Bᵀ + I for a small integer B, scaled by a power of two: positive definite, and without rounding."""
    size = draw(st.integers(1, 4))
    entry = st.integers(-1000, 1000)
    rows = draw(st.lists(st.lists(entry, min_size=size, max_size=size), min_size=size, max_size=size))
    scale = 4.0 ** draw(st.integers(-300, 300))
    product = np.array(rows, object) @ np.array(rows, object).T + np.eye(size, dtype=int)
    return tuple(tuple(float(number) * scale for number in row) for row in product.tolist())


@examples(100)
@given(
    covariances(),
    st.floats(1e-30, 1e30),
    st.floats(2.5, 1e18),
    st.integers(0, 2**53),
    st.data(),
)
def test_any_group_is_as_judged(
    covariance: Matrix, sigma: float, tau_star: float, count: int, data: st.DataObject
) -> None:
    columns = len(covariance)
    value = st.floats(allow_nan=False, allow_infinity=False)
    # Not the two words next to the median: there the ball around the noise reaches a little beyond 0, so a group with
    # C = τ* − ½ and a σ of 1e30 draws one word more than the judge needs.
    word = st.integers(-(2**63), 2**63 - 1).filter(lambda word: word & MAGNITUDE != MAGNITUDE)
    values = np.array([data.draw(st.lists(value, min_size=columns, max_size=columns))])
    units, digits = st.integers(-(2**53), 2**53) | st.integers(-100, 100), st.integers(1, 18)
    places = data.draw(st.sets(st.integers(0, columns - 1)))
    decimals = {j: Decimals(np.array([data.draw(units)]), data.draw(digits)) for j in places}
    words = np.array(data.draw(st.lists(word, min_size=1 + columns, max_size=1 + columns)))
    assert_as_judged(
        mechanism_with(covariance, tau_star, sigma), np.array([count]), values, Recorded("any", words), decimals
    )


def test_the_error_of_a_draw_is_within_its_bound() -> None:
    """For all missing bits: at the ends of segments, the worst places of the polynomials, and in between."""
    words = np.concatenate([awkward_words(), np.frombuffer(Recorded("bounds")(8 * 2000), np.int64)])
    draws, segments = normals(words, polynomials())
    off = []
    for word, draw, segment in zip(words.tolist(), draws.tolist(), segments.tolist(), strict=True):
        bound = float(polynomials().error[segment])
        if math.isfinite(bound):
            low, high = (Fraction(end, 1 << UNIT) for end in quantiles(word & (2**63 - 1), 64))
            error = max(abs(Fraction(abs(draw)) - low), abs(Fraction(abs(draw)) - high))
            assert error <= bound
            off.append(float(error) / bound)

    assert max(off) > 0.9  # the bound is sharp: it is nearly attained


@pytest.mark.parametrize("name", COVARIANCES)
def test_the_error_of_the_product_is_within_its_bound(name: str) -> None:
    """L z in doubles, for z that are doubles: the error of the factor and the rounding of the sum."""
    mechanism = mechanism_with(COVARIANCES[name][0])
    noise, judge = Noise(mechanism), Judge(mechanism)
    draws = np.frombuffer(Recorded(name)(8 * 400 * len(noise.value_grids)), np.int64).reshape(400, -1) / 2.0**61
    products = noise._factor @ draws.T
    bounds = noise._factor_error @ np.abs(draws.T)
    for i, draw in enumerate(draws.tolist()):
        exact = judge.columns([Fraction(number) for number in draw])
        for j, (low, high) in enumerate(exact):
            assert abs(Fraction(float(products[j, i])) - Fraction(low + high, 2 << UNIT)) <= bounds[j, i]
