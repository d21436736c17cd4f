"""The mechanism applied to arrays of groups: the groups kept, their order, and the types of their numbers."""

from typing import Any

import numpy as np
import pytest

from gsh.accounting.mechanism import Aggregates, Mechanism
from gsh.accounting.sensitivity import Box
from gsh.histogram import apply
from gsh.histogram.apply import apply_mechanism
from gsh.histogram.noise import Noise
from tests.gsh.histogram.recorded import Recorded

COLUMNS = Aggregates(names=("a", "b"), covariance=((4.0, 1.0), (1.0, 2.0**40)), sensitivity=Box((0.0, 0.0), (1.0, 1.0)))
MECHANISM = Mechanism(c_u=3, tau=5, tau_star=40.0, sigma=10.0, aggregates=COLUMNS)


def table(groups: int) -> tuple[Any, list[Any], Any]:
    draw = np.random.default_rng(11)
    return (
        draw.integers(0, 80, groups),
        [draw.normal(size=groups), draw.integers(-9, 9, groups) * 1.0],
        draw.permutation(groups),
    )


def test_rows_are_visited_in_order_and_only_kept_ones_are_returned() -> None:
    """The same bits drive the noise of the same rows, directly and through the mechanism."""
    counts, values, order = table(5000)
    noise = Noise(MECHANISM)
    direct = noise.add(counts[order], np.column_stack(values)[order], Recorded("table"))

    released = apply_mechanism(noise, counts, values, order, Recorded("table"))

    assert released.rows.tolist() == order[direct.kept].tolist()
    assert released.counts.tolist() == direct.counts[direct.kept].tolist()
    assert [column.tolist() for column in released.values] == direct.values[direct.kept].T.tolist()
    assert 1000 < len(released.rows) < 4000
    assert (counts[released.rows] >= 5).all()


def test_the_size_of_a_block_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row is visited once, at any size of a block."""
    counts = np.full(1000, 10**6)
    order = np.arange(1000)
    monkeypatch.setattr(apply, "_BLOCK", 7)

    released = apply_mechanism(
        Noise(Mechanism(c_u=1, tau=1, tau_star=40.0, sigma=10.0)), counts, [], order, Recorded("blocks")
    )

    assert released.rows.tolist() == order.tolist()


def test_no_groups_release_nothing() -> None:
    counts, values, order = table(0)
    released = apply_mechanism(Noise(MECHANISM), counts, values, order, Recorded("nothing"))

    assert (len(released.rows), len(released.counts), [len(column) for column in released.values]) == (0, 0, [0, 0])


@pytest.mark.parametrize(
    ("sigma", "kind"), [(2.0**20, "int64"), (1.5 * 2**20, "int64"), (2.0**21, "float64"), (10.0, "float64")]
)
def test_numbers_are_integers_if_the_grid_is_one_and_doubles_otherwise(sigma: float, kind: str) -> None:
    noise = Noise(Mechanism(c_u=1, tau=1, tau_star=10.0**7, sigma=sigma))
    released = apply_mechanism(noise, np.full(50, 2**40), [], np.arange(50), Recorded("type"))

    assert (noise.count_grid == 1) == (kind == "int64")
    assert released.counts.dtype == kind
    assert len(set(released.counts.tolist())) > 40


def test_each_column_has_the_type_of_its_own_grid() -> None:
    counts, values, order = table(500)
    released = apply_mechanism(Noise(MECHANISM), counts, values, order, Recorded("types"))

    assert [column.dtype for column in (released.counts, *released.values)] == ["float64", "float64", "int64"]
