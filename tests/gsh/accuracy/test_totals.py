"""Totals over published groups: they cover, by either method, wherever the groups are, and are never absurd."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_ndtr, ndtri

from gsh.accounting.grid import count_grid
from gsh.accounting.mechanism import Aggregates, Mechanism
from gsh.accounting.sensitivity import Box
from gsh.accuracy.intervals import count_intervals, half_steps, z_of
from gsh.accuracy.totals import LEAST_S, MANY, Total, _boundary, count_total, normal_totals, share_near, value_total
from gsh.accuracy.truncation import Doubles
from gsh.errors import InvalidParameter
from tests.gsh.accounting.draws import examples
from tests.gsh.accuracy.draws import fewest_covered, published

pytestmark = pytest.mark.slow

SIGMA, TAU_STAR = 84.5, 495.0
MECHANISM = Mechanism(c_u=10, tau=1, tau_star=TAU_STAR, sigma=SIGMA)
COLUMNS = Aggregates(names=("a", "b"), covariance=((4.0, 1.0), (1.0, 9.0)), sensitivity=Box((-1.0, -1.0), (1.0, 1.0)))
FAR = TAU_STAR + 30 * SIGMA
NODES, WEIGHTS = np.polynomial.legendre.leggauss(30)


def setting(groups: int, near: int, at: float) -> Doubles:
    """So many groups, of which some have a true count near τ*, and the others are far above."""
    return np.array([at] * near + [FAR] * (groups - near))


def mixed(groups: int) -> Doubles:
    return np.linspace(TAU_STAR - 2.3 * SIGMA, TAU_STAR + 20 * SIGMA, groups)


SETTINGS = {
    "1 near": setting(1, 1, 400.0),
    "1 far": setting(1, 0, 0.0),
    "3 near": setting(3, 3, 400.0),
    "3 mixed": mixed(3),
    "29 at": setting(29, 29, TAU_STAR),
    "30 at": setting(30, 30, TAU_STAR),
    "30 far below": setting(30, 30, 150.0),
    "30 above": setting(30, 30, TAU_STAR + SIGMA),
    "30, one near": setting(30, 1, 400.0),
    "30, eight near": setting(30, 8, TAU_STAR - SIGMA),
    "30 mixed": mixed(30),
    "1000 above": setting(1000, 1000, TAU_STAR + 2 * SIGMA),
    "1000 mixed": mixed(1000),
    "1000 far": setting(1000, 0, 0.0),
}


def totals(true: Doubles, level: float, size: int, seed: int = 11) -> list[Total]:
    rows = published(true, TAU_STAR, SIGMA, size, seed)
    return [count_total(MECHANISM, row, level, "counts") for row in rows]


def hits(found: list[Total], truth: float) -> int:
    return sum(each.low <= truth <= each.high for each in found)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_total_of_published_groups_is_covered(name: str) -> None:
    true = SETTINGS[name]
    size = 600

    assert hits(totals(true, 0.95, size), float(true.sum())) >= fewest_covered(0.95, size)


@pytest.mark.parametrize("name", ["3 near", "30 at", "30 mixed", "1000 mixed"])
def test_a_sum_of_published_counts_is_not_covered(name: str) -> None:
    """The test above would find it: Σ y ± 1.96 σ √k forgets that noise has raised the counts near τ*."""
    true = SETTINGS[name]
    sums = published(true, TAU_STAR, SIGMA, 1000, seed=11).sum(axis=1)
    reach = -float(ndtri(0.025)) * SIGMA * math.sqrt(len(true))

    assert (np.abs(sums - true.sum()) <= reach).sum() < fewest_covered(0.95, 1000)


def test_the_total_of_one_group_is_its_interval() -> None:
    for count in (TAU_STAR, 500.0, 700.0, 1e6):
        alone = count_intervals(MECHANISM, np.array([count]), 0.95)
        found = count_total(MECHANISM, np.array([count]), 0.95, "counts")
        ends = [found.low, found.estimate, found.high]
        assert ends == pytest.approx([alone.low[0], alone.estimate[0], alone.high[0]], rel=1e-12)


@pytest.mark.parametrize("groups", [2, MANY - 1, MANY, 1000])
def test_far_above_the_threshold_it_is_the_sum_with_its_normal_error(groups: int) -> None:
    counts = np.linspace(FAR, 2 * FAR, groups)
    root = math.sqrt(groups)

    found = count_total(MECHANISM, counts, 0.95, "counts")

    assert found.method == ("exact" if groups < MANY else "normal")
    assert found.estimate == pytest.approx(counts.sum(), rel=1e-12)
    assert found.standard_error == pytest.approx(SIGMA * root, rel=1e-5)
    alpha = 0.05 if groups >= MANY else 0.9 * 0.05
    assert found.high - found.low == pytest.approx(2 * -float(ndtri(alpha / 2)) * SIGMA * root, rel=1e-4)


@pytest.mark.parametrize(
    ("sigma", "tau_star", "counts"),
    [(200.0, 1400.0, [1401.0, 1500.0, 3000.0]), (84.5, 495.0, [497.0, 5000.0, 9000.0]), (1.0, 9.0, [9.0] * 29)],
)
def test_a_count_at_the_threshold_does_not_spoil_the_others(sigma: float, tau_star: float, counts: list[float]) -> None:
    mechanism, published_counts = Mechanism(c_u=10, tau=1, tau_star=tau_star, sigma=sigma), np.array(counts)
    found = count_total(mechanism, published_counts, 0.95, "counts")
    singles = singly(mechanism, published_counts, 0.95)

    assert singles[0] <= found.low <= found.estimate <= found.high <= singles[1]
    assert found.standard_error >= sigma * math.sqrt(len(counts))


def singly(mechanism: Mechanism, counts: Doubles, level: float) -> tuple[float, float]:
    """The sums of the ends of all single intervals, which fail with probability 0.1 α at most."""
    found = count_intervals(mechanism, counts, 1 - 0.1 * (1 - level) / len(counts))
    return found.low.sum(), found.high.sum()


def test_if_the_two_intervals_share_nothing_it_is_that_of_the_single_ones() -> None:
    """A count at τ* itself has probability 0. The conditional interval is then the least total."""
    counts = np.array([TAU_STAR - count_grid(MECHANISM) / 2, 5000.0])

    found = count_total(MECHANISM, counts, 0.95, "counts")

    assert (found.low, found.high) == singly(MECHANISM, counts, 0.95)
    assert found.low > 4000


@given(st.lists(st.floats(0, 30), min_size=1, max_size=MANY - 1), st.sampled_from([0.5, 0.95, 0.999999]))
@examples(60)
def test_few_groups_have_an_estimate_an_error_and_no_end_beyond_the_single_ones(t: list[float], level: float) -> None:
    counts = TAU_STAR + SIGMA * np.array(t)
    found = count_total(MECHANISM, counts, level, "counts")

    assert found.low <= found.estimate <= found.high
    assert found.standard_error >= SIGMA * math.sqrt(len(t))
    if len(t) > 1:
        low, high = singly(MECHANISM, counts, level)
        assert low <= found.low <= found.high <= high


def density(s: float, first: float, last: float) -> tuple[Doubles, Doubles]:
    """Nodes t of a quadrature, and their weights times the density of t = (y − τ*)/σ, given publication."""
    t = (first + last) / 2 + (last - first) / 2 * NODES
    return t, WEIGHTS * (last - first) / 2 * np.exp(-((s + t) ** 2) / 2 - log_ndtr(-s)) / math.sqrt(2 * math.pi)


@pytest.mark.parametrize("near", [1, 8, 20])
def test_a_lower_end_at_level_0_999_fails_no_more_often_than_it_says(near: int) -> None:
    """30 groups, of which some have τ* − τ = 1 σ. With the error of the upper end, 8 near ones cover 0.9987 only."""
    mechanism, size = Mechanism(c_u=10, tau=1, tau_star=1 + SIGMA, sigma=SIGMA), 100_000
    true = np.array([1.0] * near + [FAR] * (MANY - near))
    rows = published(true, mechanism.tau_star, SIGMA, size, seed=7)

    _, errors, low, high = normal_totals(mechanism, rows, 0.999)

    assert np.mean((low <= true.sum()) & (true.sum() <= high)) > 0.9991
    _, _, earlier, _ = normal_totals(mechanism, rows, 0.999, window=1)
    assert near != 8 or np.mean((earlier <= true.sum()) & (true.sum() <= high)) < 0.9989
    for row, *columns in zip(rows[:20], errors, low, high, strict=False):
        alone = count_total(mechanism, row, 0.999, "counts")
        assert [alone.standard_error, alone.low, alone.high] == pytest.approx(columns, rel=1e-12)


@pytest.mark.parametrize("width", [0.01, 0.354, 0.6433])
@pytest.mark.parametrize("most_s", [0.001, 1.0, 6.0, 40.0, 1e6])
def test_the_wider_window_of_the_lower_end_expects_no_fewer_groups_near_the_threshold(
    most_s: float, width: float
) -> None:
    """κ P(t < 2 width) ≥ P(t < width) for every s ≤ s⁺, with equality at s⁺, where κ is the ratio."""

    def log_share(s: float, reach: float) -> float:
        """ln P(t < reach | published)"""
        return math.log(-math.expm1(float(log_ndtr(-(s + reach)) - log_ndtr(-s))))

    share = share_near(most_s, width)
    ratios = [log_share(s, width) - log_share(s, 2 * width) for s in np.linspace(-20, min(most_s, 40.0), 200).tolist()]

    assert 0.5 < share <= 1
    assert max(ratios) <= math.log(share) + 1e-9
    assert ratios == sorted(ratios) or max(np.diff(ratios) * -1) < 1e-9


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999999])
@pytest.mark.parametrize("s", [LEAST_S, 0.0, 0.2, 1.0, 3.0, 6.0, 20.0])
def test_the_correction_is_unbiased_and_its_variance_is_not_above_the_stated_one(s: float, level: float) -> None:
    """The sum less σ Σ b for the true s, by quadrature over one of 30 counts: E = T, and Var ≤ E[standard_error²]."""
    mechanism = Mechanism(c_u=10, tau=1, tau_star=1 + (s if s > 0 else 5.0) * SIGMA, sigma=SIGMA)
    width, others = (max(z_of(level), 2) ** 2 / (3 * MANY)) ** (1 / 3), np.full(MANY - 1, mechanism.tau_star + 1e4)
    corrected, variances, weights = [], [], []
    for first, last in ((0.0, width), (width, 2.0), (2.0, 5.0), (5.0, 12.0)):
        for t, weight in zip(*density(s, first, last), strict=True):
            counts = np.append(others, mechanism.tau_star + SIGMA * t)
            found = count_total(mechanism, counts, level, "counts")
            lower = share_near(s, width) * float(t < 2 * width) * (1 / width + 1 / width**2) if s > 0 else None
            error = found.standard_error if lower is None else SIGMA * math.sqrt(MANY + lower)
            reach = z_of(level) * error + half_steps(count_grid(mechanism), counts).sum()
            end = {LEAST_S: found.high - reach, 0.0: found.estimate}.get(s, found.low + reach)
            corrected.append((end - others.sum() - mechanism.tau_star) / SIGMA + s)
            variances.append((error / SIGMA) ** 2 - len(others))
            weights.append(weight)

    assert np.sum(weights) == pytest.approx(1, abs=1e-9)
    assert np.dot(weights, corrected) == pytest.approx(0, abs=1e-7)
    assert np.dot(weights, np.square(corrected)) <= np.dot(weights, variances) + 1e-7


@pytest.mark.parametrize("width", [0.01, 0.1, 0.354, 0.5, 0.6433])
def test_the_variance_of_a_correction_is_a_mean_that_needs_no_s(width: float) -> None:
    """Var(t − b) = E[g² + g'²], for groups far below and far above τ*."""
    for s in np.arange(-8, 12, 0.5).tolist():
        near, near_weights = density(s, 0.0, width)
        rest = [density(s, width + step, width + step + 2) for step in range(0, 20, 2)]
        far, far_weights = (np.concatenate(parts) for parts in zip(*rest, strict=True))
        b = 1 / width + (1 - near / width) * (s + near)

        mean = near_weights @ (s + near - b) + far_weights @ (s + far)
        variance = near_weights @ (s + near - b) ** 2 + far_weights @ (s + far) ** 2

        assert mean == pytest.approx(0, abs=1e-9)
        assert variance == pytest.approx(near_weights @ ((near**2 + 1) / width**2) + far_weights.sum(), rel=1e-9)


def test_groups_beyond_the_least_s_change_the_upper_end_by_little() -> None:
    """E[b⁻] − h(s) = (LEAST_S − s) E[1 − g] < 0.0024 width for all widths, which are at most 0.6433."""
    assert (z_of(0.999999) ** 2 / (3 * MANY)) ** (1 / 3) < 0.6433
    largest = 0.0
    for width in (0.01, 0.1, 0.354, 0.643, 0.6433):
        for s in np.arange(-9, LEAST_S, 0.05).tolist():
            t, weights = density(s, 0.0, width)
            largest = max(largest, (LEAST_S - s) * (weights @ (1 - t / width)) / width)
    assert 0.0023 < largest < 0.0024


def test_many_groups_have_a_shorter_interval_than_the_exact_one() -> None:
    """Why there are two methods: the exact one conditions on too much if one of many counts is close to τ*."""
    rows = published(SETTINGS["30 mixed"], TAU_STAR, SIGMA, 200, seed=5)
    normal = [count_total(MECHANISM, row, 0.95, "counts") for row in rows]
    exact = [count_total(MECHANISM, row[: MANY - 1], 0.95, "counts") for row in rows]

    assert np.median([each.high - each.low for each in normal]) < np.median([each.high - each.low for each in exact])


def test_the_estimate_of_many_groups_is_nearly_unbiased() -> None:
    """The sum itself is too large by 0.8 σ per group at τ*."""
    true = SETTINGS["30 at"]
    estimates = np.array([each.estimate for each in totals(true, 0.95, 4000)])
    sums = published(true, TAU_STAR, SIGMA, 4000, seed=11).sum(axis=1)

    error = estimates.std() / math.sqrt(4000)
    assert abs(estimates.mean() - true.sum()) < 5 * error
    assert sums.mean() - true.sum() > 20 * SIGMA


def test_no_groups_have_the_total_zero() -> None:
    assert count_total(MECHANISM, np.empty(0), 0.95, "counts") == Total(0, 0, 0, 0, "exact")


def test_a_total_is_at_least_the_least_count_of_each_group() -> None:
    mechanism = Mechanism(c_u=10, tau=7, tau_star=TAU_STAR, sigma=SIGMA)
    for groups in (3, 40):
        found = count_total(mechanism, np.full(groups, TAU_STAR), 0.999, "counts")
        assert found.low == 7 * groups <= found.estimate <= found.high


@pytest.mark.parametrize("groups", [1, 5, 400])
def test_the_total_of_values_has_the_error_of_independent_noise(groups: int) -> None:
    mechanism = Mechanism(c_u=10, tau=1, tau_star=TAU_STAR, sigma=SIGMA, aggregates=COLUMNS)
    values = np.linspace(-5, 50, groups)

    found = value_total(mechanism, 1, values, 0.95, "values/b")

    assert found.estimate == pytest.approx(values.sum())
    assert found.standard_error == 3 * math.sqrt(groups)
    assert found.high - found.estimate == pytest.approx(-float(ndtri(0.025)) * 3 * math.sqrt(groups), rel=1e-4)


def test_a_total_beyond_all_doubles_is_refused() -> None:
    mechanism = Mechanism(c_u=10, tau=1, tau_star=TAU_STAR, sigma=SIGMA, aggregates=COLUMNS)
    for groups in (3, 40):
        with pytest.raises(InvalidParameter, match="range of doubles"):
            count_total(MECHANISM, np.full(groups, 1e308), 0.95, "counts")
        with pytest.raises(InvalidParameter, match="range of doubles"):
            value_total(mechanism, 0, np.full(groups, -1e308), 0.95, "values/a")


ROUNDED = {
    "30 at": [0.0] * 30,
    "40, some near": [-1.0] * 8 + [2.5] * 8 + [20.0] * 24,
    "300 from −2 to +15": np.linspace(-2, 15, 300).tolist(),
    "300 far": [12.0] * 300,
    "29 above": [2.0] * 29,
}


@pytest.mark.parametrize("sigma", [0.4, 1.0, 5.0])
@pytest.mark.parametrize("name", ROUNDED)
def test_totals_of_rounded_counts_are_covered(name: str, sigma: float) -> None:
    mechanism = Mechanism(c_u=10, tau=1, tau_star=1.3 + 6 * sigma, sigma=sigma)
    true = np.maximum(np.rint(mechanism.tau_star + sigma * np.array(ROUNDED[name])), 1)
    rows = np.rint(published(true, mechanism.tau_star, sigma, 1000, seed=9))
    found = [count_total(mechanism, row, 0.95, "counts", 1.0) for row in rows]

    assert hits(found, float(true.sum())) >= fewest_covered(0.95, 1000)


def test_rounding_must_not_be_forgotten() -> None:
    """The test above would find it: far above τ* it adds a twelfth to the variance, and near τ* it moves the widths."""
    mechanism = Mechanism(c_u=10, tau=1, tau_star=1.3 + 6, sigma=0.3)
    true = np.full(300, 40.0)
    rows = np.rint(published(true, mechanism.tau_star, 0.3, 1000, seed=9) + 0.4)
    found = [count_total(mechanism, row, 0.95, "counts") for row in rows]

    assert hits(found, float(true.sum())) < fewest_covered(0.95, 1000)


@pytest.mark.parametrize("groups", [20, 400])
def test_rounding_of_many_values_adds_a_twelfth_to_their_variance(groups: int) -> None:
    """Of few, or of values with less noise than a unit, half a unit each."""
    mechanism = Mechanism(c_u=10, tau=1, tau_star=TAU_STAR, sigma=SIGMA, aggregates=COLUMNS)
    z = -float(ndtri(0.025))
    for place, unit in ((0, 1.0), (1, 3.0), (0, 2.5)):
        deviation = (2.0, 3.0)[place]
        found = value_total(mechanism, place, np.arange(groups) * unit, 0.95, "values/a", unit)
        many = groups >= MANY and unit <= deviation
        expected = z * math.sqrt(groups * (deviation**2 + unit**2 / 12))
        if not many:
            expected = z * deviation * math.sqrt(groups) + groups * unit / 2

        assert found.high - found.estimate == pytest.approx(expected, rel=1e-5)
        assert found.method == ("normal" if many else "exact")


@given(st.floats(2, 1e4), st.floats(0.5, 200), st.floats(0.01, 5), st.sampled_from([0.01, 0.5, 1.0]))
@examples(60)
def test_no_rounded_count_is_on_both_sides_of_a_width(tau_star: float, sigma: float, width: float, unit: float) -> None:
    mechanism = Mechanism(c_u=10, tau=1, tau_star=tau_star, sigma=sigma)
    found = _boundary(mechanism, width, unit)
    end = (tau_star + found * sigma) / unit

    assert width <= found * (1 + 1e-9) <= (width + unit / sigma) * (1 + 1e-6)
    assert abs(end - math.floor(end) - 0.5) < 1e-6
    assert _boundary(mechanism, width, 0.0) == width
