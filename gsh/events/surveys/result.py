"""The result of a survey: noisy histograms, what they suggest, and their certificate."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gsh.arguments import Real, real
from gsh.certificate import Certificate
from gsh.errors import InvalidParameter
from gsh.events.choosing import Choice
from gsh.events.surveys.charts import chart, page
from gsh.events.surveys.choices import DrawnHistogram, sentence
from gsh.results.budget_use import BudgetUse

__all__ = ["Survey"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Survey:
    """Noisy numbers of users in public bins, and the bounds that follow from them."""

    histograms: tuple[DrawnHistogram, ...]
    choices: tuple[tuple[str, str | None, Choice], ...]
    """The table, the column (None for C_u), and its bound."""
    certificate: Certificate
    """That of the survey; in a publication, that of the survey and of the tables."""
    is_replayed: bool = False
    """Whether this survey was made before under the same ``once``."""
    released_at: str | None = None
    """When a replayed survey was made."""
    budget_use: BudgetUse | None = None
    """What it used of the budget that paid. None if nothing paid, or in a publication, which has its own."""

    @property
    def chosen(self) -> tuple[str, ...]:
        """Each choice with its reason, in one sentence."""
        return tuple(sentence(*each) for each in self.choices)

    @property
    def c_u(self) -> Mapping[str, int]:
        """The chosen C_u by table; the only table has the empty name."""
        return {table: int(each.bound) for table, column, each in self.choices if column is None}

    @property
    def clips(self) -> Mapping[tuple[str, str], float]:
        """The chosen upper bounds by table and column."""
        return {(table, column): each.bound for table, column, each in self.choices if column is not None}

    def intervals(self, level: Real = 0.95) -> tuple[tuple[tuple[float, float], ...], ...]:
        """For each bin of each histogram an interval that covers the true number of users with this probability."""
        if not 0 < real("level", level) < 1:
            raise InvalidParameter("level", "must be greater than 0 and less than 1")
        return tuple(each.intervals(real("level", level)) for each in self.histograms)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        described = [
            {"table": each.wanted.table, "column": each.wanted.column, **each.to_json(), "intervals": list(intervals)}
            for each, intervals in zip(self.histograms, self.intervals(), strict=True)
        ]
        bounds = [
            {"table": table, "column": column, "bound": each.bound, "is_default": each.is_default}
            for table, column, each in self.choices
        ]
        return {"histograms": described, "bounds": bounds, "chosen": list(self.chosen)}

    def to_html(self) -> str:
        """A page with the charts. It needs nothing else."""
        return page(self.histograms, self.intervals(), self.chosen)

    def __repr__(self) -> str:
        return chart(self.histograms, self.intervals(), self.chosen)
