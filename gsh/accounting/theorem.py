"""The theorem evaluated literally: every split of a user's groups into a₌ at τ and a₊ above it.

For one table, Theorem 5.4 of the paper:

    T1 = 1 − p^C_u
    T2 = max over a₊ ≥ 1 of   1 − p^a₌ + p^a₌ f(μ(a₊), ε − a₌ ln p)        a user is added
    T3 = max over a₊ ≥ 1 of   f(μ(a₊), ε + a₌ ln p)                        a user is removed

μ(a)² is S(a): a (1/σ² + μ₀²) without caps on columns, and less with them [docs/math/column-caps.md]. With several
tables, each has an a₌ of its own; S and −a₌ ln p are sums [docs/math/joint-tables.md, Theorem A]. The scan takes
O(C_u) steps for one table, and the product of all C_u + 1 for several. It is an independent check of the closed form in
``accountings`` and of ``frontier``. Vectorised doubles screen the splits, in log-odds so that nothing saturates. Balls
then evaluate the few splits that may be the worst.

Both terms are 1 − e^(−d)(1 − f(μ, e)) with e ≥ 0: T2 has d = −a₌ ln p and e = ε + d; T3 has d = max(0, −e′) and
e = |e′| with e′ = ε + a₌ ln p, because f(μ, −e) = 1 − e^(−e)(1 − f(μ, e)).

With a = e/μ − μ/2, b = a + μ and Mills' ratio R(t) = Φ(−t)/φ(t), ln f(μ, e) = ln φ(a) + ln(R(a) − R(b)). Its cases:

    a > 50            R(t) = 1/t − 1/t³ + 3/t⁵ − …, differences term by term
    μ < 1             ∫ₐᵇ (1 − t R(t)) dt by Gauss–Legendre, because R(a) − R(b) would cancel
    a > 0             as written
    a ≤ 0             ln(1 − (1 − f)), because 1 − f = φ(a)(R(−a) + R(b)) has no cancellation

This is the only module of accounting that needs SciPy, for Mills' ratio and normal tails on arrays.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from flint import arb
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr, ndtr

from gsh.accounting import gaussian
from gsh.accounting.accountings import delta_infinite
from gsh.accounting.frontier import most_at_tau
from gsh.accounting.mechanism import AnyMechanism, Joint, Mechanism, log_p_ball, mu_squared_ball
from gsh.accounting.numerics.balls import round_up
from gsh.errors import InvalidParameter

__all__ = ["JointTerm", "JointTheorem", "Term", "Theorem", "evaluate", "evaluate_tables"]

Doubles = NDArray[np.float64]

_CHUNK = 1 << 15
# Wider than any error of the screening between the two log-odds below. Tests check this.
_WINDOW = 1e-8
_MOST_CANDIDATES = 5000
_LOG_LEAST_DOUBLE, _LOG_ODDS_OF_ONE = -745.0, 40.0
_FAR_OUT = 50.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_LOG_SQRT_2PI = 0.5 * np.log(2 * np.pi)


@dataclass(frozen=True, slots=True)
class Term:
    """The certified value of a term, and the split of the C_u groups that reaches it."""

    value: float
    a_plus: int
    a_equal: int


@dataclass(frozen=True, slots=True)
class Theorem:
    """T1, T2 and T3 at one ε. The theorem's δ is the largest of them."""

    t1: Term
    t2: Term
    t3: Term

    @property
    def delta(self) -> float:
        return max(self.t1.value, self.t2.value, self.t3.value)


@dataclass(frozen=True, slots=True)
class JointTerm:
    """The certified value of a term, and how many groups of each table are at τ where it reaches it."""

    value: float
    a_equal: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class JointTheorem:
    """The largest values over all splits of all tables at one ε: a user is added, or removed. δ is the larger one."""

    added: JointTerm
    removed: JointTerm

    @property
    def delta(self) -> float:
        return max(self.added.value, self.removed.value)


def evaluate(mechanism: Mechanism, epsilon: float) -> Theorem:
    """The three terms at ε, each rounded up, with its worst case.  [KKWZ Thm. 5.4]"""
    (at_threshold,) = round_up(lambda: [delta_infinite(mechanism)], ceilings=(1.0,))
    added = _worst((mechanism,), epsilon, _added_screen, _added)
    removed = _worst((mechanism,), epsilon, _removed_screen, _removed)
    t2, t3 = (Term(worst.value, mechanism.c_u - worst.a_equal[0], worst.a_equal[0]) for worst in (added, removed))
    return Theorem(t1=Term(at_threshold, a_plus=0, a_equal=mechanism.c_u), t2=t2, t3=t3)


def evaluate_tables(joint: Joint, epsilon: float) -> JointTheorem:
    """The largest values over all splits of all tables, rounded up.  [docs/math/joint-tables.md, Theorem A]"""
    added = _worst(joint.mechanisms, epsilon, _added_screen, _added)
    if all(isinstance(table, Mechanism) for table in joint.mechanisms):  # all groups at τ: the scan leaves it out
        (at_threshold,) = round_up(lambda: [delta_infinite(joint)], ceilings=(1.0,))
        added = max(added, JointTerm(at_threshold, most_at_tau(joint.mechanisms)), key=lambda term: term.value)
    return JointTheorem(added, removed=_worst(joint.mechanisms, epsilon, _removed_screen, _removed))


def _costs(tables: tuple[AnyMechanism, ...], a_equal: tuple[int, ...]) -> tuple[arb, arb]:
    """μ of the groups above τ, and −Σ a₌ ln p, as balls."""
    square = hazard = arb(0)
    for table, equal in zip(tables, a_equal, strict=True):
        square += mu_squared_ball(table, table.c_u - equal)
        if equal and isinstance(table, Mechanism):
            hazard -= equal * log_p_ball(table)
    return square.sqrt(), hazard


def _added(tables: tuple[AnyMechanism, ...], epsilon: float, a_equal: tuple[int, ...]) -> arb:
    """1 − p^a₌ + p^a₌ f(μ(a₊), ε − a₌ ln p), as a ball."""
    mu, hazard = _costs(tables, a_equal)
    return gaussian.delta_with_accident(mu, hazard, epsilon)


def _removed(tables: tuple[AnyMechanism, ...], epsilon: float, a_equal: tuple[int, ...]) -> arb:
    """f(μ(a₊), ε + a₌ ln p), as a ball."""
    mu, hazard = _costs(tables, a_equal)
    return gaussian.delta(mu, epsilon - hazard)


def _added_screen(epsilon: float, log_d: Doubles) -> tuple[Doubles, Doubles]:
    """(ln d, e) of T2."""
    return log_d, epsilon + np.exp(log_d)


def _removed_screen(epsilon: float, log_d: Doubles) -> tuple[Doubles, Doubles]:
    """(ln d, e) of T3."""
    if epsilon == 0:
        return log_d, np.exp(log_d)
    shifted = epsilon - np.exp(log_d)
    return np.log(np.maximum(0.0, -shifted)), np.abs(shifted)


Ball = Callable[[tuple[AnyMechanism, ...], float, tuple[int, ...]], arb]
Screen = Callable[[float, Doubles], tuple[Doubles, Doubles]]


def _worst(tables: tuple[AnyMechanism, ...], epsilon: float, screen: Screen, ball: Ball) -> JointTerm:
    """The largest value of a term over all splits: doubles screen them, balls decide."""
    certified = [
        JointTerm(round_up(lambda a_equal=a_equal: [ball(tables, epsilon, a_equal)], ceilings=(1.0,))[0], a_equal)  # type: ignore[misc]
        for a_equal in _candidates(tables, epsilon, screen)
    ]
    return max(certified, key=lambda term: term.value)


def _candidates(tables: tuple[AnyMechanism, ...], epsilon: float, screen: Screen) -> list[tuple[int, ...]]:
    """Every split whose term may be the largest; only one if all of them round up to 1 or to the least double."""
    most = most_at_tau(tables)
    shape = tuple(each + 1 for each in most)
    splits = math.prod(shape)
    if all(most):  # all groups at τ: there is no noise, and T1 has it
        splits -= 1
    best, where = -np.inf, 0
    kept: list[tuple[NDArray[np.int64], Doubles]] = []
    for start in range(0, splits, _CHUNK):
        places = np.arange(start, min(start + _CHUNK, splits))
        a_equal = np.unravel_index(places, shape)
        with np.errstate(all="ignore"):
            log_d, e = screen(epsilon, _log_hazard(tables, a_equal))
            odds = _log_odds(_mu(tables, a_equal), e, log_d)
        if odds.max() > best:
            best, where = float(odds.max()), int(places[odds.argmax()])
        close = odds >= best - _WINDOW
        kept.append((places[close], odds[close]))
    contenders = [places[odds >= best - _WINDOW] for places, odds in kept]
    if not _LOG_LEAST_DOUBLE < best < _LOG_ODDS_OF_ONE:
        contenders = [np.array([where])]
    if sum(map(len, contenders)) > _MOST_CANDIDATES:
        detail = f"needs fewer than {_MOST_CANDIDATES} splits that agree to eight digits: balls decide among them"
        raise InvalidParameter("/theorem", detail)
    return [tuple(map(int, np.unravel_index(place, shape))) for chosen in contenders for place in chosen]


def _log_hazard(tables: tuple[AnyMechanism, ...], a_equal: tuple[NDArray[np.int64], ...]) -> Doubles:
    """ln(−Σ a₌ ln p)."""
    total: Doubles = np.full(a_equal[0].shape, -np.inf)
    for table, equal in zip(tables, a_equal, strict=True):
        if isinstance(table, Mechanism):
            total = np.logaddexp(total, np.log(equal) + _log_minus_log_p(table.tau_gap / table.sigma))
    return total


def _mu(tables: tuple[AnyMechanism, ...], a_equal: tuple[NDArray[np.int64], ...]) -> Doubles:
    """√S of the groups above τ, in units of the largest part, so that no square overflows."""
    uncapped = [float(np.hypot(1 / table.sigma, table.costs.mu_0)) for table in tables]
    unit = max(*uncapped, *(part.mu_0 for table in tables for part in table.costs.capped), 0.0)
    square: Doubles = np.zeros(a_equal[0].shape)
    for table, equal, each in zip(tables, a_equal, uncapped, strict=True):
        a_plus = table.c_u - equal
        square = square + a_plus * (each / unit) ** 2
        for part in table.costs.capped:
            square = square + np.minimum(a_plus, part.groups) * (part.mu_0 / unit) ** 2
    mu: Doubles = unit * np.sqrt(square)
    return mu


def _log_odds(mu: Doubles, e: Doubles, log_d: Doubles) -> Doubles:
    """ln(T/(1 − T)) of T = 1 − e^(−d)(1 − f(μ, e)), e ≥ 0."""
    d = np.exp(log_d)
    log_f, log_not_f = _log_gaussian(mu, e)
    log_share = np.where(d > 1e-300, np.log(-np.expm1(-d)), log_d)
    odds: Doubles = np.logaddexp(log_share, log_f - d) + d - log_not_f
    return odds


def _log_gaussian(mu: Doubles, e: Doubles) -> tuple[Doubles, Doubles]:
    """ln f(μ, e) and ln(1 − f(μ, e)) for e ≥ 0, by the cases above."""
    a, b = e / mu - mu / 2, e / mu + mu / 2
    log_phi = -a * a / 2 - _LOG_SQRT_2PI
    log_f = np.empty_like(mu)
    log_not_f = np.empty_like(mu)

    far = a > _FAR_OUT
    near = ~far & (mu < 1)
    low = ~far & ~near & (a <= 0)
    rest = ~far & ~near & ~low
    log_f[far] = log_phi[far] + np.log(_mills_drop_far(a[far], mu[far]))
    log_f[near] = log_phi[near] + np.log(_mills_drop_near(a[near], mu[near]))
    log_f[rest] = log_phi[rest] + np.log(_mills(a[rest]) - _mills(b[rest]))
    log_not_f[~low] = np.log1p(-np.exp(log_f[~low]))
    log_not_f[low] = log_phi[low] + np.log(_mills(-a[low]) + _mills(b[low]))
    log_f[low] = np.log1p(-np.exp(log_not_f[low]))
    return log_f, log_not_f


def _mills(t: Doubles) -> Doubles:
    """R(t) = Φ(−t)/φ(t)."""
    ratio: Doubles = np.sqrt(np.pi / 2) * erfcx(t / np.sqrt(2))
    return ratio


def _mills_drop_near(a: Doubles, mu: Doubles) -> Doubles:
    """R(a) − R(a + μ) = ∫ (1 − t R(t)) dt, for μ < 1 and a ≤ 50."""
    total = np.zeros_like(a)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        t = a + mu * (node + 1) / 2
        total += weight * (1 - t * _mills(t))
    drop: Doubles = total * mu / 2
    return drop


def _mills_drop_far(a: Doubles, mu: Doubles) -> Doubles:
    """R(a) − R(a + μ) for a > 50, with 1/aⁿ − 1/bⁿ = (1 − e^(−n ln(1 + μ/a)))/aⁿ."""
    stretch = np.log1p(mu / a)
    total = np.zeros_like(a)
    for n, coefficient in ((9, 105.0), (7, -15.0), (5, 3.0), (3, -1.0), (1, 1.0)):
        total += coefficient * -np.expm1(-n * stretch) / a**n
    return total


def _log_minus_log_p(x: float) -> float:
    """ln(−ln Φ(x)) for x > 0."""
    return float(log_ndtr(-x)) if x > 20 else float(np.log(-np.log1p(-ndtr(-x))))
