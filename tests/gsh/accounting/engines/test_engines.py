"""Other engines: their noise, their tests, and the worst split of a user's groups."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from gsh.accounting.accountings import EXACT
from gsh.accounting.accountings import at_epsilon as of_mechanism
from gsh.accounting.engines.curves import as_mechanism, at_delta, at_epsilon, histogram_of
from gsh.accounting.engines.discrete_gaussian import DiscreteGaussianNoise
from gsh.accounting.engines.geometric import GeometricNoise, response_excess
from gsh.accounting.engines.laplace import LaplaceNoise
from gsh.accounting.engines.noise import Keeps, NoiseKind, steps_to_publish
from gsh.accounting.engines.scan import Histogram, scanned
from gsh.accounting.mechanism import Mechanism
from gsh.accounting.numerics.balls import at_precision
from gsh.errors import InvalidParameter
from tests.surroundings import some_of

KINDS: list[NoiseKind] = [
    "gaussian",
    "rounded-gaussian",
    "discrete-gaussian",
    "laplace",
    "rounded-laplace",
    "geometric",
]


def excess_of(noise: Any, rows: int, epsilon: float, bits: int = 128) -> arb:
    found: arb = at_precision(bits, lambda: noise.excess(rows, arb(epsilon)))
    return found


# engines.md has the sources of the parameters.
CERTIFIED = [
    ("geometric", 10, 5, 150, ">=", 0.5, 8.8741e-7),
    ("geometric", 10, 5, 150, ">=", 0.3, 7.2284e-3),
    ("geometric", 1, 1, 5, ">=", 1.0, 1.3390e-2),
    ("discrete-gaussian", 10, 5, 60, ">=", 1.5, 1.2111e-8),
    ("discrete-gaussian", 10, 5, 60, ">=", 1.0, 2.9208e-7),
    ("laplace", 10, 5, 150, ">=", 0.5, 8.4519e-7),
    ("rounded-gaussian", 20, 10, 120, ">=", 1.0, 1.5615e-8),
    ("rounded-gaussian", 20, 10, 120, ">", 1.0, 1.1505e-8),
]


@pytest.mark.parametrize(("noise", "scale", "c_u", "threshold", "keeps", "epsilon", "delta"), CERTIFIED)
def test_the_certified_numbers_of_engines_in_use(
    noise: NoiseKind, scale: float, c_u: int, threshold: float, keeps: Keeps, epsilon: float, delta: float
) -> None:
    found = at_epsilon(histogram_of(noise=noise, scale=scale, c_u=c_u, threshold=threshold, keeps=keeps), epsilon)

    assert found.delta == pytest.approx(delta, rel=5e-5)
    assert found.is_exact


@settings(max_examples=some_of(60))
@given(st.floats(0.5, 50), st.integers(1, 60), st.floats(0, 3))
def test_geometric_noise_is_randomised_response(scale: float, rows: int, epsilon: float) -> None:
    """Against the two sums of the definition, in exact binomials and 60 digits."""
    with mpmath.workdps(60):
        loss, eps = 1 / mpmath.mpf(scale), mpmath.mpf(epsilon)
        gain = 1 / (1 + mpmath.exp(-loss))
        sides = [
            [mpmath.binomial(rows, j) * p**j * (1 - p) ** (rows - j) for j in range(rows + 1)] for p in (gain, 1 - gain)
        ]
        expected = sum(max(a - mpmath.exp(eps) * b, 0) for a, b in zip(*sides, strict=True))
        found = excess_of(GeometricNoise(scale), rows, epsilon, 200)

        assert (
            mpmath.mpf(str(found.lower().str(50, radius=False)))
            <= expected * (1 + mpmath.mpf(10) ** -40) + mpmath.mpf(10) ** -45
        )
        assert (
            abs(mpmath.mpf(found.mid().str(50, radius=False)) - expected)
            <= expected * mpmath.mpf(10) ** -30 + mpmath.mpf(10) ** -45
        )


@pytest.mark.parametrize("rows", [401, 1000])
def test_many_rows_of_geometric_noise_are_tails_of_a_binomial(rows: int) -> None:
    """The sum has a bound on its terms; the two ways agree where both can be taken."""
    loss, epsilon = 0.05, 0.3
    found = at_precision(256, lambda: response_excess(rows, arb(loss), arb(epsilon)))
    gain, p = 1 / (1 + mpmath.exp(-mpmath.mpf(loss))), mpmath.mpf(0)
    with mpmath.workdps(60):
        for j in range(rows + 1):
            weight = mpmath.binomial(rows, j) * gain**j * (1 - gain) ** (rows - j)
            p += weight * max(1 - mpmath.exp(mpmath.mpf(epsilon) - mpmath.mpf(loss) * (2 * j - rows)), 0)

        assert abs(mpmath.mpf(found.mid().str(40, radius=False)) / p - 1) < 1e-12


def test_laplace_noise_has_the_closed_forms_of_one_and_two_rows() -> None:
    scale = 10.0
    loss = 1 / scale
    one, two = excess_of(LaplaceNoise(scale), 1, 0.05), excess_of(LaplaceNoise(scale), 2, 0.1)

    assert float(one) == pytest.approx(1 - math.exp((0.05 - loss) / 2), rel=1e-12)
    assert float(two) == pytest.approx(1 - math.exp(0.05 - loss) * (1 + (2 * loss - 0.1) / 4), rel=1e-12)


@pytest.mark.parametrize(("scale", "rows", "epsilon"), [(2.0, 3, 0.2), (1.0, 6, 1.5), (10.0, 12, 0.4)])
def test_laplace_noise_agrees_with_a_fine_grid(scale: float, rows: int, epsilon: float) -> None:
    """The loss of a row on a grid, rounded down and up, convolved."""
    loss, steps = 1 / scale, 4000
    width = 2 * loss / steps
    places = np.arange(steps + 1) * width - loss
    # P(loss ≤ x) = e^(−(λ − x)/2)/2 for −λ ≤ x < λ, and an atom of ½ at λ.
    below = np.append(np.exp(-(loss - places[:-1]) / 2) / 2, 1.0)
    up, down = np.diff(below, prepend=0.0), np.append(np.diff(below), 0.0)
    down[0] += below[0]
    for mass, is_upper in ((up, True), (down, False)):
        total = np.array([1.0])
        for _ in range(rows):
            total = np.convolve(total, mass)
        losses = np.arange(len(total)) * width - rows * loss
        bound = float((total * np.maximum(-np.expm1(epsilon - losses), 0)).sum())
        found = float(excess_of(LaplaceNoise(scale), rows, epsilon))

        assert found <= bound + 1e-12 if is_upper else found >= bound - 1e-12
        assert found == pytest.approx(bound, rel=0.02)


@settings(max_examples=some_of(60))
@given(st.integers(1, 20), st.floats(0.5, 40), st.floats(0, 2))
def test_laplace_noise_is_dominated_by_randomised_response(rows: int, scale: float, epsilon: float) -> None:
    exact = excess_of(LaplaceNoise(scale), rows, epsilon, 256)
    bound = at_precision(256, lambda: response_excess(rows, 1 / arb(scale), arb(epsilon)))

    assert exact.lower() <= bound.upper()


@pytest.mark.parametrize(
    ("sigma", "rows", "epsilon"),
    [(0.4, 1, 0.3), (0.5, 3, 0.5), (0.9, 5, 1.0), (1.0, 4, 0.7), (2.0, 3, 0.5), (5.0, 4, 0.3)],
)
def test_discrete_gaussian_noise_agrees_with_convolution(sigma: float, rows: int, epsilon: float) -> None:
    with mpmath.workdps(30):
        most = int(sigma * 13) + 2
        weights = np.array(
            [mpmath.exp(-(mpmath.mpf(s) ** 2) / (2 * mpmath.mpf(sigma) ** 2)) for s in range(-most, most + 1)],
            dtype=object,
        )
        masses = total = weights / weights.sum()
        for _ in range(rows - 1):
            total = np.convolve(total, masses)
        shifted = np.concatenate([total[rows:], [mpmath.mpf(0)] * rows])
        expected = sum(max(a - mpmath.exp(mpmath.mpf(epsilon)) * b, 0) for a, b in zip(total, shifted, strict=True))
        found = excess_of(DiscreteGaussianNoise(sigma), rows, epsilon)

        assert mpmath.mpf(found.upper().str(25, radius=False)) >= expected * (1 - mpmath.mpf(10) ** -20)
        assert float(found.upper()) == pytest.approx(float(expected), rel=1e-3 if sigma <= 1 else 1e-9)


@pytest.mark.parametrize("sigma", [3e4, 2e5])
def test_wide_discrete_noise_is_summed_by_the_midpoint_rule(sigma: float) -> None:
    """On both sides of the width from which no term is added by itself, it is the tail of the Gaussian."""
    steps = int(4.5 * sigma)
    found = at_precision(128, lambda: DiscreteGaussianNoise(sigma).published(Fraction(steps), ">="))
    expected = math.erfc((steps - 0.5) / sigma / math.sqrt(2)) / 2

    assert float(found) == pytest.approx(expected, rel=1e-9)
    assert found.rel_accuracy_bits() > 38


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=some_of(60))
@given(data=st.data())
def test_branch_and_bound_finds_the_worst_split(kind: NoiseKind, data: st.DataObject) -> None:
    """Against all splits."""
    scale = data.draw(st.floats(0.6, 12))
    groups = data.draw(st.integers(1, 9))
    threshold = data.draw(st.floats(-2, 9)) * scale + 1
    epsilon = data.draw(st.sampled_from([0.0, 0.1, 0.5, 1.0, 2.5]) | st.floats(0, 3))
    keeps = data.draw(st.sampled_from([">=", ">"]))
    histogram = histogram_of(noise=kind, scale=scale, c_u=groups, threshold=threshold, keeps=keeps)

    found = at_precision(160, lambda: scanned(histogram, arb(epsilon)))
    expected = at_precision(160, lambda: literal(histogram, epsilon))

    assert found.delta.upper() >= expected.lower()
    assert float(found.delta.upper()) <= float(expected.upper()) * (1 + 1e-11) + 1e-300


def literal(histogram: Histogram, epsilon: float) -> arb:
    """The largest T2 and T3 of all splits, written out."""

    def kept(rows: int, at: arb) -> arb:
        """G = 1 − H"""
        if not rows:
            return at.exp().min(arb(1))
        if at < 0:
            return at.exp() * kept(rows, -at)
        return 1 - histogram.noise.excess(rows, at)

    p = 1 - histogram.noise.published(histogram.gap, histogram.keeps)
    hazard, worst = -p.log(), arb(0)
    for x in range(histogram.c_u + 1):
        rows = histogram.c_u - x
        worst = worst.max(1 - p**x * kept(rows, epsilon + hazard * x))
        worst = worst.max(1 - kept(rows, epsilon - hazard * x))
    return worst


@settings(max_examples=some_of(40))
@given(
    st.sampled_from(["gaussian", "rounded-gaussian", "geometric"]),
    st.floats(0.6, 12),
    st.integers(1, 12),
    st.integers(2, 60),
    st.sampled_from([">=", ">"]),
    st.floats(0, 3),
)
def test_no_certificate_is_below_the_truth_in_50_digits(
    kind: NoiseKind, scale: float, groups: int, threshold: int, keeps: Keeps, epsilon: float
) -> None:
    """All splits, in mpmath: nothing of the library takes part."""
    found = at_epsilon(histogram_of(noise=kind, scale=scale, c_u=groups, threshold=threshold, keeps=keeps), epsilon)
    with mpmath.workdps(60):
        b, e = mpmath.mpf(scale), mpmath.mpf(epsilon)
        if kind == "geometric":
            steps, a = threshold - 1 + (keeps == ">"), mpmath.exp(-1 / b)
            p = 1 - a**steps / (1 + a)
        else:
            edge = 0 if kind == "gaussian" else mpmath.mpf(0.5 if keeps == ">" else -0.5)
            p = mpmath.ncdf((threshold + edge - 1) / b)
        excess = _responses if kind == "geometric" else _normals
        kept = [_symmetric(lambda at, rows=rows: 1 - excess(rows, b, at)) for rows in range(groups + 1)]  # type: ignore[misc]
        splits = [(x, groups - x) for x in range(groups + 1)]
        c = -mpmath.log(p)
        truth = max(max(1 - p**x * kept[k](e + c * x), 1 - kept[k](e - c * x)) for x, k in splits)

        assert truth <= mpmath.mpf(found.delta) <= truth * (1 + mpmath.mpf(1e-11))


def _symmetric(kept: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """G at every ε, from ε ≥ 0."""
    return lambda at: kept(at) if at >= 0 else mpmath.exp(at) * kept(-at)


def _normals(rows: int, sigma: Any, epsilon: Any) -> Any:
    if rows == 0:
        return mpmath.mpf(0)
    mu = mpmath.sqrt(rows) / sigma
    return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


def _responses(rows: int, b: Any, epsilon: Any) -> Any:
    yes = 1 / (1 + mpmath.exp(-1 / b))
    return mpmath.fsum(
        max(
            0,
            mpmath.binomial(rows, j)
            * (yes**j * (1 - yes) ** (rows - j) - mpmath.exp(epsilon) * yes ** (rows - j) * (1 - yes) ** j),
        )
        for j in range(rows + 1)
    )


@pytest.mark.parametrize(
    ("scale", "threshold", "groups", "epsilon"), [(0.8, 4, 3, 1.25), (1.0, 3, 2, 0.4), (1.5, 5, 2, 0.1)]
)
def test_the_certificate_is_that_of_the_algorithm_itself(
    scale: float, threshold: int, groups: int, epsilon: float
) -> None:
    """All combinations of counts of the user's groups, with all outputs: never above, and attained."""
    reach = 60

    def row(count: int) -> dict[int | None, float]:
        """The output of one group: None if it is dropped."""
        if count < 1:
            return {None: 1.0}
        weight = (1 - math.exp(-1 / scale)) / (1 + math.exp(-1 / scale))
        masses: dict[int | None, float] = {None: 0.0}
        for z in range(-reach, reach + 1):
            key = count + z if count + z >= threshold else None
            masses[key] = masses.get(key, 0.0) + weight * math.exp(-abs(z) / scale)
        return masses

    def losses(count: int) -> list[tuple[float, float]]:
        with_user, without = row(count), row(count - 1)
        pairs: dict[float, tuple[float, float]] = {}
        for key in {*with_user, *without}:
            p, q = with_user.get(key, 0.0), without.get(key, 0.0)
            ratio = round(math.log(p / q), 9) if p and q else math.inf if p else -math.inf
            one, other = pairs.get(ratio, (0.0, 0.0))
            pairs[ratio] = one + p, other + q
        return list(pairs.values())

    counts = (1, 2, 3, threshold, threshold + 20)
    worst = 0.0
    for chosen in itertools.combinations_with_replacement(counts, groups):
        added = removed = 0.0
        for pairs in itertools.product(*map(losses, chosen)):
            p, q = math.prod(pair[0] for pair in pairs), math.prod(pair[1] for pair in pairs)
            added += max(p - math.exp(epsilon) * q, 0.0)
            removed += max(q - math.exp(epsilon) * p, 0.0)
        worst = max(worst, added, removed)
    certified = at_epsilon(histogram_of(noise="geometric", scale=scale, c_u=groups, threshold=threshold), epsilon)

    assert worst <= certified.delta + 1e-9
    assert worst == pytest.approx(certified.delta, rel=1e-6)


@settings(max_examples=some_of(90))
@given(st.floats(0.5, 100), st.integers(1, 10**6), st.floats(1.5, 2000), st.floats(0, 5))
def test_gaussian_noise_is_the_mechanism_of_this_library(
    sigma: float, groups: int, threshold: float, epsilon: float
) -> None:
    histogram = histogram_of(noise="gaussian", scale=sigma, c_u=groups, threshold=threshold)
    mechanism = as_mechanism(histogram)
    assert isinstance(mechanism, Mechanism)
    expected = of_mechanism(EXACT, mechanism, epsilon)

    found = at_epsilon(histogram, epsilon)

    assert found.delta == pytest.approx(expected.delta, rel=1e-10, abs=1e-300)
    assert found.delta >= expected.delta * (1 - 1e-15)


@pytest.mark.parametrize(
    ("threshold", "keeps", "steps"), [(5, ">=", 5), (5, ">", 6), (4.5, ">=", 5), (4.5, ">", 5), (-3, ">", -2)]
)
def test_a_tie_is_decided_by_the_test(threshold: float, keeps: Keeps, steps: int) -> None:
    assert steps_to_publish(Fraction(threshold), keeps) == steps


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=some_of(30))
@given(data=st.data())
def test_epsilon_and_delta_are_inverse(kind: NoiseKind, data: st.DataObject) -> None:
    histogram = histogram_of(
        noise=kind, scale=data.draw(st.floats(0.6, 30)), c_u=data.draw(st.integers(1, 6)), threshold=100
    )
    delta = data.draw(st.floats(1e-9, 0.5))

    found = at_delta(histogram, delta)

    if math.isinf(found.epsilon):
        assert found.delta_infinite > delta
    else:
        assert found.delta <= delta
        assert at_epsilon(histogram, found.epsilon).delta <= delta
        if found.epsilon > 1e-6:
            assert at_epsilon(histogram, found.epsilon * (1 - 1e-9)).delta > delta * (1 - 1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_more_noise_a_higher_threshold_and_fewer_groups_are_more_private(kind: NoiseKind) -> None:
    given_ = {"noise": kind, "scale": 4, "c_u": 6, "threshold": 40}
    base = at_epsilon(histogram_of(**given_), 1.0).delta  # type: ignore[arg-type]

    for change in ({"threshold": 41}, {"c_u": 5}, {"keeps": ">"}):
        assert at_epsilon(histogram_of(**given_ | change), 1.0).delta <= base  # type: ignore[arg-type]


@pytest.mark.parametrize("rows", [{}, {"l_inf": 2}])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tau", [151, 200, 2000, 20_000, 2**53])
def test_a_threshold_below_tau_hides_no_user(kind: NoiseKind, tau: int, rows: dict[str, int]) -> None:
    if rows and kind == "discrete-gaussian":
        return  # refused
    found = at_epsilon(histogram_of(noise=kind, scale=10, c_u=5, tau=tau, threshold=150, **rows), 0.5)

    assert 0.97 < found.delta_infinite <= found.delta <= 1
    assert found.delta == 1 or tau <= 200
    assert 0 < found.delta_noise < 1


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"noise": "cauchy"}, "noise"),
        ({"scale": 0}, "scale"),
        ({"scale": math.nan}, "scale"),
        ({"scale": 0.09}, "scale"),
        ({"scale": 2**20 + 1, "noise": "discrete-gaussian"}, "scale"),
        ({"c_u": 0}, "c_u"),
        ({"c_u": 10**6 + 1}, "c_u"),
        ({"tau": -1}, "tau"),
        ({"threshold": math.inf}, "threshold"),
        ({"keeps": "="}, "keeps"),
    ],
)
def test_a_wrong_parameter_is_named(changes: dict[str, Any], pointer: str) -> None:
    given_ = {"noise": "laplace", "scale": 1, "c_u": 1, "threshold": 5} | changes

    with pytest.raises(InvalidParameter) as raised:
        histogram_of(**given_)

    assert raised.value.pointer == pointer
