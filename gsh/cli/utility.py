"""gsh utility: what a mechanism would publish of a table. For the owner of the table, not for publication."""

from typing import Annotated

import typer

import gsh
from gsh.cli.errors import Code, Refusal
from gsh.cli.files import Pipes
from gsh.cli.options import (
    C_U,
    CsvTypes,
    From,
    MechanismFile,
    Sigma,
    Tau,
    TauStar,
    Users,
    csv_types,
    mechanism_of,
    names,
)
from gsh.cli.output import AsJson, Sheet, note, number, show
from gsh.cli.tables import read_table_file

__all__ = ["commands"]

commands = typer.Typer()


@commands.command(epilog="Example:  gsh utility groups.parquet --users users --mechanism mechanism.json")
def utility(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The table of groups. - is standard input.")],
    users: Users,
    keys: Annotated[
        str | None, typer.Option("--keys", metavar="COLUMNS", help="The columns of the group key. CSV needs it.")
    ] = None,
    mechanism: MechanismFile = None,
    c_u: C_U = None,
    tau: Tau = None,
    tau_star: TauStar = None,
    sigma: Sigma = None,
    source_format: From = None,
    types: CsvTypes = None,
    as_json: AsJson = False,
) -> None:
    """What a mechanism would publish of a table: how many groups, and with which error.

    Nothing is released. The answer comes from the true counts without noise: keep it to yourself.
    """
    import pyarrow as pa  # noqa: PLC0415

    Pipes(table=table, mechanism=mechanism)
    used = mechanism_of(mechanism, c_u, tau, tau_star, sigma)
    others = used.aggregates.names if used.aggregates is not None else ()
    named = [] if keys is None else names("--keys", keys)
    _, groups = read_table_file(table, source_format, csv_types(types, named, users, others))
    if groups.column_names.count(users) != 1:
        raise Refusal(Code.INVALID, "--users: must name exactly one column of the table", "check the name")
    if groups[users].null_count or not pa.types.is_integer(groups[users].type):
        raise Refusal(Code.INVALID, "--users: must be a column of integers, without nulls", "check the column")
    sizes = groups[users].to_numpy()
    found = gsh.utility(used, sizes=sizes[sizes > 0])
    document = {
        "all_groups": found.all_groups,
        "groups": found.groups,
        "groups_deviation": found.groups_deviation,
        "all_volume": found.all_volume,
        "volume": found.volume,
        "below": found.below,
        "false_groups": found.false_groups,
        "false_share": found.false_share,
        "quantiles": list(found.quantiles),
        "relative_errors": None if found.relative_errors is None else list(found.relative_errors),
    }
    errors = zip(found.quantiles, found.relative_errors or (), strict=False)
    rows = [
        ["groups", f"{number(found.groups, 6)} of {found.all_groups} ({found.groups_share:.3g})"],
        ["users in them", f"{number(found.volume, 6)} of {number(found.all_volume, 8)} ({found.volume_share:.3g})"],
        ["below the threshold", "none" if found.false_share is None else f"{found.false_share:.3g} of the published"],
        *([f"relative error at {quantile:g}", number(error, 3)] for quantile, error in errors),
    ]
    note("gsh: not private: this comes from the true counts, for your eyes only")
    show(document, Sheet(("expected", ""), rows), as_json=as_json)
