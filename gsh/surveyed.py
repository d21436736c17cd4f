"""What a release says of the survey before it: its histograms, what was fixed before, and what was chosen from it.

S and D of all tables are fixed before the survey. After it, the tables may be any that cost at most S and D. So a
budget is charged for S_h + S and D, whatever is chosen, and δ is that of tables that cost all of S and D.
[docs/math/two-stages.md]
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flint import arb

from gsh.accounting import gaussian
from gsh.accounting.calibration.after_survey import SurveyPlan
from gsh.accounting.mechanism import (
    FixedTables,
    Mechanism,
    PlainGaussian,
    Surveyed,
    SurveyNoise,
    hazard_ball,
    mechanisms_of,
    mu_squared_ball,
)
from gsh.accounting.numerics.balls import approximate, at_most
from gsh.accounting.numerics.doubles import next_below
from gsh.accounting.two_stages import is_exact
from gsh.errors import InvalidParameter

__all__ = ["Histogram", "SurveyStatement", "check_costs"]

_AFTER = "after_survey"
_MOST_STEPS = 64


@dataclass(frozen=True, slots=True)
class Histogram:
    """A noisy histogram over the users: what it counts them by, and where its bins end."""

    noise: SurveyNoise
    of: str = ""
    bins: tuple[float, ...] = ()

    def to_json(self) -> dict[str, Any]:
        described = {"of": self.of} if self.of else {}
        return {"sigma": self.noise.sigma} | described | ({"bins": list(self.bins)} if self.bins else {})


@dataclass(frozen=True, slots=True)
class SurveyStatement:
    """What the certificate of a release says of its survey."""

    histograms: tuple[Histogram, ...]
    mu_squared: float
    """S of all tables, fixed before the survey."""
    hazard: float
    """D of all tables, fixed before the survey."""
    chosen: tuple[str, ...] = ()
    """What was chosen from it, in words."""
    digest: str | None = None
    """The SHA-256 of the noisy histograms, if they were recorded."""

    @classmethod
    def of_plan(cls, plan: SurveyPlan, **further: Any) -> "SurveyStatement":
        """That of histograms of which only the noise is known."""
        return cls(tuple(map(Histogram, plan.survey)), plan.mu_squared, plan.hazard, **further)

    @property
    def plan(self) -> SurveyPlan:
        """What was fixed before the survey."""
        return SurveyPlan(tuple(each.noise for each in self.histograms), self.mu_squared, self.hazard)

    def release(self, tables: FixedTables) -> Surveyed:
        """What is charged: the survey, and tables that cost all that was fixed for them."""
        surveyed = Surveyed(self.plan.survey, tables)
        thresholds = [isinstance(each, Mechanism) for each in mechanisms_of(tables)]
        if all(thresholds) is not any(thresholds) or not is_exact(surveyed):
            return surveyed  # their shares of S and of D differ: then all of them count
        return Surveyed(self.plan.survey, _costing(self.mu_squared, self.hazard, tables))

    def to_json(self) -> dict[str, Any]:
        return {
            "histograms": [each.to_json() for each in self.histograms],
            "mu_squared": self.mu_squared,
            "hazard": self.hazard,
            "chosen": list(self.chosen),
        } | ({} if self.digest is None else {"digest": self.digest})

    @staticmethod
    def from_json(given: Mapping[str, Any]) -> "SurveyStatement":
        """Raises ``ValueError``, ``TypeError`` or ``LookupError`` if the object is not such a statement."""
        listed = tuple(
            Histogram(SurveyNoise(each["sigma"]), each.get("of", ""), tuple(each.get("bins", ())))
            for each in given["histograms"]
        )
        return SurveyStatement(
            listed, given["mu_squared"], given["hazard"], tuple(given["chosen"]), given.get("digest")
        )


def check_costs(plan: SurveyPlan, tables: FixedTables) -> None:
    """Refuse tables that cost more than was fixed before the survey."""
    bounds: Sequence[tuple[str, float, Callable[[FixedTables], arb]]] = (
        ("mu_squared", plan.mu_squared, mu_squared_ball),
        ("hazard", plan.hazard, hazard_ball),
    )
    for name, most, cost in bounds:
        if not at_most(lambda cost=cost, most=most: (cost(tables), arb(most))):  # type: ignore[misc]
            cause = "tau_star is too small" if name == "hazard" else "sigma is too small"
            detail = f"must be at least what the tables cost: {cause} for what was fixed before the survey"
            raise InvalidParameter(f"{_AFTER}/{name}", detail)


def _costing(square: float, hazard: float, tables: FixedTables) -> FixedTables:
    """A table of one group that costs S and D, or a little more."""
    if not any(isinstance(each, Mechanism) for each in mechanisms_of(tables)):
        sigma = _lowered(1 / math.sqrt(square), lambda each: (arb(square), 1 / arb(each) ** 2))
        return PlainGaussian(c_u=1, sigma=sigma)
    sigma = _lowered(1 / math.sqrt(square), lambda each: (arb(square), 1 / arb(each) ** 2))
    quantile = float(approximate(lambda: gaussian.quantile(-(-arb(hazard)).expm1())))

    def costs(tau_star: float) -> tuple[arb, arb]:
        return arb(hazard), hazard_ball(Mechanism(c_u=1, tau=1, tau_star=tau_star, sigma=sigma))

    return Mechanism(c_u=1, tau=1, tau_star=_lowered(1 + sigma * quantile, costs), sigma=sigma)


def _lowered(start: float, compared: Callable[[float], tuple[arb, arb]]) -> float:
    """The next double below the start with which the first number is provably at most the second."""
    number, step = start, 1
    while not at_most(lambda: compared(number)):  # noqa: B023 - called at once
        for _ in range(step):
            number = next_below(number)
        step = min(2 * step, _MOST_STEPS)
    return number
