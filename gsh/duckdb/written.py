"""Writes the results of publishing, if they have a place, and returns them as ``Published``."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from gsh.certificate import Certificate
from gsh.duckdb.job import Job
from gsh.errors import Error, InvalidParameter
from gsh.events.folder_output import FolderOutput
from gsh.events.output import Output
from gsh.events.plan import Plan
from gsh.events.published import Progress, Published
from gsh.events.surveys.surveying import Surveying
from gsh.events.tables import AnyPlan, Plans, plan_from_json
from gsh.results.averages import with_averages
from gsh.results.reading import read
from gsh.results.rest import rests_asked

__all__ = [
    "Place",
    "TablePlace",
    "TablesPlace",
    "published_table",
    "replay_of",
    "written_before",
    "written_table",
    "written_tables",
]


def replay_of(made: Any) -> dict[str, Any]:
    """What the service says of a release: whether it came again, and what it used of its budget."""
    return {name: getattr(made, name) for name in ("is_replayed", "released_at", "budget_use")}


def written_table(
    job: Job,
    table: pa.Table,
    certificate: Certificate,
    plan: Plan,
    output: Output | None,
    *,
    is_silent: bool = False,
) -> Published:
    """The only table of a release, with the means and ratios that follow from it."""
    table = _averaged(table, certificate, plan)
    if output is not None:
        if not is_silent:
            job.report(Progress("writing"))
        output.write(table, plan, certificate)
    return published_table(table, certificate, plan, output)


def published_table(table: pa.Table, certificate: Certificate, plan: Plan, output: Output | None) -> Published:
    """The same if the file is there already."""
    if output is None:
        place = "in the result"
    elif output.certificate_path is not None:
        place = f"in {output.certificate_path}"
    else:
        place = "in the metadata of the file"
    path = None if output is None else output.path
    about: dict[str, Any] = {"path": path, "plan": plan, "groups": len(table), "certificate_at": place}
    return Published({"": _averaged(table, certificate, plan)}, certificate, **about)


def _averaged(table: pa.Table, certificate: Certificate, plan: Plan, name: str = "") -> pa.Table:
    return with_averages(table, certificate.mechanisms[name], plan.roles, plan.meaning)


def written_tables(
    job: Job,
    tables: Mapping[str, pa.Table],
    certificate: Certificate,
    plans: Plans,
    rests: Mapping[str, str],
    output: FolderOutput | None,
    *,
    is_there: bool = False,
) -> Published:
    """Several tables. ``is_there`` says that the folder seems to have them: then it is only compared."""
    tables = {name: _averaged(tables[name], certificate, plan, name) for name, plan in plans.named}
    place = "in the result" if output is None else f"in {output.certificate_path}"
    groups = sum(map(len, tables.values()))
    path = None if output is None else output.path
    about: dict[str, Any] = {"path": path, "plan": plans, "groups": groups, "certificate_at": place}
    published = Published(tables, certificate, **about)
    if output is not None:
        files = (tables, {parent: published.rest(parent, child) for parent, child in rests.items()}, certificate)
        if not (is_there and output.is_whole(*files)):
            job.report(Progress("writing"))
            output.write(*files)
    return published


class Place(Protocol):
    """Where the tables of a plan go that is not known yet: a survey chooses its bounds."""

    @property
    def path(self) -> Path | None:
        """None if nothing is written."""

    def check(self, plan: AnyPlan) -> None:
        """Refuse what cannot be written, before anything is charged. ``plan`` has public defaults."""

    def write(self, plan: AnyPlan, tables: Mapping[str, pa.Table], certificate: Certificate) -> Published:
        """Write the tables, all or none."""


class TablePlace:
    """A file."""

    def __init__(self, job: Job, output: Output | None) -> None:
        self._job, self._output = job, output

    @property
    def path(self) -> Path | None:
        return None if self._output is None else self._output.path

    def check(self, plan: AnyPlan) -> None:
        if self._output is not None and os.path.lexists(self._output.path):
            assert isinstance(plan, Plan)
            self._output.check(plan)

    def write(self, plan: AnyPlan, tables: Mapping[str, pa.Table], certificate: Certificate) -> Published:
        assert isinstance(plan, Plan)
        return written_table(self._job, tables[""], certificate, plan, self._output)


class TablesPlace:
    """A folder. ``place`` has its arguments."""

    def __init__(self, job: Job, rest: bool | Mapping[str, str], place: Mapping[str, Any] | None) -> None:
        self._job, self._rest, self._place = job, rest, place

    @property
    def path(self) -> Path | None:
        return None if self._place is None else Path(self._place["path"])

    def _output(self, plan: AnyPlan) -> tuple[Plans, dict[str, str], FolderOutput | None]:
        assert isinstance(plan, Plans)
        rests = dict(rests_asked(plan.roles, self._rest))
        return plan, rests, None if self._place is None else FolderOutput(plans=plan, rests=rests, **self._place)

    def check(self, plan: AnyPlan) -> None:
        _, _, output = self._output(plan)
        if output is not None:
            output.check()

    def write(self, plan: AnyPlan, tables: Mapping[str, pa.Table], certificate: Certificate) -> Published:
        plans, rests, output = self._output(plan)
        return written_tables(self._job, tables, certificate, plans, rests, output)


def written_before(path: Path | None, said: Certificate, surveying: Surveying) -> Published | None:
    """The publication with this certificate, if it is in its place: the run that wrote it was killed at its end."""
    if path is None or not path.exists():
        return None
    try:
        found = read(path)
        beside = path / "plan.json" if path.is_dir() else path.with_name(f"{path.name}.plan.json")
        plan = plan_from_json(json.loads(beside.read_bytes()))
    except (OSError, ValueError, Error):
        return None
    if found.certificate.release_id != said.release_id:
        return None  # it is refused, or replaced, when the tables are written
    if not surveying.asks_for(plan):
        raise InvalidParameter("once", "must be a new name: a release by another plan has it already")
    groups = sum(map(len, found.tables.values()))
    about: dict[str, Any] = {"path": path, "plan": plan, "groups": groups, "certificate_at": f"in {path}"}
    return Published(found.tables, found.certificate, **about, is_replayed=True, released_at=said.released_at)
