"""The result of publishing: the private table or its place, the certificate and the plan; and reports of progress."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from gsh.events.plan import Plan

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
    """A private table, its certificate and the plan that bounded it."""

    table: pa.Table | None
    """The rows, sorted by group key; None if an engine has written them itself."""
    path: Path | str | None
    """Where they were written."""
    certificate: Mapping[str, Any]
    plan: Plan
    groups: int
    """How many groups were published."""
    certificate_at: str
    """Where the certificate is, in words."""
    is_replayed: bool = False
    """Whether this release was made before under the same ``once``."""
    released_at: str | None = None
    """When a replayed release was made. None if it is new."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """For whatever reads Arrow tables: pandas, polars, DuckDB."""
        if self.table is None:
            raise TypeError("the rows are in the files at path")
        return self.table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return self.groups

    def __repr__(self) -> str:
        return f"<Published: {self.summary()}>"

    def summary(self) -> str:
        """One line: how many groups, the privacy that they cost, and where the certificate is."""
        said = self.certificate
        point = "" if said["epsilon"] is None else f", (ε, δ) = ({said['epsilon']:g}, {said['delta']:.3g})"
        paid = said["budget"]
        payer = "nothing keeps count of it" if paid is None else f"paid by the budget {paid['id']}"
        place = "" if self.path is None else f" in {self.path}"
        groups = "1 group" if self.groups == 1 else f"{self.groups} groups"
        made = f"{groups} published{place}{point}; {payer}; certificate {self.certificate_at}"
        if not self.is_replayed:
            return made
        return f"replayed: released on {self.released_at}; {made}"
