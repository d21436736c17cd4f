"""The result of publishing: the private table or its place, the certificate and the plan; and reports of progress."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from gsh.accounting.mechanism import AnyMechanism, Mechanism
from gsh.arguments import Real
from gsh.errors import InvalidParameter
from gsh.events.rest import child_of, rest_table
from gsh.events.tables import AnyPlan, Plans
from gsh.wire import release_from_json

__all__ = ["OnProgress", "Progress", "Published"]


@dataclass(frozen=True, slots=True)
class Progress:
    """A stage of publishing, and how much of it is done: for the owner's eyes. It may come from another thread."""

    stage: str
    done: int = 0
    total: int | None = None


OnProgress: TypeAlias = Callable[[Progress], None]


@dataclass(frozen=True, eq=False, repr=False)
class Published:
    """A private table, or several of one release, with the certificate and the plan that bounded them."""

    table: pa.Table | None
    """The rows, sorted by group key; None if an engine has written them itself, or if there are several tables."""
    path: Path | str | None
    """Where they were written."""
    certificate: Mapping[str, Any]
    plan: AnyPlan
    groups: int
    """How many groups were published, in all tables."""
    certificate_at: str
    """Where the certificate is, in words."""
    is_replayed: bool = False
    """Whether this release was made before under the same ``once``."""
    released_at: str | None = None
    """When a replayed release was made. None if it is new."""
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    """The rows of each of several tables, by its name."""

    @property
    def mechanisms(self) -> Mapping[str, AnyMechanism]:
        """The mechanism of each of several tables, by its name."""
        return {each["name"]: release_from_json(each["mechanism"]) for each in self.certificate.get("tables", ())}

    def rest(self, parent: str, child: str | None = None, *, level: Real = 0.95) -> pa.Table:
        """What each published group of a table has beyond its published children, with intervals.  [docs/levels.md]

        The key columns of the child contain those of the parent. If it is omitted, it is the coarsest such table.
        """
        if not isinstance(self.plan, Plans) or not self.tables:
            raise InvalidParameter("parent", "must be one of several tables, whose rows are here")
        plans, mechanisms, finer = self.plan.tables, self.mechanisms, child_of(self.plan, parent, child)
        of_parent, of_child = ((plans[name], mechanisms[name], self.tables[name]) for name in (parent, finer))
        return rest_table(of_parent, of_child, level)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """For whatever reads Arrow tables: pandas, polars, DuckDB."""
        if self.table is None:
            raise TypeError("the rows are in tables" if self.tables else "the rows are in the files at path")
        return self.table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return self.groups

    def __repr__(self) -> str:
        return f"<Published: {self.summary()}>"

    def summary(self) -> str:
        """One line: how many groups, the privacy that they cost, and where the certificate is."""
        certificate = self.certificate
        point = (
            ""
            if certificate["epsilon"] is None
            else f", (ε, δ) = ({certificate['epsilon']:g}, {certificate['delta']:.3g})"
        )
        paid = certificate["budget"]
        payer = "nothing keeps count of it" if paid is None else f"paid by the budget {paid['id']}"
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
        mechanisms = self.mechanisms.values() or [release_from_json(self.certificate["mechanism"])]
        thresholds = [each.tau_star for each in mechanisms if isinstance(each, Mechanism)]
        if self.groups or not thresholds:
            return ""
        return f" (none reached the threshold of {min(thresholds):.6g}: a larger ε or δ lowers it)"
