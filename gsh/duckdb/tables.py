"""publish for several tables: one plan, one pass over the events, one charge, one certificate, all tables or none."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from gsh.duckdb.aggregates import aggregated_tables
from gsh.duckdb.job import Job
from gsh.duckdb.public_keys import keys_tables
from gsh.duckdb.sources import Source
from gsh.duckdb.workspace import Workspace
from gsh.duckdb.written import replay_of, written_tables
from gsh.events.folder_output import FolderOutput
from gsh.events.output import certified_rows
from gsh.events.public_keys import ListedKeys
from gsh.events.published import Published
from gsh.events.tables import Plans
from gsh.events.terms import Terms, check_plan, plan_digest_of
from gsh.library.groups import release
from gsh.results.rest import rests_asked

__all__ = ["publish_tables"]


def publish_tables(
    job: Job,
    plans: Plans,
    keys: Mapping[str, ListedKeys],
    terms: Terms,
    *,
    rest: bool | Mapping[str, str],
    place: Mapping[str, Any] | None,
) -> Published:
    """Publish the tables of a plan. ``place`` has the arguments of the folder to write, if there is one."""
    rests = rests_asked(plans.roles, rest)
    output = None if place is None else FolderOutput(plans=plans, rests=rests, **place)
    local = None
    if job.payer is None:
        local = job.local_certificate(terms.mechanisms, terms.stated, plans)
    else:
        earlier = _released(job, plans, terms, rests, output)
        if earlier is not None:
            return earlier
    if output is not None:
        output.check()

    def count(space: Workspace, source: Source) -> dict[str, pa.Table]:
        listed = keys_tables(space, source, plans.tables, keys)
        return aggregated_tables(space, source, plans.tables, job.report, job.buckets, listed)

    tables = job.aggregates(plans, count)
    public = dict.fromkeys(keys, "posted")
    if local is not None:
        drawn = {
            name: release(
                terms.mechanisms[name],
                table,
                key_columns=plans.tables[name].by,
                count_column=plans.count,
                public_keys=public.get(name),
                **plans.tables[name].rounding,
            )
            for name, table in tables.items()
        }
        certified, private = certified_rows(local, plans, drawn)
        return written_tables(job, private, certified, plans, rests, output)
    assert job.payer is not None
    made: Any = job.payer.service.release(
        tables,
        dict(terms.mechanisms),
        users=plans.count,
        keys={name: list(plan.by) for name, plan in plans.tables.items()},
        public_keys=public or None,
        round={name: plan.is_rounded for name, plan in plans.tables.items()},
        units={name: plan.rounding["units"] for name, plan in plans.tables.items() if plan.is_rounded} or None,
        **job.paid(plans, terms.stated),
    )
    published = written_tables(job, made.tables, made.certificate, plans, rests, output)
    return replace(published, **replay_of(made))


def _released(
    job: Job, plans: Plans, terms: Terms, rests: Mapping[str, str], output: FolderOutput | None
) -> Published | None:
    """The release of this name, if it was made before. No event is read for it."""
    assert job.payer is not None
    record = job.payer.earlier()
    if record is None:
        return None
    certificate = record.certificate
    check_plan(plan_digest_of(certificate) if record.state == "made" else None, plans)
    is_same = dict(certificate.mechanisms) == dict(terms.mechanisms)
    job.check_same(mechanism=is_same, unprotected=certificate.unprotected)
    if record.stored is None:  # it is charged, and nobody has read its answer: the same request draws it again
        return None
    made: Any = record.load()
    is_there = output is not None and output.written_before()
    published = written_tables(job, made.tables, made.certificate, plans, rests, output, is_there=is_there)
    return replace(published, is_replayed=True, released_at=record.at, budget_use=record.budget_use)
