"""μ₀ against exact rational arithmetic: never below max √(Δᵀ Σ⁻¹ Δ), never more than an ulp above."""

from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gsh.accounting.column_costs import mu_0
from gsh.accounting.covariance import Matrix
from gsh.accounting.numerics.doubles import next_above, next_below
from gsh.accounting.sensitivity import Box, L1Norm, L2Norm, Sensitivity, Vectors
from tests import reference
from tests.gsh.accounting.draws import allowed, examples, log_uniform
from tests.gsh.accounting.rational import exact, is_positive_definite, largest_square, smallest_eigenvalue

pytestmark = pytest.mark.slow

mp = reference.mp


def hilbert(size: int) -> Matrix:
    """Ill-conditioned: about 10^(1.5·size)."""
    return tuple(tuple(1.0 / (i + j + 1) for j in range(size)) for i in range(size))


def exchangeable(size: int, correlation: float) -> Matrix:
    return tuple(tuple(1.0 if i == j else correlation for j in range(size)) for i in range(size))


def diagonal(*entries: float) -> Matrix:
    return tuple(tuple(entry if i == j else 0.0 for j in range(len(entries))) for i, entry in enumerate(entries))


@st.composite
def matrices(draw: st.DrawFn, most_columns: int = 4) -> Matrix:
    """Σ = A Aᵀ + c I with every column scaled, as rounded to doubles, if it is still positive definite."""
    size = draw(st.integers(1, most_columns))
    entries = draw(st.lists(st.floats(-1, 1), min_size=size * size, max_size=size * size))
    ridge = draw(log_uniform(1e-9, 1.0))
    scales = [draw(log_uniform(1e-6, 1e6)) for _ in range(size)]
    rows = [entries[i * size : (i + 1) * size] for i in range(size)]
    matrix = [[0.0] * size for _ in range(size)]
    for i in range(size):
        for j in range(i + 1):
            dot = sum(a * b for a, b in zip(rows[i], rows[j], strict=True)) + (ridge if i == j else 0.0)
            matrix[i][j] = matrix[j][i] = dot * scales[i] * scales[j]
    assume(is_positive_definite(matrix))
    return tuple(map(tuple, matrix))


@st.composite
def sensitivities(draw: st.DrawFn, size: int) -> Box | L1Norm | Vectors:
    bounds = st.just(0.0) | log_uniform(1e-6, 1e6) | log_uniform(1e-6, 1e6).map(lambda x: -x)
    match draw(st.sampled_from(["box", "l1", "vectors"])):
        case "box":
            pairs = [sorted((draw(bounds), draw(bounds))) for _ in range(size)]
            return Box(tuple(low for low, _ in pairs), tuple(high for _, high in pairs))
        case "l1":
            return L1Norm(draw(st.just(0.0) | log_uniform(1e-6, 1e6)))
        case _:
            return Vectors(tuple(tuple(draw(bounds) for _ in range(size)) for _ in range(draw(st.integers(1, 5)))))


@examples(150)
@given(st.data())
def test_mu_0_is_the_largest_norm_rounded_up(data: st.DataObject) -> None:
    """Box, L1 and lists of vectors, over twelve orders of magnitude and correlations up to 1 − 1e-9."""
    matrix = data.draw(matrices())
    _assert_certified(matrix, data.draw(sensitivities(len(matrix))))


@examples(100)
@given(matrix=matrices(), bound=log_uniform(1e-6, 1e6))
def test_mu_0_of_an_l2_ball_is_its_radius_over_the_smallest_eigenvalue(matrix: Matrix, bound: float) -> None:
    """bound/√λ_min, with the eigenvalue from the reference's own arithmetic."""
    _assert_certified(matrix, L2Norm(bound))


SINGLE = ((4.0,),)
PAIR = ((1.0, 0.6), (0.6, 2.0))
HUGE_AND_TINY = ((1e-300, 0.9), (0.9, 1e300))
NEARLY_SINGULAR = ((1.0, next_below(1.0)), (next_below(1.0), 1.0))


@pytest.mark.parametrize(
    ("matrix", "sensitivity"),
    [
        (SINGLE, Box((0.0,), (6.0,))),
        (SINGLE, Box((-8.0,), (6.0,))),
        (SINGLE, L2Norm(6.0)),
        (PAIR, Box((0.0, -1.0), (1.0, 1.0))),
        (PAIR, Box((0.0, 0.0), (0.0, 1.0))),  # a column that no user can change
        (PAIR, L1Norm(3.0)),
        (PAIR, L2Norm(3.0)),
        (PAIR, Vectors(((1.0, 1.0), (1.0, -1.0)))),
        (diagonal(0.1, 0.3, 0.7), Box((-1.0, 0.0, 0.1), (0.5, 0.3, 0.2))),
        (diagonal(0.1, 0.3, 0.7), L2Norm(0.3)),
        (diagonal(4.0, 4.0, 1.0), L2Norm(3.0)),  # a double eigenvalue and another one
        (diagonal(1.0, 1.0, 4.0), L2Norm(3.0)),
        (((9.0, 0.0, 0.0), (0.0, 7.0, 2.0), (0.0, 2.0, 7.0)), L2Norm(3.0)),
        (((2.0, 3.063973437238906e-08), (3.063973437238906e-08, 4.693966612052798e-16)), L2Norm(1.0)),
        (exchangeable(4, 0.5), L2Norm(1.0)),
        (exchangeable(4, 0.5), Box((-1.0,) * 4, (1.0,) * 4)),
        (exchangeable(4, 0.5), L1Norm(1.0)),
        (NEARLY_SINGULAR, Box((0.0, 0.0), (1.0, 1.0))),
        (NEARLY_SINGULAR, L2Norm(1.0)),
        (HUGE_AND_TINY, Box((-1e-150, -1e150), (1e-150, 1e150))),
        (diagonal(1e-300, 1e300), Box((-1e100, -1e100), (1e100, 1e100))),
        (diagonal(1e-300, 1e300), L1Norm(1e100)),
        (((5e-324,),), Box((0.0,), (5e-324,))),
        (((1.7e308,),), Box((0.0,), (5e-324,))),
        (((5e-324,),), L2Norm(1e-10)),
    ],
)
def test_mu_0_is_certified_at_the_edges(matrix: Matrix, sensitivity: Sensitivity) -> None:
    """Columns that cannot move, ties, eigenvalues that come twice, entries from 5e-324 to 1e308."""
    _assert_certified(matrix, sensitivity)


@pytest.mark.parametrize("size", [2, 4, 6, 8, 10, 11, 12])
@pytest.mark.parametrize("kind", ["box", "l1", "l2"])
def test_mu_0_is_certified_for_hilbert_matrices(size: int, kind: str) -> None:
    """Their condition number is too large for a factor at the first precision."""
    sensitivity = {"box": Box((0.0,) * size, (1.0,) * size), "l1": L1Norm(1.0), "l2": L2Norm(1.0)}[kind]

    _assert_certified(hilbert(size), sensitivity)


@examples(100)
@given(size=st.integers(8, 11), ulps=st.lists(st.integers(-3, 3), min_size=66, max_size=66))
def test_near_ties_are_settled_exactly(size: int, ulps: list[int]) -> None:
    """Six vectors about an ulp from the first column of Σ. There L⁻¹Δ cancels, and doubles cannot tell them apart."""
    matrix = hilbert(size)
    rows = [ulps[11 * k : 11 * k + size] for k in range(6)]
    vectors = (tuple(x * (1 + u * 2.0**-52) for x, u in zip(matrix[0], row, strict=True)) for row in rows)

    _assert_certified(matrix, Vectors(tuple(vectors)))


@pytest.mark.parametrize("size", [11, 14])
def test_thousands_of_tied_corners_cost_no_more_than_a_trillionth(size: int) -> None:
    """√(Δᵀ Σ⁻¹ Δ) is the same for every corner with as many ups as downs: the bound of the doubles has to do."""
    matrix, correlation = exchangeable(size, 0.5), 0.5
    # Σ⁻¹ = (I − c 11ᵀ/(1 + (n − 1)c))/(1 − c), and |1ᵀΔ| is at least n mod 2.
    squared = (size - correlation * (size % 2) / (1 + (size - 1) * correlation)) / (1 - correlation)
    truth = mp.sqrt(squared)
    value = mu_0(matrix, Box((-1.0,) * size, (1.0,) * size))

    assert truth <= value <= truth * (1 + mp.mpf(10) ** -12)


@examples(80)
@given(st.lists(st.tuples(log_uniform(1e-9, 1e9), log_uniform(1e-6, 1e6)), min_size=1, max_size=5))
def test_a_diagonal_covariance_agrees_with_its_corners_one_by_one(columns: list[tuple[float, float]]) -> None:
    """The shortcut for independent columns gives the same maximum as the list of all corners."""
    matrix = diagonal(*(variance for variance, _ in columns))
    uppers = tuple(upper for _, upper in columns)
    lowers = tuple(-upper / 2 for upper in uppers)
    corners = Vectors(tuple(product(*zip(lowers, uppers, strict=True))))

    assert mu_0(matrix, Box(lowers, uppers)) == mu_0(matrix, corners)


def test_a_diagonal_covariance_takes_any_number_of_columns() -> None:
    """2^30 corners are not looked at one by one."""
    value = mu_0(diagonal(*([4.0] * 30)), Box((-1.0,) * 30, (1.0,) * 30))
    lowest, highest = allowed(mp.sqrt(mp.mpf(30) / 4))

    assert lowest <= value <= highest


def test_a_dense_covariance_that_is_nearly_diagonal_agrees_with_the_diagonal_one() -> None:
    """The list of all corners of a dense Σ gives the same maximum as the shortcut."""
    box = Box((-1.0, -2.0, 0.0), (1.0, 1.0, 3.0))
    nearly = ((2.0, 1e-300, 0.0), (1e-300, 3.0, 0.0), (0.0, 0.0, 5.0))
    value = mu_0(diagonal(2.0, 3.0, 5.0), box)

    assert next_below(value) <= mu_0(nearly, box) <= next_above(value)


@pytest.mark.parametrize(
    "sensitivity", [Box((0.0, 0.0), (0.0, 0.0)), L1Norm(0.0), L2Norm(0.0), Vectors(((0.0, 0.0),))], ids=repr
)
def test_columns_that_nobody_can_change_add_nothing(sensitivity: Sensitivity) -> None:
    """μ₀ = 0, exactly."""
    assert mu_0(PAIR, sensitivity) == 0.0


@examples(100)
@given(matrix=matrices(), factor=log_uniform(1.0, 100.0))
def test_mu_0_grows_with_the_sensitivity(matrix: Matrix, factor: float) -> None:
    """A wider box holds the narrower one; an L1 ball lies in the L2 ball, and that in the box."""
    size = len(matrix)
    narrow, wide = (mu_0(matrix, Box((-f,) * size, (f,) * size)) for f in (1.0, factor))

    assert narrow <= wide
    assert mu_0(matrix, L1Norm(1.0)) <= next_above(mu_0(matrix, L2Norm(1.0)))
    assert mu_0(matrix, L2Norm(1.0)) <= next_above(narrow)


def _assert_certified(matrix: Matrix, sensitivity: Sensitivity) -> None:
    value = mu_0(matrix, sensitivity)

    if isinstance(sensitivity, L2Norm):
        lowest, highest = allowed(mp.mpf(sensitivity.bound) / mp.sqrt(smallest_eigenvalue(matrix)))
        assert lowest <= value <= highest
    else:
        square = largest_square(matrix, sensitivity)
        assert exact(value) ** 2 >= square
        assert square == 0 or value == 5e-324 or exact(next_below(next_below(value))) ** 2 < square
