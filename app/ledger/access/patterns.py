"""Patterns of the names of budgets, to which access keys are bound: ``*`` stands for any characters.

``web`` is the budget web and all of its periods, ``web@*`` its periods alone, ``team-a-*`` all budgets of a team.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from app.ledger.periods import split

__all__ = ["BUDGET_PATTERN", "matches", "names_in"]

BUDGET_PATTERN = r"^[A-Za-z0-9*][A-Za-z0-9._*-]{0,99}(?:@[0-9WQ*-]{1,8})?$"
"""The characters of names and periods, and ``*``. None of them means anything else to ``fnmatchcase``."""


def matches(patterns: Iterable[str], budget: str) -> bool:
    """Whether one of the patterns is for this budget, or for the renewed budget of this period.

    The same holds for a pattern in place of the budget: then all of its budgets are among those of the patterns.
    """
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in {budget, split(budget)[0]})


def names_in(patterns: Iterable[str], budgets: Iterable[str]) -> list[str]:
    """The budgets that the patterns are for. A name without a star is there, whether the budget is or not."""
    fixed = {pattern for pattern in patterns if "*" not in pattern}
    return sorted(fixed.union(each for each in budgets if matches(patterns, each)))
