"""A survey and then tables chosen from it: δ against its definition in 40 digits, and what follows from the proof."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from gsh.accounting import two_stages
from gsh.accounting.accountings import ADD_DELTAS, EXACT, at_delta, at_epsilon
from gsh.accounting.chords import mixture_of
from gsh.accounting.composition import NOTHING, cost_of, delta_at
from gsh.accounting.mechanism import (
    MOST_SURVEYS,
    AnyMechanism,
    FixedTables,
    Joint,
    Mechanism,
    PlainGaussian,
    Surveyed,
    SurveyNoise,
    hazard_ball,
    mechanisms_of,
    mu_squared_ball,
    survey_ball,
)
from gsh.accounting.numerics.balls import at_precision, round_up
from gsh.accounting.numerics.doubles import next_above, next_below
from tests import reference
from tests.gsh.accounting.draws import allowed, assert_refused, cases, examples, log_uniform, mechanism_of
from tests.reference import Case

TYPICAL = Case(2, 1, 32.0, 6.04, 0.0, 1.0)
"""About the noise and the threshold that (1, 10⁻⁶) needs."""


def after(sigma: float, tables: FixedTables) -> Surveyed:
    return Surveyed([SurveyNoise(sigma)], tables)


@pytest.mark.parametrize(
    ("sigmas", "case"),
    [
        pytest.param((42.25,), TYPICAL, id="one percent"),
        pytest.param((6.0, 9.0), Case(1, 1, 6.0, 1.5, 0.1, 0.2), id="two surveys with much of the privacy"),
        pytest.param((3.0,), Case(1, 5, 14.0, 3.0, 0.0, 0.0), id="epsilon 0"),
    ],
)
def test_delta_is_that_of_the_worst_tables_after_each_output_in_40_digits(
    sigmas: tuple[float, ...], case: Case
) -> None:
    release = Surveyed([SurveyNoise(sigma) for sigma in sigmas], mechanism_of(case))
    truth = reference.two_stages.added(sigmas, [case], case.epsilon)
    found = at_epsilon(EXACT, release, case.epsilon).delta

    assert two_stages.is_exact(release)
    assert found in allowed(truth)
    assert reference.two_stages.removed(sigmas, [case], case.epsilon, digits=20) <= found


def worst_by_hand(sigma: float, tables: FixedTables, epsilon: float, cells: int = 3000) -> float:
    """A lower bound on δ in doubles: cut what the survey shows into cells, and take the worst split for each."""
    ends = np.linspace(-7.5, 7.5, cells + 1) / sigma + 1 / (2 * sigma**2)  # of the loss, which is N(1/(2σ²), 1/σ²)
    p, q = (_between((ends - sign / (2 * sigma**2)) * sigma) for sign in (1, -1))
    return float(p @ np.max([_stick(*costs, epsilon + np.log(q / p)) for costs in _splits(tables)], axis=0))


def _between(ends: np.ndarray) -> np.ndarray:
    """The probability of each cell, without cancellation above 0."""
    return np.where(ends[1:] < 0, np.diff(ndtr(ends)), -np.diff(ndtr(-ends)))


def _splits(tables: FixedTables) -> list[tuple[float, float]]:
    """S and D of every split of the groups."""
    found = [(0.0, 0.0)]
    for table in mechanisms_of(tables):
        most = table.c_u if isinstance(table, Mechanism) else 0
        each = [_costs(table, at_tau) for at_tau in range(most + 1)]
        found = [(s + square, h + hazard) for s, h in found for square, hazard in each]
    return found


def _costs(table: AnyMechanism, at_tau: int) -> tuple[float, float]:
    hazard = table.hazard * at_tau / table.c_u if isinstance(table, Mechanism) else 0.0
    return float(at_precision(80, lambda: mu_squared_ball(table, table.c_u - at_tau))), hazard


def _stick(square: float, hazard: float, t: np.ndarray) -> np.ndarray:
    if square == 0:
        return np.maximum(-np.expm1(-hazard), -np.expm1(t))
    mu = math.sqrt(square)
    noise = ndtr(mu / 2 - (t + hazard) / mu) - np.exp(t + hazard) * ndtr(-mu / 2 - (t + hazard) / mu)
    return -np.expm1(-hazard) + np.exp(-hazard) * noise


TWO = Joint([Mechanism(c_u=2, tau_star=36.0, sigma=8.0), Mechanism(c_u=1, tau_star=31.0, sigma=6.0)])
CAPPED = Mechanism(c_u=6, tau_star=70.0, sigma=14.0, capped={2: 0.08})
WITH_PUBLIC = Joint([Mechanism(c_u=2, tau_star=36.0, sigma=8.0), PlainGaussian(c_u=1, sigma=6.0)])


@pytest.mark.parametrize("sigma", [40.0, 8.0])
@pytest.mark.parametrize(
    ("tables", "excess"),
    [
        pytest.param(mechanism_of(TYPICAL), 1e-5, id="one"),
        pytest.param(TWO, 1e-4, id="two"),
        pytest.param(WITH_PUBLIC, 1e-4, id="public groups"),
        pytest.param(CAPPED, 0.05, id="caps that may depend on the survey"),
    ],
)
@pytest.mark.parametrize("epsilon", [0.4, 1.0])
def test_delta_is_close_above_the_worst_tables_for_each_cell_of_the_survey(
    tables: FixedTables, excess: float, sigma: float, epsilon: float
) -> None:
    by_hand = worst_by_hand(sigma, tables, epsilon)

    found = at_epsilon(EXACT, after(sigma, tables), epsilon).delta

    assert by_hand <= found * (1 + 1e-9)
    assert found <= by_hand * (1 + excess)


@examples(60)
@given(cases(), log_uniform(1e-3, 1e9))
def test_after_a_survey_delta_is_between_fixed_tables_and_composition(case: Case, sigma: float) -> None:
    mechanism, survey = mechanism_of(case), PlainGaussian(c_u=1, sigma=sigma)

    found = at_epsilon(EXACT, after(sigma, mechanism), case.epsilon).delta

    assert found >= at_epsilon(EXACT, Joint([mechanism, survey]), case.epsilon).delta
    together = NOTHING.plus(mechanism, cost_of(mechanism)).plus(survey, cost_of(survey))
    assert found <= next_above(delta_at(together, case.epsilon))
    assert found <= next_above(at_epsilon(ADD_DELTAS, after(sigma, mechanism), case.epsilon).delta)


@examples(40)
@given(cases(most_gap=30), log_uniform(0.1, 1e6), st.floats(1.0, 3.0))
def test_delta_falls_with_noise_in_the_survey_noise_in_the_table_and_the_threshold(
    case: Case, sigma: float, factor: float
) -> None:
    mechanism = mechanism_of(case)
    found = at_epsilon(EXACT, after(sigma, mechanism), case.epsilon).delta
    wider = replace(case, sigma=factor * case.sigma, tau_star=case.tau + factor * (case.tau_star - case.tau))

    assert at_epsilon(EXACT, after(factor * sigma, mechanism), case.epsilon).delta <= found
    assert at_epsilon(EXACT, after(sigma, mechanism_of(wider)), case.epsilon).delta <= found * (1 + 1e-4)
    higher = replace(case, tau_star=case.tau_star * factor)
    assert at_epsilon(EXACT, after(sigma, mechanism_of(higher)), case.epsilon).delta <= found * (1 + 1e-4)


@examples(30)
@example(Case(9_543_923_928, 1, 637_039.4383574113, 97_693.00859324582, 0.0, 1.0))  # without the condition: by chords
@given(cases(most_gap=30))
def test_a_survey_that_shows_nothing_costs_nothing(case: Case) -> None:
    mechanism = mechanism_of(case)
    alone = at_epsilon(EXACT, mechanism, case.epsilon).delta

    assert alone <= at_epsilon(EXACT, after(1e200, mechanism), case.epsilon).delta <= next_above(alone)


def test_surveys_add_up() -> None:
    mechanism = mechanism_of(TYPICAL)

    one = at_epsilon(EXACT, after(24.0, mechanism), 1.0)
    two = at_epsilon(EXACT, Surveyed([SurveyNoise(30.0), SurveyNoise(40.0)], mechanism), 1.0)

    assert one == two
    assert one.binding == "mixed"


def test_after_a_survey_public_groups_are_more_gaussian_noise() -> None:
    plain = PlainGaussian(c_u=3, sigma=7.0)

    found = at_epsilon(EXACT, after(20.0, plain), 1.0)

    assert found == at_epsilon(EXACT, Joint([plain, PlainGaussian(c_u=1, sigma=20.0)]), 1.0)
    assert found.binding == "gaussian"


def test_tables_with_the_same_shares_are_one_table() -> None:
    one = Mechanism(c_u=5, tau_star=50.0, sigma=10.0)
    two = Joint([Mechanism(c_u=2, tau_star=50.0, sigma=10.0), Mechanism(c_u=3, tau_star=50.0, sigma=10.0)])

    found = at_epsilon(EXACT, after(30.0, one), 1.0).delta

    assert two_stages.is_exact(after(30.0, two))
    assert found <= at_epsilon(EXACT, after(30.0, two), 1.0).delta <= found * (1 + 1e-15)


def test_caps_and_c_u_may_depend_on_the_survey() -> None:
    """The counts, the columns with caps and the thresholds cost the same. C_u and the caps differ."""
    few = Mechanism(c_u=2, tau_star=95.0, sigma=20.0, capped={1: 0.22})
    sigma = 20.0 * math.sqrt(8)
    gap = -ndtri(-math.expm1(-few.hazard / 16)) * sigma
    many = Mechanism(c_u=16, tau_star=1 + gap, sigma=sigma, capped={1: 0.22})
    assert few.mu_squared == pytest.approx(many.mu_squared, rel=1e-12)
    assert few.hazard == pytest.approx(many.hazard, rel=1e-12)
    assert at_epsilon(EXACT, few, 1.0).delta < 0.99 * at_epsilon(EXACT, many, 1.0).delta

    first, second = (at_epsilon(EXACT, after(30.0, table), 1.0).delta for table in (few, many))

    assert first == pytest.approx(second, rel=1e-9)


def test_without_the_condition_two_stages_cost_more_than_the_formula() -> None:
    """A threshold that costs much more than the noise: the worst patterns are mixed when little of ε is left."""
    case = Case(2, 1, 1.5, 20.0, 0.0, 0.05)
    release = after(30.0, mechanism_of(case))
    assert not two_stages.is_exact(release)

    def by_formula() -> arb:
        tables = release.tables
        costs = two_stages.Costs(survey_ball(release.survey), mu_squared_ball(tables), hazard_ball(tables))
        return two_stages.delta(costs, arb(case.epsilon))

    truth = reference.two_stages.added([30.0], [case], case.epsilon, digits=20)
    assert at_precision(80, by_formula) < float(truth)
    assert truth <= at_epsilon(EXACT, release, case.epsilon).delta


@examples(15)
@given(log_uniform(0.03, 3), log_uniform(3, 300), log_uniform(1e-10, 1e-3))
def test_epsilon_at_delta_is_the_smallest(epsilon: float, sigma: float, part: float) -> None:
    release = after(sigma, Mechanism(c_u=4, tau_star=61.0, sigma=11.0))
    delta = at_epsilon(EXACT, release, epsilon).delta * (1 + part)

    found = at_delta(EXACT, release, delta)

    assert found.epsilon is not None
    assert found.delta == delta
    assert at_epsilon(EXACT, release, found.epsilon).delta <= delta
    assert found.epsilon <= epsilon
    assert at_epsilon(EXACT, release, next_below(found.epsilon)).delta > delta


def test_epsilon_is_found_before_any_delta() -> None:
    """Nothing about the release is known yet."""
    found = at_delta(EXACT, after(33.25, Mechanism(c_u=4, tau_star=62.5, sigma=11.0)), 1e-5)

    assert found.epsilon is not None


def test_no_epsilon_pays_for_the_threshold() -> None:
    assert at_delta(EXACT, after(40.0, Mechanism(c_u=4, tau_star=31.0, sigma=11.0)), 1e-6).epsilon is None


def test_chords_are_a_bound_that_is_hardly_larger() -> None:
    """The same tables by both ways, at every ε."""
    release = after(25.0, Mechanism(c_u=16, tau_star=88.0, sigma=17.0))
    for epsilon in (0.0, 0.05, 0.5, 1.0, 1.3, 4.0):
        exact = at_epsilon(EXACT, release, epsilon).delta
        chords = mixture_of(release, epsilon)

        (bound,) = round_up(lambda: [chords.largest(epsilon)])  # noqa: B023

        assert exact <= next_above(bound) <= exact * (1 + 1e-4)


def test_precision_is_restored() -> None:
    before = ctx.prec

    at_epsilon(EXACT, after(25.0, WITH_PUBLIC), 0.5)
    at_epsilon(EXACT, after(25.0, mechanism_of(TYPICAL)), 0.5)

    assert ctx.prec == before


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan, math.inf])
def test_noise_of_a_survey_must_be_positive_and_finite(sigma: float) -> None:
    assert_refused(lambda: SurveyNoise(sigma), "sigma", "must be greater than 0 and finite")


@pytest.mark.parametrize("count", [0, MOST_SURVEYS + 1])
def test_a_survey_has_some_histograms(count: int) -> None:
    survey: Sequence[SurveyNoise] = [SurveyNoise(1.0)] * count
    assert_refused(lambda: Surveyed(survey, mechanism_of(TYPICAL)), "survey", "must be 1 to 64 histograms")
