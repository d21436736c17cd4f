"""docs/math/closed-form.md, checked: the paper's scan never exceeds its two ends, in sixty digits; and the lemmas.

The first half uses the reference alone, which knows the scan and not the closed form. The second asks ball arithmetic
for a proof at each point drawn.
"""

import pytest
from flint import arb
from hypothesis import assume, given
from hypothesis import strategies as st

from gsh.accounting.numerics.balls import at_precision
from tests import reference
from tests.gsh.accounting.draws import cases, examples, log_uniform
from tests.reference import Case, paper

pytestmark = pytest.mark.slow

SIXTY_DIGITS = reference.mp.mpf(10) ** -59

# 400 bits leave one point in twenty undecided, 3000 none.
BITS = 3000


@pytest.mark.parametrize("case", [case for case in reference.CASES if case.c_u <= 60], ids=str)
def test_the_scan_is_its_two_ends_on_the_grid(case: Case) -> None:
    """δ_exact = max(δ_infinite, δ_gaussian), to sixty digits."""
    _assert_the_scan_is_its_two_ends(case)


@examples(60)
@given(cases(most_c_u=60))
def test_the_scan_is_its_two_ends_for_random_mechanisms(case: Case) -> None:
    """The same at random parameters, C_u up to 60."""
    _assert_the_scan_is_its_two_ends(case)


@examples(40)
@given(cases(most_c_u=60, most_gap=8.0))
def test_the_scan_is_its_two_ends_where_the_threshold_matters(case: Case) -> None:
    """At gaps of a few σ the two ends are about equal, and a split could gain the most."""
    _assert_the_scan_is_its_two_ends(case)


@examples(40)
@given(cases(most_c_u=30, most_gap=30.0))
def test_every_inner_split_is_strictly_below_the_two_ends(case: Case) -> None:
    """Section 4: terms with a₊ ≥ 1 and a₌ ≥ 1 are strictly smaller, for both directions."""
    ends = max(reference.delta_infinite(case), reference.delta_gaussian(case))
    assume(ends < 1 - SIXTY_DIGITS)  # beyond, every term is 1 to all digits carried

    for term in (*paper._terms_added(case), *paper._terms_removed(case)):
        assert term.a_equal == 0 or term.value < ends


@examples(300)
@given(mu=log_uniform(1e-3, 60.0), epsilon=log_uniform(1e-6, 100.0))
def test_lemma_star_is_provable_at_random_points(mu: float, epsilon: float) -> None:
    """(★)  (μ/2) φ(a)/Φ(a) > −ln G(μ², ε),  a = ε/μ − μ/2."""

    def is_proven() -> bool:
        a = arb(epsilon) / mu - arb(mu) / 2
        hazard = (-a * a / 2).exp() / (2 * arb.pi()).sqrt() / _phi(a)
        return arb(mu) / 2 * hazard > _minus_log_g(arb(mu), arb(epsilon))

    assert at_precision(BITS, is_proven)


@examples(100)
@given(mu=log_uniform(1e-6, 60.0))
def test_lemma_star_is_provable_on_the_boundary_where_epsilon_is_zero(mu: float) -> None:
    """Step 4's case a = −w at μ = 2w: w haz(w) > −ln 2Φ(−w)."""

    def is_proven() -> bool:
        w = arb(mu) / 2
        hazard = (-w * w / 2).exp() / (2 * arb.pi()).sqrt() / _phi(-w)
        return w * hazard > -(2 * _phi(-w)).log()

    assert at_precision(BITS, is_proven)


@examples(300)
@given(mu=log_uniform(1e-3, 60.0), epsilon=log_uniform(1e-6, 100.0), c=log_uniform(1e-6, 100.0))
def test_step_1_is_provable_at_random_points(mu: float, epsilon: float, c: float) -> None:
    """G(s, ε − c) > e^(−c) G(s, ε + c): removing the user is never worse than adding. At ε = 0 it is an equality."""

    def is_proven() -> bool:
        s, shift = arb(mu) ** 2, arb(c)
        return _g(s, epsilon - shift) > (-shift).exp() * _g(s, epsilon + shift)

    assert at_precision(BITS, is_proven)


@examples(100)
@given(mu=log_uniform(1e-3, 60.0), epsilon=st.just(0.0) | log_uniform(1e-3, 1e3))
def test_changing_the_sign_of_epsilon_changes_g_by_a_factor(mu: float, epsilon: float) -> None:
    """(G4)  G(s, −ε) = e^(−ε) G(s, ε), on which the screening's two forms of T3 rest."""

    def is_tight_and_overlaps() -> bool:
        left, right = _g(arb(mu) ** 2, -arb(epsilon)), (-arb(epsilon)).exp() * _g(arb(mu) ** 2, arb(epsilon))
        return left.overlaps(right) and left.rel_accuracy_bits() > 100

    assert at_precision(BITS, is_tight_and_overlaps)


def _assert_the_scan_is_its_two_ends(case: Case) -> None:
    scanned = reference.delta(case)
    ends = max(reference.delta_infinite(case), reference.delta_gaussian(case))

    assert abs(scanned - ends) <= SIXTY_DIGITS * ends


def _g(s: arb, epsilon: arb) -> arb:
    """G(s, ε) = Φ(a) + e^ε Φ(−b),  a = ε/√s − √s/2,  b = ε/√s + √s/2"""
    centre, half = epsilon / s.sqrt(), s.sqrt() / 2
    return _phi(centre - half) + epsilon.exp() * _phi(-centre - half)


def _minus_log_g(mu: arb, epsilon: arb) -> arb:
    """−ln G(μ², ε), through f = 1 − G if G is close to 1."""
    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if a > 0:
        return -(epsilon.exp() * _phi(-b) - _phi(-a)).log1p()
    return -_g(mu**2, epsilon).log()


def _phi(x: arb) -> arb:
    return (-x / arb(2).sqrt()).erfc() / 2
