"""What publications of one table and of several share: the events, who pays, and how DuckDB is run."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import duckdb

from gsh.accounting.mechanism import AnyMechanism
from gsh.arguments import text
from gsh.certificate import Certificate
from gsh.certificate import certificate as certificate_of
from gsh.duckdb.sources import Events, Source, open_source
from gsh.duckdb.workspace import Workspace, workspace
from gsh.errors import InvalidParameter
from gsh.events.published import OnProgress, Progress
from gsh.events.tables import AnyPlan
from gsh.events.terms import Payer, provenance_of

__all__ = ["Job", "reporter"]

_ENGINE: Final = "gsh.duckdb"

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A publication with DuckDB, apart from its tables."""

    events: Events
    payer: Payer | None
    privacy_unit: str | None
    unprotected: Sequence[str] | None
    connection: duckdb.DuckDBPyConnection | None
    memory_limit: str | None
    threads: int | None
    temporary: str | os.PathLike[str] | None
    report: OnProgress
    buckets: int | None
    """For tests."""
    engine: str = _ENGINE

    def local_certificate(
        self,
        mechanism: AnyMechanism | Mapping[str, AnyMechanism],
        stated: Mapping[str, float],
        plan: AnyPlan,
        **further: Any,
    ) -> Certificate:
        """Made before anything is read, so that mistakes in it come first. It does not depend on the data."""
        return certificate_of(
            mechanism,
            epsilon=stated.get("epsilon"),
            delta=stated.get("delta"),
            unprotected=self.unprotected,
            privacy_unit=text("privacy_unit", self.privacy_unit or "user"),
            enforced_by=_ENGINE,
            plan_digest=plan.digest,
            roles=plan.roles,
            meanings=plan.meaning,
            **further,
        )

    def aggregates(self, plan: AnyPlan, count: Callable[[Workspace, Source], T]) -> T:
        """What is counted of the events, in a workspace that is removed then."""
        self.report(Progress("opening"))
        with workspace(self.memory_limit, self.threads, self.temporary) as space:
            found = count(space, open_source(space, self.events, plan, self.connection, self.report))
        self.report(Progress("noise"))
        return found

    def paid(self, plan: AnyPlan, stated: Mapping[str, float]) -> dict[str, Any]:
        """The arguments of a release that the budget pays for."""
        assert self.payer is not None
        provenance = provenance_of(_ENGINE, plan)
        return {**stated, **self.payer.paid, "provenance": provenance, "unprotected": self.unprotected}

    def check_same(self, *, mechanism: bool, unprotected: Sequence[str] | None) -> None:
        """Refuse the name of an earlier release that was made with something else."""
        is_as_said = list(unprotected or ()) == list(self.unprotected or ())
        for name, is_same in (("mechanism", mechanism), ("unprotected", is_as_said)):
            if not is_same:
                detail = f"must be a new name: the release that has it was made with another {name}"
                raise InvalidParameter("once", detail)


def reporter(progress: OnProgress | None) -> OnProgress:
    """Who hears of progress; nobody if it is None."""
    if progress is not None and not callable(progress):
        raise InvalidParameter("progress", f"must be a function, not {type(progress).__name__}")
    return progress or (lambda _progress: None)
