"""The limit of a budget, what is spent and what remains. Every number is rounded to the safe side."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Self

from pydantic import Field

from app.schemas.strict import Strict
from gsh.accounting.budget_limits import Limit
from gsh.accounting.composition import (
    NOTHING,
    Part,
    Release,
    Spent,
    cost_of,
    delta_at,
    epsilon_at,
    lower_delta,
    lower_epsilon,
)
from gsh.accounting.numerics.doubles import double_below

__all__ = ["COST_EXAMPLE", "REMAINING_EXAMPLE", "CostOut", "LimitOut", "PromiseOut", "RemainingOut", "SpentOut"]

_MU_SQUARED = 0.010458132016541553
_HAZARD = 1.0000916429899497e-05
COST_EXAMPLE = {
    "releases": 1,
    "mu_squared": 0.010448747960489898,
    "hazard": 9.99e-06,
    "epsilon": 0.27,
    "delta": 9.99e-06,
}
REMAINING_EXAMPLE = {"mu_squared": 0.061, "hazard": 9e-05, "delta": 9e-05}


class LimitOut(Strict):
    """What a budget allows."""

    epsilon: float = Field(title="ε", description="The ε of the budget.", examples=[1.0])
    delta: float = Field(title="δ", description="The δ of the budget.", examples=[1e-4])
    mu_squared: float | None = Field(
        title="μ²",
        description="The largest sum of μ² that the budget allows; rounded down. Null until the budget is divided.",
        examples=[_MU_SQUARED],
    )
    hazard: float | None = Field(
        title="−C_u ln p",
        description="The largest sum of −C_u ln p that the budget allows; rounded down. Null until it is divided.",
        examples=[_HAZARD],
    )

    @classmethod
    def of(cls, limit: Limit) -> Self:
        caps = None if limit.proportion is None else limit.caps
        return cls(
            epsilon=limit.epsilon,
            delta=limit.delta,
            mu_squared=None if caps is None else double_below(caps.mu_squared),
            hazard=None if caps is None else double_below(caps.hazard),
        )


class PromiseOut(Strict):
    """The (ε, δ) of all releases together, those made and those still possible under the budget's limits."""

    epsilon: float = Field(title="ε", description="The ε of the budget.", examples=[1.0])
    delta: float = Field(
        title="δ",
        description="The δ at that ε by composition, at the largest budget caps since the first charge; rounded up. It "
        "exceeds the budget's δ if the limit was lowered after a charge, or if an earlier version divided it again.",
        examples=[1e-4],
    )


class CostOut(Strict):
    """The privacy cost of some releases together: two sums, and the certified (ε, δ) that follow from them."""

    releases: int = Field(title="k", description="The number of releases.", examples=[1])
    mu_squared: float = Field(
        title="μ²", description="Noise cost: the sum of μ² over the releases; rounded up.", examples=[_MU_SQUARED]
    )
    hazard: float = Field(
        title="−C_u ln p",
        description="Threshold cost: the sum of −C_u ln p over the releases; rounded up.",
        examples=[_HAZARD],
    )
    epsilon: float | None = Field(
        title="ε", description="The ε at the budget's δ, rounded up; null if no finite ε exists.", examples=[0.31]
    )
    delta: float = Field(
        title="δ", description="The δ at the budget's ε, rounded up.", examples=[1.0000866420901491e-05]
    )

    @classmethod
    def of(cls, spent: Spent, limit: Limit) -> Self:
        rounded = spent.rounded
        return cls(
            releases=spent.releases,
            mu_squared=rounded.mu_squared,
            hazard=rounded.hazard,
            epsilon=epsilon_at(spent, limit.delta),
            delta=delta_at(spent, limit.epsilon),
        )

    @classmethod
    def of_one(cls, release: Release, limit: Limit) -> Self:
        return cls.of(NOTHING.plus(release, cost_of(release)), limit)


class SpentOut(CostOut):
    """The same, with lower bounds that no accounting can beat if the tables of the releases may be unrelated."""

    epsilon_lower: float | None = Field(
        title="ε, lower bound", description="No accounting gives a smaller ε at the budget's δ.", examples=[0.31]
    )
    delta_lower: float = Field(
        title="δ, lower bound",
        description="No accounting gives a smaller δ at the budget's ε.",
        examples=[1.0000866420901488e-05],
    )

    @classmethod
    def with_bounds(cls, spent: Spent, parts: Sequence[Part], limit: Limit) -> Self:
        return cls(
            **CostOut.of(spent, limit).model_dump(),
            epsilon_lower=lower_epsilon(parts, limit.delta),
            delta_lower=lower_delta(parts, limit.epsilon),
        )


class RemainingOut(Strict):
    """What remains for each of the two sums. Until the first charge divides the budget: for either of them alone."""

    mu_squared: float = Field(title="μ²", description="How much μ² can still be added; rounded down.", examples=[0.061])
    hazard: float = Field(
        title="−C_u ln p", description="How much −C_u ln p can still be added; rounded down.", examples=[9e-05]
    )
    delta: float = Field(title="δ", description="The budget's δ minus the spent δ; rounded down.", examples=[9e-05])

    @classmethod
    def of(cls, spent: Spent, limit: Limit) -> Self:
        room = limit.remaining(spent)
        unspent = Fraction(limit.delta) - Fraction(delta_at(spent, limit.epsilon))
        return cls(mu_squared=room.mu_squared, hazard=room.hazard, delta=double_below(max(unspent, Fraction(0))))
