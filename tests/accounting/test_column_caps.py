"""Columns with caps of their own: the worst split, against the literal scan of the theorem in 60 digits."""

from dataclasses import replace
from itertools import pairwise

import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from gsh.accounting import splits, theorem
from gsh.accounting.accountings import ADD_DELTAS, EXACT, ZCDP, at_delta, at_epsilon, fits
from gsh.accounting.composition import cost_of
from gsh.accounting.mechanism import Aggregates, Mechanism, PlainGaussian
from gsh.accounting.numerics.balls import at_precision
from gsh.accounting.numerics.doubles import next_below
from gsh.accounting.sensitivity import Box, Capped
from tests import reference
from tests.accounting.draws import allowed, capped_cases, examples, log_uniform, mechanism_of
from tests.reference import Case

LEMMA = log_uniform(0.105, 30)
NEAR_ZERO = st.just(0.0) | log_uniform(1e-6, 0.105)

# The worst split is inside a piece, at no end and at no cap: found by search, at ε near 0.
INSIDE = (
    Case(500, 1, 1.0, 1.0, 0.0, 0.0),
)


@pytest.mark.slow
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
