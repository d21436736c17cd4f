"""What a budget has spent and has left, as it is shown: every number certified, on the side that does not flatter."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Self

from pydantic import Field

from app.api.schemas.mechanism import Strict
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

__all__ = ["CostOut", "LimitOut", "PromiseOut", "RemainingOut", "SpentOut"]

_S = 0.010458132016541553
_D = 1.0000916429899497e-05


class LimitOut(Strict):
    """What a budget allows."""

    epsilon: float = Field(title="ε", description="The ε of the budget.", examples=[1.0])
    delta: float = Field(title="δ", description="The δ of the budget.", examples=[1e-4])
    mu_squared: float | None = Field(
        title="μ²",
        description="The cap on the sum of μ²; null until the first charge settles it. Rounded down.",
        examples=[_S],
    )
    hazard: float | None = Field(
        title="−C_u ln p",
        description="The cap on the sum of −C_u ln p; null until the first charge settles it. Rounded down.",
        examples=[_D],
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
    """What holds for all releases that were and can still be made under the budget's limits."""

    epsilon: float = Field(title="ε", description="The ε of the budget.", examples=[1.0])
    delta: float = Field(
        title="δ",
        description="The δ at that ε by composition at the largest caps since the first charge; rounded up. It is "
        "above the budget's δ where the limit was lowered after a charge, or was divided anew by an earlier version.",
        examples=[1e-4],
    )


class CostOut(Strict):
    """What some releases cost together: two sums, and the certified (ε, δ) that follow."""

    releases: int = Field(title="k", description="The number of releases.", examples=[1])
    mu_squared: float = Field(title="μ²", description="The sum of μ² over the releases; rounded up.", examples=[_S])
    hazard: float = Field(
        title="−C_u ln p", description="The sum of −C_u ln p over the releases; rounded up.", examples=[_D]
    )
    epsilon: float | None = Field(
        title="ε", description="At the budget's δ, rounded up; null where no finite ε exists.", examples=[0.31]
    )
    delta: float = Field(title="δ", description="At the budget's ε, rounded up.", examples=[1.0000866420901491e-05])

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
    """The same, with lower bounds that no accounting can beat where the tables of the releases may be unrelated."""

    epsilon_lower: float | None = Field(
        title="ε, from below", description="No ε at the budget's δ below this can be had.", examples=[0.31]
    )
    delta_lower: float = Field(
        title="δ, from below",
        description="No δ at the budget's ε below this can be had.",
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
    """What is left: the room for each of the two sums; until they are settled, for either alone."""

    mu_squared: float = Field(title="μ²", description="How much μ² can be added still; rounded down.", examples=[0.061])
    hazard: float = Field(
        title="−C_u ln p", description="How much −C_u ln p can be added still; rounded down.", examples=[9e-05]
    )
    delta: float = Field(
        title="δ", description="The budget's δ less the δ that is spent; rounded down.", examples=[9e-05]
    )

    @classmethod
    def of(cls, spent: Spent, limit: Limit) -> Self:
        room = limit.remaining(spent)
        unspent = Fraction(limit.delta) - Fraction(delta_at(spent, limit.epsilon))
        return cls(mu_squared=room.mu_squared, hazard=room.hazard, delta=double_below(max(unspent, Fraction(0))))
