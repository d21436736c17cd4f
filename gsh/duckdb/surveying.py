"""The survey of events on DuckDB: users by bins, from one pass; and a survey that is released by itself."""

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import duckdb

from gsh.accounting.calibration.after_survey import SurveyShare
from gsh.arguments import Integer, Real, text
from gsh.duckdb.aggregates import Query, answered
from gsh.duckdb.files import local_files
from gsh.duckdb.job import Job, reporter
from gsh.duckdb.public_keys import KeysTable, keys_tables
from gsh.duckdb.sources import Events, Source
from gsh.duckdb.workspace import Workspace
from gsh.events.kinds import Kind
from gsh.events.public_keys import KeysLike, Origin
from gsh.events.published import OnProgress
from gsh.events.surveys.alone import released_survey, surveying_alone
from gsh.events.surveys.asked import SURVEY, Asks
from gsh.events.surveys.histograms import Counts, counted, survey_query
from gsh.events.surveys.result import Survey
from gsh.events.surveys.surveying import Surveying
from gsh.events.terms import payer_of, salt_for

if TYPE_CHECKING:
    from gsh.client import Client

__all__ = ["survey", "survey_counts"]

_NO_LISTS: Mapping[str, KeysTable] = MappingProxyType({})


def survey_counts(
    space: Workspace, source: Source, surveying: Surveying, job: Job, keys: Mapping[str, KeysTable] = _NO_LISTS
) -> Counts:
    """The true numbers of users in all bins. They are raw data."""
    plans = surveying.tables
    user = surveying.plan.user
    queries = [_query(surveying, name, asks, source, keys.get(name)) for name, asks in surveying.asks.items()]
    tables = answered(space, source, user, queries, job.report, job.buckets)
    return {
        name: counted(plans[name], asks, (row.values() for row in table.to_pylist()))
        for (name, asks), table in zip(surveying.asks.items(), tables, strict=True)
    }


def _query(surveying: Surveying, name: str, asks: Asks, source: Source, keys: KeysTable | None) -> Query:
    def binned(scan: str) -> str:
        listed = scan if keys is None else keys.listed(scan)
        return survey_query(surveying.tables[name], asks, source.kinds, "duckdb", listed)

    return Query(whole=binned, partial=binned, total=lambda partial: f"SELECT * FROM {partial}")


def survey(
    data: Events,
    /,
    *,
    user: str,
    by: str | Sequence[str],
    epsilon: Real,
    delta: Real,
    c_u: Any = SURVEY,
    sums: Mapping[str, Any] | None = None,
    events: Mapping[str, Any] | None = None,
    means: Mapping[str, Any] | None = None,
    units: Mapping[str, Real] | None = None,
    weights: Mapping[str, Real] | None = None,
    tau: Integer = 1,
    public_keys: KeysLike | None = None,
    survey: SurveyShare | None = None,
    expected_users: Integer | None = None,
    service: "Client | None" = None,
    budget: str | None = None,
    period: str | None = None,
    once: str | None = None,
    description: str = "",
    labels: Sequence[str] = (),
    privacy_unit: str | None = None,
    types: Mapping[str, Kind] | None = None,
    connection: duckdb.DuckDBPyConnection | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
    temporary: str | os.PathLike[str] | None = None,
    progress: OnProgress | None = None,
    _buckets: int | None = None,
) -> Survey:
    """Count the users in public bins, with noise, and choose C_u and clips from it.  [docs/choosing-bounds.md]

    The arguments mean the same as those of ``gsh.publish``. (``epsilon``, ``delta``) is the target of a publication
    with such a survey. ``survey=gsh.SurveyShare(0.01)`` is its part of the noise cost: 1 % if it is omitted, or 0.2 %
    if at least 10⁵ ``expected_users`` are named. ``sums={"seconds": "survey"}`` and
    ``events={"views": "survey"}`` ask for clips too.

    The result is a release of its own, with public bins: a service charges it to the ``budget`` under the name
    ``once``. ``gsh.publish(..., c_u="survey")`` makes both in one release, which costs less than two.

        found = gsh.survey("events.parquet", user="user_id", by="url", epsilon=1, delta=1e-6)
        found.c_u[""], print(found), open("survey.html", "w").write(found.to_html())
    """
    job = Job(
        events=data,
        payer=payer_of(service, budget, once, period, description, labels, privacy_unit),
        privacy_unit=privacy_unit,
        unprotected=None,
        connection=connection,
        memory_limit=memory_limit,
        threads=threads,
        temporary=temporary,
        report=reporter(progress),
        buckets=_buckets,
    )
    bounds = {"c_u": c_u, "sums": sums, "events": events, "means": means, "units": units}
    surveying, lists = surveying_alone(
        bounds,
        Origin(text("user", user), data, lambda: local_files(data) if connection is None else ()),
        by=by,
        public_keys=public_keys,
        epsilon=epsilon,
        delta=delta,
        weights=weights,
        survey=survey,
        expected_users=expected_users,
        tau=tau,
        types=types,
        salt=salt_for(job.payer),
    )

    def count(space: Workspace, source: Source) -> Counts:
        return survey_counts(space, source, surveying, job, keys_tables(space, source, surveying.tables, lists))

    return released_survey(
        surveying,
        lambda: job.aggregates(surveying.plan, count),
        engine=job.engine,
        payer=job.payer,
        privacy_unit=privacy_unit,
    )
