"""Columns with caps of their own: the worst split, against the literal scan of the theorem in 60 digits."""

import math
from dataclasses import replace
from itertools import pairwise
from statistics import NormalDist

import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from gsh.accounting import frontier, gaussian, theorem
from gsh.accounting.accountings import ADD_DELTAS, EXACT, ZCDP, at_delta, at_epsilon, fits
from gsh.accounting.column_costs import Capped
from gsh.accounting.composition import cost_of
from gsh.accounting.mechanism import Aggregates, Mechanism, PlainGaussian
from gsh.accounting.numerics.balls import at_precision
from gsh.accounting.numerics.doubles import next_below
from gsh.accounting.numerics.search import first_on_grid
from gsh.accounting.sensitivity import Box
from tests import reference
from tests.gsh.accounting.draws import allowed, capped_cases, examples, log_uniform, mechanism_of
from tests.reference import Case

pytestmark = pytest.mark.slow

LEMMA = log_uniform(0.105, 30)
NEAR_ZERO = st.just(0.0) | log_uniform(1e-6, 0.105)

# The worst split is inside a piece, at no end and at no cap. Each was found by a search at ε near 0.
INSIDE = (
    Case(20, 1, 202.1813774117813, 64.96625528627142, 0.0, 0.018638268595211838, ((11, 0.014742323477780775),)),
    Case(20, 1, 277.10489228119553, 85.76151641060768, 0.0, 0.004063146725708982, ((4, 0.03456433506718147),)),
    Case(500, 1, 937.3622011699247, 240.39822380458756, 0.0, 0.016846241716740335, ((20, 0.02294544666316427),)),
    Case(
        500,
        1,
        525.9176634986219,
        149.4905577256323,
        0.0,
        0.003162763293287314,
        ((29, 0.008864511454999252), (35, 0.04181689797087636), (447, 0.01192250031581825)),
    ),
)
LIKES_AND_SHARES = Aggregates(
    names=("likes", "shares"),
    covariance=((4e6, 0.0), (0.0, 400.0)),
    sensitivity=Box((0.0, 0.0), (1.0, 1.0), (None, 100)),
)


@examples(150)
@given(capped_cases(40, LEMMA | NEAR_ZERO))
def test_delta_is_that_of_the_literal_scan_rounded_up(case: Case) -> None:
    lowest, highest = allowed(reference.delta(case))

    assert lowest <= at_epsilon(EXACT, mechanism_of(case), case.epsilon).delta <= highest


@examples(100)
@given(capped_cases(3000, LEMMA | NEAR_ZERO))
def test_the_scan_in_balls_finds_the_same_double(case: Case) -> None:
    """And with the same worst case: only caps, ends, or places that branch and bound visits can be the worst."""
    mechanism = mechanism_of(case)

    point, terms = at_epsilon(EXACT, mechanism, case.epsilon), theorem.evaluate(mechanism, case.epsilon)

    assert point.delta == terms.delta
    ends = max(terms.t1.value, point.delta_gaussian or 0.0)
    assert (point.binding == "mixed") == (terms.delta > ends)


@pytest.mark.parametrize("case", INSIDE, ids=str)
def test_a_worst_split_between_the_caps_is_found(case: Case) -> None:
    """The ends and the caps alone would state too small a δ here."""
    mechanism = mechanism_of(case)
    worst = theorem.evaluate(mechanism, case.epsilon).t2
    corners = (0, *(case.c_u - n for n, _ in case.capped), case.c_u)

    assert worst.a_equal not in corners
    assert at_epsilon(EXACT, mechanism, case.epsilon).delta == worst.value
    at_corners = frontier.Worst(frontier.frontier_of(mechanism), corners)
    assert at_precision(100, lambda: at_corners.largest(case.epsilon)) < worst.value * (1 - 1e-5)


@examples(40)
@given(capped_cases(10**18, NEAR_ZERO))
def test_at_any_c_u_no_split_exceeds_delta(case: Case) -> None:
    """The scan is out of reach, so some splits are tried: even ones, and those next to the worst."""
    mechanism = mechanism_of(case)
    delta = at_epsilon(EXACT, mechanism, case.epsilon).delta
    worst = frontier.worst_of(mechanism, case.epsilon)
    tried = {k * (case.c_u - 1) // 30 for k in range(31)} | {
        min(max(k + i, 0), case.c_u - 1) for k in worst.positions for i in (-1, 1)
    }

    assert at_precision(300, lambda: replace(worst, positions=tuple(tried)).largest(case.epsilon)) <= delta


@examples(100)
@given(capped_cases(10**6, NEAR_ZERO), st.integers(0, 3), st.floats(0, 1), st.floats(0, 1))
def test_the_bounds_of_the_search_hold_inside_its_intervals(case: Case, piece: int, x: float, y: float) -> None:
    """The search drops an interval because T is monotone on it, or because of an upper bound: both must be true."""
    mechanism = mechanism_of(case)
    corners = (0, *(case.c_u - n for n, _ in reversed(case.capped)), case.c_u - 1)
    index = piece % (len(corners) - 1)
    first, last = list(pairwise(corners))[index]
    low, high = (first + int(part * (last - first)) for part in sorted((x, y)))

    def check() -> None:
        search = frontier._Search(frontier.frontier_of(mechanism), case.epsilon)
        left, middle, right = (search._place(k) for k in (low, (low + high) // 2, high))
        inside = [search._place(low + (high - low) * k // 12).delta for k in range(13)]
        bound, ends_are_enough = search._bound(index, left, middle, right), search._ends_are_enough(index, left, right)
        assert not any(delta > bound for delta in inside)
        if ends_are_enough:
            assert not any(delta > left.delta.max(right.delta) for delta in inside)

    if low < high:
        at_precision(300, check)


@examples(40)
@given(capped_cases(10**12, LEMMA | NEAR_ZERO))
def test_epsilon_is_the_smallest_with_that_delta(case: Case) -> None:
    mechanism = mechanism_of(case)
    delta = at_epsilon(EXACT, mechanism, case.epsilon).delta
    if delta == 1:
        return

    found = at_delta(EXACT, mechanism, delta).epsilon

    assert found is not None
    assert found <= case.epsilon
    assert fits(EXACT, mechanism, found, delta)
    assert found == 0 or not fits(EXACT, mechanism, next_below(found), delta)


def test_a_search_that_visits_too_many_places_gives_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """It must end, and may then state a little more than δ, but never less."""
    case = INSIDE[3]
    mechanism = mechanism_of(case)
    exact = at_epsilon(EXACT, mechanism, case.epsilon).delta
    stated = []
    for places in (3, 12, 16):
        monkeypatch.setattr(frontier, "_MOST_PLACES", places)
        stated.append(at_epsilon(EXACT, mechanism, case.epsilon).delta)

    assert 1.5 * exact > stated[0] > stated[1] >= stated[2] >= exact


def flat(count: int) -> Mechanism:
    """Caps with which T is nearly the same at every corner, at C_u = 10¹⁸ and ε = 0: as many ties as there can be."""
    c_u, hazard, level, sigma = 10**18, 0.25, 0.33, 3.5e9
    parts, reached = [], 0.0
    for n in (c_u // (count + 1) * k for k in range(1, count + 1)):
        accident = arb(hazard * (1 - n / c_u))
        mu = first_on_grid(lambda mu: gaussian.delta_with_accident(arb(mu), accident, 0.0) > level, 0.0, 8.0, 2**40)  # noqa: B023
        share = max(mu**2 - reached - n / sigma**2, 0.0)
        parts.append(Capped(n, math.sqrt(share / n)))
        reached += share
    return Mechanism(
        c_u=c_u, tau=1, tau_star=1 - NormalDist().inv_cdf(hazard / c_u) * sigma, sigma=sigma, capped=tuple(parts)
    )


def test_a_search_among_many_ties_is_short() -> None:
    """100 corners that are about equally bad."""
    mechanism = at_precision(128, lambda: flat(100))
    for epsilon in (0.0, 1e-5, 0.01):
        search = at_precision(256, lambda: frontier._Search(frontier.frontier_of(mechanism), epsilon))  # noqa: B023
        found = at_precision(256, search.worst)
        assert found.share < 1e-15
        assert len(search._places) < 1000


@examples(60)
@given(capped_cases(1000, LEMMA | NEAR_ZERO))
def test_caps_of_c_u_change_nothing_and_smaller_caps_help(case: Case) -> None:
    mechanism = mechanism_of(case)
    uniform = replace(mechanism, capped=tuple(Capped(case.c_u, part.mu_0) for part in mechanism.capped))
    total = reference.mp.sqrt(sum(reference.mp.mpf(part.mu_0) ** 2 for part in mechanism.capped))
    one = replace(mechanism, capped=(), mu_0=reference.round_up(total))

    for accounting in (EXACT, ADD_DELTAS, ZCDP):
        capped, plain, above = (at_epsilon(accounting, m, case.epsilon).delta for m in (mechanism, uniform, one))
        assert capped <= plain
        assert plain == pytest.approx(above, rel=1e-12)
    assert at_epsilon(EXACT, uniform, case.epsilon).binding != "mixed"


def test_every_column_at_c_u_is_the_mechanism_without_caps() -> None:
    """To the last bit: the same columns, with C_u said for each of them, or not at all."""
    columns = {"names": ("a", "b"), "covariance": ((4.0, 0.0), (0.0, 9.0))}
    said = Mechanism(
        c_u=50,
        tau=1,
        tau_star=70.0,
        sigma=9.0,
        aggregates=Aggregates(**columns, sensitivity=Box((0.0, -1.0), (1.0, 1.0), (50, 50))),
    )
    unsaid = Mechanism(
        c_u=50,
        tau=1,
        tau_star=70.0,
        sigma=9.0,
        aggregates=Aggregates(**columns, sensitivity=Box((0.0, -1.0), (1.0, 1.0))),
    )
    null = Mechanism(
        c_u=50,
        tau=1,
        tau_star=70.0,
        sigma=9.0,
        aggregates=Aggregates(**columns, sensitivity=Box((0.0, -1.0), (1.0, 1.0), (None, None))),
    )

    for epsilon in (0.0, 0.3, 2.0):
        points = [at_epsilon(EXACT, mechanism, epsilon) for mechanism in (said, unsaid, null)]
        assert points[0] == points[1] == points[2]


def test_the_ledger_charges_the_whole_of_s() -> None:
    """S(C_u) = C_u/σ² + C_u μ_likes² + 100 μ_shares², with and without thresholds."""
    mechanism = Mechanism(c_u=51914, tau=1, tau_star=13952.0, sigma=2229.0, aggregates=LIKES_AND_SHARES)
    plain = PlainGaussian(c_u=51914, sigma=2229.0, aggregates=LIKES_AND_SHARES)
    expected = 51914 / 2229.0**2 + 51914 / 4e6 + 100 / 400.0

    assert cost_of(mechanism).mu_squared == pytest.approx(expected, rel=1e-14)
    assert cost_of(mechanism.without_columns) == cost_of(mechanism)
    assert cost_of(plain).mu_squared == cost_of(plain.without_columns).mu_squared == cost_of(mechanism).mu_squared


@pytest.mark.parametrize("columns", [("a", "b", "c"), ("c", "a", "b")])
def test_the_order_of_columns_does_not_matter(columns: tuple[str, ...]) -> None:
    numbers = {"a": (4.0, 1.0, 10), "b": (9.0, 2.0, None), "c": (1.0, 0.5, 10)}
    variances, upper, groups = zip(*(numbers[name] for name in columns), strict=True)
    matrix = tuple(tuple(v if i == j else 0.0 for j in range(3)) for i, v in enumerate(variances))

    aggregates = Aggregates(names=columns, covariance=matrix, sensitivity=Box((0.0,) * 3, upper, groups))

    assert aggregates.mu_0 == pytest.approx(2 / 3)
    assert [part.groups for part in aggregates.capped] == [10]
    assert aggregates.capped[0].mu_0 == pytest.approx((1 / 4 + 1 / 4) ** 0.5)


# ----- the lemma, in ball arithmetic


def test_the_lemma_holds_at_every_epsilon_from_0_105() -> None:
    """(h + a)(h + √(a² + 2e)) > 1 at e = 0.105 for every a: the part of the proof that a machine checks.

    h + a grows and h falls, so on [l, r] the product is at least (h(l) + l)(h(r) + min √(a² + 2e)). Outside of
    [−0.578, ½] the document proves it by hand.
    """
    e = 0.105

    def holds_on(left: float, right: float) -> bool:
        low, high = arb(left), arb(right)
        nearest = arb(0) if left <= 0 <= right else (low * low).min(high * high)
        return bool((hazard(low) + low) * (hazard(high) + (nearest + 2 * arb(e)).sqrt()) > 1)

    def count(left: float, right: float) -> int:
        if holds_on(left, right):
            return 1
        middle = (left + right) / 2
        assert right - left > 1e-4
        return count(left, middle) + count(middle, right)

    assert at_precision(80, lambda: count(-0.578, 0.5)) == 65  # as the document says
    assert at_precision(80, lambda: bool(hazard(arb(0.5)) + 0.5 > 1))
    assert at_precision(80, lambda: (hazard(arb(0.03)) + 0.03) * (hazard(arb(0.03)) + arb(0.2089).sqrt()) < 1)


@examples(300)
@given(st.floats(-1, 30, exclude_min=True))
def test_the_lower_bound_on_the_hazard_that_the_proof_uses(x: float) -> None:
    """haz(t) = φ(t)/Φ(−t) > (3t + √(t² + 8))/4 for t > −1  [Sampford 1953]"""
    t = arb(x)
    assert at_precision(400, lambda: hazard(-t) > (3 * t + (t * t + 8).sqrt()) / 4)


@examples(200)
@given(capped_cases(10**6, LEMMA))
def test_a_straight_piece_has_no_maximum_inside(case: Case) -> None:
    """The statement of the lemma, at points between two corners."""
    mechanism = mechanism_of(case)
    worst = frontier.worst_of(mechanism, case.epsilon)
    corners = (0, *(case.c_u - n for n, _ in reversed(case.capped)), case.c_u)
    for left, right in pairwise(corners):
        inside = tuple(sorted({left + (right - left) * k // 7 for k in range(1, 7)} - {left, right}))
        if not inside:
            continue
        largest, ends = (
            at_precision(300, lambda chosen=chosen: replace(worst, positions=chosen).largest(case.epsilon))  # type: ignore[misc]
            for chosen in (inside, (left, right))
        )
        assert not largest > ends


def hazard(a: arb) -> arb:
    """φ(a)/Φ(a), as a ball."""
    density = (-a * a / 2).exp() / (2 * arb.pi()).sqrt()
    return density / ((-a / arb(2).sqrt()).erfc() / 2)
