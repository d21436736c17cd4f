"""The limit of a budget, what is spent, what remains and what is short. Every number is rounded to the safe side."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypeAliasType

from app.schemas.strict import Strict
from gsh.accounting import shortage

__all__ = [
    "COST_EXAMPLE",
    "REMAINING_EXAMPLE",
    "CostOut",
    "LimitOut",
    "PromiseOut",
    "RemainingOut",
    "ShortageOut",
    "SpentOut",
]

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


class RemainingOut(Strict):
    """What can still be charged of each of the two sums. Until the first charge divides the budget: of either alone.

    If the budget has ancestors, each number is the least that any of them has left.
    """

    mu_squared: float = Field(title="μ²", description="How much μ² can still be added; rounded down.", examples=[0.061])
    hazard: float = Field(
        title="−C_u ln p", description="How much −C_u ln p can still be added; rounded down.", examples=[9e-05]
    )
    delta: float = Field(title="δ", description="The budget's δ minus the spent δ; rounded down.", examples=[9e-05])


ShortSide = TypeAliasType(
    "ShortSide", Annotated[shortage.Binding, Field(description="noise: ε is too small. threshold: δ is too small.")]
)

_SHORTAGE = {
    "budget": "web",
    "binding": "threshold",
    "releases": 2,
    "epsilon": 2.0,
    "delta": 2.1e-06,
    "detail": "the threshold needs 100 % of its cap (1e-6 of δ), and nothing remains; the noise needs 100 % of its "
    "cap, and nothing remains; a limit of δ = 2.1e-6 would fit two",
}


class ShortageOut(Strict):
    """What is short, and a limit that would do."""

    budget: str = Field(
        title="Budget", description="The budget that is short: the charged one, or an ancestor.", examples=["web"]
    )
    binding: ShortSide = Field(
        title="Binding", description="What is short: ε for the noise, δ for the threshold, or both.", examples=["noise"]
    )
    releases: int = Field(
        title="k", description="How many releases should fit, those that are spent included.", examples=[2]
    )
    epsilon: float | None = Field(
        title="ε",
        description="The ε of a limit that would fit them; null if none near the present one would.",
        examples=[2.0],
    )
    delta: float | None = Field(
        title="δ",
        description="The δ of that limit. What is raised is as small as possible in two digits.",
        examples=[2.1e-06],
    )
    detail: str = Field(title="Detail", description="The same in a sentence.", examples=[_SHORTAGE["detail"]])
