"""gsh intervals and gsh utility: what published numbers mean, and what a mechanism would publish of a table.

Intervals cost no privacy. The utility is for the owner of the table, not for publication.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

import gsh
from gsh.cli import options
from gsh.cli.errors import Code, Refusal
from gsh.cli.files import (
    PIPE,
    Pipes,
    certificate_in,
    format_named,
    read_table_file,
    table_name_in,
    write_rows,
    written,
)
from gsh.cli.output import AsJson, Sheet, note, number, show
from gsh.cli.private_files import Columns, Rounding, certified_table, stated_table
from gsh.errors import missing_column
from gsh.histogram.roles import ENDS, Roles

if TYPE_CHECKING:
    import pyarrow as pa

    from gsh.accuracy.intervals import Interval

__all__ = ["commands"]

commands = typer.Typer()

CsvKeys: TypeAlias = Annotated[
    str | None, typer.Option("--keys", metavar="COLUMNS", help="The columns of the group key. CSV needs it.")
]

_COUNT = "count"

_EXPECTED = ("all_groups", "groups", "groups_deviation", "all_volume", "volume", "below", "false_groups", "false_share")


@commands.command(epilog="Example:  gsh intervals private.parquet -o with-intervals.parquet")
def intervals(
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="A private table: a file or a folder. - is standard input.")
    ],
    users: Annotated[
        str | None,
        typer.Option(
            "--count",
            "--users",
            metavar="COLUMN",
            help="The column of the noisy counts. If not given: as the certificate says, or count.",
        ),
    ] = None,
    keys: CsvKeys = None,
    level: Annotated[float, typer.Option("--level", metavar="X", help="The probability to cover each number.")] = 0.95,
    total: Annotated[bool, typer.Option("--total", help="Also the sum over the groups of the table.")] = False,
    mean: Annotated[
        list[str] | None,
        typer.Option(
            "--mean",
            metavar="NAME=LOW:HIGH",
            help="Also the mean of NAME per user, who has LOW to HIGH, from NAME_centred or NAME. Repeatable.",
        ),
    ] = None,
    ratio: Annotated[
        list[str] | None,
        typer.Option(
            "--ratio",
            metavar="NAME=A/B",
            help="Also the ratio of the columns A and B; B may be the count of users. Repeatable.",
        ),
    ] = None,
    rounded: Annotated[
        bool,
        typer.Option(
            "--round", "--rounded", help="The numbers were rounded to integers. A certificate says it itself."
        ),
    ] = False,
    units: options.RoundedTo = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="The table with the intervals. - is standard output."),
    ] = None,
    mechanism: options.MechanismFile = None,
    name: options.OfTable = None,
    c_u: options.C_U = None,
    tau: options.Tau = None,
    tau_star: options.TauStar = None,
    sigma: options.Sigma = None,
    source_format: options.From = None,
    output_format: options.Into = None,
    types: options.CsvTypes = None,
    force: options.Force = False,
    as_json: AsJson = False,
) -> None:
    """Where the true numbers behind published ones are, at a level of confidence.

    The certificate of the table, inside or next to it, says what the columns are. Without one, give the mechanism.
    Each column of numbers gets three more: its name with _low, _estimate and _high. So do means, as NAME_mean, and
    ratios.
    """
    from gsh.histogram.meanings import mean_column  # noqa: PLC0415 - loads numpy

    Pipes(table=table, mechanism=mechanism)
    columns = Columns(None if keys is None else tuple(options.names("--keys", keys)), users, types)
    rounding = Rounding(rounded, options.units_of(units))
    if any(value is not None for value in (mechanism, c_u, tau, tau_star, sigma)):
        given = options.mechanisms_of(mechanism, c_u, tau, tau_star, sigma)
        private = stated_table(table, name, source_format, given, columns, rounding)
    else:
        private = certified_table(table, name, source_format, columns, rounding)
    ((own, roles),) = private.roles.items()
    asked = options.means_of(mean, "NAME=LOW:HIGH"), _pairs(ratio, roles.count)
    found, means = private.intervals(level), private.means(asked[0] or None, level=level)
    ratios = private.ratios(asked[1] or None, level=level)
    ends = {roles.count: found.counts, **found.values}
    averages = {**{mean_column(name): each for name, each in means.items()}, **ratios}
    totals = private.total(level) if total else None
    sums = {} if totals is None else {roles.count: totals.counts, **totals.values}
    published = private.table.select(private.meanings[own].without_averages(private.table.column_names))
    if output is not None:
        is_named = output != PIPE or output_format is not None
        into = format_named(output if is_named else table, output_format if is_named else source_format, "--format")
        wide = _widened(published, {**ends, **averages})
        with written(output, force=force) as sink:
            wider = Roles(roles.keys, roles.count, tuple(wide.column_names[len(roles.keys) + 1 :]))
            write_rows(wide, into, certificate_in(private.table), sink, wider, table_name_in(private.table))
        if output == PIPE:
            return
    cover = private.intervals_cover
    if not as_json:
        note(f"gsh: {cover}")
    document = {
        "level": found.level,
        "intervals_cover": cover,
        "output": output,
        "intervals": {name: _shown(each) for name, each in ends.items()},
        "means": {name: _shown(each) for name, each in means.items()} or None,
        "ratios": {name: _shown(each) for name, each in ratios.items()} or None,
        "total": {name: dataclasses.asdict(each) for name, each in sums.items()} if sums else None,
    }
    rows = [] if output else [_rows(published, roles.numbers, ends, averages)]
    show(document, *rows, *_total_rows(sums), as_json=as_json)


def _pairs(ratio: list[str] | None, users: str) -> dict[str, tuple[str, str]]:
    """The columns of each ratio. The count of users has two names: that of its column, and count."""
    given = options.ratios_of(ratio)
    return {name: (first, "count" if second == users else second) for name, (first, second) in given.items()}


def _shown(each: "Interval") -> dict[str, list[float | None]]:
    """The ends as JSON: null if the numbers do not say it."""
    ends = {end: getattr(each, end).tolist() for end in ENDS}
    return {end: [value if math.isfinite(value) else None for value in column] for end, column in ends.items()}


def _widened(table: "pa.Table", ends: Mapping[str, Any]) -> "pa.Table":
    """The table with three more columns for each column of numbers."""
    import pyarrow as pa  # noqa: PLC0415

    for name, each in ends.items():
        for end in ENDS:
            if f"{name}_{end}" in table.column_names:
                raise Refusal(Code.INVALID, f"the table has a column {name}_{end} already", "give the private table")
            table = table.append_column(f"{name}_{end}", pa.array(getattr(each, end)))
    return table


def _rows(
    published: "pa.Table", columns: tuple[str, ...], ends: Mapping[str, Any], averages: "Mapping[str, Interval]"
) -> Sheet:
    left = [name for name in published.column_names if name not in columns]
    cells = [[str(value) for value in published[name].to_pylist()] for name in left]
    heads = list(left)
    for name in columns:
        heads += [name, *ENDS]
        cells.append([number(value, 8) for value in published[name].to_pylist()])
        cells += [[number(value, 8) for value in getattr(ends[name], end).tolist()] for end in ENDS]
    for name, each in averages.items():
        heads += ["low", name, "high"]
        cells += [[number(value, 6) for value in column] for column in _shown(each).values()]
    return Sheet(heads, list(zip(*cells, strict=True)), frozenset(range(len(left), len(heads))))


def _total_rows(sums: Mapping[str, Any]) -> list[Sheet]:
    if not sums:
        return []
    heads = ("low", "estimate", "high", "standard_error")
    rows = [[name, *(number(getattr(each, head), 8) for head in heads)] for name, each in sums.items()]
    return [Sheet(("total", *heads), rows, frozenset(range(1, 5)))]


@commands.command(epilog="Example:  gsh utility groups.parquet --count users --mechanism mechanism.json")
def utility(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The table of groups. - is standard input.")],
    users: options.Count = "count",
    keys: CsvKeys = None,
    mechanism: options.MechanismFile = None,
    name: options.OfTable = None,
    c_u: options.C_U = None,
    tau: options.Tau = None,
    tau_star: options.TauStar = None,
    sigma: options.Sigma = None,
    source_format: options.From = None,
    types: options.CsvTypes = None,
    as_json: AsJson = False,
) -> None:
    """What a mechanism would publish of a table: how many groups, and with which error.

    Nothing is released. The answer comes from the true counts without noise: keep it to yourself.
    """
    import pyarrow as pa  # noqa: PLC0415

    Pipes(table=table, mechanism=mechanism)
    used = options.mechanism_of(mechanism, c_u, tau, tau_star, sigma, name)
    if not isinstance(used, gsh.Mechanism):
        raise Refusal(Code.INVALID, "--mechanism: must have thresholds", "public groups are all published")
    named = [] if keys is None else options.names("--keys", keys)
    declared = options.csv_types(types, named, users, used.column_names)
    places = Roles(tuple(named), users, used.column_names).places(options.listed("--type", types, "COLUMN=TYPE"))
    _, groups = read_table_file(table, source_format, declared, places)
    if groups.column_names.count(users) != 1:
        what = "--count: must name exactly one column of the table"
        raise Refusal(Code.INVALID, what, missing_column(users, groups.column_names))
    if groups[users].null_count or not pa.types.is_integer(groups[users].type):
        raise Refusal(Code.INVALID, "--count: must be a column of integers, without nulls", "check the column")
    sizes = groups[users].to_numpy()
    found = gsh.utility(used, sizes=sizes[sizes > 0])
    document = {name: getattr(found, name) for name in (*_EXPECTED, "quantiles", "relative_errors")}
    errors = zip(found.quantiles, found.relative_errors or (), strict=False)
    rows = [
        ["groups", f"{number(found.groups, 6)} of {found.all_groups} ({found.groups_share:.3g})"],
        ["users in them", f"{number(found.volume, 6)} of {number(found.all_volume, 8)} ({found.volume_share:.3g})"],
        ["below the threshold", "none" if found.false_share is None else f"{found.false_share:.3g} of the published"],
        *([f"relative error at {quantile:g}", number(error, 3)] for quantile, error in errors),
    ]
    note("gsh: not private: this comes from the true counts, for your eyes only")
    show(document, Sheet(("expected", ""), rows), as_json=as_json)
