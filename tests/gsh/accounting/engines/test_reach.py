"""Engines that count rows: the bound holds for every way in which a user can spread rows over groups."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import gsh
from gsh.accounting.engines.curves import reach_of
from gsh.errors import InvalidParameter

FAR = np.arange(-90, 91)


def spreads(groups: int, l_inf: int, l1: int, square: float) -> list[tuple[int, ...]]:
    """All numbers of rows of a user in groups."""
    return [
        rows
        for size in range(1, groups + 1)
        for rows in itertools.combinations_with_replacement(range(1, l_inf + 1), size)
        if sum(rows) <= l1 and sum(each**2 for each in rows) <= square
    ]


def geometric(scale: float) -> np.ndarray:
    weights = np.exp(-np.abs(FAR) / scale)
    return weights / weights.sum()


def true_delta(scale: float, alone: tuple[int, ...], far: tuple[int, ...], threshold: int, epsilon: float) -> float:
    """With and without the user, over all outputs: rows in groups of the user alone, and in groups of thousands."""
    noise = geometric(scale)
    with_user, without = np.array([1.0]), np.array([1.0])
    for rows in far:
        with_user = np.outer(with_user, np.roll(noise, rows)).ravel()
        without = np.outer(without, noise).ravel()
    hidden = math.prod(float(noise[FAR + rows < threshold].sum()) for rows in alone)
    added = 1 - hidden + np.maximum(hidden * with_user - math.exp(epsilon) * without, 0).sum()
    removed = np.maximum(without - math.exp(epsilon) * hidden * with_user, 0).sum()
    return float(max(added, removed))


@pytest.mark.parametrize("bounds", [{"l1": 3}, {"l_inf": 2}, {"l2": 2.3}, {"l_inf": 2, "l1": 3}])
@pytest.mark.parametrize(("scale", "threshold", "epsilon"), [(0.8, 5, 1.0), (3.0, 12, 0.4), (2.0, 3, 1.6)])
def test_the_bound_holds_for_every_spread_of_the_rows(
    bounds: dict[str, Any], scale: float, threshold: int, epsilon: float
) -> None:
    """With the largest l1 rows in one group the threshold is most likely passed: it is not the sum of single rows."""
    found = gsh.engine(noise="geometric", scale=scale, c_u=2, threshold=threshold, epsilon=epsilon, **bounds)
    reach = reach_of(2, **bounds)
    worst = 0.0
    for rows in spreads(2, reach.l_inf, reach.l1, float(reach.square)):
        for cut in range(len(rows) + 1):
            for alone in set(itertools.combinations(rows, cut)):
                rest = list(rows)
                for each in alone:
                    rest.remove(each)
                worst = max(worst, true_delta(scale, alone, tuple(rest), threshold, epsilon))

    assert worst <= found.delta * (1 + 1e-9)
    assert found.delta <= 3 * worst  # and says something
    assert not found.is_exact


def test_gaussian_noise_costs_the_norm_of_the_rows() -> None:
    found = gsh.engine(noise="gaussian", scale=10, c_u=100, l2=5, threshold=500, epsilon=1)
    same = gsh.exact(gsh.Mechanism(c_u=25, tau=1, tau_star=500, sigma=10), epsilon=1)

    assert found.delta_noise == pytest.approx(same.delta_gaussian, rel=1e-9)  # type: ignore[union-attr]
    assert found.mechanism is None


def test_with_one_row_in_a_group_the_other_bounds_limit_the_groups() -> None:
    few = gsh.engine(noise="laplace", scale=10, c_u=4, threshold=150, epsilon=0.3)
    for bounds in ({"l1": 4}, {"l2": 2.1}):
        found = gsh.engine(noise="laplace", scale=10, c_u=50, l_inf=1, threshold=150, epsilon=0.3, **bounds)  # type: ignore[arg-type]

        assert found.delta == few.delta
        assert found.is_exact


def test_tumult_is_charged_for_rows_in_one_group_too() -> None:
    found = gsh.engine(preset="tumult", scale=2, c_u=6, threshold=40, epsilon=3)

    assert found.delta < found.claims[0].delta
    assert found.delta >= 1.0 * math.exp(-(40 - 6) / 2) / (1 + math.exp(-1 / 2))  # six rows in one group


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [({"l_inf": 0}, "l_inf"), ({"l_inf": 1001}, "l_inf"), ({"l1": 0}, "l1"), ({"l2": 0.5}, "l2")],
)
def test_bounds_on_rows_are_checked(changes: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        gsh.engine(noise="laplace", scale=10, c_u=5, threshold=150, epsilon=0.5, **changes)

    assert caught.value.pointer == pointer


def test_discrete_gaussian_noise_has_no_bound_for_several_rows() -> None:
    with pytest.raises(InvalidParameter, match="discrete Gaussian"):
        gsh.engine(noise="discrete-gaussian", scale=10, c_u=5, l_inf=2, threshold=150, epsilon=0.5)
