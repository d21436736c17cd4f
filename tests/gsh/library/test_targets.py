"""calibrate and compare say what the core says, bit for bit."""

import copy
import dataclasses
import math
import pickle
from typing import Any

import numpy as np
import pytest

import gsh
from gsh.accounting.accountings import ADD_DELTAS, EXACT
from gsh.accounting.aggregates import RelativeAggregates
from gsh.accounting.calibration import comparison, target
from gsh.accounting.calibration.draft import Draft, Target
from gsh.accounting.sensitivity import Box
from tests.gsh.library.examples import COLUMNS, RELATIVE

TARGET = Target(0.349, 1e-5)
CORE_RELATIVE = RelativeAggregates(
    names=("likes", "shares"), relative_covariance=((1.0, 0.0), (0.0, 0.25)), sensitivity=Box((0.0, 0.0), (1.0, 1.0))
)
DRAFTS: dict[str, tuple[dict[str, Any], Draft]] = {
    "sigma and tau_star": ({"c_u": np.int64(1000), "tau": 10}, Draft(1000, 10, None, None)),
    "tau_star": ({"c_u": 1000, "sigma": np.float32(400)}, Draft(1000, 1, None, 400.0)),
    "sigma": ({"c_u": 1000, "tau_star": 2500}, Draft(1000, 1, 2500.0, None)),
    "c_u": ({"sigma": 2300, "tau_star": 15000}, Draft(None, 1, 15000.0, 2300.0)),
    "mu_0": ({"c_u": 100, "mu_0": 0.001}, Draft(100, 1, None, None, 0.001)),
    "columns": ({"c_u": 10, "aggregates": COLUMNS}, Draft(10, 1, None, None, COLUMNS)),
    "relative columns": ({"c_u": 1000, "aggregates": RELATIVE}, Draft(1000, 1, None, None, CORE_RELATIVE)),
}


def assert_same(mechanism: gsh.Mechanism, core: Any) -> None:
    """All numbers, with those of the columns."""
    assert mechanism == core
    for name in ("c_u", "tau", "tau_star", "sigma"):
        assert getattr(mechanism, name) == getattr(core, name)
    if mechanism.aggregates is None:
        assert (mechanism.mu_0, core.aggregates) == (core.mu_0, None)
        return
    for name in ("names", "covariance", "sensitivity", "mu_0"):
        assert getattr(mechanism.aggregates, name) == getattr(core.aggregates, name)


@pytest.mark.parametrize("accounting", [EXACT, ADD_DELTAS], ids=lambda accounting: accounting.name)
@pytest.mark.parametrize("name", DRAFTS)
def test_a_calibration_is_the_cores(name: str, accounting: Any) -> None:
    arguments, draft = DRAFTS[name]

    def found_by_core() -> target.CalibratedMechanism | str:
        try:
            return target.calibrate(accounting, draft, TARGET)
        except gsh.InfeasibleTarget as error:
            return str(error)

    def found_by_library() -> gsh.Calibration | str:
        try:
            return gsh.calibrate(**arguments, epsilon=0.349, delta=1e-5, accounting=accounting.name)
        except gsh.InfeasibleTarget as error:
            return str(error)

    expected, found = found_by_core(), found_by_library()

    if isinstance(expected, str) or isinstance(found, str):  # add-deltas has no τ* at the smallest σ
        assert expected == found
        return
    assert_same(found.mechanism, expected.mechanism)
    assert (found.solved, found.largest_sigma) == (expected.solved, expected.largest_sigma)
    assert (found.privacy.delta, found.privacy.accounting) == (expected.point.delta, accounting.name)


def test_most_calibrations_have_a_solution() -> None:
    for arguments, _ in DRAFTS.values():
        assert gsh.calibrate(**arguments, epsilon=0.349, delta=1e-5).privacy.delta <= 1e-5


def test_an_answer_goes_into_the_next_call() -> None:
    """The certified point is what accounting says; with columns, too."""
    found = gsh.calibrate(c_u=1000, epsilon=0.349, delta=1e-5, aggregates=RELATIVE)

    assert isinstance(found.mechanism, gsh.Mechanism)
    assert isinstance(found.mechanism.aggregates, gsh.Aggregates)
    assert gsh.exact(found.mechanism, epsilon=0.349) == found.privacy
    assert found.mechanism == gsh.Mechanism(
        c_u=1000,
        tau_star=found.mechanism.tau_star,
        sigma=found.mechanism.sigma,
        aggregates=gsh.Aggregates(
            names=["likes", "shares"],
            covariance=found.mechanism.aggregates.covariance,
            sensitivity=gsh.box(lower=[0, 0], upper=[1, 1]),
        ),
    )


@pytest.mark.parametrize("name", ["sigma and tau_star", "mu_0", "relative columns"])
def test_a_comparison_is_the_cores(name: str) -> None:
    arguments, draft = DRAFTS[name]
    prices = comparison.compare(draft, TARGET)
    exact = prices["exact"]
    assert exact is not None

    found = gsh.compare(**arguments, epsilon=0.349, delta=1e-5)

    assert list(found) == list(prices) == ["exact", "add-deltas", "half-split", "zcdp"]
    for accounting, price in prices.items():
        ours = found[accounting]
        assert price is not None
        assert ours is not None
        assert_same(ours.mechanism, price.mechanism)
        assert (ours.privacy.delta, ours.least_sigma) == (price.point.delta, price.least_sigma)
        assert ours.sigma_ratio == price.mechanism.sigma / exact.mechanism.sigma
        assert ours.tau_star_ratio == price.mechanism.tau_star / exact.mechanism.tau_star


def test_an_accounting_that_cannot_meet_the_target_has_no_price() -> None:
    found = gsh.compare(c_u=100, mu_0=0.0236, epsilon=1, delta=1e-6)

    assert [accounting for accounting, price in found.items() if price is None] == ["half-split", "zcdp"]
    assert repr(found).count("cannot meet the target") == 2


def test_an_impossible_target_says_what_would_make_it_possible() -> None:
    with pytest.raises(gsh.InfeasibleTarget, match=r"^sigma: must be at least 2228\.48"):
        gsh.calibrate(c_u=51914, sigma=2000, epsilon=0.349, delta=1e-5)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"c_u": 5, "sigma": 1.0, "tau_star": 9.0}, "^sigma: omit sigma, tau_star, both, or c_u: exactly"),
        ({}, "^sigma: omit sigma, tau_star, both, or c_u: exactly the parameters to solve for"),
        ({"c_u": 5, "accounting": "zcdp"}, "^accounting: must be 'exact' or 'add-deltas'"),
        ({"c_u": 5, "accounting": []}, "^accounting: must be 'exact' or 'add-deltas'"),
        ({"c_u": 5, "aggregates": COLUMNS, "mu_0": 0.1}, "^mu_0: must be omitted if aggregates are given"),
        ({"c_u": 5, "aggregates": {"mu_0": 0.1}}, "^aggregates: must be gsh.Aggregates or gsh.RelativeAggregates"),
    ],
)
def test_arguments_that_do_not_fit_together_are_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(gsh.InvalidParameter, match=said):
        gsh.calibrate(**arguments, epsilon=0.349, delta=1e-5)


@pytest.mark.parametrize("name", ["sigma and tau_star", "relative columns"])
def test_results_are_values(name: str) -> None:
    """Equal, hashable; they survive a pickle and a deep copy."""
    arguments, _ = DRAFTS[name]

    for make in (gsh.calibrate, gsh.compare):
        found = make(**arguments, epsilon=0.349, delta=1e-5)
        for copied in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
            assert copied == found
            assert hash(copied) == hash(found)
            assert repr(copied) == repr(found)


def test_a_comparison_has_no_price_of_an_unknown_accounting() -> None:
    with pytest.raises(KeyError, match="exakt"):
        gsh.compare(c_u=10, epsilon=1, delta=1e-6)["exakt"]  # type: ignore[index]


# ----- sums, caps and weights


def test_sums_are_balanced_columns() -> None:
    """Each takes the share of μ² that its weight says, and the caps reduce its noise."""
    found = gsh.calibrate(
        c_u=16,
        epsilon=1,
        delta=1e-6,
        sums={"views": (0, 20), "likes": (-5, 1)},
        caps={"likes": np.int64(4)},
        weights={"views": 4},
    ).mechanism

    assert found.aggregates is not None
    assert found.aggregates.names == ("views", "likes")
    assert found.aggregates.sensitivity == gsh.box(lower=[0, -5], upper=[20, 1], groups=[None, 4])
    noise = [row[j] / found.sigma**2 for j, row in enumerate(found.aggregates.covariance)]
    assert noise == pytest.approx([20**2 / 4, 5**2 * 4 / 16])
    assert gsh.exact(found, epsilon=1).delta <= 1e-6


def test_capped_costs_alone_account_for_the_same() -> None:
    columns = gsh.Aggregates(
        names=["a", "b"], covariance=np.diag([9, 4]), sensitivity=gsh.box(lower=[0, 0], upper=[1, 1], groups=[2, None])
    )
    whole = gsh.Mechanism(c_u=5, tau_star=90, sigma=15, aggregates=columns)
    bare = gsh.Mechanism(c_u=5, tau_star=90, sigma=15, mu_0=columns.mu_0, capped=dict(columns.capped))

    assert gsh.exact(whole, epsilon=[0.01, 1]) == gsh.exact(bare, epsilon=[0.01, 1])
    assert (whole.mu_squared, whole.capped, bare.capped) == (bare.mu_squared, (), columns.capped)
    assert eval(repr(bare), {"Mechanism": gsh.Mechanism}) == bare
    assert dataclasses.replace(bare, sigma=16).capped == bare.capped
    assert pickle.loads(pickle.dumps(bare)) == bare


def test_compare_says_what_the_caps_save() -> None:
    found = gsh.compare(c_u=51914, epsilon=0.349, delta=1e-5, sums={"shares": (0, 1)}, caps={"shares": 100})

    assert found.without_caps is not None
    assert found.without_caps.column_ratios == pytest.approx([(51914 / 100) ** 0.5])
    assert "without caps" in repr(found)
    assert gsh.compare(c_u=51914, epsilon=0.349, delta=1e-5, sums={"shares": (0, 1)}).without_caps is None
    bare = gsh.compare(c_u=1000, epsilon=1, delta=1e-6, capped={10: 0.001})
    assert bare.without_caps is not None
    assert bare.without_caps.sigma_ratio > 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sums": {}}, "^sums: must be a mapping"),
        ({"sums": {"a": (0,)}}, "^sums/a: must be a pair"),
        ({"sums": {"a": (1, 0)}}, "^sums/a: must be at most upper"),
        ({"sums": {"a": (0, math.inf)}}, "^sums: must be finite"),
        ({"sums": {"count": (0, 1)}}, "^sums: must not contain key or count"),
        ({"sums": {"a": (0, 0)}}, "^sums/a: must allow a change"),
        ({"sums": {"a": (0, 1)}, "caps": {"b": 1}}, "^caps: must name only columns of sums"),
        ({"sums": {"a": (0, 1)}, "caps": {"a": 0}}, "^caps/a: must be an integer from 1 to c_u"),
        ({"sums": {"a": (0, 1)}, "caps": {"a": 11}}, "^caps/a: must be at most c_u"),
        ({"sums": {"a": (0, 1)}, "caps": {"a": 1.0}}, "^caps/a: must be an integer, not float"),
        ({"sums": {"a": (0, 1)}, "caps": [1]}, "^caps: must be a mapping"),
        ({"sums": {"a": (0, 1)}, "weights": {"a": 0}}, "^weights/a: must be greater than 0"),
        ({"sums": {"a": (0, 1)}, "mu_0": 0.1}, "^mu_0: must be omitted if sums are given"),
        ({"sums": {"a": (0, 1)}, "capped": {1: 0.1}}, "^capped: must be omitted if sums are given"),
        ({"sums": {"a": (0, 1)}, "aggregates": COLUMNS}, "^aggregates: must be omitted if sums are given"),
        ({"caps": {"a": 1}}, "^caps: must be omitted unless sums are given"),
        ({"weights": {"a": 1}}, "^weights: must be omitted unless sums are given"),
        ({"capped": {11: 0.1}}, "^capped/0/groups: must be an integer from 1 to c_u"),
        ({"capped": {1: -0.1}}, "^capped/0/mu_0: must be at least 0"),
        ({"capped": 3}, "^capped: must be a mapping"),
    ],
)
def test_a_column_that_is_none_is_refused_by_its_name(arguments: dict[str, Any], message: str) -> None:
    for make in (gsh.calibrate, gsh.compare):
        with pytest.raises(gsh.InvalidParameter, match=message):
            make(**{"c_u": 10, "epsilon": 1, "delta": 1e-6} | arguments)
