"""The survey of events on DuckDB: users by bins, from one pass; and a survey that is released by itself."""

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from gsh.accounting.calibration.after_survey import SurveyShare
from gsh.accounting.mechanism import PlainGaussian
from gsh.arguments import Integer, Real, text, texts
from gsh.certificate import certificate
from gsh.duckdb.aggregates import Query, answered
from gsh.duckdb.files import local_files
from gsh.duckdb.job import Job, reporter
from gsh.duckdb.public_keys import KeysTable, keys_tables
from gsh.duckdb.sources import Events, Source
from gsh.duckdb.workspace import Workspace
from gsh.events.kinds import Kind
from gsh.events.plan import checked_keys, make_plan
from gsh.events.public_keys import KeysLike, ListedKeys, Origin, public_keys_of
from gsh.events.published import OnProgress
from gsh.events.surveys.asked import SURVEY, Asks, settled
from gsh.events.surveys.choices import DrawnHistogram
from gsh.events.surveys.histograms import Counts, counted, survey_query
from gsh.events.surveys.result import Survey
from gsh.events.surveys.surveying import Surveying, surveying_of
from gsh.events.terms import check_plan, payer_of, salt_for
from gsh.library.groups import release

if TYPE_CHECKING:
    from gsh.client import Client

__all__ = ["survey", "survey_counts"]

_END, _USERS = "up_to", "users"
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
    share: SurveyShare | None = None,
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
    with such a survey. ``share`` is the survey's part of the noise cost: 1 %, or 0.2 % if at least 10⁵ users are
    expected.
    ``sums={"seconds": "survey"}`` and ``events={"views": "survey"}`` ask for clips too.

    The result is a release of its own, with public bins: a service charges it to the ``budget`` under the name
    ``once``. ``gsh.publish(..., c_u="survey")`` makes both in one release, which costs less than two.

        found = gsh.survey("events.parquet", user="user_id", by="url", epsilon=1, delta=1e-6)
        found.c_u[""], print(found), open("survey.html", "w").write(found.to_html())
    """
    job = Job(
        events=data,
        payer=payer_of(service, budget, once, period, description, labels, privacy_unit),
        privacy_unit=privacy_unit,
        unprotected=texts("unprotected", ()),
        connection=connection,
        memory_limit=memory_limit,
        threads=threads,
        temporary=temporary,
        report=reporter(progress),
        buckets=_buckets,
    )
    salt = salt_for(job.payer)
    fields, asks = settled({"c_u": c_u, "sums": sums, "events": events, "means": means, "units": units})
    origin = Origin(text("user", user), data, lambda: local_files(data) if connection is None else ())
    listed = None if public_keys is None else public_keys_of(public_keys, checked_keys(by), origin=origin)
    digest = None if listed is None else listed.digest
    plan = make_plan(user=user, by=by, tau=tau, salt=salt, types=types, public_keys=digest, **fields)
    asked = {} if asks is None else {"": asks}
    aim = {"epsilon": epsilon, "delta": delta}
    surveying = surveying_of(plan, asked, aim, weights=weights, survey=share, expected_users=expected_users)
    if surveying is None:
        surveying = surveying_of(
            plan, {"": Asks(True, ())}, aim, weights=weights, survey=share, expected_users=expected_users
        )
        assert surveying is not None
    return _released(job, surveying, {} if listed is None else {"": listed})


def _released(job: Job, surveying: Surveying, keys: Mapping[str, ListedKeys]) -> Survey:
    """Each histogram is a table of public keys: its bins."""
    names = ["groups" if each.column is None else f"values{place}" for place, each in enumerate(surveying.histograms)]
    noise = dict(zip(names, surveying.fixed.survey, strict=True))
    mechanisms = {name: PlainGaussian(c_u=1, sigma=each.sigma) for name, each in noise.items()}
    if job.payer is not None:
        record = job.payer.earlier()
        if record is not None and record.stored is not None:
            digests = {each.bounds.plan_digest for each in record.certificate.described.values()}
            check_plan(digests.pop() if len(digests) == 1 else None, surveying)
            made: Any = record.load()
            return _result(surveying, made.tables, made.certificate, is_replayed=True, released_at=record.at)

    def count(space: Workspace, source: Source) -> Counts:
        return survey_counts(space, source, surveying, job, keys_tables(space, source, surveying.tables, keys))

    counts = job.aggregates(surveying.plan, count)
    true = [each for listed in counts.values() for each in listed]
    bins = {
        name: pa.table({_END: pa.array(each.bins, pa.float64()), _USERS: users})
        for name, each, users in zip(names, surveying.histograms, true, strict=True)
    }
    provenance = {"enforced_by": job.engine, "plan_digest": surveying.digest}
    if job.payer is None:
        local = {
            name: release(mechanisms[name], table, key_columns=[_END], count_column=_USERS, public_keys="posted")
            for name, table in bins.items()
        }
        unit = text("privacy_unit", job.privacy_unit or "user")
        said = certificate(mechanisms, privacy_unit=unit, **provenance)  # type: ignore[arg-type]
        return _result(surveying, local, said)
    made = job.payer.service.release(
        bins,
        mechanisms,
        users=_USERS,
        keys={name: [_END] for name in names},
        public_keys=dict.fromkeys(names, "posted"),
        **job.payer.paid,
        provenance=provenance,
    )
    return _result(surveying, made.tables, made.certificate, is_replayed=made.is_replayed, released_at=made.released_at)


def _result(surveying: Surveying, tables: Mapping[str, pa.Table], said: Any, **replay: Any) -> Survey:
    survey = tuple(
        DrawnHistogram(wanted, stated, tuple(table.sort_by(_END)[_USERS].cast(pa.float64()).to_pylist()))
        for wanted, stated, table in zip(
            surveying.histograms, surveying.statement.histograms, tables.values(), strict=True
        )
    )
    return Survey(histograms=survey, choices=surveying.choices(survey), certificate=said, **replay)
