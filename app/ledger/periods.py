"""The periods of a renewed budget: weeks, months, quarters or years in UTC, each with a budget of its own.

A budget ``web`` that renews each week has the budgets ``web@2026-W46``, ``web@2026-W47`` and so on. Weeks are those of
ISO 8601: they begin on Monday, and belong to the year of their Thursday.
"""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Literal, get_args

__all__ = ["PERIOD_ID", "PERIOD_LABEL", "Renews", "begins", "ends", "name_of", "period_at", "split"]

Renews = Literal["week", "month", "quarter", "year"]
"""How often a budget is renewed."""

_LABELS: dict[Renews, str] = {
    "week": r"[0-9]{4}-W(?:0[1-9]|[1-4][0-9]|5[0-3])",
    "month": r"[0-9]{4}-(?:0[1-9]|1[0-2])",
    "quarter": r"[0-9]{4}-Q[1-4]",
    "year": r"[0-9]{4}",
}
PERIOD_LABEL = rf"(?:{'|'.join(_LABELS[kind] for kind in get_args(Renews))})"
"""The name of a period."""
PERIOD_ID = rf"(?:@{PERIOD_LABEL})?"
"""What follows the name of a renewed budget in that of a period."""

_MARK = "@"
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


def name_of(budget: str, label: str) -> str:
    """The name of the budget for one period."""
    return f"{budget}{_MARK}{label}"


def split(name: str) -> tuple[str, str | None]:
    """The renewed budget and the label of its period; the label is None if the name is not that of a period."""
    budget, mark, label = name.partition(_MARK)
    return budget, label if mark else None


def period_at(at: str, renews: Renews) -> str:
    """The label of the period at a time."""
    day = datetime.fromisoformat(at).astimezone(UTC).date()
    match renews:
        case "week":
            year, week, _ = day.isocalendar()
            return f"{year:04}-W{week:02}"
        case "month":
            return f"{day.year:04}-{day.month:02}"
        case "quarter":
            return f"{day.year:04}-Q{(day.month + 2) // 3}"
        case "year":
            return f"{day.year:04}"


def begins(label: str, renews: Renews) -> date | None:
    """The first day of a period; None if there is no such period."""
    if not re.fullmatch(_LABELS[renews], label):
        return None
    year, rest = int(label[:4]), label[5:].lstrip("WQ")
    try:
        if renews == "week":
            return date.fromisocalendar(year, int(rest), 1)
        return date(year, 1 + (int(rest or 1) - 1) * _MONTHS[renews], 1)
    except ValueError:  # the 53rd week of a year that has 52, and the year 0
        return None


def ends(first: date, renews: Renews) -> date:
    """The first day after the period that begins on a day."""
    if renews == "week":
        return first + timedelta(weeks=1)
    month = first.month - 1 + _MONTHS[renews]
    return date(first.year + month // 12, month % 12 + 1, 1)
