"""The figures of a budget: its limit, what is spent, what remains and what is short, rounded to the safe side.

Each function gives the fields of an object of the contract.
"""

import math
from collections.abc import Sequence
from decimal import ROUND_DOWN, Context, Decimal
from fractions import Fraction
from typing import Any

from app.ledger.lineage import Lineage, least_remaining
from app.ledger.state import Budget
from gsh.accounting.budget_limits import Limit
from gsh.accounting.composition import Cost, Part, Release, Spent, delta_at, epsilon_at, lower_delta, lower_epsilon
from gsh.accounting.numerics.doubles import double_below
from gsh.accounting.shortage import Shortage, shortage_of

__all__ = [
    "cost_figures",
    "limit_figures",
    "next_shortage_figures",
    "remaining_figures",
    "shortage_figures",
    "spent_figures",
]

_TOO_SMALL = {
    "noise": "the noise needs more ε than the budget has",
    "threshold": "the threshold needs more δ than the budget has",
    "both": "noise and threshold need more than the budget has",
}
_NUMBERS = {1: "it", 2: "two", 3: "three", 4: "four", 5: "five"}
_DOWN, _NEAREST = Context(prec=3, rounding=ROUND_DOWN), Context(prec=3)
_LEAST_SHARE, _MOST_SHARE = Fraction(1, 10**5), 10


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
    found = shortage_of(limit, after)
    if found is None:
        return None
    fitting = found.fitting
    return {
        "budget": budget.id,
        "binding": found.binding,
        "releases": found.releases,
        "epsilon": None if fitting is None else fitting.epsilon,
        "delta": None if fitting is None else fitting.delta,
        "detail": _sentence(budget, limit, after, found),
    }


def next_shortage_figures(paying: Lineage, release: Release, cost: Cost) -> dict[str, Any] | None:
    """What is short for one more release like this, at the first of the budgets that is short; None if it fits."""
    for budget in paying:
        found = shortage_figures(budget, budget.limit.settled_by(cost), budget.spent.plus(release, cost))
        if found is not None:
            return found
    return None


def _sentence(budget: Budget, limit: Limit, after: Spent, found: Shortage) -> str:
    """A budget that is divided has two caps: what each side needs of its cap, and what remains of it."""
    asked = found.releases - budget.spent.releases
    is_divided = budget.limit.proportion is not None
    parts = _sides(budget.spent, limit, after, asked) if is_divided else [_TOO_SMALL[found.binding]]
    if found.fitting is not None:
        raised = [
            f"{symbol} = {_short(value)}"
            for symbol, value, before in (
                ("ε", found.fitting.epsilon, limit.epsilon),
                ("δ", found.fitting.delta, limit.delta),
            )
            if value != before
        ]
        number = _NUMBERS.get(found.releases, f"all {found.releases}")
        parts.append(f"a limit of {' and '.join(raised)} would fit {number}")
    elif is_divided:
        parts.append("no limit near this one would do, because its two caps keep their proportion")
    return "; ".join(parts)


def _sides(spent: Spent, limit: Limit, after: Spent, asked: int) -> list[str]:
    """The side that is shorter comes first. What needs nothing is left out, unless more than its cap is spent."""
    sides, of = [], "" if asked == 1 else f" of {asked}"
    for name, sum_name in (("noise", "mu_squared"), ("threshold", "hazard")):
        cap, used, total = (getattr(each, sum_name) for each in (limit.caps, spent, after))
        its_cap = "its cap" if name == "noise" else f"its cap ({_short(_rounded(cap, _DOWN))} of δ)"
        if not cap:
            sides.append((math.inf, f"the limit allows no cost of the {name}"))
        elif total > used:
            share = (total - used) / cap
            times = f"{_rounded(share, _NEAREST):g} times" if share > _MOST_SHARE else f"{_percent(share, _NEAREST)} of"
            left = "nothing remains" if used >= cap else f"{_percent((cap - used) / cap, _DOWN)} remain"
            sides.append((total / cap, f"the {name}{of} needs {times} {its_cap}{f', and {left}' if used else ''}"))
        elif used > cap:
            sides.append((total / cap, f"the {name} exceeds {its_cap} already"))
    return [text for _, text in sorted(sides, reverse=True)]


def _percent(share: Fraction, rounding: Context) -> str:
    return "less than 0.001 %" if share < _LEAST_SHARE else f"{_rounded(100 * share, rounding):g} %"


def _rounded(exact: Fraction, rounding: Context) -> float:
    """Three digits of it."""
    return float(rounding.divide(Decimal(exact.numerator), Decimal(exact.denominator)))


def _short(value: float) -> str:
    """2.1e-6 instead of 2.1e-06."""
    return f"{value:.6g}".replace("e-0", "e-")
