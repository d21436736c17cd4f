"""The figures of a budget: its limit, what is spent, what remains and what is short, rounded to the safe side.

Each function gives the fields of an object of the contract.
"""

from collections.abc import Sequence
from decimal import ROUND_DOWN, Context, Decimal
from fractions import Fraction
from typing import Any

from app.ledger.lineage import Lineage, least_remaining
from app.ledger.state import Budget
from gsh.accounting.budget_limits import Limit
from gsh.accounting.composition import Part, Spent, delta_at, epsilon_at, lower_delta, lower_epsilon
from gsh.accounting.numerics.doubles import double_below
from gsh.accounting.shortage import Shortage, shortage_of

__all__ = ["cost_figures", "limit_figures", "remaining_figures", "shortage_figures", "spent_figures"]

_USED_UP = {"noise": "ε is used up by the noise", "threshold": "δ is used up by the threshold"}
_MORE_THAN_REMAINS = {"noise": "ε than remains", "threshold": "δ than remains", "both": "ε and δ than remain"}
_TOO_SMALL = {
    "noise": "the noise needs more ε than the budget has",
    "threshold": "the threshold needs more δ than the budget has",
    "both": "noise and threshold need more than the budget has",
}
_NUMBERS = {1: "it", 2: "two", 3: "three", 4: "four", 5: "five"}
_DOWN = Context(prec=3, rounding=ROUND_DOWN)
_NEARLY_ALL = 1e-6  # of a limit; a smaller share is not mentioned


def limit_figures(limit: Limit) -> dict[str, Any]:
    """What a budget allows. The caps are None until it is divided."""
    caps = None if limit.proportion is None else limit.caps
    return {
        "epsilon": limit.epsilon,
        "delta": limit.delta,
        "mu_squared": None if caps is None else double_below(caps.mu_squared),
        "hazard": None if caps is None else double_below(caps.hazard),
    }


def cost_figures(spent: Spent, limit: Limit) -> dict[str, Any]:
    """The cost of some releases: two sums, and the certified (ε, δ) that follow from them."""
    rounded = spent.rounded
    return {
        "releases": spent.releases,
        "mu_squared": rounded.mu_squared,
        "hazard": rounded.hazard,
        "epsilon": epsilon_at(spent, limit.delta),
        "delta": delta_at(spent, limit.epsilon),
    }


def spent_figures(spent: Spent, parts: Sequence[Part], limit: Limit) -> dict[str, Any]:
    """The same, with lower bounds that no accounting can beat."""
    return cost_figures(spent, limit) | {
        "epsilon_lower": lower_epsilon(parts, limit.delta),
        "delta_lower": lower_delta(parts, limit.epsilon),
    }


def remaining_figures(lineage: Lineage) -> dict[str, Any]:
    """What remains for each of the two sums, and of δ: the least that the budget or an ancestor has left."""
    room = least_remaining(lineage)
    unspent = min(Fraction(each.limit.delta) - Fraction(delta_at(each.spent, each.limit.epsilon)) for each in lineage)
    return {
        "mu_squared": room.mu_squared,
        "hazard": room.hazard,
        "delta": double_below(max(unspent, Fraction(0))),
    }


def shortage_figures(budget: Budget, limit: Limit, after: Spent) -> dict[str, Any] | None:
    """What is short, and a limit that would do, for the sums ``after``; None if they fit. The limit is settled."""
    found = shortage_of(limit, budget.spent, after)
    if found is None:
        return None
    fitting = found.fitting
    return {
        "budget": budget.id,
        "binding": found.binding,
        "releases": found.releases,
        "epsilon": None if fitting is None else fitting.epsilon,
        "delta": None if fitting is None else fitting.delta,
        "detail": _sentence(limit, budget.spent, found),
    }


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
        parts.append(f"a limit of {' and '.join(raised)} would fit {number}")
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
