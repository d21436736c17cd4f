"""A charge for a release that another engine makes, and its record."""

from pydantic import Field

from app.budgets.schemas.preview import PLANNED_EXAMPLES as CHARGE_EXAMPLES
from app.releases.schemas.described import Described
from app.schemas.costs import COST_EXAMPLE, CostOut
from app.schemas.strict import Strict

__all__ = ["CHARGE_EXAMPLES", "ChargeIn", "ChargeOut"]


class ChargeIn(Described):
    """A charge for a release that is made elsewhere."""


class ChargeOut(Strict):
    """A recorded charge."""

    budget: str = Field(title="Budget", description="The name of the charged budget.", examples=["web"])
    number: int = Field(title="Number", description="The number of its entry in the history.", examples=[2])
    at: str = Field(title="Time", description="When it was charged.", examples=["2026-11-16T12:00:00Z"])
    mu_squared: float = Field(
        title="μ²", description="Noise cost: what the release added to the sum of μ².", examples=[0.010448747960489898]
    )
    hazard: float = Field(
        title="−C_u ln p",
        description="Threshold cost: what the release added to the sum of −C_u ln p.",
        examples=[9.99e-06],
    )
    spent: CostOut = Field(
        title="Spent",
        description="What is spent, this charge included.",
        examples=[COST_EXAMPLE],
    )
