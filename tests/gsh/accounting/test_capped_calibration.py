"""Calibration of columns with caps of their own: balanced noise, the remaining budget, and refusals."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsh.accounting.accountings import ADD_DELTAS, EXACT, Accounting
from gsh.accounting.aggregates import RelativeAggregates
from gsh.accounting.budget_limits import Limit
from gsh.accounting.calibration.balanced import balanced
from gsh.accounting.calibration.draft import Draft, Target
from gsh.accounting.calibration.remaining import calibrate_remaining
from gsh.accounting.calibration.target import calibrate
from gsh.accounting.column_costs import Capped
from gsh.accounting.composition import NOTHING, Spent, cost_of
from gsh.accounting.mechanism import Aggregates, Mechanism, PlainGaussian
from gsh.accounting.sensitivity import Box
from gsh.errors import InfeasibleTarget
from tests.gsh.accounting.draws import assert_refused, examples, log_uniform

pytestmark = pytest.mark.slow


@examples(60)
@given(
    c_u=st.integers(1, 10**9),
    sizes=st.lists(st.tuples(log_uniform(1e-6, 1e6), st.floats(0, 1), st.floats(0.1, 10)), min_size=1, max_size=4),
    is_weighted=st.booleans(),
)
def test_balanced_noise_gives_each_column_its_share(
    c_u: int, sizes: list[tuple[float, float, float]], is_weighted: bool
) -> None:
    """Column j takes w_j times the count's part of μ², and w_j is 1 unless given."""
    caps = tuple(max(1, int(part * c_u)) for _, part, _ in sizes)
    weights = tuple(weight for _, _, weight in sizes) if is_weighted else None
    reach = tuple(size for size, _, _ in sizes)
    names = tuple("abcd"[: len(sizes)])

    columns = balanced(names, Box(tuple(-size for size in reach), (0.0,) * len(sizes), caps), c_u, weights)

    for j, (size, cap) in enumerate(zip(reach, caps, strict=True)):
        share = cap * size**2 / columns.relative_covariance[j][j]
        assert share == pytest.approx(c_u * (weights[j] if weights else 1), rel=1e-12)


def test_balanced_noise_falls_with_the_root_of_the_cap() -> None:
    """A user views 51 914 URLs and shares 100: 23 times less noise on shares, at the same σ, τ* and privacy."""
    target, names, box = Target(0.349, 1e-5), ("shares",), Box((0.0,), (1.0,))
    capped, uniform = (
        calibrate(EXACT, Draft(51914, 1, None, None, balanced(names, replace(box, groups=groups), 51914)), target)
        for groups in ((100,), None)
    )

    noise, more = (found.mechanism.aggregates.covariance[0][0] ** 0.5 for found in (capped, uniform))  # type: ignore[union-attr]
    assert more / noise == pytest.approx((51914 / 100) ** 0.5, rel=1e-9)
    assert capped.mechanism.sigma == pytest.approx(uniform.mechanism.sigma, rel=1e-12)


# ----- refusals

DIAGONAL = ((1.0, 0.0), (0.0, 1.0))
BOX = Box((0.0, 0.0), (1.0, 1.0))
EARLIER = Mechanism(c_u=5, tau=1, tau_star=900.0, sigma=100.0)


@pytest.mark.parametrize(
    ("groups", "pointer", "bound"),
    [
        ((1,), "groups", "one number per column"),
        ((1, 2, 3), "groups", "one number per column"),
        ((0, 1), "groups/0", "from 1 to c_u"),
        ((1, -1), "groups/1", "from 1 to c_u"),
        ((1, 2.0), "groups/1", "must be an integer"),
        ((1.5, 1), "groups/0", "must be an integer"),
        ((True, 1), "groups/0", "must be an integer"),
        ((1, 10**18 + 1), "groups/1", "from 1 to c_u"),
    ],
)
def test_invalid_caps_are_refused(groups: tuple[int, ...], pointer: str, bound: str) -> None:
    assert_refused(
        lambda: Aggregates(names=("a", "b"), covariance=DIAGONAL, sensitivity=replace(BOX, groups=groups)),
        f"sensitivity/{pointer}",
        bound,
    )


def test_caps_need_a_diagonal_covariance() -> None:
    correlated = ((1.0, 0.5), (0.5, 1.0))
    assert_refused(
        lambda: Aggregates(names=("a", "b"), covariance=correlated, sensitivity=replace(BOX, groups=(1, 1))),
        "sensitivity/groups",
        "unless the covariance is diagonal",
    )


def test_a_cap_above_c_u_is_refused_by_its_place() -> None:
    columns = Aggregates(names=("a", "b"), covariance=DIAGONAL, sensitivity=replace(BOX, groups=(3, 4)))
    relative = RelativeAggregates(
        names=("a", "b"), relative_covariance=DIAGONAL, sensitivity=replace(BOX, groups=(3, 4))
    )

    pointer = "aggregates/sensitivity/groups/1"
    assert_refused(lambda: Mechanism(c_u=3, tau=1, tau_star=9.0, sigma=2.0, aggregates=columns), pointer, "at most c_u")
    assert_refused(lambda: PlainGaussian(c_u=3, sigma=2.0, aggregates=columns), pointer, "at most c_u")
    assert_refused(lambda: Draft(3, 1, None, None, relative).check(), pointer, "at most c_u")
    assert_refused(lambda: balanced(("a", "b"), replace(BOX, groups=(3, 4)), 3), "sensitivity/groups/1", "at most c_u")
    assert_refused(
        lambda: Mechanism(c_u=3, tau=1, tau_star=9.0, sigma=2.0, capped=(Capped(4, 1.0),)),
        "capped/0/groups",
        "to c_u",
    )
    assert_refused(
        lambda: Mechanism(c_u=3, tau=1, tau_star=9.0, sigma=2.0, capped=(Capped(1, -1.0),)),
        "capped/0/mu_0",
        "at least 0",
    )
    both = {"aggregates": columns, "capped": (Capped(1, 1.0),)}
    assert_refused(
        lambda: Mechanism(c_u=9, tau=1, tau_star=9.0, sigma=2.0, **both), "capped", "if aggregates are given"
    )


def test_balanced_noise_refuses_what_it_cannot_balance() -> None:
    names = ("a", "b")
    assert_refused(lambda: balanced(names, replace(BOX, groups=(1, None)), None), "c_u", "must be given")
    assert_refused(lambda: balanced(names, BOX, 3, (1.0,)), "weights", "one number per column")
    assert_refused(lambda: balanced(names, BOX, 3, (1.0, 0.0)), "weights/1", "greater than 0")
    nothing = Box((0.0, 0.0), (1.0, 0.0))
    assert_refused(lambda: balanced(names, nothing, 3), "sensitivity/upper/1", "must allow a change")
    tiny = Box((0.0, 0.0), (1.0, 1e-200))
    assert_refused(lambda: balanced(names, tiny, 3), "sensitivity/upper/1", "whose square is a double")
    assert balanced(names, BOX, None).relative_covariance == DIAGONAL


@pytest.mark.parametrize("accounting", [EXACT, ADD_DELTAS], ids=lambda accounting: accounting.name)
def test_a_cap_above_the_largest_c_u_is_told_it(accounting: Accounting) -> None:
    """C_u is solved for, and no C_u as large as the cap meets the target."""
    target, capped = Target(1.0, 1e-6), (Capped(10**6, 1e-4),)
    with pytest.raises(InfeasibleTarget) as error:
        calibrate(accounting, Draft(None, 1, 1400.0, 200.0, 0.0, capped), target)

    most = int(error.value.detail.split(":")[0].rpartition(" ")[2])
    assert error.value.pointer == "capped"
    within = Draft(None, 1, 1400.0, 200.0, 0.0, (Capped(most, 1e-4),))
    assert calibrate(accounting, within, target).mechanism.c_u == most


def test_columns_that_alone_exceed_the_target_are_told_how_much_more_noise_they_need() -> None:
    columns = Aggregates(names=("a", "b"), covariance=DIAGONAL, sensitivity=replace(BOX, groups=(1, 2)))
    target = Target(1.0, 1e-6)
    with pytest.raises(InfeasibleTarget) as error:
        calibrate(EXACT, Draft(10, 1, None, None, columns), target)

    factor = float(error.value.detail.partition("more than ")[2].split(" ")[0])
    variance = (1.01 * factor) ** 2
    enough = Aggregates(
        names=("a", "b"), covariance=((variance, 0.0), (0.0, variance)), sensitivity=columns.sensitivity
    )
    assert error.value.pointer == "aggregates"
    assert calibrate(EXACT, Draft(10, 1, None, None, enough), target).point.delta <= 1e-6


@pytest.mark.parametrize("spent", [NOTHING, NOTHING.plus(EARLIER, cost_of(EARLIER))], ids=["new", "used"])
@pytest.mark.parametrize("missing", [("sigma", "tau_star"), ("tau_star",), ("sigma",), ("c_u",)], ids="+".join)
def test_the_remaining_budget_is_calibrated_with_caps(spent: Spent, missing: tuple[str, ...]) -> None:
    """Four equal releases fit, and they use nearly all that remains."""
    columns = balanced(("a", "b"), replace(BOX, groups=(2, None)), 40)
    whole = Draft(40, 1, 2600.0, 400.0, columns)
    limit = Limit(2.0, 1e-5, cost_of(EARLIER))
    if missing == ("c_u",):
        whole = whole.with_sigma(400.0)

    found = calibrate_remaining(spent, replace(whole, **dict.fromkeys(missing)), 4, limit).mechanism

    after = spent.plus(found, cost_of(found), 4)
    assert limit.admits_several(after)
    assert not limit.admits_several(after.plus(found, cost_of(found), 1))
    assert found.costs.capped
