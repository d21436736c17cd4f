"""publish: raw events in, a private table or several with one certificate out.  [docs/publish.md]"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import duckdb
import pyarrow as pa

from gsh.accounting.calibration.after_survey import SurveyShare
from gsh.accounting.mechanism import AnyMechanism
from gsh.arguments import Integer, Real, flag, path, text, texts
from gsh.duckdb.aggregates import aggregated
from gsh.duckdb.files import local_files
from gsh.duckdb.job import Job, reporter
from gsh.duckdb.public_keys import keys_table
from gsh.duckdb.sources import Events, Source
from gsh.duckdb.tables import publish_tables
from gsh.duckdb.two_stages import keeper_of, publish_after_survey
from gsh.duckdb.workspace import Workspace
from gsh.duckdb.written import TablePlace, TablesPlace, published_table, replay_of, written_table
from gsh.errors import InvalidParameter
from gsh.events.kinds import Kind
from gsh.events.output import Output, certified_rows
from gsh.events.plan import Plan, check_given, checked_keys, make_plan
from gsh.events.public_keys import KeysLike, ListedKeys, Origin, public_keys_of
from gsh.events.published import OnProgress, Published
from gsh.events.surveys.asked import Asks, SurveyBound, asks_in_tables, settled
from gsh.events.surveys.surveying import surveying_of
from gsh.events.tables import planned
from gsh.events.terms import (
    Terms,
    check_plan,
    payer_of,
    plan_digest_of,
    repeated,
    salt_for,
    terms_for,
    terms_for_tables,
)
from gsh.library.groups import release
from gsh.library.tables import Table

if TYPE_CHECKING:
    from gsh.client import Client

__all__ = ["publish"]


def publish(
    data: Events,
    /,
    *,
    user: str,
    by: str | Sequence[str] | None = None,
    public_keys: KeysLike | None = None,
    sums: Mapping[str, tuple[Real, Real] | SurveyBound] | None = None,
    events: Mapping[str, Integer | SurveyBound] | None = None,
    means: Mapping[str, tuple[Real, Real] | SurveyBound] | None = None,
    units: Mapping[str, Real] | None = None,
    ratios: Mapping[str, tuple[str, str]] | None = None,
    round: bool = False,  # noqa: A002 - the word for it
    c_u: Integer | SurveyBound | None = None,
    caps: Mapping[str, Integer] | None = None,
    weights: Mapping[str, Real] | None = None,
    tau: Integer = 1,
    tables: Mapping[str, Table] | None = None,
    shares: Literal["balanced"] | None = None,
    epsilon: Real | None = None,
    delta: Real | None = None,
    mechanism: AnyMechanism | Mapping[str, AnyMechanism] | None = None,
    mechanism_of: str | None = None,
    releases: Integer | None = None,
    most_sigma: Real | None = None,
    survey: SurveyShare | None = None,
    expected_users: Integer | None = None,
    service: "Client | None" = None,
    budget: str | None = None,
    period: str | None = None,
    once: str | None = None,
    description: str = "",
    labels: Sequence[str] = (),
    about: Mapping[str, str] | None = None,
    privacy_unit: str | None = None,
    unprotected: Sequence[str] | None = None,
    to: str | os.PathLike[str] | None = None,
    format: str = "parquet",  # noqa: A002 - the word for it
    rest: bool | Mapping[str, str] = False,
    overwrite: bool = False,
    names: Mapping[str, str] | None = None,
    types: Mapping[str, Kind] | None = None,
    connection: duckdb.DuckDBPyConnection | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
    temporary: str | os.PathLike[str] | None = None,
    progress: OnProgress | None = None,
    _salt: str | None = None,
    _buckets: int | None = None,
) -> Published:
    """Publish the groups of raw events: bound each user, count, add noise, and certify.  [docs/publish.md]

    ``data`` are the events: files (Parquet, CSV, JSON lines; globs and folders), a relation of DuckDB, the name of a
    table if ``connection`` is given, or any frame with the Arrow stream interface. Each user counts in at most ``c_u``
    groups of ``by``. ``sums`` maps columns to what one user adds to one group at least and at most, and ``units`` to
    what they are counted in: a power of two, or 0.01 and the like for decimals. ``events={"views": 20}`` publishes the
    number of events as ``views``, at most 20 of one user in one group. ``means={"seconds": (0, 600)}`` publishes the
    mean per user as ``seconds_mean``: of what each user of a group has in it, from 0 to 600. ``ratios={"per_view":
    ("likes", "views")}`` adds the ratio of two columns. ``round=True`` rounds counts to integers and other columns to
    their units. ``caps`` is the number of groups in which one
    user changes a column. ``public_keys`` lists public groups (a list, a column, a table or a file): all of them are
    published, and other records are left out first. ``names={"count": "people"}`` is your name for the number of users.

    The noise meets (``epsilon``, ``delta``), or is that of a complete ``mechanism``. With ``service``, ``budget`` and
    ``once`` it is charged exactly once; without, nothing keeps count of it. ``period`` is the one that pays of a
    renewed budget, such as ``2026-W46``; without it, the present one. With ``releases`` it is the smallest with
    which so many equal releases fit what remains of the budget; if less than half of a usual release is left, or σ is
    above ``most_sigma``, it is refused before anything is charged. ``mechanism_of`` repeats the mechanism of an earlier
    release of the service: every week then has the same noise. The result goes to ``to`` and is returned.

    ``unprotected`` says what was chosen by looking at the data: ``[]`` if nothing was. With a service, ``about`` says
    what auditors ask next, in words for the certificate: ``source``, ``data_period``, ``purpose``,
    ``approver``, ``budget_ends``.

        gsh.publish("events.parquet", user="user_id", by=["url", "country"], sums={"likes": (0, 1)}, c_u=16,
                    epsilon=1, delta=1e-6, to="private.parquet")

    ``c_u="survey"``, ``sums={"seconds": "survey"}`` and ``events={"views": "survey"}`` leave bounds to a survey: noisy
    histograms over the users, in the same release and the same charge. ``("survey", 16)`` says which bound holds if it
    shows too little. ``survey=gsh.SurveyShare(0.01)`` is its part of the noise cost: 1 % if it is omitted, or 0.2 % if
    at least 10⁵ ``expected_users`` are named. They must not come from the data.  [docs/choosing-bounds.md]

    ``tables`` are several tables of one release, in place of ``by`` and its bounds. Together they have exactly the
    privacy curve of one table. ``to`` is then a folder with a file per table in this ``format``, and ``rest`` adds
    ``<table>_rest``: what each group has beyond its published children.

        gsh.publish("events.parquet", user="user_id", epsilon=1, delta=1e-6, to="private", tables={
            "by_country": gsh.Table(by=["country"], public_keys=["DE", "FR"], c_u=1),
            "detail": gsh.Table(by=["url", "country"], c_u=16)})
    """
    job = Job(
        events=data,
        unprotected=None if unprotected is None else texts("unprotected", unprotected),
        payer=payer_of(service, budget, once, period, description, labels, privacy_unit, about),
        privacy_unit=privacy_unit,
        connection=connection,
        memory_limit=memory_limit,
        threads=threads,
        temporary=temporary,
        report=reporter(progress),
        buckets=_buckets,
    )
    folder_or_file = None if to is None else path("to", to)
    used = repeated(mechanism, mechanism_of, job.payer)
    aim: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "mechanism": used, "releases": releases}
    aim |= {"most_sigma": most_sigma, "payer": job.payer}
    origin = Origin(text("user", user), data, lambda: local_files(data) if connection is None else ())
    bounds: dict[str, Any] = {"by": by, "sums": sums, "events": events, "means": means, "units": units}
    bounds |= {"ratios": ratios, "c_u": c_u, "caps": caps}
    asks: dict[str, Asks] = {}
    if isinstance(tables, Mapping):
        tables, asks = asks_in_tables(tables)
    elif tables is None:
        check_given(by=by, c_u=c_u)
        bounds, own = settled(bounds)
        asks = {} if own is None else {"": own}
    keeper = keeper_of(job, folder_or_file) if asks else None
    salt = _salt or (salt_for(job.payer) if keeper is None else keeper.salt())
    wanted: dict[str, Any] = {"survey": survey, "expected_users": expected_users}
    if tables is not None:
        one = bounds | {"public_keys": public_keys, "weights": weights, "tau": None if tau == 1 else tau}
        one |= {"round": round or None}
        _refuse("omitted with tables: each of them has its own", **one)
        plans, lists = planned(tables, user=user, salt=salt, types=types, origin=origin, names=names)
        surveying = surveying_of(plans, asks, aim, tables=tables, shares=shares, **wanted)
        folder = {"format": format, "overwrite": flag("overwrite", overwrite)}
        place = None if folder_or_file is None else {"path": folder_or_file, **folder}
        if surveying is not None and keeper is not None:
            return publish_after_survey(job, surveying, lists, keeper, TablesPlace(job, rest, place))
        terms = terms_for_tables(plans, tables, **aim, shares=shares)
        return publish_tables(job, plans, lists, terms, rest=rest, place=place)
    _refuse(
        "omitted without tables",
        shares=shares,
        rest=None if rest is False else rest,
        format=None if format == "parquet" else format,
    )
    listed = None if public_keys is None else public_keys_of(public_keys, checked_keys(by), origin=origin)
    digest = None if listed is None else listed.digest
    bounds |= {"round": round, "tau": tau, "public_keys": digest}
    plan = make_plan(user=user, **bounds, salt=salt, types=types, names=names)
    surveying = surveying_of(plan, asks, aim, weights=weights, **wanted)
    output = None if folder_or_file is None else Output(folder_or_file, overwrite=flag("overwrite", overwrite))
    if surveying is not None and keeper is not None:
        lists = {} if listed is None else {"": listed}
        return publish_after_survey(job, surveying, lists, keeper, TablePlace(job, output))
    return _publish_table(job, plan, listed, terms_for(plan, **aim, weights=weights), output)


def _refuse(detail: str, **arguments: object) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise InvalidParameter(name, f"must be {detail}")


def _publish_table(job: Job, plan: Plan, keys: ListedKeys | None, terms: Terms, output: Output | None) -> Published:
    local = None
    if job.payer is None:
        local = job.local_certificate(terms.only, terms.stated, plan)
    else:
        earlier = _released(job, plan, terms, output)
        if earlier is not None:
            return earlier
    if output is not None:
        output.check(plan)

    def count(space: Workspace, source: Source) -> pa.Table:
        listed = None if keys is None else keys_table(space, source, plan, keys)
        return aggregated(space, source, plan, job.report, job.buckets, listed)

    table = job.aggregates(plan, count)
    public = None if keys is None else "posted"
    if local is not None:
        columns: dict[str, Any] = {"key_columns": plan.by, "count_column": plan.count, "public_keys": public}
        private = release(terms.only, table, **columns, **plan.rounding)
        certified, rows = certified_rows(local, plan, {"": private})
        return written_table(job, rows[""], certified, plan, output)
    assert job.payer is not None
    listed: dict[str, Any] = plan.rounding | ({} if public is None else {"public_keys": public})
    mechanism: Any = terms.only
    made = job.payer.service.release(
        table, mechanism, users=plan.count, keys=plan.by, **listed, **job.paid(plan, terms.stated)
    )
    published = written_table(job, made.table, made.certificate, plan, output)
    return replace(published, **replay_of(made))


def _released(job: Job, plan: Plan, terms: Terms, output: Output | None) -> Published | None:
    """The release of this name, if it was made before. No event is read for it."""
    assert job.payer is not None
    record = job.payer.earlier()
    if record is None:
        return None
    certificate = record.certificate
    check_plan(plan_digest_of(certificate) if record.state == "made" else None, plan)
    is_same = certificate.mechanisms[""] == terms.only
    job.check_same(mechanism=is_same, unprotected=certificate.unprotected)
    if record.stored is None:  # it is charged, and nobody has read its answer: the same request draws it again
        return None
    is_there, table = (False, None) if output is None else output.written_before(job.payer.once, plan)
    if is_there:
        published = published_table(record.load().table if table is None else table, certificate, plan, output)
    else:
        made = record.load()
        published = written_table(job, made.table, made.certificate, plan, output, is_silent=True)
    return replace(published, is_replayed=True, released_at=record.at, budget_use=record.budget_use)
