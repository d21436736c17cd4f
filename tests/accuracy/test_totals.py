"""Totals over published groups: they cover, by either method, wherever the groups are."""

import math

import numpy as np
import pytest
from scipy.special import ndtri

from gsh.accounting.errors import InvalidParameter
from gsh.accounting.mechanism import Aggregates, Mechanism
from gsh.accounting.sensitivity import Box
from gsh.accuracy.intervals import count_intervals
from gsh.accuracy.totals import MANY, Total, count_total, value_total
from gsh.accuracy.truncation import Doubles
from tests.accuracy.draws import fewest_covered, published

SIGMA, TAU_STAR = 84.5, 495.0
MECHANISM = Mechanism(10, 1, TAU_STAR, SIGMA)
COLUMNS = Aggregates(("a", "b"), ((4.0, 1.0), (1.0, 9.0)), Box((0.0, 0.0), (1.0, 1.0)))
FAR = TAU_STAR + 30 * SIGMA


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
    size = 1500

    assert hits(totals(true, 0.95, size), float(true.sum())) >= fewest_covered(0.95, size)


@pytest.mark.parametrize("name", ["3 near", "30 at", "30 mixed", "1000 mixed"])
def test_a_sum_of_published_counts_is_not_covered(name: str) -> None:
    """The test above would find it: Σ y ± 1.96 σ √k forgets that noise has raised the counts near τ*."""
    true = SETTINGS[name]
    sums = published(true, TAU_STAR, SIGMA, 4000, seed=11).sum(axis=1)
    reach = -float(ndtri(0.025)) * SIGMA * math.sqrt(len(true))

    assert (np.abs(sums - true.sum()) <= reach).sum() < fewest_covered(0.95, 4000)


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
    assert found.high - found.low == pytest.approx(2 * -float(ndtri(0.025)) * SIGMA * root, rel=1e-4)


def test_many_groups_have_a_shorter_interval_than_the_exact_one() -> None:
    """Why there are two methods: the exact one conditions on too much if one of many counts is close to τ*."""
    rows = published(SETTINGS["30 mixed"], TAU_STAR, SIGMA, 400, seed=5)
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
    mechanism = Mechanism(10, 7, TAU_STAR, SIGMA)
    for groups in (3, 40):
        found = count_total(mechanism, np.full(groups, TAU_STAR), 0.999, "counts")
        assert found.low == 7 * groups <= found.estimate <= found.high


@pytest.mark.parametrize("groups", [1, 5, 400])
def test_the_total_of_values_has_the_error_of_independent_noise(groups: int) -> None:
    mechanism = Mechanism(10, 1, TAU_STAR, SIGMA, aggregates=COLUMNS)
    values = np.linspace(-5, 50, groups)

    found = value_total(mechanism, 1, values, 0.95, "values/b")

    assert found.estimate == pytest.approx(values.sum())
    assert found.standard_error == 3 * math.sqrt(groups)
    assert found.high - found.estimate == pytest.approx(-float(ndtri(0.025)) * 3 * math.sqrt(groups), rel=1e-4)


def test_a_total_beyond_all_doubles_is_refused() -> None:
    mechanism = Mechanism(10, 1, TAU_STAR, SIGMA, aggregates=COLUMNS)
    for groups in (3, 40):
        with pytest.raises(InvalidParameter, match="range of doubles"):
            count_total(MECHANISM, np.full(groups, 1e308), 0.95, "counts")
        with pytest.raises(InvalidParameter, match="range of doubles"):
            value_total(mechanism, 0, np.full(groups, -1e308), 0.95, "values/a")
