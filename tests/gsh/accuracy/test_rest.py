"""The rest of a parent: it is covered, wherever the children are, and is plain arithmetic far above the thresholds."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsh.accounting.mechanism import Aggregates, AnyMechanism, Mechanism, PlainGaussian
from gsh.accounting.sensitivity import Box
from gsh.accuracy.intervals import count_intervals, z_of
from gsh.accuracy.rest import _distance, count_rest, value_rest
from gsh.accuracy.totals import MANY
from gsh.accuracy.truncation import Doubles
from tests.gsh.accounting.draws import examples
from tests.gsh.accuracy.draws import fewest_covered, published
from tests.reference.precision import mp

pytestmark = pytest.mark.slow

SIGMA, TAU_STAR = 84.5, 495.0
CHILDREN = Mechanism(c_u=10, tau=1, tau_star=TAU_STAR, sigma=SIGMA)
PUBLIC = PlainGaussian(c_u=1, sigma=SIGMA)
PARENT = Mechanism(c_u=1, tau=1, tau_star=300, sigma=60)
NEAR = TAU_STAR - 2 * SIGMA
FAR = TAU_STAR + 10 * SIGMA


def drawn(parent: AnyMechanism, true: float, size: int, seed: int) -> Doubles:
    if isinstance(parent, Mechanism):
        return published(np.array([true]), parent.tau_star, parent.sigma, size, seed)[:, 0]
    return true + parent.sigma * np.random.default_rng(seed).standard_normal(size)


SETTINGS = {
    "1 near": (PUBLIC, 5000.0, [NEAR]),
    "5 near": (PUBLIC, 5000.0, [NEAR] * 5),
    "5 at": (PUBLIC, 5000.0, [TAU_STAR] * 5),
    "5, half far": (PUBLIC, 9000.0, [TAU_STAR] * 2 + [FAR] * 3),
    "29 far": (PUBLIC, 99000.0, [FAR] * 29),
    "30 at": (PUBLIC, 5000.0, [TAU_STAR] * 30),
    "30, half at": (PUBLIC, 99000.0, [TAU_STAR] * 15 + [FAR] * 15),
    "1000 far": (PUBLIC, 99000.0, [FAR] * 1000),
    "parent near its threshold, 3 near": (PARENT, 280.0, [NEAR] * 3),
    "parent near its threshold, 3 far": (PARENT, 320.0, [FAR] * 3),
    "parent near its threshold, 40 at": (PARENT, 280.0, [TAU_STAR] * 40),
}


@pytest.mark.parametrize("level", [0.9, 0.99])
@pytest.mark.parametrize("name", SETTINGS)
def test_the_rest_is_covered(name: str, level: float) -> None:
    parent, true, children = SETTINGS[name]
    size, counts = 400, np.array(children)
    parents = drawn(parent, true, size, seed=5)
    rows = published(counts, TAU_STAR, SIGMA, size, seed=6)
    found = [count_rest(parent, CHILDREN, count, row, level) for count, row in zip(parents, rows, strict=True)]
    truth = true - counts.sum()

    assert sum(each.low <= truth <= each.high for each in found) >= fewest_covered(level, size)
    assert {each.method for each in found} == {"exact" if len(children) < MANY else "normal"}
    assert all(each.low <= each.estimate <= each.high for each in found)


@pytest.mark.parametrize("name", ["5 near", "5 at", "30 at", "parent near its threshold, 3 near"])
def test_a_plain_difference_is_not_covered(name: str) -> None:
    """The test above would find it: D ± 1.96 ν forgets that noise has raised what was published."""
    parent, true, children = SETTINGS[name]
    size, counts = 400, np.array(children)
    difference = drawn(parent, true, size, seed=5) - published(counts, TAU_STAR, SIGMA, size, seed=6).sum(axis=1)
    reach = z_of(0.9) * math.hypot(parent.sigma, SIGMA * math.sqrt(len(children)))

    assert (np.abs(difference - (true - counts.sum())) <= reach).sum() < fewest_covered(0.9, size)


@pytest.mark.parametrize("parent", [PUBLIC, PARENT])
@pytest.mark.parametrize("groups", [1, 7, MANY, 200])
def test_far_above_the_thresholds_it_is_the_difference_with_its_normal_error(parent: AnyMechanism, groups: int) -> None:
    counts = np.linspace(FAR, 2 * FAR, groups) + 30 * SIGMA
    error = math.hypot(parent.sigma, SIGMA * math.sqrt(groups))
    found = count_rest(parent, CHILDREN, 1e6, counts, 0.95)
    alpha = 0.05 if groups >= MANY else 0.9 * 0.05

    assert found.estimate == pytest.approx(1e6 - counts.sum(), rel=1e-9)
    assert found.high - found.low == pytest.approx(2 * z_of(1 - alpha) * error, rel=1e-4)
    assert found.standard_error == pytest.approx(error, rel=1e-5)


def test_without_children_it_is_the_parent() -> None:
    alone = count_intervals(PARENT, np.array([333.0]), 0.95)
    found = count_rest(PARENT, CHILDREN, 333.0, np.array([]), 0.95)

    assert (found.low, found.high) == (alone.low[0], alone.high[0])


def test_public_children_are_a_plain_difference() -> None:
    for groups in (3, 50):
        found = count_rest(PUBLIC, PUBLIC, 1000.0, np.full(groups, 10.0), 0.95)
        reach = z_of(0.95) * SIGMA * math.sqrt(1 + groups)

        assert found.estimate == 1000 - 10 * groups
        assert found.high - found.estimate == pytest.approx(reach, rel=1e-5)


@examples(60)
@given(st.floats(0.01, 30), st.floats(0.01, 30), st.sampled_from([1e-6, 0.025, 0.5, 0.975, 1 - 1e-6]))
def test_the_distance_solves_the_equation(t: float, t_p: float, q: float) -> None:
    """[Φ̄(x) − Φ̄(x + t_p)] / [Φ̄(x − t) − Φ̄(x + t_p)] = q, in 40 digits."""
    x = mp.mpf(_distance(t, t_p, math.log(q)))

    def tail(at: object) -> object:
        return mp.erfc(at / mp.sqrt(2)) / 2

    both = tail(x + t_p)
    assert float((tail(x) - both) / (tail(x - t) - both)) == pytest.approx(q, rel=1e-6, abs=1e-12)


def test_a_far_threshold_of_the_parent_changes_nothing() -> None:
    for t in (0.1, 1.0, 20.0):
        for q in (0.025, 0.975):
            assert _distance(t, 99.0, math.log(q)) == pytest.approx(_distance(t, math.inf, math.log(q)), rel=1e-8)


def test_values_are_normal_whatever_was_published() -> None:
    columns = Aggregates(names=("likes",), covariance=((9.0,),), sensitivity=Box((0.0,), (1.0,)))
    parent = PlainGaussian(c_u=1, sigma=2, aggregates=columns)
    children = Mechanism(c_u=3, tau_star=20, sigma=4, aggregates=columns)
    found = value_rest(parent, children, (0, 0), 100.0, np.array([30.0, 20.0]), 0.95)

    assert found.estimate == 50
    assert found.standard_error == pytest.approx(3 * math.sqrt(3))
    assert found.high - found.low == pytest.approx(2 * z_of(0.95) * found.standard_error, rel=1e-5)


@pytest.mark.parametrize("name", ["5 at", "30, half at", "parent near its threshold, 3 near"])
def test_the_rest_of_rounded_numbers_is_covered(name: str) -> None:
    parent, true, children = SETTINGS[name]
    counts = np.array(children)
    parents = np.rint(drawn(parent, true, 400, seed=5))
    rows = np.rint(published(counts, TAU_STAR, SIGMA, 400, seed=6))
    found = [count_rest(parent, CHILDREN, count, row, 0.9, 1.0) for count, row in zip(parents, rows, strict=True)]

    assert sum(each.low <= true - counts.sum() <= each.high for each in found) >= fewest_covered(0.9, 400)


@pytest.mark.parametrize("children", [[700.0, 900.0], np.linspace(600, 3000, 40).tolist(), []])
@pytest.mark.parametrize("parent", [PUBLIC, PARENT])
@pytest.mark.parametrize("table", [CHILDREN, PUBLIC])
def test_rounded_numbers_have_a_wider_rest(parent: AnyMechanism, table: AnyMechanism, children: list[float]) -> None:
    exact, rounded = (count_rest(parent, table, 9000.0, np.array(children), 0.9, unit) for unit in (0.0, 1.0))

    assert rounded.low < exact.low
    assert rounded.high > exact.high
