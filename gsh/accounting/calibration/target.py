"""Calibration: the smallest σ or τ*, or the largest C_u, that meets a target (ε, δ).

Exact accounting decouples [docs/math/closed-form.md]: the noise must have δ_gaussian ≤ δ and the threshold
δ_infinite ≤ δ, each by itself. So one mechanism has the smallest σ and the smallest τ*. Add-deltas shares δ. So does
exact accounting of columns with caps of their own [docs/math/column-caps.md].

Every search starts from a closed form or Newton's method. It ends with certified comparisons by the accounting itself:
the answer meets the target, and the next double below it (for C_u the next integer above) does not.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice

from flint import arb

from gsh.accounting import gaussian
from gsh.accounting.accountings import EXACT, Accounting, NoiseCost, Point, at_epsilon, fits
from gsh.accounting.calibration.draft import ANY_TAU_STAR, Draft, Parameter, Target
from gsh.accounting.column_costs import ColumnCosts
from gsh.accounting.frontier import frontier_of, scale_guess
from gsh.accounting.mechanism import Mechanism, log_p_ball, mu_ball
from gsh.accounting.numerics.balls import approximate, at_most, upper_double
from gsh.accounting.numerics.doubles import LEAST_DOUBLE
from gsh.accounting.numerics.search import golden_section, largest_double, largest_integer, smallest_double
from gsh.accounting.sensitivity import MOST_C_U
from gsh.errors import InfeasibleTarget, InvalidParameter

__all__ = ["CalibratedMechanism", "calibrate", "smallest_gap", "smallest_sigma_for_noise"]

_WIDEST = 2.0**40
_GRID = 32
_GOLDEN_STEPS = 80


@dataclass(frozen=True, slots=True)
class CalibratedMechanism:
    """The completed mechanism, the solved parameters, the certified point, and the largest σ that meets the target."""

    mechanism: Mechanism
    solved: tuple[Parameter, ...]
    point: Point
    largest_sigma: float | None = None


def calibrate(accounting: Accounting, draft: Draft, target: Target) -> CalibratedMechanism:
    """Solve for the parameters that the draft omits: σ and τ*, τ*, σ, or C_u."""
    draft.check()
    largest_sigma = None
    match draft.missing, draft.sigma:
        case ("sigma", "tau_star"), _:
            least = smallest_sigma_for_noise(accounting.noise, draft, target)
            mechanism = _with_smallest_tau_star(accounting, draft, least, target)
        case ("tau_star",), float() | int() as sigma:
            mechanism = _with_smallest_tau_star(accounting, draft, sigma, target)
        case ("c_u",), float() | int() as sigma:
            mechanism = _with_largest_c_u(accounting, draft, sigma, target)
        case ("sigma",), _:
            smallest, largest_sigma = _workable_sigmas(accounting, draft, target)
            mechanism = draft.with_sigma(smallest).complete()
        case _:
            raise InvalidParameter("", "must omit exactly the fields to solve for: sigma, tau_star, both, or c_u")
    point = at_epsilon(accounting, mechanism, target.epsilon)
    return CalibratedMechanism(mechanism, draft.missing, point, largest_sigma)


def smallest_sigma_for_noise(noise: NoiseCost, draft: Draft, target: Target) -> float:
    """The smallest σ with δ_gaussian ≤ δ at any threshold:  μ(σ) = μ*,  and the noise at μ* costs δ."""
    assert draft.c_u is not None
    c_u, fixed, relative = draft.c_u, draft.fixed_costs, draft.relative_costs

    def mu_star() -> arb:
        return noise.mu_at(arb(target.epsilon), arb(target.delta))

    def root() -> arb:
        return ((c_u + relative.squared(c_u)) / (mu_star() ** 2 - fixed.squared(c_u))).sqrt()

    def fits_at(sigma: float) -> bool:
        mechanism = _at_sigma(draft, sigma)
        return _noise_fits(noise, lambda: mu_ball(mechanism), target)

    if fixed != ColumnCosts() and not _noise_fits(noise, lambda: fixed.squared(c_u).sqrt(), target):
        raise InfeasibleTarget("aggregates", _more_column_noise(noise, fixed, c_u, target))
    sigma = smallest_double(fits_at, approximate(root), LEAST_DOUBLE)
    if sigma is None:
        raise InfeasibleTarget("c_u", "must be smaller: the sigma needed exceeds the largest double")
    return sigma


def _more_column_noise(noise: NoiseCost, fixed: ColumnCosts, c_u: int, target: Target) -> str:
    """The noise that the columns need, so that some σ meets the target."""

    def mu_star() -> arb:
        return noise.mu_at(arb(target.epsilon), arb(target.delta))

    factor = _three_digits_up(approximate(lambda: fixed.squared(c_u).sqrt() / mu_star()))
    reason = f"at this c_u the further columns alone exceed the target, and need more than {factor} times their noise"
    if fixed.capped:
        return f"must have more noise: {reason}"

    def fits_without_counts(mu_0: float) -> bool:
        return _noise_fits(noise, lambda: arb(c_u).sqrt() * mu_0, target)

    most = largest_double(fits_without_counts, LEAST_DOUBLE, approximate(lambda: mu_star() / arb(c_u).sqrt()))
    return f"must have mu_0 below {most!r}: {reason}"


def _three_digits_up(ratio: arb) -> str:
    """A positive number in three digits, rounded up: 0.005 of it is at least half a unit of the last digit."""
    return f"{float(f'{1.005 * upper_double(ratio):.2e}'):.9g}"


def _with_smallest_tau_star(accounting: Accounting, draft: Draft, sigma: float, target: Target) -> Mechanism:
    """The smallest τ* at a σ:  τ* − τ = σ Φ⁻¹((1 − δ′)^(1/C_u)),  δ′ the part of δ that the noise does not use."""
    at_sigma = draft.with_sigma(sigma)
    mechanism = at_sigma.complete(tau_star=ANY_TAU_STAR)
    if not _noise_fits(accounting.noise, lambda: mu_ball(mechanism), target):
        least = smallest_sigma_for_noise(accounting.noise, draft, target)
        raise InfeasibleTarget("sigma", f"must be at least {least!r} for this epsilon and delta, whatever tau_star is")

    tau_star = smallest_double(
        lambda candidate: _meets(accounting, at_sigma.complete(tau_star=candidate), target),
        guess=approximate(lambda: draft.effective_tau + smallest_gap(accounting, mechanism, target)),
        lowest=draft.least_tau_star,
    )
    if tau_star is None:
        raise InfeasibleTarget("sigma", "must be smaller: the tau_star needed exceeds the largest double")
    return at_sigma.complete(tau_star=tau_star)


def _workable_sigmas(accounting: Accounting, draft: Draft, target: Target) -> tuple[float, float | None]:
    """The smallest and the largest σ at the draft's τ*; None if every larger σ works too."""
    low = smallest_sigma_for_noise(accounting.noise, draft, target)
    mechanism = _at_sigma(draft, low)
    high = approximate(lambda: mechanism.tau_gap / _gap_in_sigmas(mechanism.c_u, arb(target.delta)))
    # To prove Σ and compute μ₀ at every σ is expensive; an unrounded Σ is enough for the search.
    unrounded = draft.unrounded()

    def meets(sigma: float) -> bool:
        return _meets(accounting, _at_sigma(draft, sigma), target)

    def nearly_meets(sigma: float) -> bool:
        return _meets(accounting, _at_sigma(unrounded, sigma), target)

    workable = low if meets(low) else _larger_workable_sigma(accounting, unrounded, target, low, float(high))
    guess = workable and smallest_double(nearly_meets, guess=arb(workable), lowest=LEAST_DOUBLE)
    smallest = guess and smallest_double(meets, guess=arb(guess), lowest=LEAST_DOUBLE)
    if guess is None or smallest is None:
        raise InfeasibleTarget("tau_star", _needed_tau_star(accounting, replace(draft, tau_star=None), low, target))
    # If δ > 1 − 2^(−C_u), no σ is too large for the threshold, and in the limit the noise costs nothing.
    most = math.inf if float(high) <= 0 else largest_double(nearly_meets, at_least=guess, guess=high)
    if math.isinf(most):
        return smallest, None
    return smallest, largest_double(meets, at_least=smallest, guess=arb(most))


def _needed_tau_star(accounting: Accounting, draft: Draft, low: float, target: Target) -> str:
    """The smallest τ* that has a workable σ: at the smallest σ if the costs decouple, otherwise at a larger σ."""
    if accounting.decouples(_at_sigma(draft, low)):
        needed = _with_smallest_tau_star(accounting, draft, low, target).tau_star
        return f"must be at least {needed!r} for this epsilon and delta"
    sigmas = [low * (1 + 2.0**-k) for k in range(12)]
    needed = min(_with_smallest_tau_star(accounting, draft, sigma, target).tau_star for sigma in sigmas)
    return f"must be at least {needed!r} or so for this epsilon and delta"


def _larger_workable_sigma(
    accounting: Accounting, draft: Draft, target: Target, low: float, high: float
) -> float | None:
    """A σ above ``low`` that meets the target at the draft's τ*, or None. If the costs decouple, ``low`` decides.

    Otherwise δ falls and then rises from ``low``, too small for the noise, to ``high``, too large for the
    threshold. If δ > 1 − 2^(−C_u), no σ is too large, and ``high`` is not positive.
    """
    if accounting.decouples(_at_sigma(draft, low)) or 0 < high <= low:
        return None
    span = high / low if 0 < high < math.inf else _WIDEST

    def sigma(position: float) -> float:
        return low * math.pow(span, position)

    def delta(position: float) -> float:
        return at_epsilon(accounting, _at_sigma(draft, sigma(position)), target.epsilon).delta

    best = min((k / _GRID for k in range(_GRID + 1)), key=delta)
    if delta(best) <= target.delta:
        return sigma(best)
    intervals = golden_section(delta, max(best - 1 / _GRID, 0.0), min(best + 1 / _GRID, 1.0))
    middles = ((left + right) / 2 for left, right in islice(intervals, _GOLDEN_STEPS))
    return next((sigma(middle) for middle in middles if delta(middle) <= target.delta), None)


def _with_largest_c_u(accounting: Accounting, draft: Draft, sigma: float, target: Target) -> Mechanism:
    """The largest C_u up to 10¹⁸ that the noise at a σ and the draft's threshold allow."""
    at_sigma = draft.with_sigma(sigma)

    def root() -> arb:
        square, costs = accounting.noise.mu_at(arb(target.epsilon), arb(target.delta)) ** 2, at_sigma.fixed_costs
        count = 1 / arb(sigma) ** 2
        # As if no cap were reached, and as if all were. The second is right if it exceeds all caps.
        above_caps = (square - costs.capped_squared) / (count + arb(costs.mu_0) ** 2)
        by_noise = (square / (count + costs.squared(1))).max(above_caps)
        return by_noise.min((-arb(target.delta)).log1p() / log_p_ball(at_sigma.with_c_u(1).complete()))

    c_u = largest_integer(
        lambda c_u: _meets(accounting, at_sigma.with_c_u(c_u).complete(), target), approximate(root), MOST_C_U
    )
    if c_u == 0:
        one = replace(draft.with_c_u(1), tau_star=None)
        needed = _with_smallest_tau_star(accounting, one, sigma, target).tau_star
        raise InfeasibleTarget("tau_star", f"must be at least {needed!r}, even for a c_u of 1")
    return at_sigma.complete_largest(c_u)


def _at_sigma(draft: Draft, sigma: float) -> Mechanism:
    return draft.with_sigma(sigma).complete(tau_star=ANY_TAU_STAR if draft.tau_star is None else draft.tau_star)


def smallest_gap(accounting: Accounting, mechanism: Mechanism, target: Target) -> arb:
    """Approximately σ Φ⁻¹((1 − δ′)^(1/C_u)): the τ* − τ at which δ_infinite = δ′, the part of δ left by the noise.

    If a mixed case of capped columns decides δ, it is larger.
    """
    if accounting is EXACT and mechanism.caps:
        frontier = frontier_of(mechanism.without_columns)
        ones = frontier.ground(lambda _table: arb(1))
        hazard = scale_guess(frontier, ones, target.epsilon, arb(target.delta))
        return mechanism.sigma * gaussian.quantile(-(-hazard).expm1())
    room = accounting.room(arb(target.delta), lambda: accounting.noise.delta(mu_ball(mechanism), arb(target.epsilon)))
    return mechanism.sigma * _gap_in_sigmas(mechanism.c_u, room)


def _gap_in_sigmas(c_u: int, delta: arb) -> arb:
    """(τ* − τ)/σ = Φ⁻¹((1 − δ)^(1/C_u)): the gap, in σ, at which δ_infinite = δ."""
    return gaussian.quantile(-((-delta).log1p() / c_u).expm1())


def _noise_fits(noise: NoiseCost, mu: Callable[[], arb], target: Target) -> bool:
    """Whether the noise costs at most δ at a μ, given as a ball."""
    return at_most(lambda: (noise.delta(mu(), arb(target.epsilon)), arb(target.delta)))


def _meets(accounting: Accounting, mechanism: Mechanism, target: Target) -> bool:
    return fits(accounting, mechanism, target.epsilon, target.delta)
