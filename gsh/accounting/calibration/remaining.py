"""Calibration to the remaining budget: the smallest noise and threshold with which k equal releases still fit.

Once a limit has its caps (budget_limits.py), each of k releases gets a k-th of the remaining ``mu_squared``, which
gives the smallest σ, and of the remaining ``hazard``, which gives the smallest τ*. Before the first charge the k
releases fix the caps themselves, and more noise allows a lower threshold. Then, if both are missing, a search finds
nearly the σ that has the smallest τ*. A single first release has exact accounting (target.py). Every answer is
certified: it fits, and the next double below it (for C_u the next integer above) does not.

A budget may have ancestors, and a release must fit all of them. ``above`` has their accounts.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from flint import arb

from gsh.accounting.accountings import EXACT
from gsh.accounting.budget_limits import Account, Limit
from gsh.accounting.calibration.draft import ANY_TAU_STAR, Draft, Parameter, Target
from gsh.accounting.calibration.target import calibrate
from gsh.accounting.composition import Spent, cost_of, delta_at
from gsh.accounting.mechanism import MOST_C_U, Mechanism
from gsh.accounting.numerics.doubles import LEAST_DOUBLE
from gsh.accounting.numerics.search import first_on_grid, golden_section, largest_integer, smallest_double
from gsh.errors import InfeasibleTarget, InvalidParameter

__all__ = ["RemainingCalibration", "calibrate_remaining"]

_WIDEST_GAP = 40.0  # in σ; beyond it the cost of a threshold is less than a double can show
_GAP_STEPS, _GOLDEN_STEPS = 2**30, 20
_GRID, _WIDEST_SIGMA = 24, 64.0


@dataclass(frozen=True, slots=True)
class RemainingCalibration:
    """The completed mechanism, the solved parameters, and the certified δ at the limit's ε after all releases."""

    mechanism: Mechanism
    solved: tuple[Parameter, ...]
    delta: float


def calibrate_remaining(
    spent: Spent, draft: Draft, releases: int, limit: Limit, above: Sequence[Account] = ()
) -> RemainingCalibration:
    """Solve for the parameters that the draft omits, so that ``releases`` equal ones fit the remaining budget."""
    draft.check()
    remaining = _Remaining((Account(spent, limit), *above), releases)
    if spent.releases == 0 and releases == 1 and not above:
        mechanism = calibrate(EXACT, draft, Target(limit.epsilon, limit.delta)).mechanism
    elif any(each.limit.used(each.spent) == 1 for each in remaining.accounts):
        raise InfeasibleTarget("", "cannot be solved: the budget is used up")
    else:
        match draft.missing:
            case ("sigma", "tau_star"):
                mechanism = remaining.with_smallest_tau_star(draft.with_sigma(remaining.best_sigma(draft)))
            case ("tau_star",):
                assert draft.sigma is not None
                mechanism = remaining.with_smallest_tau_star(draft.with_sigma(draft.sigma))
            case ("sigma",):
                mechanism = remaining.with_smallest_sigma(draft)
            case ("c_u",):
                assert draft.sigma is not None
                mechanism = remaining.with_largest_c_u(draft.with_sigma(draft.sigma))
            case _:
                raise InvalidParameter("", "must omit exactly the fields to solve for: sigma, tau_star, both, or c_u")
    after = spent.plus(mechanism, cost_of(mechanism), releases)
    return RemainingCalibration(mechanism, draft.missing, delta_at(after, limit.epsilon))


@dataclass(frozen=True, slots=True)
class _Remaining:
    """The accounts of a budget and its ancestors, and the number of equal releases to come."""

    accounts: tuple[Account, ...]
    releases: int

    def allows(self, mechanism: Mechanism) -> bool:
        """Whether the releases fit all accounts. A single first one has exact accounting."""
        cost = cost_of(mechanism)
        return all(account.admits(mechanism, cost, self.releases) for account in self.accounts)

    @property
    def fixes_caps(self) -> bool:
        """Whether the releases divide a budget between noise and thresholds by their proportion."""
        return self.releases > 1 and any(account.limit.proportion is None for account in self.accounts)

    def with_smallest_tau_star(self, draft: Draft) -> Mechanism:
        """The smallest τ* at the draft's σ. A higher threshold costs less, so there is a smallest one."""
        assert draft.sigma is not None
        if not self.allows(draft.complete(tau_star=ANY_TAU_STAR)):
            least = self.least_sigma(draft)
            raise InfeasibleTarget("sigma", f"must be at least {least!r} to fit the budget, whatever tau_star is")
        guess = draft.least_tau_star + draft.sigma * (self.gap_in_sigmas(draft) or 1.0)
        tau_star = smallest_double(
            lambda candidate: self.allows(draft.complete(tau_star=candidate)),
            guess=arb(guess),
            lowest=draft.least_tau_star,
        )
        if tau_star is None:
            raise InfeasibleTarget("sigma", "must be smaller: the tau_star needed exceeds the largest double")
        return draft.complete(tau_star=tau_star)

    def with_smallest_sigma(self, draft: Draft) -> Mechanism:
        """The smallest σ at the draft's τ*. A small σ costs too much noise, a large one too much threshold."""
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
        smallest = smallest_double(allows, guess=arb(workable), lowest=LEAST_DOUBLE)
        assert smallest is not None
        return draft.with_sigma(smallest).complete()

    def with_largest_c_u(self, draft: Draft) -> Mechanism:
        """The largest C_u at the draft's σ and τ*."""
        c_u = largest_integer(lambda c_u: self.allows(draft.with_c_u(c_u).complete()), arb(1), MOST_C_U)
        if c_u == 0:
            raise InfeasibleTarget("tau_star", "must be larger, and sigma too: not even a c_u of 1 fits the budget")
        return draft.complete_largest(c_u)

    def least_sigma(self, draft: Draft) -> float:
        """The smallest σ whose noise alone fits, at any threshold."""
        sigma = smallest_double(
            lambda sigma: self.allows(draft.with_sigma(sigma).complete(tau_star=ANY_TAU_STAR)), arb(1), LEAST_DOUBLE
        )
        if sigma is None:
            detail = "must be smaller, or the noise on the other columns larger: no sigma fits the budget"
            raise InfeasibleTarget("c_u", detail)
        return sigma

    def best_sigma(self, draft: Draft) -> float:
        """Approximately the σ with the smallest τ*: the least σ once caps are fixed, and a larger one before that."""
        if not self.fixes_caps:
            return self.least_sigma(draft)
        least = math.log(self.least_sigma(draft))

        def tau_star(log_sigma: float) -> float:
            sigma = math.exp(log_sigma)
            return sigma * (self.gap_in_sigmas(draft.with_sigma(sigma)) or math.inf)

        left, right = next(islice(golden_section(tau_star, least, least + 1), _GOLDEN_STEPS, None))
        return math.exp((left + right) / 2)

    def gap_in_sigmas(self, draft: Draft) -> float | None:
        """Approximately the least (τ* − τ)/σ that fits; None if none does."""
        assert draft.sigma is not None
        tau, sigma = draft.effective_tau, draft.sigma

        def allows(gap: float) -> bool:
            tau_star = tau + gap * sigma
            return tau_star > tau and self.allows(draft.complete(tau_star=min(tau_star, ANY_TAU_STAR)))

        return first_on_grid(allows, 0.0, _WIDEST_GAP, _GAP_STEPS) if allows(_WIDEST_GAP) else None
