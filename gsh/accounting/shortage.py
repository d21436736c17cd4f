"""Why releases do not fit a limit: which of ε and δ is too small, and a larger limit that is enough."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gsh.accounting.budget_limits import Limit
from gsh.accounting.composition import Spent, epsilon_at
from gsh.accounting.numerics.balls import ball_of, round_down

__all__ = ["Binding", "Shortage", "shortage_of"]

Binding = Literal["noise", "threshold", "both"]

_MOST_EPSILON = 100.0
# The two caps keep their proportion, so a larger limit pays for both. It is good advice if the releases need a good
# part of what it allows: these are the most ε and δ that it may have, as multiples of what they need or of the limit.
# Nor may δ grow more than the number of releases says.
_MOST_TIMES_EPSILON = 2.0
_MOST_TIMES_DELTA = 4.0


@dataclass(frozen=True, slots=True)
class Shortage:
    """What is short for some releases together with those that are spent."""

    binding: Binding
    """Noise: ε is too small. Threshold: δ is too small."""
    fitting: Limit | None
    """A limit that admits them, each raised part as small as possible in two digits; None if none is near."""
    releases: int
    """The number of releases that should fit, the spent ones included."""


def shortage_of(limit: Limit, after: Spent) -> Shortage | None:
    """The shortage of a limit whose proportion is fixed, for the sums ``after``.

    None if the limit admits them. What must be raised is what is short: δ alone, ε alone, or both.
    """
    if limit.admits(after):
        return None
    return Shortage(*_advice(limit, after), after.releases)


def _advice(limit: Limit, after: Spent) -> tuple[Binding, Limit | None]:
    """What is short, and the first of these that is near: more δ, more ε, more of both."""
    threshold = round_down(lambda: -(-ball_of(after.hazard)).expm1())  # 1 − e^(−D), the part of δ for thresholds

    def is_near(found: Limit | None) -> bool:
        """Whether the releases need a good part of what is raised."""
        most_delta = _MOST_TIMES_DELTA * max(limit.delta, min(threshold, after.releases * limit.delta))
        if found is None or found.delta > most_delta:
            return False
        if found.epsilon <= _MOST_TIMES_EPSILON * limit.epsilon:
            return True
        needed = epsilon_at(after, found.delta)
        return needed is not None and found.epsilon <= _MOST_TIMES_EPSILON * needed

    short = _exceeded(limit, after)
    if short != "noise":
        found = _smallest(after, limit, "delta", _between(limit.delta, 1.0))
        pays_thresholds = found is not None and found.delta <= _MOST_TIMES_DELTA * threshold
        if is_near(found) and (short == "threshold" or pays_thresholds):
            return "threshold", found
    epsilons = _between(limit.epsilon, _MOST_EPSILON)
    found = _smallest(after, limit, "epsilon", epsilons)
    if is_near(found):
        return "threshold" if short == "threshold" else "noise", found
    for delta in _between(max(limit.delta, 2 * threshold), 1.0)[:1]:
        found = _smallest(after, replace(limit, delta=delta), "epsilon", epsilons)
        if found is not None:
            lower = replace(limit, epsilon=found.epsilon)
            found = _smallest(after, lower, "delta", _between(limit.delta, 1.0))
        if is_near(found):
            return "both", found
    return short, None


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
