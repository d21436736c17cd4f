"""Why releases do not fit a limit: which of ε and δ is used up, and a larger limit that is enough."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gsh.accounting.budget_limits import Limit
from gsh.accounting.composition import Spent, epsilon_at
from gsh.accounting.numerics.balls import ball_of, round_down

__all__ = ["Binding", "Shortage", "shortage_of"]

Binding = Literal["noise", "threshold", "both"]

_MOST_EPSILON = 100.0
# A larger δ alone is good advice if the thresholds need a good part of it. Otherwise it would pay for noise, dearly.
_MOST_PER_THRESHOLD = 4.0


@dataclass(frozen=True, slots=True)
class Shortage:
    """What is short for some releases together with those that are spent."""

    binding: Binding
    """Noise: ε is used up. Threshold: δ is used up."""
    releases: int
    """The number of releases that should fit, the spent ones included."""
    fitting: Limit | None
    """A limit that admits them, each raised part as small as possible in two digits; None if none was found."""
    epsilon_spent: float | None
    """The ε of the spent ones at the limit's δ, rounded up; None if no finite ε exists."""


def shortage_of(limit: Limit, spent: Spent, after: Spent) -> Shortage | None:
    """The shortage of a limit whose proportion is fixed, for the sums ``after`` instead of ``spent``.

    None if the limit admits them. What must be raised is what is used up: δ alone, ε alone, or both.
    """
    if limit.admits(after):
        return None
    binding, fitting = _advice(limit, after)
    return Shortage(binding, after.releases, fitting, epsilon_at(spent, limit.delta))


def _advice(limit: Limit, after: Spent) -> tuple[Binding, Limit | None]:
    threshold = round_down(lambda: -(-ball_of(after.hazard)).expm1())  # 1 − e^(−D), the part of δ for thresholds
    if after.hazard > limit.caps.hazard:
        found = _smallest(after, limit, "delta", _between(limit.delta, 1.0))
        is_within = after.mu_squared <= limit.caps.mu_squared
        if is_within or (found is not None and found.delta <= _MOST_PER_THRESHOLD * threshold):
            return "threshold", found
    epsilons = _between(limit.epsilon, _MOST_EPSILON)
    found = _smallest(after, limit, "epsilon", epsilons)
    if found is not None:
        return "noise", found
    for delta in _between(max(limit.delta, 2 * threshold), 1.0)[:1]:
        found = _smallest(after, replace(limit, delta=delta), "epsilon", epsilons)
        if found is not None:
            lower = replace(limit, epsilon=found.epsilon)
            return "both", _smallest(after, lower, "delta", _between(limit.delta, 1.0))
    return _exceeded(limit, after), None


def _exceeded(limit: Limit, after: Spent) -> Binding:
    caps = limit.caps
    if after.hazard <= caps.hazard:
        return "noise"
    return "threshold" if after.mu_squared <= caps.mu_squared else "both"


def _smallest(after: Spent, limit: Limit, name: Literal["epsilon", "delta"], values: Sequence[float]) -> Limit | None:
    """The limit with the first value that admits the sums: with more ε, or more δ, a limit admits no less."""

    def at(place: int) -> Limit:
        return replace(limit, epsilon=values[place]) if name == "epsilon" else replace(limit, delta=values[place])

    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if at(middle).admits(after) else (middle + 1, high)
    return at(low) if low < len(values) else None


def _between(low: float, high: float) -> list[float]:
    """The decimals of two digits above one number and below another, ascending."""
    lowest = int(f"{low:e}".partition("e")[2]) - 1
    decimals = (float(f"{digits}e{exponent}") for exponent in range(lowest, 2) for digits in range(10, 100))
    return [each for each in decimals if low < each < high]
