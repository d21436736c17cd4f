"""Calibration to what is left: the smallest noise and threshold with which k equal releases still fit a budget.

Once a budget is divided (limits.py), k releases have a k-th of the S and of the D that are left: one says which σ is
the smallest, the other which τ*. The first releases of all divide it themselves: σ can be had for τ* and the reverse,
so with both open σ is chosen where τ* is smallest (by a search in doubles, so nearly). One release alone is accounted
for exactly, and calibrated by ``calibration``. Every answer is certified: it fits, and the next double below (for C_u
the next integer above) does not.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from flint import arb

from gsh.accounting.accountings import EXACT
from gsh.accounting.budget_limits import Limit
from gsh.accounting.calibration.draft import ANY_TAU_STAR, Draft, Parameter, Target
from gsh.accounting.calibration.target import calibrate
from gsh.accounting.composition import Spent, cost_of, delta_at
from gsh.accounting.errors import InfeasibleTarget, InvalidParameter
from gsh.accounting.mechanism import MOST_C_U, Mechanism
from gsh.accounting.numerics.balls import largest_integer, smallest_double

__all__ = ["Remainder", "calibrate_remainder"]

_LEAST = math.nextafter(0, 1)
_WIDEST_GAP = 40.0  # in σ; past it a threshold costs nothing that doubles could tell
_HALVINGS, _GOLDEN_STEPS = 30, 20
_GRID, _WIDEST_SIGMA = 24, 64.0


@dataclass(frozen=True, slots=True)
class Remainder:
    """The completed mechanism, what was solved, and the certified δ at the target's ε once all releases are made."""

    mechanism: Mechanism
    solved: tuple[Parameter, ...]
    delta: float


def calibrate_remainder(spent: Spent, draft: Draft, releases: int, limit: Limit) -> Remainder:
    """Solve for what the draft leaves out, so that ``releases`` equal ones fit beside what is spent."""
    draft.check()
    left = _Left(spent, releases, limit)
    if spent.releases == 0 and releases == 1:
        mechanism = calibrate(EXACT, draft, Target(limit.epsilon, limit.delta)).mechanism
    elif limit.used(spent) == 1:
        raise InfeasibleTarget("", "cannot be solved: nothing is left of the budget")
    else:
        match draft.missing:
            case ("sigma", "tau_star"):
                mechanism = left.with_smallest_tau_star(draft.with_sigma(left.best_sigma(draft)))
            case ("tau_star",):
                assert draft.sigma is not None
                mechanism = left.with_smallest_tau_star(draft.with_sigma(draft.sigma))
            case ("sigma",):
                mechanism = left.with_smallest_sigma(draft)
            case ("c_u",):
                assert draft.sigma is not None
                mechanism = left.with_largest_c_u(draft.with_sigma(draft.sigma))
            case _:
                detail = "must leave out exactly what is to be solved: sigma, tau_star, both, or c_u"
                raise InvalidParameter("", detail)
    return Remainder(mechanism, draft.missing, delta_at(left.after(mechanism), limit.epsilon))


@dataclass(frozen=True, slots=True)
class _Left:
    spent: Spent
    releases: int
    limit: Limit

    def after(self, mechanism: Mechanism) -> Spent:
        return self.spent.plus(mechanism, cost_of(mechanism), self.releases)

    def allows(self, mechanism: Mechanism) -> bool:
        return self.limit.admits_several(self.after(mechanism))

    def with_smallest_tau_star(self, draft: Draft) -> Mechanism:
        """A higher threshold costs less, so there is a smallest."""
        assert draft.sigma is not None
        if not self.allows(draft.complete(tau_star=ANY_TAU_STAR)):
            least = self.least_sigma(draft)
            raise InfeasibleTarget("sigma", f"must be at least {least!r} to fit the budget, whatever tau_star is")
        lowest = float(max(draft.tau, 1))
        guess = lowest + draft.sigma * (self.gap_in_sigmas(draft) or 1.0)
        tau_star = smallest_double(
            lambda candidate: self.allows(draft.complete(tau_star=candidate)),
            guess=arb(guess),
            lowest=math.nextafter(lowest, math.inf),
        )
        if tau_star is None:
            raise InfeasibleTarget("sigma", "must be smaller: the tau_star needed exceeds the largest double")
        return draft.complete(tau_star=tau_star)

    def with_smallest_sigma(self, draft: Draft) -> Mechanism:
        """At a given τ* a small σ is dear by its noise, a large one by its threshold; between them is the workable."""
        assert draft.tau_star is not None
        open_draft = replace(draft, tau_star=None)
        least, best = self.least_sigma(open_draft), self.best_sigma(open_draft)
        candidates = (best, *(least * math.pow(_WIDEST_SIGMA, k / _GRID) for k in range(_GRID + 1)))

        def allows(sigma: float) -> bool:
            return self.allows(draft.with_sigma(sigma).complete())

        workable = next((sigma for sigma in candidates if allows(sigma)), None)
        if workable is None:
            needed = self.with_smallest_tau_star(open_draft.with_sigma(best)).tau_star
            raise InfeasibleTarget("tau_star", f"must be at least {needed!r} or so to fit the budget")
        smallest = smallest_double(allows, guess=arb(workable), lowest=_LEAST)
        assert smallest is not None
        return draft.with_sigma(smallest).complete()

    def with_largest_c_u(self, draft: Draft) -> Mechanism:
        c_u = largest_integer(lambda c_u: self.allows(draft.complete(c_u=c_u)), arb(1), MOST_C_U)
        if c_u == 0:
            raise InfeasibleTarget("tau_star", "and sigma must be larger: not even a c_u of 1 fits the budget")
        return draft.complete(c_u=c_u)

    def least_sigma(self, draft: Draft) -> float:
        """The σ below which the noise alone does not fit, whatever the threshold."""
        sigma = smallest_double(
            lambda sigma: self.allows(draft.with_sigma(sigma).complete(tau_star=ANY_TAU_STAR)), arb(1), _LEAST
        )
        if sigma is None:
            detail = "must be smaller, or the noise on the other columns larger: no sigma fits the budget"
            raise InfeasibleTarget("c_u", detail)
        return sigma

    def best_sigma(self, draft: Draft) -> float:
        """About the σ that has the smallest τ*. Undivided, near the least one thresholds make up for the noise."""
        if self.limit.proportion is not None:
            return self.least_sigma(draft)
        least = math.log(self.least_sigma(draft))

        def tau_star(log_sigma: float) -> float:
            sigma = math.exp(log_sigma)
            return sigma * (self.gap_in_sigmas(draft.with_sigma(sigma)) or math.inf)

        return math.exp(_golden(tau_star, least, least + 1))

    def gap_in_sigmas(self, draft: Draft) -> float | None:
        """About the least (τ* − τ)/σ that fits, None where none does."""
        assert draft.sigma is not None
        lowest, sigma = max(draft.tau, 1), draft.sigma

        def allows(gap: float) -> bool:
            tau_star = lowest + gap * sigma
            return tau_star > lowest and self.allows(draft.complete(tau_star=min(tau_star, ANY_TAU_STAR)))

        low, high = 0.0, _WIDEST_GAP
        if not allows(high):
            return None
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if allows(middle) else (middle, high)
        return high


def _golden(function: Callable[[float], float], low: float, high: float) -> float:
    """About where a function that falls and then rises is least."""
    share = (math.sqrt(5) - 1) / 2
    for _ in range(_GOLDEN_STEPS):
        inner, outer = high - share * (high - low), low + share * (high - low)
        low, high = (low, outer) if function(inner) < function(outer) else (inner, high)
    return (low + high) / 2
