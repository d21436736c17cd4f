"""publish: raw events in a DataFrame in, a private table in its place out, exactly once.  [docs/publish-spark.md]

    check     what the engine needs on the driver and on the executors, by a small job
    open      the keeper gives the seed, the same for every run; with a service the budget is charged, once
    stage     Spark bounds, counts, adds noise, and writes to a folder of this attempt, table by table
    finish    the digest of the rows; rows that differ from those of an earlier attempt stop the job here
    commit    the keeper records the digest, and erases the seed
    place     the folder gets its name, with the certificate in it

The driver may die after each step: the next run goes on. It draws the same noise, because streams depend on the seed
and on the groups (gsh/spark/noise.py). After the commit it only does what is left of the last step.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote

from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812 - as everyone calls it

from gsh.accounting.calibration.after_survey import SurveyShare
from gsh.accounting.mechanism import AnyMechanism
from gsh.arguments import Integer, Real, flag, text, texts
from gsh.certificate import Certificate
from gsh.errors import Error, InvalidParameter, sum_too_large
from gsh.events.folders import checked_folders
from gsh.events.lots import salt_of_release
from gsh.events.plan import Plan, check_given, checked_keys, make_plan
from gsh.events.public_keys import KeysLike, ListedKeys, Origin, public_keys_of
from gsh.events.published import Published
from gsh.events.surveys.asked import SurveyBound, asks_in_tables, settled
from gsh.events.surveys.keeping import begun_salt
from gsh.events.surveys.surveying import Surveying, surveying_of
from gsh.events.tables import AnyPlan, place_of, planned
from gsh.events.terms import Terms, payer_of, plan_digest_of, repeated, terms_for, terms_for_tables
from gsh.histogram.formats import metadata_of
from gsh.library.tables import Table
from gsh.results.private_tables import LazyTables
from gsh.results.reading import read
from gsh.spark.aggregates import aggregates, by_user, kinds_of, quoted
from gsh.spark.keepers import ByFile, ByService, Keeper, Opening
from gsh.spark.needs import check_needs
from gsh.spark.noise import noise_function
from gsh.spark.places import Finished, Place
from gsh.spark.public_keys import listed_keys
from gsh.spark.tables import aggregates_of_tables, kinds_of_numbers, noised_tables, rows_of_table

if TYPE_CHECKING:
    from gsh.client import Client

__all__ = ["check_columns", "check_events", "check_frame", "committed_attempt", "local_files"]
__all__ += ["noised", "publish", "published_at", "staged"]


_NO_KEYS: Mapping[str, ListedKeys] = MappingProxyType({})


def publish(
    data: DataFrame,
    /,
    *,
    user: str,
    by: str | Sequence[str] | None = None,
    public_keys: "KeysLike | None" = None,
    sums: Mapping[str, tuple[Real, Real] | SurveyBound] | None = None,
    events: Mapping[str, Integer | SurveyBound] | None = None,
    means: Mapping[str, tuple[Real, Real] | SurveyBound] | None = None,
    units: Mapping[str, Real] | None = None,
    ratios: Mapping[str, tuple[str, str]] | None = None,
    round: bool = False,  # noqa: A002 - the word for it
    c_u: Integer | SurveyBound | None = None,
    caps: Mapping[str, Integer] | None = None,
    weights: Mapping[str, Real] | None = None,
    tau: Integer | None = None,
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
    to: str | os.PathLike[str],
    names: Mapping[str, str] | None = None,
    partitions: Integer = 200,
) -> Published:
    """Publish the groups of raw events: bound each user, count, add noise, and certify.  [docs/publish-spark.md]

    The arguments mean the same as those of ``gsh.publish``. ``to`` is the folder of the result: a path that the driver
    and all executors see, or a URI such as ``s3://…``. ``partitions`` is the number of its files, recorded in the plan;
    keep each below a million groups.

        gsh.spark.publish(df, user="user_id", by=["url", "country"], sums={"likes": (0, 1)}, c_u=16, epsilon=1,
                          delta=1e-6, service=service, budget="web", once="2026-W46", to="/mnt/published/2026-W46")

    With a service the release is made and charged exactly once, however often the job runs. Without one, a file next to
    the output keeps the seed until the release is complete, and nothing keeps count.

    ``tables`` gives several tables in place of ``by`` and what belongs to it: they are bounded each for itself, after
    one shuffle by user, and released together. Each has a folder of its name inside ``to``.

    ``c_u="survey"`` and the like leave bounds to a survey in the same release: the events are then read twice.
    """
    check_frame(data)
    unprotected = None if unprotected is None else texts("unprotected", unprotected)
    payer = payer_of(service, budget, once, period, description, labels, privacy_unit, about)
    folders = tuple(tables) if isinstance(tables, Mapping) else ("",)
    keeper: Keeper
    if payer is None:
        place = Place(to, tables=folders)
        unit = text("privacy_unit", "user" if privacy_unit is None else privacy_unit)
        keeper = local = ByFile(place, unit, unprotected)
        salt = begun_salt(place.folder) or local.salt()
    else:
        salt = salt_of_release(payer.budget, payer.once)
        place = Place(to, f".{salt[:16]}", tables=folders)
        keeper = ByService(payer, unprotected)
    table: dict[str, Any] = {"by": by, "public_keys": public_keys, "sums": sums, "events": events, "means": means}
    table |= {"units": units, "ratios": ratios, "c_u": c_u, "caps": caps, "weights": weights, "tau": tau}
    table |= {"round": flag("round", round) or None}
    used = repeated(mechanism, mechanism_of, payer)
    aim: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "mechanism": used, "releases": releases}
    aim |= {"most_sigma": most_sigma, "payer": payer}
    origin = Origin(text("user", user), data, lambda: local_files(data))
    wanted: dict[str, Any] = {"survey": survey, "expected_users": expected_users, "weights": weights, "shares": shares}
    plan, listed, surveying = _asked(table, tables, aim, wanted, origin, salt=salt, partitions=partitions, names=names)
    if surveying is not None:
        from gsh.spark.two_stages import publish_after_survey  # noqa: PLC0415 - it imports this module

        check_events(data, plan, listed)
        said: dict[str, Any] = {"privacy_unit": privacy_unit, "unprotected": unprotected}
        return publish_after_survey(data, place, payer, surveying, listed, **said)
    if isinstance(plan, Plan):
        terms = terms_for(plan, **aim, weights=weights)
    else:
        assert tables is not None
        terms = terms_for_tables(plan, tables, shares=shares, **aim)
    check_events(data, plan, listed)
    earlier = _released(place, plan, terms)
    if earlier is not None:
        return earlier
    place.make_parent()
    check_needs(data)
    opening = keeper.open(plan, terms)
    try:
        made = _made(data, place, keeper, opening, terms, listed)
    except Exception:
        # Another driver of this release may have been faster. Then it has removed the folder of this attempt.
        if place.certificate(place.folder) is None:
            raise
        made = None
    if made is None or not place.move(made):
        earlier = _released(place, opening.plan, terms)
        assert earlier is not None
        return earlier
    published = published_at(place, opening.plan, keeper.certificate(), made.rows, is_replayed=opening.seed is None)
    return replace(published, budget_use=opening.budget_use)


def _asked(
    table: Mapping[str, Any],
    tables: Mapping[str, Table] | None,
    aim: Mapping[str, Any],
    wanted: Mapping[str, Any],
    origin: Origin,
    **further: Any,
) -> tuple[AnyPlan, dict[str, ListedKeys], Surveying | None]:
    """The plan, its lists of public keys, and the survey that it asks for: then it has public defaults."""
    plan: AnyPlan
    if tables is None:
        if wanted["shares"] is not None:
            raise InvalidParameter("shares", "must be omitted without tables")
        bounds, own = settled(table)
        asks = {} if own is None else {"": own}
        plan, listed = _one(bounds, origin, **further)
    else:
        for name, given in table.items():
            if given is not None:
                raise InvalidParameter(name, "must be omitted with tables: each of them has its own")
        tables, asks = asks_in_tables(tables) if isinstance(tables, Mapping) else (tables, {})
        plan, listed = planned(tables, user=origin.user, origin=origin, **further)
    return plan, listed, surveying_of(plan, asks, aim, tables=tables, **wanted)


def _one(table: Mapping[str, Any], origin: Origin, **further: Any) -> tuple[Plan, dict[str, ListedKeys]]:
    """The plan and the public keys of the only table."""
    fields = dict(table)
    public_keys = fields.pop("public_keys")
    del fields["weights"]
    check_given(by=fields["by"], c_u=fields["c_u"])
    fields |= {"tau": 1 if fields["tau"] is None else fields["tau"], "round": bool(fields["round"])}
    listed = {} if public_keys is None else {"": public_keys_of(public_keys, checked_keys(fields["by"]), origin=origin)}
    digest = listed[""].digest if listed else None
    return make_plan(**fields, **further, user=origin.user, public_keys=digest), listed


def check_events(events: DataFrame, plan: AnyPlan, listed: Mapping[str, ListedKeys] = _NO_KEYS) -> None:
    """Let Spark check the query without running it, before anything is charged."""
    check_columns(events, plan)
    if isinstance(plan, Plan):
        query = aggregates(by_user(events, plan), plan, listed_keys(events, plan, listed))
    else:
        query = aggregates_of_tables(events, plan, listed)
    query.schema  # noqa: B018 - Spark analyses it


def check_columns(events: DataFrame, plan: AnyPlan) -> None:
    """Refuse columns that are missing, of another kind, or there twice."""
    plan.kinds_in(kinds_of(events.schema))
    names = [name.lower() for name in events.columns]
    for name in plan.columns:
        if names.count(name.lower()) > 1:
            raise InvalidParameter("events", f"must have only one column {name}: Spark ignores the case of names")
    checked_folders([unquote(file) for file in events.inputFiles()], plan, lambda files: _columns_of(events, files))


def check_frame(events: object) -> None:
    """Refuse what is not a DataFrame."""
    if not hasattr(events, "sparkSession"):
        raise InvalidParameter("events", f"must be a DataFrame of Spark, not {type(events).__name__}")


def local_files(events: DataFrame) -> list[str]:
    return [unquote(re.sub("^file:(//)?", "", file)) for file in events.inputFiles() if file.startswith("file:")]


def _tables(plan: AnyPlan) -> dict[str, Plan]:
    return {"": plan} if isinstance(plan, Plan) else plan.tables


def _columns_of(events: DataFrame, files: Sequence[str]) -> list[str]:
    """All columns inside some files of the events, without those that Spark takes from the names of folders.

    The options of other formats are not known here, so their columns cannot be read again.
    """
    if not all(file.endswith(".parquet") for file in files):
        detail = "must be Parquet files (.parquet) if a folder has the name of a column of the plan"
        raise InvalidParameter("events", f"{detail}: only they show whether they have it too; or rename the column")
    paths = [re.sub(r"[\\*?\[\]{}]", r"\\\g<0>", file) for file in files]
    reader = events.sparkSession.read.option("recursiveFileLookup", "true").option("mergeSchema", "true")
    return list(reader.parquet(*paths).columns)


def noised(
    rows: DataFrame, plan: Plan, mechanism: AnyMechanism, seed: bytes, listed: DataFrame | None = None
) -> DataFrame:
    """The published rows of the only table, as a plan of Spark. Every execution gives the same rows.

    ``rows`` are those of ``by_user``.
    """
    groups = aggregates(rows, plan, listed)
    numbers = [
        T.StructField(name, kind, False)
        for name, kind in zip(plan.roles.numbers, kinds_of_numbers(plan, mechanism), strict=True)
    ]
    schema = T.StructType([*groups.schema.fields[: len(plan.by)], *numbers])
    return groups.mapInArrow(noise_function(plan, mechanism, seed), schema)


def _made(
    events: DataFrame,
    place: Place,
    keeper: Keeper,
    opening: Opening,
    terms: Terms,
    listed: Mapping[str, ListedKeys],
) -> Finished | None:
    """The committed attempt, with its certificate. None: another driver was faster, and the release is in its place."""
    plan = opening.plan
    if opening.seed is not None:
        made = staged(events, place, opening, terms, listed)
        keeper.commit(made)
    elif place.certificate(place.folder) is not None:
        return None
    else:
        made = committed_attempt(place, opening.committed)
    place.certify(made, plan.to_json(), keeper.certificate())
    return made


def staged(
    events: DataFrame, place: Place, opening: Opening, terms: Terms, listed: Mapping[str, ListedKeys]
) -> Finished:
    """All tables in the folder of a new attempt, finished."""
    attempt = place.new_attempt()
    _stage(events, place, attempt, opening, terms, listed)
    return _finished(place, attempt, opening.plan)


def _released(place: Place, plan: AnyPlan, terms: Terms) -> Published | None:
    """The release that is in its place already. No event is read, and the service is not asked."""
    if not place.exists(place.folder):
        return None
    certificate = place.certificate(place.folder)
    if certificate is None and not place.is_local and place.finished() is not None:
        return None  # an object store had not moved all files when the driver ended
    is_it = certificate is not None and plan_digest_of(certificate) == plan.digest
    if certificate is None or not is_it or certificate.mechanisms != terms.mechanisms:
        raise InvalidParameter("to", "must be a new place: it exists already; choose another folder")
    place.remove(place.staging)
    return published_at(place, plan, certificate, place.rows(place.folder), is_replayed=True)


def _stage(
    events: DataFrame,
    place: Place,
    attempt: str,
    opening: Opening,
    terms: Terms,
    listed: Mapping[str, ListedKeys],
) -> None:
    """Write all tables to the folder of an attempt. For several of them, the published rows are kept meanwhile."""
    plan, seed, mechanisms = opening.plan, opening.seed, terms.mechanisms
    assert seed is not None
    if isinstance(plan, Plan):
        noisy = noised(by_user(events, plan), plan, mechanisms[""], seed, listed_keys(events, plan, listed))
        _staged(place, attempt, "", noisy, opening)
        return
    together = noised_tables(events, plan, mechanisms, seed, listed).persist()
    try:
        for name in plan.tables:
            _staged(place, attempt, name, rows_of_table(together, events, plan, mechanisms, name), opening)
    finally:
        together.unpersist()


def _certified(rows: DataFrame, count: str, table: str, certificate: Certificate) -> DataFrame:
    """The rows with their certificate in the metadata of the count: Spark writes it to the footer of every file."""
    metadata = metadata_of(certificate.to_json(), table)
    columns = {name: quoted(name) for name in rows.columns}
    return rows.select(*(columns | {count: columns[count].alias(count, metadata=metadata)}).values())


def _staged(place: Place, attempt: str, name: str, rows: DataFrame, opening: Opening) -> None:
    """Write the files of a table. An error of the noise comes as the text of an error of Spark."""
    fault, tables = None, _tables(opening.plan)
    rows = _certified(rows, tables[name].roles.count, name, opening.certificate)
    try:
        rows.write.mode("error").parquet(place.uri(place.of_table(attempt, name)))
    except Exception as error:
        said, faults = str(error), [fault for each in tables for fault in _faults(each, tables[each])]
        fault = next((each for each in faults if f"{type(each).__name__}: {each}" in said), None)
        if fault is None:
            raise
    if fault is not None:  # outside the handler: Spark's error would stay as the context of this one
        place.remove(attempt)
        raise fault


def _faults(name: str, plan: Plan) -> list[Error]:
    """What the noise of a table may raise on an executor."""
    start = f"{place_of(name)}/" if name else ""
    return [sum_too_large(f"{start}{each.pointer}") for each in plan.measures]


def _finished(place: Place, attempt: str, plan: AnyPlan) -> Finished:
    """The complete attempt. An earlier run has drawn the same rows, or else it had other events."""
    roles = {name: table.roles for name, table in _tables(plan).items()}
    made, before = place.finish(attempt, roles), place.finished()
    if not place.is_written(attempt):  # Spark writes a file even for no rows
        raise InvalidParameter("to", "must be a folder that the driver and all executors see: it got no file")
    if before is not None and before.digest != made.digest:
        place.remove(attempt)
        detail = f"must be the events of the earlier run: its rows differ; to give it up, remove {place.staging}"
        raise InvalidParameter("events", detail)
    place.record(made)
    return made


def committed_attempt(place: Place, digest: str | None) -> Finished:
    """The attempt that was committed, if it is still here and whole."""
    made = place.finished()
    if made is None or made.digest != digest or place.digest(made.attempt) != (made.digest, made.rows):
        detail = "must be a new name: this one is committed, and its rows are neither at `to` nor in a staging folder"
        raise InvalidParameter("once", detail)
    return made


def published_at(place: Place, plan: AnyPlan, certificate: Certificate, rows: int, *, is_replayed: bool) -> Published:
    tables = LazyTables(certificate.described, lambda: read(str(place)).tables)
    about: dict[str, Any] = {"path": str(place), "plan": plan, "groups": rows}
    about |= {"certificate_at": f"in {place}/_certificate.json", "is_replayed": is_replayed}
    return Published(tables, certificate, **about, released_at=certificate.released_at if is_replayed else None)
