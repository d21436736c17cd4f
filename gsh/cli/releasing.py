"""gsh release: a table of groups in, a private table with its certificate out."""

import io
import json
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

import gsh
from gsh.cli.errors import Code, Refusal
from gsh.cli.files import PIPE, Pipes, format_named, read_table_file, written
from gsh.cli.options import (
    C_U,
    CsvTypes,
    Force,
    From,
    Into,
    Keys,
    MechanismFile,
    Sigma,
    Tau,
    TauStar,
    Users,
    csv_types,
    mechanism_of,
    names,
)
from gsh.cli.output import AsJson, Sheet, note, number, show, working

if TYPE_CHECKING:
    import pyarrow as pa

    from gsh.histogram.formats import Format

__all__ = ["commands"]

commands = typer.Typer()


@commands.command(
    epilog="Example:  gsh release groups.parquet --users users --keys url,country --mechanism mechanism.json "
    "-o private.parquet"
)
def release(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A CSV, Parquet or Arrow file. - is standard input.")],
    users: Users,
    keys: Keys,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The private table. - is standard output.")
    ],
    mechanism: MechanismFile = None,
    c_u: C_U = None,
    tau: Tau = None,
    tau_star: TauStar = None,
    sigma: Sigma = None,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", metavar="X", help="ε at which the certificate states δ.")
    ] = None,
    delta: Annotated[
        float | None, typer.Option("--delta", metavar="X", help="δ at which the certificate states ε.")
    ] = None,
    unprotected: Annotated[
        list[str] | None,
        typer.Option("--unprotected", metavar="TEXT", help="What you chose by looking at the data. Repeatable."),
    ] = None,
    certificate: Annotated[
        str | None,
        typer.Option("--certificate", metavar="FILE", help="The certificate in a file of its own. CSV needs it."),
    ] = None,
    source_format: From = None,
    output_format: Into = None,
    types: CsvTypes = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Release a table of groups: add noise, drop small groups, and certify what is left.

    Every release draws new noise and costs privacy again.
    """
    Pipes(table=table, mechanism=mechanism)
    Pipes(output=output, certificate=certificate)
    if output == PIPE and as_json:
        raise Refusal(Code.INVALID, "--json: must be omitted with --output -", "standard output has the table then")
    used = mechanism_of(mechanism, c_u, tau, tau_star, sigma)
    key_columns = names("--keys", keys)
    declared = csv_types(types, key_columns, users, used.aggregates.names if used.aggregates else ())
    into = None if output == PIPE and output_format is None else format_named(output, output_format, "--format")
    if into == "csv" and certificate is None:
        raise Refusal(Code.INVALID, "CSV has no place for the certificate", "add --certificate FILE")
    with working("Releasing"), written(output, force=force) as sink:
        kind, groups = read_table_file(table, source_format, declared)
        if into is None and kind == "csv" and certificate is None:
            raise Refusal(Code.INVALID, "CSV has no place for the certificate", "add --certificate FILE")
        promise = _promise(used, epsilon, delta, unprotected or [])
        private = gsh.release(used, groups, key_columns=key_columns, count_column=users)
        _write(private, kind, into or kind, promise, sink, key_columns, users)
        if certificate is not None:
            with written(certificate, force=force) as file:
                file.write(json.dumps(promise, indent=2, ensure_ascii=False).encode() + b"\n")
    _tell(output, len(private), promise, as_json=as_json)


def _promise(mechanism: "gsh.Mechanism", epsilon: float | None, delta: float | None, choices: list[str]) -> Any:
    from gsh.library.certificates import certificate  # noqa: PLC0415 - loads numpy

    return certificate(mechanism, epsilon=epsilon, delta=delta, unprotected=choices)


def _write(
    private: "pa.Table",
    kind: "Format",
    into: "Format",
    promise: Any,
    sink: IO[bytes],
    key_columns: list[str],
    users: str,
) -> None:
    """Write the table in its own format, or as the same rows in another one."""
    import pyarrow as pa  # noqa: PLC0415

    from gsh.histogram.conversion import convert  # noqa: PLC0415
    from gsh.histogram.formats import write_table  # noqa: PLC0415
    from gsh.histogram.tables import Roles  # noqa: PLC0415

    text = json.dumps(promise, ensure_ascii=False)
    if kind == into:
        write_table(into, private.to_reader(), text, sink)
        return
    stream = io.BytesIO()
    write_table("arrow", private.to_reader(), text, stream)
    values = [name for name in private.column_names if name not in {*key_columns, users}]
    roles = Roles(tuple(key_columns), users, tuple(values))
    convert(pa.py_buffer(stream.getvalue()), "arrow", into, sink, roles)


def _tell(output: str, groups: int, promise: Any, *, as_json: bool) -> None:
    """What was released. The number of kept groups is part of the release."""
    if output == PIPE:
        note(f"gsh: released {groups} groups; nothing keeps count of this release")
        return
    rows = [["output", output], ["groups", str(groups)]]
    if promise["epsilon"] is not None:
        rows += [["epsilon", number(promise["epsilon"])], ["delta", number(promise["delta"])]]
    rows += [["mu_squared", number(promise["mu_squared"])], ["hazard", number(promise["hazard"])]]
    rows += [["budget", "none: nothing keeps count of this release"]]
    document = {"output": output, "groups": groups, "certificate": promise}
    show(document, Sheet(("release", ""), rows), as_json=as_json)
