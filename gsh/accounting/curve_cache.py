"""An LRU cache of points of privacy curves."""

import functools
from typing import Literal

from gsh.accounting.accountings import Accounting, Point, at_delta, at_epsilon
from gsh.accounting.mechanism import Release

__all__ = ["CurveCache", "Variable", "evaluate"]

Variable = Literal["epsilon", "delta"]


class CurveCache:
    """Gives the points of ``at_epsilon`` and ``at_delta``, and keeps the last ``size``. Threads may share it."""

    def __init__(self, size: int) -> None:
        self._evaluate = functools.lru_cache(maxsize=size)(evaluate)

    def point(self, accounting: Accounting, release: Release, variable: Variable, value: float) -> Point:
        """The point of the curve at a value of ε or of δ, as ``variable`` says."""
        return self._evaluate(accounting, release.without_columns, variable, value)

    @property
    def hits(self) -> int:
        return self._evaluate.cache_info().hits

    @property
    def misses(self) -> int:
        return self._evaluate.cache_info().misses


def evaluate(accounting: Accounting, release: Release, variable: Variable, value: float) -> Point:
    """The point of the curve at a value of ε or of δ, as ``variable`` says, without a cache."""
    at = at_epsilon if variable == "epsilon" else at_delta
    return at(accounting, release, value)
