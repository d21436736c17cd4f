"""calibrate and compare say what the core says, bit for bit."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import gsh
from gsh.accounting.accountings import ADD_DELTAS, EXACT
from gsh.accounting.calibration import comparison, target
from gsh.accounting.calibration.draft import Draft, RelativeAggregates, Target
from gsh.accounting.sensitivity import Box
from gsh.library.parameters import columns_of, core_of
from tests.library.examples import COLUMNS, RELATIVE

TARGET = Target(0.349, 1e-5)
CORE_RELATIVE = RelativeAggregates(("likes", "shares"), ((1.0, 0.0), (0.0, 0.25)), Box((0.0, 0.0), (1.0, 1.0)))
DRAFTS: dict[str, tuple[dict[str, Any], Draft]] = {
    "sigma and tau_star": ({"c_u": np.int64(1000), "tau": 10}, Draft(1000, 10, None, None)),
    "tau_star": ({"c_u": 1000, "sigma": np.float32(400)}, Draft(1000, 1, None, 400.0)),
    "sigma": ({"c_u": 1000, "tau_star": 2500}, Draft(1000, 1, 2500.0, None)),
    "c_u": ({"sigma": 2300, "tau_star": 15000}, Draft(None, 1, 15000.0, 2300.0)),
    "mu_0": ({"c_u": 100, "mu_0": 0.001}, Draft(100, 1, None, None, 0.001)),
    "columns": ({"c_u": 10, "aggregates": COLUMNS}, Draft(10, 1, None, None, columns_of(COLUMNS))),
    "relative columns": ({"c_u": 1000, "aggregates": RELATIVE}, Draft(1000, 1, None, None, CORE_RELATIVE)),
}


def assert_same(mechanism: gsh.Mechanism, core: Any) -> None:
    """All numbers, with those of the columns."""
    assert core_of(mechanism) == core
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

    def found_by_core() -> target.Calibration | str:
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
