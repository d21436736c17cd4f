"""publish with a survey: first the users in bins, then tables with the bounds that follow. Both are one release.

    begin     the keeper gives the seed, the same for every run; with a service the budget is charged, once
    survey    users by bins, noise on every bin, the bounds; the keeper records them before anything else is drawn
    draw      the tables with these bounds, and noise from the seed
    commit    with a service: the rows go to a hidden folder, and their digest to the service, which erases the seed
    write     the output gets its name

A job that is killed after any step starts again with the same seed, and so ends with the same tables.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from gsh.accounting.mechanism import AnyMechanism
from gsh.certificate import Certificate
from gsh.certificate_words import NOISE_FROM_A_SEED
from gsh.duckdb.aggregates import aggregated, aggregated_tables
from gsh.duckdb.job import Job
from gsh.duckdb.public_keys import keys_tables
from gsh.duckdb.sources import Source
from gsh.duckdb.surveying import survey_counts
from gsh.duckdb.workspace import Workspace
from gsh.duckdb.written import Place, written_before
from gsh.errors import InvalidParameter
from gsh.events.lots import salt_of_release
from gsh.events.output import certified_rows
from gsh.events.plan import Plan
from gsh.events.public_keys import ListedKeys
from gsh.events.published import Published
from gsh.events.surveys.keeping import Keeper, KeptByService, KeptHere, Nowhere, folder_of
from gsh.events.surveys.result import Survey
from gsh.events.surveys.seeded import seeded_rows
from gsh.events.surveys.staged import StagedRows
from gsh.events.surveys.surveying import Decided, Surveying
from gsh.events.tables import AnyPlan
from gsh.events.terms import Terms
from gsh.surveyed import SurveyStatement

__all__ = ["keeper_of", "publish_after_survey"]


class _Found(NamedTuple):
    decided: Decided
    certificate: Certificate
    tables: dict[str, pa.Table]
    """The true aggregates."""


def keeper_of(job: Job, to: str | os.PathLike[str] | None) -> Keeper:
    """Who keeps the seed of a publication."""

    def certify(decided: Decided) -> Certificate:
        return _certificate(job, decided.terms, decided.plan, decided.statement)

    if job.payer is None:
        return Nowhere(certify) if to is None else KeptHere(to, certify)
    if to is None:
        raise InvalidParameter("to", "must be given with a survey and a service: the service does not keep these rows")
    salt = salt_of_release(job.payer.budget, job.payer.once)
    return KeptByService(job.payer, folder_of(to, f".{salt[:16]}"), job.engine, job.unprotected)


def publish_after_survey(
    job: Job, surveying: Surveying, keys: Mapping[str, ListedKeys], keeper: Keeper, place: Place
) -> Published:
    """Publish with the bounds that the survey chooses. The only table has the empty name."""
    if job.payer is None:
        _certificate(job, surveying.terms, surveying.plan, surveying.statement)  # mistakes in it come first
    if not keeper.has_begun:
        place.check(surveying.plan)
    begun = keeper.begin(surveying)
    if begun.certificate is not None:
        earlier = written_before(place.path, begun.certificate, surveying)
        if earlier is not None:
            keeper.done()
            return replace(earlier, budget_use=begun.budget_use)
    staged = StagedRows(keeper.folder) if isinstance(keeper, KeptByService) else None
    if begun.seed is None:
        assert staged is not None
        plan, said, rows = staged.committed(surveying, begun.committed)
        published = place.write(plan, rows, said)
        keeper.done()
        return replace(published, is_replayed=True, released_at=said.released_at, budget_use=begun.budget_use)
    found = _counted(job, surveying, keys, keeper, begun.seed)
    decided, drawn = found.decided, {}
    for name in found.tables:
        drawn[name] = _drawn(found, name, begun.seed, is_public=name in keys)
    said, rows = certified_rows(found.certificate, decided.plan, drawn)
    if staged is not None:
        keeper.commit(*staged.keep(decided.plan, said, rows))
    published = place.write(decided.plan, rows, said)
    keeper.done()
    survey = Survey(histograms=decided.survey, choices=decided.choices, certificate=said)
    return replace(published, survey=survey, budget_use=begun.budget_use)


def _certificate(job: Job, terms: Terms, plan: AnyPlan, statement: SurveyStatement) -> Certificate:
    return job.local_certificate(terms.released, terms.stated, plan, survey=statement, noise=NOISE_FROM_A_SEED)


def _counted(job: Job, surveying: Surveying, keys: Mapping[str, ListedKeys], keeper: Keeper, seed: bytes) -> _Found:
    """Both passes over the events, with the record of the survey between them."""

    def count(space: Workspace, source: Source) -> _Found:
        lists = keys_tables(space, source, surveying.tables, keys)
        decided = surveying.decided(survey_counts(space, source, surveying, job, lists), seed)
        said = keeper.record(decided)
        plan = decided.plan
        if isinstance(plan, Plan):
            tables = {"": aggregated(space, source, plan, job.report, job.buckets, lists.get(""))}
        else:
            tables = aggregated_tables(space, source, plan.tables, job.report, job.buckets, lists)
        return _Found(decided, said, tables)

    return job.aggregates(surveying.plan, count)


def _drawn(found: _Found, name: str, seed: bytes, *, is_public: bool) -> pa.Table:
    plan = found.decided.plan
    own = plan if isinstance(plan, Plan) else plan.tables[name]
    mechanism: AnyMechanism = found.decided.terms.mechanisms[name]
    return seeded_rows(found.tables[name], mechanism, own, seed, plan.digest, name, is_public=is_public)
