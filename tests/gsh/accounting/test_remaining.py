"""Calibration to the remaining budget: the answer fits, and the next smaller double does not."""

from dataclasses import replace

import pytest

from gsh.accounting import case_study
from gsh.accounting.accountings import EXACT
from gsh.accounting.aggregates import RelativeAggregates
from gsh.accounting.budget_limits import Limit
from gsh.accounting.calibration.draft import Draft, Target
from gsh.accounting.calibration.remaining import calibrate_remaining
from gsh.accounting.calibration.target import calibrate
from gsh.accounting.composition import NOTHING, Spent, cost_of
from gsh.accounting.mechanism import Mechanism
from gsh.accounting.numerics.doubles import next_below
from gsh.accounting.sensitivity import Box
from gsh.errors import InfeasibleTarget, InvalidParameter

URLS = case_study.PRINTED
OPEN = Limit(1.0, 1e-4)
LIMIT = OPEN.settled_by(cost_of(URLS))
SPENT = NOTHING.plus(URLS, cost_of(URLS), 2)
BOTH = case_study.OUTLINE


def fits_after(spent: Spent, mechanism: Mechanism, releases: int) -> bool:
    """The first release fixes the caps of an open limit."""
    cost = cost_of(mechanism)
    limit = LIMIT if spent.releases else OPEN
    return limit.how_many_fit(spent, mechanism, cost) >= releases


@pytest.mark.parametrize("spent", [NOTHING, SPENT], ids=["nothing spent", "two spent"])
@pytest.mark.parametrize("releases", [1, 4])
@pytest.mark.parametrize("name", ["sigma and tau_star", "tau_star", "sigma", "c_u"])
def test_the_answer_fits_and_the_next_double_does_not(spent: Spent, releases: int, name: str) -> None:
    draft = {
        "sigma and tau_star": BOTH,
        "tau_star": replace(BOTH, sigma=3000.0),
        "sigma": replace(BOTH, tau_star=20_000.0),
        "c_u": Draft(None, 1, 20_000.0, 3000.0),
    }[name]

    found = calibrate_remaining(spent, draft, releases, LIMIT if spent.releases else OPEN)

    mechanism = found.mechanism
    assert found.solved == draft.missing
    assert found.delta <= OPEN.delta
    assert fits_after(spent, mechanism, releases)
    if "tau_star" in draft.missing:
        assert not fits_after(spent, replace(mechanism, tau_star=next_below(mechanism.tau_star)), releases)
    elif name == "sigma":
        assert not fits_after(spent, replace(mechanism, sigma=next_below(mechanism.sigma)), releases)
    else:
        assert not fits_after(spent, replace(mechanism, c_u=mechanism.c_u + 1), releases)


def test_a_first_and_only_release_is_calibrated_exactly() -> None:
    assert calibrate_remaining(NOTHING, BOTH, 1, OPEN).mechanism == calibrate(EXACT, BOTH, Target(1.0, 1e-4)).mechanism


def test_once_the_caps_are_fixed_sigma_and_tau_star_are_both_the_smallest() -> None:
    best = calibrate_remaining(SPENT, BOTH, 4, LIMIT).mechanism

    for less in (replace(best, sigma=next_below(best.sigma)), replace(best, tau_star=next_below(best.tau_star))):
        assert not fits_after(SPENT, less, 4)


@pytest.mark.parametrize("gap", [30.0, 26.1])
@pytest.mark.parametrize("releases", [2, 5])
def test_a_threshold_just_above_the_smallest_has_a_sigma(gap: float, releases: int) -> None:
    """Only few σ work there, and a coarse search would miss them."""
    limit, draft = Limit(1.0, 1e-5), Draft(1, 1, None, None)
    least = calibrate_remaining(NOTHING, draft, releases, limit).mechanism.tau_star

    for tau_star in (least * (1 + 1e-7), least * gap / 26.0):
        found = calibrate_remaining(NOTHING, replace(draft, tau_star=tau_star), releases, limit).mechanism
        assert limit.how_many_fit(NOTHING, found, cost_of(found)) >= releases


def test_with_both_open_no_other_sigma_has_a_much_smaller_threshold() -> None:
    best = calibrate_remaining(NOTHING, BOTH, 4, OPEN).mechanism
    others = [best.sigma * (1 + step / 100) for step in (-1, -0.5, 0.5, 1, 5, 20)]
    thresholds = []
    for sigma in others:
        try:
            at_sigma = calibrate_remaining(NOTHING, replace(BOTH, sigma=sigma), 4, OPEN)
        except InfeasibleTarget:
            continue
        thresholds.append(at_sigma.mechanism.tau_star)

    assert len(thresholds) >= 4
    assert best.tau_star <= min(thresholds) * (1 + 1e-6)


def test_columns_whose_noise_scales_with_sigma_fit_too() -> None:
    columns = RelativeAggregates(names=("likes",), relative_covariance=((0.25,),), sensitivity=Box((0.0,), (1.0,)))
    mechanism = calibrate_remaining(SPENT, replace(BOTH, columns=columns), 2, LIMIT).mechanism

    assert mechanism.aggregates is not None
    assert fits_after(SPENT, mechanism, 2)


@pytest.mark.parametrize(
    ("spent", "draft", "pointer"),
    [
        (NOTHING.plus(URLS, cost_of(URLS), 50), BOTH, ""),
        (SPENT, replace(BOTH, sigma=10.0), "sigma"),
        (SPENT, replace(BOTH, tau_star=5000.0), "tau_star"),
        (SPENT, Draft(None, 1, 2.0, 10.0), "tau_star"),
        (SPENT, replace(BOTH, columns=10.0), "c_u"),
    ],
    ids=["all spent", "too little noise", "too low a threshold", "not even C_u = 1", "the columns alone"],
)
def test_a_refusal_names_the_parameter_to_change(spent: Spent, draft: Draft, pointer: str) -> None:
    with pytest.raises(InfeasibleTarget) as error:
        calibrate_remaining(spent, draft, 4, LIMIT)

    assert error.value.pointer == pointer


def test_a_complete_draft_is_refused() -> None:
    with pytest.raises(InvalidParameter):
        calibrate_remaining(SPENT, replace(BOTH, tau_star=20_000.0, sigma=3000.0), 1, LIMIT)
