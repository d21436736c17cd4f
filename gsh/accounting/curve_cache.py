"""Points of privacy curves, remembered: an LRU cache over the evaluations, keyed by value."""

import functools
from typing import Literal

from gsh.accounting.accountings import Accounting, Point, at_delta, at_epsilon
from gsh.accounting.mechanism import Mechanism

__all__ = ["CurveCache", "Variable"]

Variable = Literal["epsilon", "delta"]


class CurveCache:
    """Answers what ``at_epsilon`` and ``at_delta`` answer, keeping the last ``size`` points; safe with threads."""

    def __init__(self, size: int) -> None:
        self._evaluate = functools.lru_cache(maxsize=size)(_evaluate)

    def point(self, accounting: Accounting, mechanism: Mechanism, variable: Variable, value: float) -> Point:
        """The point of the curve where ε or δ, as ``variable`` says, has the value."""
        return self._evaluate(accounting, mechanism.bare, variable, value)

    @property
    def hits(self) -> int:
        return self._evaluate.cache_info().hits

    @property
    def misses(self) -> int:
        return self._evaluate.cache_info().misses


def _evaluate(accounting: Accounting, mechanism: Mechanism, variable: Variable, value: float) -> Point:
    evaluate = at_epsilon if variable == "epsilon" else at_delta
    return evaluate(accounting, mechanism, value)
