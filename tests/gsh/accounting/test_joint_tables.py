"""Several tables in one release: δ against every split in 60 digits, and what must follow from the theorems."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from gsh.accounting import frontier, gaussian, theorem
from gsh.accounting.accountings import ADD_DELTAS, EXACT, at_delta, at_epsilon, fits
from gsh.accounting.composition import NOTHING, cost_of, delta_at
from gsh.accounting.mechanism import MOST_PIECES, MOST_TABLES, AnyMechanism, Joint, Mechanism, PlainGaussian, release_of
from gsh.accounting.numerics.balls import approximate, at_precision
from gsh.accounting.numerics.doubles import next_below
from gsh.accounting.sensitivity import MOST_C_U
from tests import reference
from tests.gsh.accounting.draws import allowed, assert_refused, examples, log_uniform, mechanism_of
from tests.reference import Case

PUBLIC = math.inf
"""The τ* of a table with public groups, in cases of the reference."""


def table_of(case: Case) -> AnyMechanism:
    if case.tau_star < PUBLIC:
        return mechanism_of(case)
    return PlainGaussian(c_u=case.c_u, sigma=case.sigma, mu_0=case.mu_0, capped=case.capped or None)


def joint_of(cases: tuple[Case, ...]) -> Joint:
    return Joint([table_of(case) for case in cases])


@st.composite
def families(draw: st.DrawFn, epsilons: st.SearchStrategy[float]) -> tuple[tuple[Case, ...], float]:
    """Two or three tables with at most three groups each, some with caps, some with public groups, some twice."""
    tables = []
    for _ in range(draw(st.integers(2, 3))):
        c_u, sigma = draw(st.integers(1, 3)), draw(log_uniform(0.5, 50))
        gap = draw(st.one_of(log_uniform(0.05, 7), st.just(PUBLIC)))
        cap = draw(st.integers(1, c_u))
        capped = ((cap, draw(log_uniform(0.01, 2))),) if draw(st.booleans()) else ()
        mu_0 = draw(st.sampled_from([0.0, 0.3 / sigma]))
        tables.append(Case(c_u, 1, 1 + gap * sigma, sigma, mu_0, 0.0, capped))
    if draw(st.booleans()):
        tables[-1] = tables[0]
    return tuple(tables), draw(epsilons)


@examples(150)
@given(families(st.one_of(st.just(frontier.ENOUGH_EPSILON), log_uniform(frontier.ENOUGH_EPSILON, 5))))
def test_delta_is_the_worst_of_all_splits(family: tuple[tuple[Case, ...], float]) -> None:
    tables, epsilon = family

    assert at_epsilon(EXACT, joint_of(tables), epsilon).delta in allowed(reference.joint.delta(tables, epsilon))


@examples(100)
@given(families(st.one_of(st.just(0.0), log_uniform(1e-6, 0.105))))
def test_near_epsilon_zero_delta_is_never_less_and_hardly_more(family: tuple[tuple[Case, ...], float]) -> None:
    """Where the lemma does not hold, the maximum over real splits is stated: at most 0.6 % above whole ones."""
    tables, epsilon = family
    truth = reference.joint.delta(tables, epsilon)

    assert truth <= at_epsilon(EXACT, joint_of(tables), epsilon).delta <= 1.006 * truth + 1e-300


def test_whole_splits_of_the_frontier_are_not_enough() -> None:
    """The worst split puts the second table alone at τ. No cut does, and the real frontier is above it."""

    def table(square: float, hazard: float) -> Case:
        sigma = 1 / math.sqrt(square)
        return Case(1, 1, 1 + sigma * _quantile(hazard), sigma, 0.0, 0.0)

    public = Case(1, 1, PUBLIC, 1 / math.sqrt(3.2e-6), 0.0, 0.0)
    tables = (public, table(2.176e-5, 1.538e-3), table(1.09888e-5, 7.69e-4))
    joint = joint_of(tables)
    truth = reference.joint.delta(tables, 0.0)
    cuts = frontier.Worst(frontier.frontier_of(joint), frontier.frontier_of(joint).ends)
    at_cuts = at_precision(200, lambda: cuts.largest(0.0))

    assert float(truth) == pytest.approx(0.0024003, abs=5e-8)
    assert float(at_cuts) == pytest.approx(0.0023934, abs=5e-8)
    assert truth <= at_epsilon(EXACT, joint, 0.0).delta == pytest.approx(0.0024046, abs=5e-8)


def _quantile(hazard: float) -> float:
    """The x with −ln Φ(x) = hazard."""
    return float(approximate(lambda: gaussian.quantile(-(-arb(hazard)).expm1())))


@examples(60)
@given(families(st.one_of(st.just(0.0), log_uniform(1e-3, 5))))
def test_the_literal_scan_agrees_with_the_reference(family: tuple[tuple[Case, ...], float]) -> None:
    tables, epsilon = family

    assert theorem.evaluate_tables(joint_of(tables), epsilon).delta in allowed(reference.joint.delta(tables, epsilon))


def test_the_scan_names_the_worst_split_and_the_number_of_splits() -> None:
    """A table with a low threshold is the first at τ, and public groups never are."""
    low, high = Mechanism(c_u=2, tau_star=21, sigma=10), Mechanism(c_u=2, tau_star=61, sigma=2)
    joint = Joint([high, PlainGaussian(c_u=5, sigma=40), low])

    found = theorem.evaluate_tables(joint, 1.0)

    assert found.added.a_equal == (0, 0, 2)
    assert found.added.value > found.removed.value
    assert frontier.number_of_splits(joint) == 9
    assert frontier.number_of_splits(low) == 2


@pytest.mark.parametrize("c_u", [1, 1000, MOST_C_U // 3])
@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.5, 3.0])
def test_equal_tables_are_one_table_with_all_groups(c_u: int, epsilon: float) -> None:
    """A user who touches C_u groups of each of three tables with the same noise touches 3 C_u groups."""
    sigma = math.sqrt(c_u) * 9
    one = Mechanism(c_u=3 * c_u, tau_star=1 + 8 * sigma, sigma=sigma)

    assert at_epsilon(EXACT, Joint([replace(one, c_u=c_u)] * 3), epsilon).delta == at_epsilon(EXACT, one, epsilon).delta


@examples(60)
@given(
    st.lists(st.integers(1, 10**6), min_size=2, max_size=6),
    log_uniform(0.05, 20),
    log_uniform(1e-8, 0.5),
    st.one_of(st.just(0.0), log_uniform(1e-4, 10)),
)
def test_tables_with_equal_shares_have_the_curve_of_one(
    c_us: list[int], mu: float, infinite: float, epsilon: float
) -> None:
    """Theorem C, for every ε: rounding the numbers of the tables changes δ in the last digits alone."""
    sigma_of = [math.sqrt(c_u * len(c_us)) / mu for c_u in c_us]
    hazard = -math.log1p(-infinite) / len(c_us)
    tables = [
        Mechanism(c_u=c_u, tau_star=1 + sigma * _quantile(hazard / c_u), sigma=sigma)
        for c_u, sigma in zip(c_us, sigma_of, strict=True)
    ]
    point = at_epsilon(EXACT, Joint(tables), epsilon)

    assert point.delta <= max(point.delta_infinite, point.delta_gaussian or 0.0) * (1 + 1e-9)


def test_a_share_of_the_noise_alone_is_not_enough() -> None:
    """If the first table has most of the threshold cost and the second most of the noise cost, they cost more."""
    first, second = (
        Mechanism(c_u=1, tau_star=1 + sigma * _quantile(hazard), sigma=sigma)
        for sigma, hazard in ((4.3, 0.1e-6), (60.0, 0.9e-6))
    )
    point = at_epsilon(EXACT, Joint([first, second]), 1.0)

    assert point.binding == "mixed"
    assert point.delta > 1.3 * max(point.delta_infinite, point.delta_gaussian or 0.0)


def test_public_groups_stay_in_every_cut() -> None:
    """The last cut has all groups with thresholds at τ, and the noise of the public ones."""
    public, secret = PlainGaussian(c_u=1, sigma=4.3), Mechanism(c_u=1, tau_star=450, sigma=100)
    point = at_epsilon(EXACT, Joint([public, secret]), 1.0)

    assert point.delta in allowed(
        reference.joint.delta((Case(1, 1, PUBLIC, 4.3, 0.0, 0.0), Case(1, 1, 450.0, 100.0, 0.0, 0.0)), 1.0)
    )
    assert point.delta > max(point.delta_infinite, point.delta_gaussian or 0.0)


def test_public_groups_alone_are_one_gaussian() -> None:
    tables = [PlainGaussian(c_u=4, sigma=20), PlainGaussian(c_u=9, sigma=40)]
    alone = PlainGaussian(c_u=4 + 9, sigma=1 / math.sqrt((4 / 400 + 9 / 1600) / 13))
    point = at_epsilon(EXACT, Joint(tables), 1.0)

    assert point.delta == pytest.approx(at_epsilon(EXACT, alone, 1.0).delta, rel=1e-12)
    assert (point.delta_infinite, point.binding) == (0.0, "gaussian")


def test_a_joint_release_costs_less_than_releases_one_after_the_other() -> None:
    """Two equal shares of the budget of one table: composed they cost nearly twice δ, and jointly δ."""
    one = Mechanism(c_u=2, tau_star=30.3, sigma=5.98)
    half = replace(one, c_u=1)
    exact = at_epsilon(EXACT, Joint([half, half]), 1.0).delta
    composed = delta_at(NOTHING.plus(half, cost_of(half), times=2), 1.0)

    assert exact == at_epsilon(EXACT, one, 1.0).delta
    assert composed > 1.9 * exact


@examples(30)
@given(families(log_uniform(0.01, 3)))
def test_costs_are_sums_and_add_deltas_bounds_from_above(family: tuple[tuple[Case, ...], float]) -> None:
    tables, epsilon = family
    joint = joint_of(tables)
    costs = [cost_of(table) for table in joint.mechanisms]

    for name in ("mu_squared", "hazard"):
        whole = math.fsum(getattr(cost, name) for cost in costs)
        assert getattr(cost_of(joint), name) == pytest.approx(whole, rel=1e-12)
    assert at_epsilon(EXACT, joint, epsilon).delta <= at_epsilon(ADD_DELTAS, joint, epsilon).delta


@examples(40)
@given(families(st.just(0.0)), log_uniform(1e-9, 0.5))
def test_the_smallest_epsilon_meets_delta_and_none_below_it_does(
    family: tuple[tuple[Case, ...], float], delta: float
) -> None:
    joint = joint_of(family[0])
    epsilon = at_delta(EXACT, joint, delta).epsilon
    if epsilon is None:
        assert at_epsilon(EXACT, joint, 0.0).delta_infinite > delta
    else:
        assert fits(EXACT, joint, epsilon, delta)
        assert epsilon == 0 or not fits(EXACT, joint, next_below(epsilon), delta)


def test_orders_that_balls_cannot_tell_apart_are_both_covered() -> None:
    """Gaps that agree to 52 bits have ratios d/B that differ; equal ones are a tie."""
    sigma = 7.0
    near = [Mechanism(c_u=3, tau_star=41.0 + k * 2**-47, sigma=sigma) for k in range(3)]
    apart, same = (frontier.frontier_of(Joint(tables)) for tables in (near, [near[0]] * 3))

    assert [len(segment) for segment in apart.segments] == [1, 1, 1]
    assert [len(segment) for segment in same.segments] == [3]
    assert not apart.has_ties
    assert not same.has_ties


def test_a_tie_of_different_tables_states_no_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the order of two pieces is not known, S is larger by a share that covers both orders."""
    tables = [Mechanism(c_u=2, tau_star=41.0 + k * 2**-47, sigma=7.0) for k in range(2)]
    exact = at_epsilon(EXACT, Joint(tables), 0.7)
    frontier.frontier_of.cache_clear()
    monkeypatch.setattr(frontier, "_ORDER_BITS", (20,))
    tied = frontier.frontier_of(Joint(tables))
    frontier.frontier_of.cache_clear()

    assert tied.has_ties
    (square, _), *others = at_precision(200, lambda: tied.ground().segments)
    assert others == []
    assert at_precision(200, lambda: square > arb(4) / 49)
    assert exact.delta > 0


def test_pieces_that_are_nearly_equal_are_told_apart_at_the_second_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their slopes differ by 2⁻⁹⁰."""
    tables = [Mechanism(c_u=2, tau_star=41, sigma=8, mu_0=mu_0) for mu_0 in (0, 2**-48)]
    frontier.frontier_of.cache_clear()
    sharp = frontier.frontier_of(Joint(tables))
    frontier.frontier_of.cache_clear()
    monkeypatch.setattr(frontier, "_ORDER_BITS", frontier._ORDER_BITS[:1])
    blunt = frontier.frontier_of(Joint(tables[::-1]))
    frontier.frontier_of.cache_clear()

    assert (sharp.has_ties, blunt.has_ties) == (False, True)
    assert [piece.table for (piece,) in sharp.segments] == tables
    assert [len(segment) for segment in blunt.segments] == [2]


@pytest.mark.parametrize("c_u", [10, 10**6, MOST_C_U])
def test_a_point_takes_as_many_evaluations_for_every_c_u(c_u: int) -> None:
    tables = [
        Mechanism(c_u=c_u, tau_star=1 + gap * 30 * math.sqrt(c_u), sigma=30 * math.sqrt(c_u), capped={c_u // 2: 1e-11})
        for gap in (9.0, 9.5)
    ]

    assert len(frontier.worst_of(Joint(tables), 1.0).positions) == 3


def test_a_release_has_1_to_64_tables() -> None:
    table = Mechanism(c_u=1, tau_star=20, sigma=4)

    assert release_of([table]) is table
    assert_refused(lambda: Joint([]), "tables", f"1 to {MOST_TABLES}")
    assert_refused(lambda: Joint([table] * (MOST_TABLES + 1)), "tables", f"1 to {MOST_TABLES}")
    assert_refused(lambda: Joint([table, 3]), "tables/1", "must be a gsh.Mechanism or")  # type: ignore[list-item]


def test_a_release_has_a_bounded_number_of_caps() -> None:
    """Each costs an evaluation, also for every reader of a budget whose only charge it is."""
    capped = tuple((groups, 0.01) for groups in range(1, 8))
    table = Mechanism(c_u=9, tau_star=20, sigma=4, capped=capped)

    assert len(Joint([table] * MOST_TABLES).mechanisms) * (1 + len(table.caps)) == MOST_PIECES
    more = Mechanism(c_u=9, tau_star=20, sigma=4, capped=(*capped, (8, 0.01)))
    assert_refused(lambda: Joint([table] * (MOST_TABLES - 1) + [more]), "tables", f"{MOST_PIECES} tables and caps")


def test_a_position_on_the_frontier_is_a_fraction_of_a_segment() -> None:
    tables = [Mechanism(c_u=2, tau_star=t, sigma=10) for t in (21, 61)]
    front = frontier.frontier_of(Joint(tables))

    def half() -> tuple[arb, arb]:
        return front.costs_at(front.ground(), Fraction(1, 2))

    square, hazard = at_precision(200, half)
    assert float(square) == pytest.approx(3.5 / 100)
    assert float(hazard) == pytest.approx(cost_of(tables[0]).hazard / 4)
