"""The result of publishing: private tables, their certificate, place and plan; and reports of progress."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from gsh.accounting.mechanism import Mechanism
from gsh.events.tables import AnyPlan, Plans
from gsh.results.budget_use import BudgetUse, payer_in_words
from gsh.results.private_tables import PrivateTables

if TYPE_CHECKING:
    from gsh.events.surveys.result import Survey

__all__ = ["OnProgress", "Progress", "Published"]


@dataclass(frozen=True, slots=True)
class Progress:
    """A stage of publishing, and how much of it is done: for the owner's eyes. It may come from another thread."""

    stage: str
    done: int = 0
    total: int | None = None


OnProgress: TypeAlias = Callable[[Progress], None]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Published(PrivateTables):
    """A private table, or several of one release, with the certificate and the plan that bounded them.

    If an engine has written the rows itself, they are read when ``tables`` is first used.
    """

    path: Path | str | None
    """Where they were written."""
    plan: AnyPlan
    groups: int
    """How many groups were published, in all tables."""
    certificate_at: str
    """Where the certificate is, in words."""
    is_replayed: bool = False
    """Whether this release was made before under the same ``once``."""
    released_at: str | None = None
    """When a replayed release was made. None if it is new."""
    budget_use: BudgetUse | None = None
    """What it used of the budget that paid, and how many more like it fit. None if nothing paid, or it is unknown."""
    survey: "Survey | None" = None
    """The survey that chose the bounds, if there was one. None in a replay: the certificate says what was chosen."""

    def __len__(self) -> int:
        return self.groups

    def __repr__(self) -> str:
        return f"<Published: {self.summary()}>"

    def summary(self) -> str:
        """One line: how many groups, the privacy that they cost, and where the certificate is."""
        said = self.certificate
        point = "" if said.epsilon is None else f", (ε, δ) = ({said.epsilon:g}, {said.delta:.3g})"
        payer = payer_in_words(said, self.budget_use)
        place = "" if self.path is None else f" in {self.path}"
        groups = "1 group" if self.groups == 1 else f"{self.groups} groups"
        if isinstance(self.plan, Plans):
            tables = len(self.plan.named)
            groups += " of 1 table" if tables == 1 else f" of {tables} tables"
        made = f"{groups} published{self._why_none()}{place}{point}; {payer}; certificate {self.certificate_at}"
        if not self.is_replayed:
            return made
        return f"replayed: released on {self.released_at}; {made}"

    def _why_none(self) -> str:
        """If no group reached its threshold: that of the easiest table, in words."""
        thresholds = [each.tau_star for each in self.mechanisms.values() if isinstance(each, Mechanism)]
        if self.groups or not thresholds:
            return ""
        return f" (none reached the threshold of {min(thresholds):.6g}: a larger ε or δ lowers it)"
