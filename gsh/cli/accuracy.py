"""gsh intervals and gsh utility: what published numbers mean, and what a mechanism would publish of a table.

Intervals cost no privacy. The utility is for the owner of the table, not for publication.
"""

import dataclasses
import math
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

import typer

import gsh
from gsh.certificate_words import intervals_cover
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
from gsh.errors import missing_column
from gsh.histogram.roles import ENDS, Roles

if TYPE_CHECKING:
    import pyarrow as pa

    from gsh.accounting.mechanism import AnyMechanism
    from gsh.accuracy.intervals import Interval
    from gsh.histogram.meanings import Meaning

__all__ = ["commands"]

commands = typer.Typer()

CsvKeys: TypeAlias = Annotated[
    str | None, typer.Option("--keys", metavar="COLUMNS", help="The columns of the group key. CSV needs it.")
]

_COUNT = "count"

_EXPECTED = ("all_groups", "groups", "groups_deviation", "all_volume", "volume", "below", "false_groups", "false_share")


@commands.command(epilog="Example:  gsh intervals private.parquet -o with-intervals.parquet")
def intervals(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A private table. - is standard input.")],
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

    The mechanism is the one of the table's certificate, unless another is given. Each column of numbers gets three
    more: its name with _low, _estimate and _high. So do means, as NAME_mean, and ratios.
    """
    from gsh.certificate import bounds_of  # noqa: PLC0415 - loads numpy
    from gsh.histogram.meanings import mean_column  # noqa: PLC0415
    from gsh.results.averages import means_in, ratios_in  # noqa: PLC0415

    Pipes(table=table, mechanism=mechanism)
    is_given = any(value is not None for value in (mechanism, c_u, tau, tau_star, sigma))
    given = options.mechanisms_of(mechanism, c_u, tau, tau_star, sigma) if is_given else None
    named = None if keys is None else options.names("--keys", keys)
    is_clear = given is not None and (name is not None or len(given) == 1)
    others = options.one_of(given, name).column_names if given is not None and is_clear else ()
    counted = users or _COUNT
    declared = options.csv_types(types, named or [], counted, others) | {counted: "float64"}
    places = Roles(tuple(named or ()), counted, others).places(options.listed("--type", types, "COLUMN=TYPE"))
    kind, published = read_table_file(table, source_format, declared, places)
    promise, own_name = certificate_in(published), table_name_in(published)
    used = _mechanism_of(_certified(promise) if given is None else given, name, own_name)
    said = _said(promise, own_name or name or "", used)
    published = published.select(said.meaning.without_averages(published.column_names))
    users = users or said.counted
    columns = (users, *used.column_names)
    _check(published, columns)
    numbers = {name: published[name].to_numpy() for name in columns}
    asked: dict[str, Any] = {"counts": numbers[users], "values": {name: numbers[name] for name in columns[1:]}}
    asked |= _rounding(rounded, options.units_of(units), said.meaning, used)
    found = gsh.intervals(used, **asked, level=level)
    ends = {users: found.counts, **found.values}
    means = means_in(used, said.meaning, asked, level, options.means_of(mean, "NAME=LOW:HIGH") or None)
    ratios = ratios_in(used, said.meaning, asked, level, _pairs(ratio, users) or None)
    averages = {**{mean_column(name): each for name, each in means.items()}, **ratios}
    totals = gsh.total(used, **asked, level=level) if total else None
    sums = {} if totals is None else {users: totals.counts, **totals.values}
    if output is not None:
        into = kind if output == PIPE and output_format is None else format_named(output, output_format, "--format")
        left = tuple(name for name in published.column_names if name not in columns)
        wide = _widened(published.select([*left, *columns]), {**ends, **averages})
        with written(output, force=force) as sink:
            roles = Roles(left, users, tuple(wide.column_names[len(left) + 1 :]))
            write_rows(wide, into, promise, sink, roles, own_name)
        if output == PIPE:
            return
    cover = intervals_cover(bounds_of(used, said.meaning), _unit(promise))
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
    rows = [] if output else [_rows(published, columns, ends, averages)]
    show(document, *rows, *_total_rows(sums), as_json=as_json)


class _Said(NamedTuple):
    """What the certificate of a table says of its columns."""

    meaning: "Meaning"
    counted: str


def _said(promise: Any, name: str, mechanism: "AnyMechanism") -> _Said:
    """Nothing, if there is no certificate, or if it is about another mechanism."""
    from gsh.certificate import Certificate  # noqa: PLC0415
    from gsh.histogram.meanings import Meaning  # noqa: PLC0415

    with suppress(ValueError, TypeError, LookupError, AttributeError):
        certificate = Certificate.from_json(promise)
        if certificate.mechanisms[name] == mechanism:
            roles = certificate.columns.get(name)
            return _Said(certificate.meanings[name], _COUNT if roles is None else roles.count)
    return _Said(Meaning(), _COUNT)


def _rounding(
    is_rounded: bool, units: dict[str, float] | None, meaning: "Meaning", mechanism: "AnyMechanism"
) -> dict[str, Any]:
    """What the numbers were rounded to: as the certificate says, unless it is given."""
    if is_rounded or units or meaning.rounded is None:
        return {"is_rounded": is_rounded, "units": units}
    return {"is_rounded": True, "units": dict(zip(mechanism.column_names, meaning.rounded[1:], strict=True))}


def _pairs(ratio: list[str] | None, users: str) -> dict[str, tuple[str, str]]:
    """The columns of each ratio. The count of users has two names: that of its column, and count."""
    given = options.ratios_of(ratio)
    return {name: (first, "count" if second == users else second) for name, (first, second) in given.items()}


def _shown(each: "Interval") -> dict[str, list[float | None]]:
    """The ends as JSON: null if the numbers do not say it."""
    ends = {end: getattr(each, end).tolist() for end in ENDS}
    return {end: [value if math.isfinite(value) else None for value in column] for end, column in ends.items()}


def _unit(promise: Any) -> str:
    """The privacy unit, if there is a certificate that says it."""
    from gsh.certificate import Certificate  # noqa: PLC0415

    with suppress(ValueError, TypeError, LookupError, AttributeError):
        return Certificate.from_json(promise).unit
    return "unit"


def _certified(promise: Any) -> "Mapping[str, AnyMechanism]":
    if promise is None:
        raise Refusal(Code.INVALID, "the table has no certificate", "give --mechanism FILE, such as its certificate")
    return options.mechanisms_in(promise)


def _mechanism_of(tables: "Mapping[str, AnyMechanism]", name: str | None, own_name: str | None) -> "AnyMechanism":
    """The mechanism of a file: of the table that it says it is, or else of the one that is asked for."""
    if "" in tables or own_name is None:
        return options.one_of(tables, name)
    if name not in (None, own_name):
        raise Refusal(Code.INVALID, f"--table: the file says that it is the table {own_name}", "omit --table")
    if own_name not in tables:
        what = f"the file says that it is the table {own_name}, which the certificate does not have"
        raise Refusal(Code.INVALID, what, f"give one of its tables: {', '.join(tables)}")
    return tables[own_name]


def _check(published: "pa.Table", columns: tuple[str, ...]) -> None:
    for place, name in enumerate(columns):
        if published.column_names.count(name) != 1:
            option = "--mechanism" if place else "--count"
            what = f"{option}: must name columns that the table has once"
            raise Refusal(Code.INVALID, what, missing_column(name, published.column_names))
        if published[name].null_count or not _is_number(published[name].type):
            raise Refusal(Code.INVALID, "the counts and sums must be numbers, without nulls", "give a private table")


def _is_number(kind: "pa.DataType") -> bool:
    import pyarrow as pa  # noqa: PLC0415

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


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
