"""Mechanisms that meet a target (ε, δ): by one accounting, or by all of them for comparison."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from gsh.accounting.accountings import ADD_DELTAS, EXACT
from gsh.accounting.calibration import comparison, draft, target
from gsh.accounting.calibration.comparison import ComparedName
from gsh.accounting.calibration.draft import Parameter
from gsh.accounting.errors import InvalidParameter
from gsh.library.arguments import Integer, Real, integer, real, renamed
from gsh.library.parameters import MU_0, Aggregates, Mechanism, RelativeAggregates, columns_of, mechanism_of
from gsh.library.privacy import Privacy, privacy_of

__all__ = ["Calibration", "Comparison", "Price", "calibrate", "compare"]

_ACCOUNTINGS = {accounting.name: accounting for accounting in (EXACT, ADD_DELTAS)}


@dataclass(frozen=True, slots=True)
class Calibration:
    """A complete mechanism that meets the target, and the certified (ε, δ) that it reaches."""

    mechanism: Mechanism
    solved: tuple[Parameter, ...]
    """The parameters that were omitted and solved for."""
    privacy: Privacy
    largest_sigma: float | None = None
    """If σ alone was solved for: the largest σ that also meets the target. None if there is no largest."""


@dataclass(frozen=True, slots=True)
class Price:
    """The noise and the threshold that one accounting asks for the target."""

    mechanism: Mechanism
    privacy: Privacy
    least_sigma: float
    """The smallest σ whose noise alone meets the target. Below it no τ* helps."""
    sigma_ratio: float
    """σ divided by the σ of exact accounting."""
    tau_star_ratio: float
    """τ* divided by the τ* of exact accounting."""


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Mapping[ComparedName, Price | None]):
    """The price of each accounting at one target, cheapest first. None: that accounting cannot meet the target."""

    epsilon: float
    delta: float
    prices: tuple[tuple[ComparedName, Price | None], ...]
    """Pairs and not a dictionary: a comparison is hashable and can be pickled."""

    def __getitem__(self, accounting: ComparedName) -> Price | None:
        return dict(self.prices)[accounting]

    def __iter__(self) -> Iterator[ComparedName]:
        return iter(dict(self.prices))

    def __len__(self) -> int:
        return len(self.prices)

    def __repr__(self) -> str:
        """A table to read."""
        lines = [f"{'accounting':<12}{'sigma':>14}{'tau_star':>14}{'sigma ratio':>14}{'tau_star ratio':>16}"]
        for accounting, price in self.prices:
            if price is None:
                lines.append(f"{accounting:<12}{'cannot meet the target':>28}")
                continue
            numbers = f"{price.mechanism.sigma:>14.8g}{price.mechanism.tau_star:>14.8g}"
            lines.append(f"{accounting:<12}{numbers}{price.sigma_ratio:>14.5f}{price.tau_star_ratio:>16.5f}")
        return "\n".join(lines)


def calibrate(
    *,
    epsilon: Real,
    delta: Real,
    c_u: Integer | None = None,
    tau: Integer = 1,
    tau_star: Real | None = None,
    sigma: Real | None = None,
    mu_0: Real = 0.0,
    aggregates: Aggregates | RelativeAggregates | None = None,
    accounting: Literal["exact", "add-deltas"] = "exact",
) -> Calibration:
    """Solve for the omitted parameters, so that the mechanism meets (ε, δ).  [docs/math/closed-form.md]

        omit sigma and tau_star    the smallest σ with f(μ, ε) ≤ δ, then the smallest τ*
        omit tau_star              the smallest τ*:  τ* − τ = σ Φ⁻¹((1 − δ)^(1/C_u))
        omit sigma                 the smallest σ at that τ*, and the largest
        omit c_u                   the largest C_u

    The formulas are those of exact accounting. The answer meets the target, and the next double below it does not (for
    C_u: the next integer above it). ``InfeasibleTarget`` says what would make an impossible target possible.

    >>> import gsh
    >>> found = gsh.calibrate(c_u=51914, epsilon=0.349, delta=1e-5)
    >>> found.mechanism
    Mechanism(c_u=51914, tau=1, tau_star=13951.051328063842, sigma=2228.482632459166)
    >>> found.privacy.delta
    9.999999999999999e-06
    >>> gsh.calibrate(tau_star=15000, sigma=2300, epsilon=0.349, delta=1e-5).mechanism.c_u
    55299
    """
    if not isinstance(accounting, str) or accounting not in _ACCOUNTINGS:
        raise InvalidParameter("accounting", "must be 'exact' or 'add-deltas'")
    start = _draft(c_u=c_u, tau=tau, tau_star=tau_star, sigma=sigma, mu_0=mu_0, aggregates=aggregates)
    goal = _target(epsilon=epsilon, delta=delta)
    try:
        with renamed(MU_0):
            found = target.calibrate(_ACCOUNTINGS[accounting], start, goal)
    except InvalidParameter as error:
        if error.pointer:
            raise
        # Not one parameter is wrong, but the choice of those that are omitted.
        detail = "omit sigma, tau_star, both, or c_u: exactly the parameters to solve for"
        raise InvalidParameter("sigma", detail) from None
    return Calibration(
        mechanism_of(found.mechanism), found.solved, privacy_of(accounting, found.point), found.largest_sigma
    )


def compare(
    *,
    c_u: Integer,
    epsilon: Real,
    delta: Real,
    tau: Integer = 1,
    mu_0: Real = 0.0,
    aggregates: Aggregates | RelativeAggregates | None = None,
) -> Comparison:
    """The noise and the threshold that each accounting asks for the same target.  [docs/math/other-accountings.md]

        exact         max(δ_infinite, δ_gaussian) ≤ δ
        add-deltas    δ_infinite + δ_gaussian ≤ δ, at the σ with the smallest τ*
        half-split    δ_infinite ≤ δ/2 and δ_gaussian ≤ δ/2
        zcdp          as add-deltas, with δ_gaussian from ρ-zCDP

    >>> import gsh
    >>> gsh.compare(c_u=51914, epsilon=0.349, delta=1e-5)
    accounting           sigma      tau_star   sigma ratio  tau_star ratio
    exact            2228.4826     13951.051       1.00000         1.00000
    add-deltas       2274.4331     14713.036       1.02062         1.05462
    half-split       2334.7379     14866.526       1.04768         1.06562
    zcdp             2486.5062     16054.911       1.11578         1.15080
    """
    start = _draft(c_u=integer("c_u", c_u), tau=tau, mu_0=mu_0, aggregates=aggregates)
    goal = _target(epsilon=epsilon, delta=delta)
    with renamed(MU_0):
        found = comparison.compare(start, goal)
    return Comparison(goal.epsilon, goal.delta, tuple((name, _price(name, price)) for name, price in found.items()))


def _price(accounting: ComparedName, found: comparison.Price | None) -> Price | None:
    if found is None:
        return None
    return Price(
        mechanism=mechanism_of(found.mechanism),
        privacy=privacy_of(accounting, found.point),
        least_sigma=found.least_sigma,
        sigma_ratio=found.sigma_ratio,
        tau_star_ratio=found.tau_star_ratio,
    )


def _draft(
    *,
    c_u: Integer | None = None,
    tau: Integer = 1,
    tau_star: Real | None = None,
    sigma: Real | None = None,
    mu_0: Real = 0.0,
    aggregates: Aggregates | RelativeAggregates | None = None,
) -> draft.Draft:
    """A mechanism with None for each parameter to solve for."""
    if not isinstance(aggregates, Aggregates | RelativeAggregates | None):
        detail = f"must be gsh.Aggregates or gsh.RelativeAggregates, not {type(aggregates).__name__}"
        raise InvalidParameter("aggregates", detail)
    number = real("mu_0", mu_0)
    if aggregates is not None and number != 0:
        raise InvalidParameter("mu_0", "must be omitted if aggregates are given")
    return draft.Draft(
        c_u=None if c_u is None else integer("c_u", c_u),
        tau=integer("tau", tau),
        tau_star=None if tau_star is None else real("tau_star", tau_star),
        sigma=None if sigma is None else real("sigma", sigma),
        columns=number if aggregates is None else columns_of(aggregates),
    )


def _target(*, epsilon: Real, delta: Real) -> draft.Target:
    return draft.Target(real("epsilon", epsilon) + 0.0, real("delta", delta))
