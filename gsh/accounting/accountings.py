"""The accountings: exact, add-deltas, zCDP. Each combines two costs into one δ.

δ_infinite    = 1 − p^C_u,  p = Φ((τ* − τ)/σ)           the threshold: a group that only one user is in is released
δ_gaussian(ε) = f(μ, ε),    μ² = S(C_u)                 the noise on the groups that exist without the user

exact         δ(ε) = max(δ_infinite, δ_gaussian(ε))     [KKWZ Thm. 5.4; docs/math/closed-form.md]
              and the worst split in between, if there are several tables or caps on columns (frontier.py)
              and all that can follow a survey, if there is one (two_stages.py)
add-deltas    δ(ε) = δ_infinite + δ_gaussian(ε)         [KKWZ Thm. 4.1, Cor. 5.4.1], an over-estimate
zcdp          as add-deltas, with the δ of zCDP in place of f (zcdp.py): a larger over-estimate
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

from flint import arb

from gsh.accounting import gaussian, zcdp
from gsh.accounting.chords import Mixture
from gsh.accounting.frontier import Worst, epsilon_guess, frontier_of, worst_of
from gsh.accounting.mechanism import Mechanism, Release, Surveyed, hazard_ball, mu_ball
from gsh.accounting.numerics.balls import approximate, at_most, round_up
from gsh.accounting.numerics.search import smallest_double
from gsh.accounting.two_stages import TwoStages, epsilon_guess_after, worst_after
from gsh.errors import InvalidParameter

__all__ = [
    "ADD_DELTAS",
    "EXACT",
    "LARGER_PART",
    "ZCDP",
    "Accounting",
    "AccountingName",
    "Binding",
    "NoiseCost",
    "Point",
    "at_delta",
    "at_epsilon",
    "check_target",
    "delta_infinite",
    "fits",
]

AccountingName = Literal["exact", "add-deltas"]
Binding = Literal["gaussian", "infinite", "mixed", "both"]

# The most that δ_infinite, δ_gaussian and μ can be, and a further δ.
_PARTS = (1.0, 1.0, math.inf)
_PARTS_AND_TOTAL = (*_PARTS, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class NoiseCost:
    """The δ that an accounting charges for noise: ``delta(μ, ε)``, and approximately its inverse ``mu_at(ε, δ)``."""

    delta: Callable[[arb, arb], arb]
    mu_at: Callable[[arb, arb], arb]


def _larger(infinite: arb, gaussian: arb) -> arb:
    return infinite.max(gaussian)


Splits: TypeAlias = Worst | TwoStages | Mixture
"""What can cost more than either part: its ``largest(ε)`` is a ball, and ``ground`` helps to compute it."""


def _no_splits(_release: Release, _epsilon: float) -> Splits | None:
    return None


def _splits(release: Release, epsilon: float) -> Splits:
    return worst_after(release, epsilon) if isinstance(release, Surveyed) else worst_of(release, epsilon)


@dataclass(frozen=True, slots=True, eq=False)
class Accounting:
    """A rule that combines two costs into δ: ``total``. ``room`` is the δ for one cost if the other is ``spent()``.

    ``splits`` are further candidates for δ, which mix the two costs.
    """

    name: AccountingName | Literal["zcdp"]
    noise: NoiseCost
    total: Callable[[arb, arb], arb]
    room: Callable[[arb, Callable[[], arb]], arb]
    binding: Callable[[float, float, float], Binding]
    """Which cost decides δ, from δ_infinite, δ_gaussian and δ."""
    splits: Callable[[Release, float], Splits | None] = _no_splits

    def decouples(self, release: Release) -> bool:
        """Whether a target bounds each of the two costs by itself."""
        return self.total is _larger and (self.splits is _no_splits or not _has_cuts(release))


def _has_cuts(release: Release) -> bool:
    """Whether a split between the two ends can be the worst: one table without caps on columns has none."""
    if isinstance(release, Surveyed):
        return True
    return bool(release.caps) if isinstance(release, Mechanism) else bool(frontier_of(release.without_columns).cuts)


_ANALYTIC = NoiseCost(gaussian.delta, gaussian.mu_at)

EXACT = Accounting(
    name="exact",
    noise=_ANALYTIC,
    total=_larger,
    room=lambda delta, _spent: delta,
    binding=lambda infinite, gaussian, total: (
        "mixed" if total > max(infinite, gaussian) else "infinite" if infinite > gaussian else "gaussian"
    ),
    splits=_splits,
)
LARGER_PART = replace(EXACT, splits=_no_splits)
"""The larger of the two costs, for rules that bound each by itself. With caps on columns it is less than δ."""
ADD_DELTAS = Accounting(
    name="add-deltas",
    noise=_ANALYTIC,
    total=lambda infinite, gaussian: infinite + gaussian,
    room=lambda delta, spent: delta - spent(),
    binding=lambda _infinite, _gaussian, _total: "both",
)
ZCDP = replace(ADD_DELTAS, name="zcdp", noise=NoiseCost(zcdp.delta, zcdp.mu_at))


class Point(NamedTuple):
    """One certified point of a privacy curve. ``epsilon`` and ``delta_gaussian`` are None if no finite ε exists.

    ``mu`` belongs to the mechanism and is the same along the whole curve.
    """

    epsilon: float | None
    delta: float
    delta_gaussian: float | None
    delta_infinite: float
    binding: Binding
    mu: float


def delta_infinite(release: Release) -> arb:
    """1 − p^C_u = 1 − e^(−hazard), as a ball.  [KKWZ Thm. 5.4, T1]"""
    return -(-hazard_ball(release)).expm1()


def at_epsilon(accounting: Accounting, release: Release, epsilon: float) -> Point:
    """The smallest δ at ε that the accounting can claim, rounded up and at most 1."""
    _check_epsilon(epsilon)
    decouples = accounting.decouples(release)
    worst = None if decouples else accounting.splits(release, epsilon)

    def parts() -> tuple[arb, ...]:
        ground = None if worst is None else worst.ground()
        infinite = delta_infinite(release) if ground is None else -(-ground.hazard).expm1()
        mu = mu_ball(release)
        noise = accounting.noise.delta(mu, arb(epsilon))
        if decouples:
            return infinite, noise, mu
        total = accounting.total(infinite, noise)
        return infinite, noise, mu, total if worst is None else total.max(worst.largest(epsilon, ground))

    infinite, noise, mu, *mixed = round_up(parts, _PARTS if decouples else _PARTS_AND_TOTAL)
    total = mixed[0] if mixed else max(infinite, noise)
    return Point(epsilon, total, noise, infinite, accounting.binding(infinite, noise, total), _finite(mu))


def at_delta(accounting: Accounting, release: Release, delta: float) -> Point:
    """The smallest ε at δ that the accounting can claim, rounded up; None if no finite ε exists."""
    _check_delta(delta)
    infinite, mu = round_up(lambda: (delta_infinite(release), mu_ball(release)), ceilings=(1.0, math.inf))
    mu = _finite(mu)
    if infinite > delta:
        return Point(None, delta, None, infinite, accounting.binding(infinite, 0.0, infinite), mu)

    def point(epsilon: float) -> Point:
        if not accounting.decouples(release):
            return at_epsilon(accounting, release, epsilon)
        (noise,) = round_up(lambda: [accounting.noise.delta(mu_ball(release), arb(epsilon))], ceilings=(1.0,))
        total = max(infinite, noise)
        return Point(epsilon, total, noise, infinite, accounting.binding(infinite, noise, total), mu)

    # The search ends at a point that it has evaluated already, so it keeps all of them.
    points: dict[float, Point] = {}

    def meets(epsilon: float) -> bool:
        points[epsilon] = point(epsilon)
        return points[epsilon].delta <= delta

    def root() -> arb:
        return gaussian.epsilon_at(mu_ball(release), accounting.room(arb(delta), lambda: delta_infinite(release)))

    if accounting is EXACT and isinstance(release, Surveyed):
        guess = epsilon_guess_after(release, delta)
    elif accounting is EXACT and _has_cuts(release):
        guess = epsilon_guess(release.without_columns, delta)
    else:
        guess = approximate(root)
    epsilon = smallest_double(meets, guess, lowest=0.0)
    if epsilon is None:
        raise InvalidParameter("sigma", "must be large enough that ε is a finite double")
    return points[epsilon]._replace(delta=delta)


def fits(accounting: Accounting, release: Release, epsilon: float, delta: float) -> bool:
    """Whether the release is provably (ε, δ)-private by the accounting: ``at_epsilon(…).delta <= delta``."""

    def total() -> arb:
        return accounting.total(delta_infinite(release), accounting.noise.delta(mu_ball(release), arb(epsilon)))

    # The two costs alone are cheap, and decide most searches.
    if not at_most(lambda: (total(), arb(delta))):
        return False
    if accounting.decouples(release):
        return True
    worst = accounting.splits(release, epsilon)
    return worst is None or at_most(lambda: (worst.largest(epsilon), arb(delta)))


def check_target(epsilon: float, delta: float) -> None:
    _check_epsilon(epsilon)
    _check_delta(delta)


def _finite(mu: float) -> float:
    if math.isinf(mu):
        raise InvalidParameter("sigma", "must be large enough that μ is a finite double")
    return mu


def _check_epsilon(epsilon: float) -> None:
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise InvalidParameter("epsilon", "must be at least 0 and finite")


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise InvalidParameter("delta", "must be greater than 0 and less than 1")
