"""gsh bound: the bounding query alone, for engines that the library does not drive."""

import sys
from typing import Annotated, Literal

import typer

from gsh.cli.options import Caps, Sums, Tau
from gsh.cli.output import AsJson, show
from gsh.cli.planning import By, ColumnTypes, Units, User, planned

__all__ = ["commands"]

commands = typer.Typer()


@commands.command(epilog="Example:  gsh bound --dialect postgres --from views --user user_id --by url,country --c-u 16")
def bound(
    dialect: Annotated[
        Literal["duckdb", "postgres", "spark", "snowflake", "bigquery"],
        typer.Option("--dialect", help="The SQL of which engine."),
    ],
    user: User,
    by: By,
    c_u: Annotated[int, typer.Option("--c-u", metavar="N", help="C_u: the most groups that one user can touch.")],
    source: Annotated[
        str, typer.Option("--from", metavar="TABLE", help="The table with the events, or SCHEMA.TABLE.")
    ] = "events",
    sums: Sums = None,
    units: Units = None,
    caps: Caps = None,
    tau: Tau = None,
    types: ColumnTypes = None,
    salt: Annotated[
        str | None,
        typer.Option("--salt", metavar="HEX", help="32 hexadecimal digits: the same salt keeps the same groups."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the query that bounds each user and counts the groups: send its result to gsh release.

    Without --type, users and group keys are taken as text, sums without a unit as integers, and others as doubles.
    """
    from gsh.events.lots import new_salt  # noqa: PLC0415 - loads numpy
    from gsh.events.plan import make_plan  # noqa: PLC0415
    from gsh.events.query_text import commented_query  # noqa: PLC0415

    chosen = 1 if tau is None else tau
    plan = make_plan(**planned(user, by, sums, units, caps, types), c_u=c_u, tau=chosen, salt=salt or new_salt())
    query = commented_query(plan, dialect, source)
    if as_json:
        show({"dialect": dialect, "query": query, "plan": plan.to_json(), "plan_digest": plan.digest}, as_json=True)
    else:
        sys.stdout.write(query)
