"""The exact privacy of the Gaussian sparse histogram mechanism, term by term as the paper states it.

Citations are to [KKWZ], arXiv 2202.01100. Throughout, p = Φ((τ* − τ)/σ) is the chance that a group at τ is withheld,
a₌ counts the user's groups that sit exactly at τ, and a₊ those above it. δ takes C_u steps here, on purpose.

The formulas are rearranged only where the subtraction would lose every digit: 1 − p^a is −expm1(a ln p), and ln p is
log1p of the upper tail, since p is 1 to a hundred digits past 22 σ.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from mpmath import mpf

from .cases import Case
from .precision import DIGITS, mp


@dataclass(frozen=True)
class Term:
    """One candidate for δ, and the numbers of groups above τ and at τ that give it."""

    value: mpf
    a_plus: int
    a_equal: int


def gaussian(mu: mpf | float, epsilon: mpf | float) -> mpf:
    """The smallest δ at any real ε of a Gaussian mechanism whose sensitivity is μ standard deviations.  [KKWZ Thm. 2.2]

    f(μ, ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ),   f(0, ε) = max(0, 1 − e^ε)
    """
    mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)
    if mu == 0:
        return max(mp.zero, -mp.expm1(epsilon))
    digits = mp.dps
    while True:
        with mp.workdps(digits):
            gained = _normal_cdf(mu / 2 - epsilon / mu)
            paid = mp.exp(epsilon) * _normal_cdf(-mu / 2 - epsilon / mu)
            value = gained - paid
            # Φ(−x) turns a relative error r in x into x² r; the subtraction then divides by the difference.
            loss = (gained + paid) * (1 + (abs(epsilon) / mu + mu / 2) ** 2)
            settled = value * mp.mpf(10) ** (digits - DIGITS - 10) > loss
        if settled:
            return +value
        digits *= 2


def delta_infinite(case: Case) -> mpf:
    """The chance that one of C_u groups at τ is released, which no ε pays for.  [KKWZ Thm. 4.1]

    δ_infinite = 1 − p^C_u
    """
    return -mp.expm1(case.c_u * log_p(case))


def delta_gaussian(case: Case) -> mpf:
    """The δ at ε of releasing all C_u groups with no threshold.  [KKWZ Thm. 4.1]

    δ_gaussian = f(μ(C_u), ε)
    """
    return gaussian(_mu(case, case.c_u), case.epsilon)


def add_deltas(case: Case) -> mpf:
    """The over-estimate of earlier work, not capped at 1.  [KKWZ Thm. 4.1; any m: Cor. 5.4.1]

    δ_add = δ_infinite + δ_gaussian
    """
    return delta_infinite(case) + delta_gaussian(case)


def t1(case: Case) -> Term:
    """Every group the user touches sits exactly at τ.  [KKWZ Thm. 5.4]

    T1 = 1 − p^C_u
    """
    return Term(delta_infinite(case), a_plus=0, a_equal=case.c_u)


@cache
def t2(case: Case) -> Term:
    """The worst split when the user is added.  [KKWZ Thm. 5.4]

    T2 = max over a₊ + a₌ = C_u, a₊ ≥ 1 of  1 − p^a₌ + p^a₌ f(μ(a₊), ε − a₌ ln p)
    """
    return _largest(_terms_added(case))


@cache
def t3(case: Case) -> Term:
    """The worst split when the user is removed.  [KKWZ Thm. 5.4]

    T3 = max over a₊ + a₌ = C_u, a₊ ≥ 1 of  f(μ(a₊), ε + a₌ ln p)
    """
    return _largest(_terms_removed(case))


def delta(case: Case) -> mpf:
    """The smallest δ at ε ≥ 0, exactly.  [KKWZ Thm. 5.4]

    δ = max(T1, T2, T3)
    """
    return _largest((t1(case), t2(case), t3(case))).value


def _terms_added(case: Case) -> Iterator[Term]:
    per_group = log_p(case)
    for a_equal in range(case.c_u):
        a_plus = case.c_u - a_equal
        withheld = a_equal * per_group
        rest = gaussian(_mu(case, a_plus), case.epsilon - withheld)
        yield Term(-mp.expm1(withheld) + mp.exp(withheld) * rest, a_plus, a_equal)


def _terms_removed(case: Case) -> Iterator[Term]:
    per_group = log_p(case)
    for a_equal in range(case.c_u):
        a_plus = case.c_u - a_equal
        yield Term(gaussian(_mu(case, a_plus), case.epsilon + a_equal * per_group), a_plus, a_equal)


def _largest(terms: Iterator[Term] | tuple[Term, ...]) -> Term:
    return max(terms, key=lambda term: term.value)


def _mu(case: Case, a: int) -> mpf:
    return mp.sqrt(squared(case, a))


def squared(case: Case, a: int) -> mpf:
    """μ(a)² = a (1/σ² + μ₀²), and min(a, n) μ_n² for columns that a user changes in at most n groups"""
    capped = sum(min(a, n) * mp.mpf(mu) ** 2 for n, mu in case.capped)
    return a * (1 / mp.mpf(case.sigma) ** 2 + mp.mpf(case.mu_0) ** 2) + capped


def log_p(case: Case) -> mpf:
    """ln p = ln(1 − Φ(−(τ* − τ)/σ))"""
    return mp.log1p(-_normal_cdf((case.tau - mp.mpf(case.tau_star)) / mp.mpf(case.sigma)))


def _normal_cdf(x: mpf) -> mpf:
    """Φ(x) = erfc(−x/√2)/2"""
    return mp.erfc(-x / mp.sqrt(2)) / 2
