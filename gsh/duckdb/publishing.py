"""publish: raw events in, a private table with its certificate out.  [docs/publish.md]"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import duckdb
import pyarrow as pa

from gsh.accounting.mechanism import Mechanism
from gsh.arguments import Integer, Real, flag, path, text, texts
from gsh.certificate import certificate as certificate_of
from gsh.duckdb.aggregates import aggregated
from gsh.duckdb.sources import Events, open_source
from gsh.duckdb.workspace import workspace
from gsh.errors import InvalidParameter
from gsh.events.kinds import Kind
from gsh.events.lots import new_salt, salt_of_release
from gsh.events.output import Output, rows_with
from gsh.events.plan import COUNT, Plan, make_plan
from gsh.events.published import OnProgress, Progress, Published
from gsh.events.target import Payer, Target, check_plan, mechanism_for, payer_of
from gsh.library.groups import release
from gsh.wire import mechanism_from_json

if TYPE_CHECKING:
    from gsh.client import Client

__all__ = ["publish"]

_ENGINE: Final = "gsh.duckdb"


def publish(
    events: Events,
    *,
    user: str,
    by: Sequence[str],
    sums: Mapping[str, tuple[Real, Real]] | None = None,
    units: Mapping[str, Real] | None = None,
    c_u: Integer,
    caps: Mapping[str, Integer] | None = None,
    weights: Mapping[str, Real] | None = None,
    tau: Integer = 1,
    epsilon: Real | None = None,
    delta: Real | None = None,
    mechanism: Mechanism | None = None,
    releases: Integer | None = None,
    most_sigma: Real | None = None,
    service: "Client | None" = None,
    budget: str | None = None,
    once: str | None = None,
    description: str = "",
    privacy_unit: str | None = None,
    unprotected: Sequence[str] = (),
    to: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
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

    ``events`` are files (Parquet, CSV, JSON lines; globs and folders), a relation of DuckDB, the name of a table if
    ``connection`` is given, or any frame with the Arrow stream interface. Each user counts in at most ``c_u`` groups of
    ``by``. ``sums`` maps columns to what one user adds to one group at most, ``units`` to the power of two in which
    they are counted, ``caps`` to the number of groups that one user changes.

    The noise meets (``epsilon``, ``delta``), or is that of a complete ``mechanism``. With ``service``, ``budget`` and
    ``once`` it is charged exactly once; without, nothing keeps count of it. With ``releases`` it is the smallest with
    which so many equal releases fit what remains of the budget; if less than half of a usual release is left, or σ is
    above ``most_sigma``, it is refused before anything is charged. The result goes to ``to`` and is returned.

        gsh.publish("events.parquet", user="user_id", by=["url", "country"], sums={"likes": (0, 1)}, c_u=16,
                    epsilon=1, delta=1e-6, to="private.parquet")
    """
    report = _reporter(progress)
    unprotected = texts("unprotected", unprotected)
    payer = payer_of(service, budget, once, description, privacy_unit)
    salt = _salt or (new_salt() if payer is None else salt_of_release(payer.budget, payer.once))
    plan = make_plan(user=user, by=by, sums=sums, units=units, c_u=c_u, caps=caps, tau=tau, salt=salt, types=types)
    aim: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "mechanism": mechanism, "releases": releases}
    target = mechanism_for(plan, **aim, most_sigma=most_sigma, weights=weights, payer=payer)
    output = None if to is None else Output(path("to", to), overwrite=flag("overwrite", overwrite))
    local: dict[str, Any] = {}
    if payer is None:
        unit = text("privacy_unit", privacy_unit or "user")
        local = _local_certificate(target, plan, unit, unprotected)
    else:
        earlier = _released(payer, plan, target, unprotected, output)
        if earlier is not None:
            return earlier
    if output is not None:
        output.check(plan)

    report(Progress("opening"))
    with workspace(memory_limit, threads, temporary) as space:
        source = open_source(space, events, plan, connection, report)
        table = aggregated(space, source, plan, report, _buckets)
    report(Progress("noise"))
    if payer is None:
        private = release(target.mechanism, table, key_columns=plan.by, count_column=COUNT)
        return _result(rows_with(private, local), local, plan, output, report)
    provenance = {"enforced_by": _ENGINE, "plan_digest": plan.digest, "plan": plan.to_json()}
    options: dict[str, Any] = {**target.stated, "budget": payer.budget, "once": payer.once, "provenance": provenance}
    options |= {"unprotected": list(unprotected)}
    made = payer.service.release(table, target.mechanism, users=COUNT, keys=plan.by, description=description, **options)
    published = _result(made.table, made.certificate.to_dict(), plan, output, report)
    return replace(published, is_replayed=made.is_replayed, released_at=made.released_at)


def _reporter(progress: OnProgress | None) -> OnProgress:
    if progress is not None and not callable(progress):
        raise InvalidParameter("progress", f"must be a function, not {type(progress).__name__}")
    return progress or (lambda _progress: None)


def _local_certificate(target: Target, plan: Plan, privacy_unit: str, unprotected: Sequence[str]) -> dict[str, Any]:
    """Made before anything is read, so that mistakes in it come first. It does not depend on the data."""
    return certificate_of(
        target.mechanism,
        **target.stated,
        unprotected=unprotected,
        privacy_unit=privacy_unit,
        enforced_by=_ENGINE,
        plan_digest=plan.digest,
    )


def _released(
    payer: Payer, plan: Plan, target: Target, unprotected: Sequence[str], output: Output | None
) -> Published | None:
    """The release of this name, if it was made before. No event is read for it."""
    record = payer.earlier()
    if record is None:
        return None
    certificate = record.certificate
    check_plan(certificate.bounds.plan_digest if record.state == "made" else None, plan)
    said = certificate.to_dict()
    for name, is_same in (
        ("mechanism", mechanism_from_json(said["mechanism"]) == target.mechanism),
        ("unprotected", said["unprotected"] == list(unprotected)),
    ):
        if not is_same:
            raise InvalidParameter("once", f"must be a new name: the release that has it was made with another {name}")
    if record.stored is None:  # it is charged, and nobody has read its answer: the same request draws it again
        return None
    is_there, table = (False, None) if output is None else output.written_before(payer.once, plan)
    if is_there:
        published = _published(record.load().table if table is None else table, said, plan, output)
    else:
        made = record.load()
        published = _result(made.table, made.certificate.to_dict(), plan, output, lambda _progress: None)
    return replace(published, is_replayed=True, released_at=record.at)


def _result(
    table: pa.Table, certificate: Mapping[str, Any], plan: Plan, output: Output | None, report: OnProgress
) -> Published:
    if output is not None:
        report(Progress("writing"))
        output.write(table, plan, certificate)
    return _published(table, certificate, plan, output)


def _published(table: pa.Table, certificate: Mapping[str, Any], plan: Plan, output: Output | None) -> Published:
    if output is None:
        place = "in the result"
    elif output.certificate_path is not None:
        place = f"in {output.certificate_path}"
    else:
        place = "in the metadata of the file"
    path = None if output is None else output.path
    return Published(table, path, certificate, plan, len(table), place)
