"""Why releases do not fit a budget, in numbers and in one sentence."""

from decimal import ROUND_DOWN, Context, Decimal
from typing import Annotated, Self

from pydantic import Field
from typing_extensions import TypeAliasType

from app.ledger.state import Budget
from app.schemas.strict import Strict
from gsh.accounting import shortage
from gsh.accounting.budget_limits import Limit
from gsh.accounting.composition import Spent, delta_at
from gsh.accounting.shortage import Shortage, shortage_of

__all__ = ["SHORTAGE_EXAMPLE", "ShortageOut"]

ShortSide = TypeAliasType(
    "ShortSide", Annotated[shortage.Binding, Field(description="noise: ε is used up. threshold: δ is used up.")]
)

_USED_UP = {"noise": "ε is used up by the noise", "threshold": "δ is used up by the threshold"}
_MORE_THAN_REMAINS = {"noise": "ε than remains", "threshold": "δ than remains", "both": "ε and δ than remain"}
_TOO_SMALL = {
    "noise": "the noise needs more ε than the budget has",
    "threshold": "the threshold needs more δ than the budget has",
    "both": "noise and threshold need more than the budget has",
}
_NUMBERS = {1: "it", 2: "two", 3: "three", 4: "four", 5: "five"}
_DOWN = Context(prec=3, rounding=ROUND_DOWN)
_NEARLY_ALL = 1e-6  # of a limit; less than this share of it is not worth a word

SHORTAGE_EXAMPLE = {
    "binding": "threshold",
    "releases": 2,
    "epsilon": 2.0,
    "delta": 2.1e-06,
    "detail": "δ is used up by the threshold; ε 1 of 2 remains; δ = 2.1e-6 would fit two",
}


class ShortageOut(Strict):
    """What is short, and a limit that would do."""

    binding: ShortSide = Field(
        title="Binding", description="What is used up: ε by the noise, δ by the threshold, or both.", examples=["noise"]
    )
    releases: int = Field(
        title="k", description="How many releases should fit, those that are spent included.", examples=[2]
    )
    epsilon: float | None = Field(
        title="ε", description="The ε of a limit that would fit them; null if none was found.", examples=[2.0]
    )
    delta: float | None = Field(
        title="δ",
        description="The δ of that limit. What is raised is as small as possible in two digits.",
        examples=[2.1e-06],
    )
    detail: str = Field(title="Detail", description="The same in a sentence.", examples=[SHORTAGE_EXAMPLE["detail"]])

    @classmethod
    def of(cls, budget: Budget, limit: Limit, after: Spent) -> Self | None:
        """Of a budget, whose limit is settled, for the sums ``after``; None if they fit."""
        found = shortage_of(limit, budget.spent, after)
        if found is None:
            return None
        fitting = found.fitting
        return cls(
            binding=found.binding,
            releases=found.releases,
            epsilon=None if fitting is None else fitting.epsilon,
            delta=None if fitting is None else fitting.delta,
            detail=_sentence(limit, budget.spent, found),
        )


def _sentence(limit: Limit, spent: Spent, found: Shortage) -> str:
    """One side is used up if one more release does not fit because of it. Many only need more than remains."""
    asked = found.releases - spent.releases
    if spent.releases == 0:
        parts = [_TOO_SMALL[found.binding]]
        number = _NUMBERS.get(asked, f"all {asked}")
    elif asked == 1 and found.binding != "both":
        parts = [_USED_UP[found.binding], *_remaining(limit, spent, found)]
        number = _NUMBERS.get(found.releases, f"all {found.releases}")
    else:
        more = "one more needs" if asked == 1 else f"{asked} more need"
        parts = [f"{more} more {_MORE_THAN_REMAINS[found.binding]}", *_remaining(limit, spent, found)]
        number = "it" if asked == 1 else f"these {asked}"
    if found.fitting is not None:
        raised = [
            f"{symbol} = {_short(value)}"
            for symbol, value, before in (
                ("ε", found.fitting.epsilon, limit.epsilon),
                ("δ", found.fitting.delta, limit.delta),
            )
            if value != before
        ]
        parts.append(f"{' and '.join(raised)} would fit {number}")
    return "; ".join(parts)


def _remaining(limit: Limit, spent: Spent, found: Shortage) -> list[str]:
    """What remains of the side that is not used up."""
    if found.binding == "threshold" and found.epsilon_spent is not None:
        return _part("ε", limit.epsilon - found.epsilon_spent, limit.epsilon)
    if found.binding == "noise":
        return _part("δ", limit.delta - delta_at(spent, limit.epsilon), limit.delta)
    return []


def _part(symbol: str, remaining: float, whole: float) -> list[str]:
    if remaining <= _NEARLY_ALL * whole:
        return []
    return [f"{symbol} {_short(float(_DOWN.create_decimal(Decimal(remaining))))} of {_short(whole)} remains"]


def _short(value: float) -> str:
    """2.1e-6 instead of 2.1e-06."""
    return f"{value:.6g}".replace("e-0", "e-")
