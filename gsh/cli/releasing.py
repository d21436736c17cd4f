"""gsh release: a table of groups in, a private table with its certificate out."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

import gsh
from gsh.cli import options
from gsh.cli.connection import KeyFile, RetryCount, ServiceUrl, connected, need_service
from gsh.cli.errors import Code, Refusal
from gsh.cli.files import PIPE, Pipes, format_named, read_table_file, write_rows, written
from gsh.cli.output import AsJson, Sheet, note, number, show, working
from gsh.histogram.roles import Roles

if TYPE_CHECKING:
    import pyarrow as pa

    from gsh.accounting.mechanism import AnyMechanism
    from gsh.client.records import DryRun
    from gsh.histogram.csv_format import CsvType
    from gsh.histogram.file_formats import Format

__all__ = ["commands"]

commands = typer.Typer()


@commands.command(
    epilog="Example:  gsh release groups.parquet --count users --keys url,country --mechanism mechanism.json "
    "-o private.parquet"
)
def release(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A CSV, Parquet or Arrow file. - is standard input.")],
    keys: options.Keys,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The private table. - is standard output.")
    ],
    users: options.Count = "count",
    mechanism: options.MechanismFile = None,
    mechanism_of: options.MechanismOf = None,
    name: options.OfTable = None,
    c_u: options.C_U = None,
    tau: options.Tau = None,
    tau_star: options.TauStar = None,
    sigma: options.Sigma = None,
    public_keys: Annotated[
        str | None,
        typer.Option(
            "--public-keys",
            metavar="FILE",
            help="The public groups of a mechanism without thresholds: a file with the key columns. All are published.",
        ),
    ] = None,
    rounded: options.Rounded = False,
    units: options.RoundedTo = None,
    epsilon: options.StatedEpsilon = None,
    delta: options.StatedDelta = None,
    unprotected: options.Unprotected = None,
    budget: options.PaidBy = None,
    period: options.OfPeriod = None,
    once: options.Once = None,
    description: options.Description = None,
    labels: options.Labels = None,
    about: options.About = None,
    service: ServiceUrl = None,
    key_file: KeyFile = None,
    retries: RetryCount = None,
    certificate: Annotated[
        str | None,
        typer.Option("--certificate", metavar="FILE", help="The certificate in a file of its own. CSV needs it."),
    ] = None,
    source_format: options.From = None,
    output_format: options.Into = None,
    types: options.CsvTypes = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="The service checks the table, the budget and the name. It draws and charges nothing; no file is "
            "written.",
        ),
    ] = False,
    force: options.Force = False,
    as_json: AsJson = False,
) -> None:
    """Release a table of groups: add noise, drop small groups, and certify what is left.

    In this process; or by the service, if --service or --budget is given. Without --once, every release draws new
    noise and costs privacy again. With a --once that was used before, the earlier release comes again, and the output
    says so.
    """
    _check_pipes(table, mechanism, output, certificate, as_json=as_json)
    if public_keys == PIPE:
        raise Refusal(Code.INVALID, "--public-keys: must be a file", "such as countries.csv")
    is_here = service is None and budget is None
    if is_here:
        of_service = {"once": once, "description": description, "labels": labels, "about": about, "period": period}
        need_service(_given(of_service | {"dry_run": dry_run or None}))
    given_mechanism = (mechanism, c_u, tau, tau_star, sigma)
    used = _repeated(mechanism_of, name, given_mechanism, (service, key_file, retries))
    roles = Roles(tuple(options.names("--keys", keys)), users, used.aggregates.names if used.aggregates else ())
    declared = options.csv_types(types, list(roles.keys), users, roles.values)
    typed = options.listed("--type", types, "COLUMN=TYPE")
    into = None if output == PIPE and output_format is None else format_named(output, output_format, "--format")
    needs_file = certificate is None and once is None
    _check_place(needs_file and into == "csv")
    stated = {"epsilon": epsilon, "delta": delta, "unprotected": options.unprotected_of(unprotected)}
    public = None if public_keys is None else _listed(public_keys, roles.keys, declared, is_here=is_here)
    paid = {
        "public_keys": public,
        "budget": budget,
        "period": period,
        "once": once,
        "description": description,
        "labels": labels,
        "about": options.about_of(about),
    }
    rounding: dict[str, Any] = {"round": rounded, "units": options.units_of(units)}
    paid["csv_types"] = {name: declared[name] for name in typed} or None
    is_file = table != PIPE and source_format is None and os.path.isfile(table)
    replay: dict[str, Any] = {"is_replayed": False, "released_at": None, "budget_use": None}

    def read() -> "tuple[Format | None, Any]":
        """The format of the table, if it is known, and the table. The client reads a file itself."""
        if is_file and not is_here:
            return None, table
        return read_table_file(table, source_format, declared, roles.places(typed))

    if dry_run:
        with connected(service, key_file, retries) as client:
            given = _given(stated | paid | rounding)
            checked = client.dry_run(read()[1], used, users=users, keys=roles.keys, **given)
        _report_dry_run(checked, once, as_json=as_json)
        return
    with written(output, force=force) as sink:
        kind, groups = read()
        into = into or kind or format_named(table, source_format, "--format")
        _check_place(needs_file and into == "csv")
        if is_here:
            private, promise = _here(groups, used, roles, public, stated, rounding)
        else:
            with connected(service, key_file, retries) as client, _interrupted():
                given = _given(stated | paid | rounding)
                released = client.release(groups, used, users=users, keys=roles.keys, **given)
            private, promise = released.table, released.certificate.to_dict()
            replay = options.replay_of(released)
        write_rows(private, into, promise, sink, roles)
        if certificate is not None:
            with written(certificate, force=force) as file:
                file.write(json.dumps(promise, indent=2, ensure_ascii=False).encode() + b"\n")
        if into == "csv" and output != PIPE:
            _write_signature(private, output, force=force)
    _report(output, len(private), promise, replay, as_json=as_json)


def _write_signature(private: "pa.Table", output: str, *, force: bool) -> None:
    """What the service has signed, next to a file without a place for it."""
    from gsh.histogram.formats import signature_in  # noqa: PLC0415 - loads pyarrow
    from gsh.results.reading import SIGNATURE_ENDING  # noqa: PLC0415

    signature = signature_in(private)
    if signature is not None:
        with written(f"{output}{SIGNATURE_ENDING}", force=force) as file:
            file.write(signature.encode() + b"\n")


def _repeated(earlier: str | None, table: str | None, given: Any, place: Any) -> "AnyMechanism":
    """The mechanism of the options, or that of an earlier release of the service."""
    if earlier is None:
        file, c_u, tau, tau_star, sigma = given
        return options.mechanism_of(file, c_u, tau, tau_star, sigma, table)
    if set(given) != {None}:
        raise Refusal(Code.INVALID, "--mechanism-of: must be omitted with a mechanism", "remove one of them")
    with connected(*place) as client:
        return options.one_of(client.releases.certificate(earlier).mechanisms, table)


def _here(
    groups: Any,
    mechanism: "AnyMechanism",
    roles: Roles,
    public_keys: Any,
    stated: Mapping[str, Any],
    rounding: Mapping[str, Any],
) -> "tuple[pa.Table, Any]":
    """The release in this process, and its certificate."""
    from gsh.certificate import certificate  # noqa: PLC0415 - loads numpy
    from gsh.histogram.meanings import Meaning  # noqa: PLC0415
    from gsh.histogram.released_content import contents_of  # noqa: PLC0415 - loads pyarrow
    from gsh.library.rounding import rounded_to  # noqa: PLC0415

    meaning = Meaning(rounded=rounded_to(mechanism, rounding["round"], rounding["units"], "round"))
    with working("Releasing"):
        promise = certificate(mechanism, **stated, roles=roles, meanings=meaning)
        columns: dict[str, Any] = {"key_columns": roles.keys, "count_column": roles.count}
        private = gsh.release(mechanism, groups, **columns, public_keys=public_keys, **rounding)
        return private, promise.with_contents(contents_of({"": private}, {"": roles})).to_dict()


def _listed(path: str, keys: tuple[str, ...], declared: "Mapping[str, CsvType]", *, is_here: bool) -> Any:
    """The public groups of a file: a table in this process, and a list for the service."""
    _, table = read_table_file(path, None, {name: declared[name] for name in keys}, [("", "public_keys")])
    if sorted(table.column_names) != sorted(keys):
        what = f"--public-keys: must have the columns {', '.join(keys)}, and no others"
        raise Refusal(Code.INVALID, what, "they are those of --keys")
    if is_here:
        return table.select(keys)
    columns = [table[name].to_pylist() for name in keys]
    if not all(isinstance(value, str | int | None) for column in columns for value in column):
        what = "--public-keys: must be texts and whole numbers for a service"
        raise Refusal(Code.INVALID, what, "gsh publish --public-keys takes other types")
    return columns[0] if len(keys) == 1 else [list(row) for row in zip(*columns, strict=True)]


@contextmanager
def _interrupted() -> Iterator[None]:
    """After Ctrl-C nobody knows whether the request has arrived."""
    try:
        yield
    except KeyboardInterrupt:
        what = "interrupted; no file was written, but the service may have made the release"
        raise Refusal(Code.INTERRUPTED, what, "run it again with the same --once: it is charged once") from None


def _check_pipes(table: str, mechanism: str | None, output: str, certificate: str | None, *, as_json: bool) -> None:
    Pipes(table=table, mechanism=mechanism)
    Pipes(output=output, certificate=certificate)
    if output == PIPE and as_json:
        raise Refusal(Code.INVALID, "--json: must be omitted with --output -", "standard output has the table then")


def _check_place(is_lost: bool) -> None:
    if is_lost:
        raise Refusal(Code.INVALID, "CSV has no place for the certificate", "add --certificate FILE")


def _given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None}


def _report(output: str, groups: int, promise: Any, replay: Mapping[str, Any], *, as_json: bool) -> None:
    """What was released. The number of kept groups is part of the release."""
    paid = promise["budget"]
    use = replay["budget_use"]
    payer = "none: nothing keeps count of this release" if paid is None else str(paid["id"])
    payer += "" if use is None else f": 1/{use['of']} of it, {use['more']} more like this"
    again = f"released on {replay['released_at']}, nothing was charged now" if replay["is_replayed"] else ""
    if output == PIPE:
        earlier = f"replayed: {again}; " if again else ""
        kept = "1 group" if groups == 1 else f"{groups} groups"
        note(f"gsh: {earlier}released {kept}; budget {payer}")
        return
    rows = [["output", output], ["groups", str(groups)], ["budget", payer]]
    if again:
        rows.insert(0, ["replayed", again])
    if promise["idempotency_key"] is not None:
        rows.append(["release", promise["idempotency_key"]])
    points = ("epsilon", "delta") if promise["epsilon"] is not None else ()
    rows += [[name, number(promise[name])] for name in (*points, "mu_squared", "hazard")]
    document = {"output": output, "groups": groups, "certificate": promise, **replay}
    show(document, Sheet(("released", ""), rows), as_json=as_json)


def _report_dry_run(checked: "DryRun", once: str | None, *, as_json: bool) -> None:
    """What a release would do."""
    promise, paid = checked.certificate.to_dict(), checked.budget
    rows = [["table", "in order"], ["budget", "none" if paid is None else paid.id]]
    if once is not None:
        used = f"replays the release of {checked.released_at}: nothing would be charged"
        rows.append([once, "is free" if checked.released_at is None else used])
    if paid is not None:
        rows.append(["used", number(paid.used)])
    document = {"dry_run": True, "certificate": promise, "released_at": checked.released_at}
    document["budget"] = None if paid is None else {"id": paid.id, "used": paid.used}
    show(document, Sheet(("dry run", ""), rows), as_json=as_json)
