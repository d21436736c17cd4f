"""gsh releases: what budgets have paid for, listed, and got again."""

import dataclasses
import json
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import gsh
from gsh.cli.connection import KeyFile, RetryCount, ServiceUrl, connected, place_of
from gsh.cli.errors import Code, Refusal
from gsh.cli.files import PIPE, AnswerName, Pipes, answer_named, written
from gsh.cli.options import Force
from gsh.cli.output import AsJson, Sheet, show
from gsh.histogram.file_formats import JSON, ZIP

if TYPE_CHECKING:
    from gsh.client import RecordedRelease
    from gsh.client.releases import CertificateFormat
    from gsh.histogram.file_formats import Format

__all__ = ["commands"]

commands = typer.Typer()
releases = typer.Typer()
commands.add_typer(releases, name="releases")


@releases.callback(invoke_without_command=True, epilog="Example:  gsh releases --budget web")
def list_releases(
    context: typer.Context,
    budget: Annotated[str | None, typer.Option("--budget", metavar="ID", help="Only those of one budget.")] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="The most to list.")] = 20,
    service: ServiceUrl = None,
    key_file: KeyFile = None,
    retries: RetryCount = None,
    as_json: AsJson = False,
) -> None:
    """List the releases that budgets have paid for, the newest first, or get one again."""
    if context.invoked_subcommand is not None:
        return
    with connected(service, key_file, retries) as client:
        found = list(islice(client.releases.list(budget=budget), limit))
    rows = [[each.key, each.state, each.budget, str(each.entry), each.at, each.description] for each in found]
    sheet = Sheet(("release", "state", "budget", "entry", "at", "description"), rows, frozenset({3}))
    show({"releases": [_release_document(each) for each in found]}, sheet, as_json=as_json)


@releases.command("get", epilog="Example:  gsh releases get web-2026-W46 -o private.parquet")
def get_release(
    context: typer.Context,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The name of the release, as gsh releases lists it.")],
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The private table; or FILE.zip, with all tables of a release of several. - is standard output.",
        ),
    ] = None,
    table: Annotated[
        str | None, typer.Option("--table", metavar="NAME", help="Which table of a release of several.")
    ] = None,
    certificate: Annotated[
        str | None,
        typer.Option(
            "--certificate",
            metavar="FILE",
            help="The certificate with the ledger's record: JSON; .yaml for a registry; .html to print.",
        ),
    ] = None,
    output_format: Annotated[
        AnswerName | None, typer.Option("--format", help="The format of the output, if its name does not say it.")
    ] = None,
    service: ServiceUrl = None,
    key_file: KeyFile = None,
    retries: RetryCount = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Get a release again: its private table or tables, its certificate, or what the ledger says about it."""
    Pipes(output=output, certificate=certificate)
    if as_json and PIPE in (output, certificate):
        raise Refusal(Code.INVALID, "--json: must be omitted with -", "standard output has the content then")
    if table is not None and output is None:
        raise Refusal(Code.INVALID, "--table: needs --output", "such as -o private.parquet")
    into = None if output is None else answer_named(output, output_format, "--format")
    with connected(*place_of(context, service, key_file), retries) as client:
        found = client.releases[key]
        if output is not None and into is not None:
            if found.stored is not None:  # else the service says why there is no answer
                _check_table(_tables_of(found, found.stored.media_type), into, table)
            with written(output, force=force) as sink:
                sink.write(found.answer(into, table))
        if certificate is not None:
            with written(certificate, force=force) as file:
                file.write(_certificate(client, found, certificate))
    if PIPE in (output, certificate):
        return
    document = _release_document(found)
    shown = {name: value for name, value in document.items() if value not in (None, "", [])}
    rows = [[name, value if isinstance(value, str) else json.dumps(value)] for name, value in shown.items()]
    show(document, Sheet(("release", ""), rows), as_json=as_json)


_CERTIFICATES: "dict[str, CertificateFormat]" = {".yaml": "yaml", ".yml": "yaml", ".html": "html"}


def _certificate(client: "gsh.Client", release: "RecordedRelease[Any]", path: str) -> bytes:
    """The certificate in the format that the name of the file says."""
    kind = _CERTIFICATES.get(Path(path).suffix.lower())
    if kind is None:
        return str(release.certificate.to_json(indent=2)).encode() + b"\n"
    return client.releases.certificate_text(release.key, kind).encode()


def _tables_of(release: "RecordedRelease[Any]", media_type: str) -> list[str]:
    """The names of the tables of a release of several. Only an archive or a JSON answer may have them."""
    from gsh.client.errors import NoCertificate  # noqa: PLC0415 - loads the client

    if media_type not in (ZIP, JSON):
        return []
    try:
        return [name for name in release.certificate.described if name]
    except NoCertificate:  # a release of version 0.1, which is one table
        return []


def _check_table(names: list[str], into: "Format | Literal['zip']", table: str | None) -> None:
    """Refuse a format or a table that the release does not have."""
    if not names:
        if table is not None:
            raise Refusal(Code.INVALID, "--table: must be omitted: the release is one table", "remove it")
        if into == "zip":
            raise Refusal(Code.INVALID, "--output: the release is one table", "such as -o private.parquet")
        return
    listed = f"the release has the tables {', '.join(names)}"
    if table is None and into != "zip":
        raise Refusal(Code.INVALID, listed, "add --table NAME for one of them, or -o FILE.zip for all")
    if table is not None and table not in names:
        raise Refusal(Code.INVALID, f"--table: must be one of them: {listed}", "check the name")
    if table is not None and into == "zip":
        raise Refusal(Code.INVALID, "--table: must be omitted with zip, which has all tables", "such as -o table.csv")


def _release_document(release: "RecordedRelease[Any]") -> dict[str, Any]:
    """The fields of the service's answer."""
    fields: dict[str, Any] = {field.name: getattr(release, field.name) for field in dataclasses.fields(release)}
    fields["answer"] = fields.pop("stored")
    del fields["_releases"]
    for name in ("answer", "committed", "by", "budget_use"):
        fields[name] = None if fields[name] is None else dataclasses.asdict(fields[name])
    fields["ancestors"] = list(map(dataclasses.asdict, release.ancestors))
    return fields | {"labels": list(release.labels)}
