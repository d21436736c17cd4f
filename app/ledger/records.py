"""How budgets are named and how times are written."""

from datetime import UTC, datetime

__all__ = ["BUDGET_ID", "now", "seconds_of"]

BUDGET_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
"""Letters, digits, dots, dashes and underscores: no place needs to quote these."""


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_of(at: str) -> float:
    """The wall clock at a time that ``now`` wrote."""
    return datetime.fromisoformat(at).timestamp()
