"""Options of commands that start from raw events, and the arguments of a plan that they describe."""

import math
from typing import Annotated, Any, TypeAlias

import typer

from gsh.cli.options import columns_of, listed, names, parsed

__all__ = ["By", "ColumnTypes", "EventsPath", "Memory", "Units", "User", "planned"]

EventsPath: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="EVENTS", help="Parquet, CSV or JSON lines: a file, a pattern such as 'day-*.parquet', or a folder."
    ),
]
User: TypeAlias = Annotated[str, typer.Option("--user", metavar="COLUMN", help="The column with the user.")]
By: TypeAlias = Annotated[
    str, typer.Option("--by", metavar="COLUMNS", help="The columns of the group key, with commas between them.")
]
Units: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--sum-unit",
        metavar="COLUMN=X",
        help="The unit of a sum: a power of two, such as 2^-10. Columns with fractions need it. Repeatable.",
    ),
]
ColumnTypes: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        metavar="COLUMN=TYPE",
        help="string, integer, double, boolean, date, timestamp, timestamptz, uuid or decimal(p,s). Repeatable.",
    ),
]
Memory: TypeAlias = Annotated[
    str | None, typer.Option("--memory", metavar="SIZE", help="The memory limit of DuckDB, such as 4GB.")
]


def planned(
    user: str,
    by: str,
    sums: list[str] | None,
    units: list[str] | None,
    caps: list[str] | None,
    types: list[str] | None,
) -> dict[str, Any]:
    """The arguments of ``publish`` that describe the columns."""
    columns = columns_of(sums, caps, None)
    scales = {name: parsed("--sum-unit", _unit, text) for name, text in listed("--sum-unit", units, "COLUMN=X").items()}
    return {
        "user": user,
        "by": names("--by", by),
        "sums": columns["sums"],
        "caps": columns["caps"],
        "units": scales or None,
        "types": listed("--type", types, "COLUMN=TYPE") or None,
    }


def _unit(text: str) -> float:
    """A number, or a power of two as people write it: 2^-10 or 2**-10."""
    base, power, exponent = text.replace("**", "^").partition("^")
    return math.ldexp(1.0, int(exponent)) if power and base.strip() == "2" else float(text)
