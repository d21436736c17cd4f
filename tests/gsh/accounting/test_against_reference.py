"""The core against the 60-digit transcription of the paper, term by term: never below it, never over an ulp above."""

from itertools import islice

import pytest
from hypothesis import given
from mpmath import mpf

from gsh.accounting import theorem
from gsh.accounting.accountings import ADD_DELTAS, EXACT, at_epsilon
from tests import reference
from tests.gsh.accounting.draws import allowed, cases, examples, mechanism_of
from tests.reference import Case, paper

pytestmark = pytest.mark.slow

LEAST_DOUBLE = 5e-324


@pytest.mark.parametrize("case", reference.CASES, ids=str)
def test_each_term_of_the_theorem_is_the_papers_rounded_up(case: Case) -> None:
    """T1, T2 and T3 are certified one by one, not only their maximum."""
    _assert_terms_are_the_papers(case)


@pytest.mark.parametrize("case", reference.CASES, ids=str)
def test_delta_is_never_below_the_sixty_digit_truth(case: Case) -> None:
    """Under-stating δ is a privacy violation; one ulp above is the price of a double."""
    lowest, highest = allowed(reference.delta(case))

    assert lowest <= at_epsilon(EXACT, mechanism_of(case), case.epsilon).delta <= highest


@pytest.mark.parametrize("case", reference.CASES + reference.LARGE_CASES, ids=str)
def test_the_two_parts_and_both_totals_are_the_papers_rounded_up(case: Case) -> None:
    """δ_infinite and δ_gaussian, their maximum and their sum capped at 1, at any C_u."""
    _assert_parts_and_totals_are_the_papers(case)


@examples(400)
@given(cases())
def test_the_parts_and_totals_of_random_mechanisms_are_the_papers(case: Case) -> None:
    """C_u up to 1e18, μ from 1e-12 to 1e6, gaps from 1e-6 σ to 1000 σ, ε up to 1e4."""
    _assert_parts_and_totals_are_the_papers(case)


@examples(150)
@given(cases(most_c_u=12))
def test_each_term_of_random_mechanisms_is_the_papers(case: Case) -> None:
    """The scan, with its screening in doubles, over the same ranges."""
    _assert_terms_are_the_papers(case)


@examples(75)
@given(cases(most_c_u=12, most_gap=8.0))
def test_each_term_is_the_papers_where_the_threshold_matters(case: Case) -> None:
    """At gaps of a few σ, splits at the threshold and above it compete."""
    _assert_terms_are_the_papers(case)


@pytest.mark.parametrize("case", [case for case in reference.CASES if case.c_u <= 50], ids=str)
def test_the_worst_split_attains_the_value_returned_with_it(case: Case) -> None:
    """(a₊, a₌) is evidence: the paper's term at this split has the certified value."""
    terms = theorem.evaluate(mechanism_of(case), case.epsilon)

    assert (terms.t1.a_plus, terms.t1.a_equal) == (0, case.c_u)
    for term, of_paper in ((terms.t2, paper._terms_added), (terms.t3, paper._terms_removed)):
        assert term.a_plus + term.a_equal == case.c_u
        assert term.a_plus >= 1
        if LEAST_DOUBLE < term.value < 1:
            there = next(islice(of_paper(case), term.a_equal, None))
            assert (there.a_plus, there.a_equal) == (term.a_plus, term.a_equal)
            lowest, highest = allowed(there.value)
            assert lowest <= term.value <= highest


def _assert_terms_are_the_papers(case: Case) -> None:
    terms = theorem.evaluate(mechanism_of(case), case.epsilon)

    for name, term, truth in (
        ("T1", terms.t1, reference.t1(case)),
        ("T2", terms.t2, reference.t2(case)),
        ("T3", terms.t3, reference.t3(case)),
    ):
        lowest, highest = allowed(truth.value)
        assert lowest <= term.value <= min(highest, 1.0), name
    assert terms.delta == max(terms.t1.value, terms.t2.value, terms.t3.value)


def _assert_parts_and_totals_are_the_papers(case: Case) -> None:
    infinite, noise = reference.delta_infinite(case), reference.delta_gaussian(case)
    exact = at_epsilon(EXACT, mechanism_of(case), case.epsilon)
    added = at_epsilon(ADD_DELTAS, mechanism_of(case), case.epsilon)

    _assert_certified(exact.delta_infinite, infinite)
    _assert_certified(exact.delta_gaussian, noise)
    _assert_certified(exact.delta, max(infinite, noise))
    _assert_certified(added.delta, min(reference.add_deltas(case), reference.mp.one))
    assert (added.delta_infinite, added.delta_gaussian) == (exact.delta_infinite, exact.delta_gaussian)


def _assert_certified(value: float | None, truth: mpf) -> None:
    lowest, highest = allowed(truth)
    assert value is not None
    assert lowest <= value <= min(highest, 1.0)
