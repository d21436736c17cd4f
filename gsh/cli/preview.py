"""gsh preview: what each C_u keeps, for the owner's eyes: a table and a chart in the terminal, and an HTML file."""

import html
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from gsh.cli.errors import Code, Refusal
from gsh.cli.files import terminated, written
from gsh.cli.options import Caps, Delta, Epsilon, Force, Sums, Tau
from gsh.cli.output import AsJson, Sheet, note, number, show, working
from gsh.cli.planning import By, ColumnTypes, EventsPath, Memory, Units, User, planned

if TYPE_CHECKING:
    from gsh.duckdb.previewing import Kept

__all__ = ["commands"]

commands = typer.Typer()

WARNING = (
    "This is not private: it shows true counts. If you choose C_u, τ or columns from it, the certificate does not "
    "cover that choice. Say so: gsh publish --unprotected 'c_u chosen from a preview'"
)
_WIDTH = 40


@commands.command(
    epilog="Example:  gsh preview events.parquet --user user_id --by url,country --c-u 1,2,4,8,16,32 --epsilon 1 "
    "--delta 1e-6"
)
def preview(
    events: EventsPath,
    user: User,
    by: By,
    c_u: Annotated[str, typer.Option("--c-u", metavar="LIST", help="The C_u to compare, with commas between them.")],
    epsilon: Epsilon,
    delta: Delta,
    sums: Sums = None,
    units: Units = None,
    caps: Caps = None,
    tau: Tau = None,
    types: ColumnTypes = None,
    memory: Memory = None,
    output: Annotated[
        str | None, typer.Option("--html", metavar="FILE", help="The same as a page, without external requests.")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """How many groups, and how much of the volume, each C_u would publish. It is for the owner's eyes, not private."""
    from gsh.duckdb.previewing import preview as measured  # noqa: PLC0415 - loads DuckDB

    try:
        choices = [int(part) for part in c_u.split(",")]
    except ValueError:
        raise Refusal(Code.INVALID, "--c-u: must be integers with commas between them", "such as 1,2,4,8") from None
    arguments = planned(user, by, sums, units, caps, types) | {"tau": 1 if tau is None else tau}
    with terminated(), working("Counting"):
        kept = measured(events, c_u=choices, epsilon=epsilon, delta=delta, memory_limit=memory, **arguments)
    if output is not None:
        with written(output, force=force) as file:
            file.write(page(kept).encode())
    heads = ("c_u", "sigma", "tau_star", "groups", "bounded", "published", "")
    best = max((each.published for each in kept), default=0) or 1
    rows = [
        [
            str(each.c_u),
            number(each.sigma, 4),
            number(each.tau_star, 4),
            f"{each.groups:.0f}",
            f"{each.bounded:.1%}",
            f"{each.published:.1%}",
            "█" * round(_WIDTH * each.published / best),
        ]
        for each in kept
    ]
    show(
        {"warning": WARNING, "kept": [asdict(each) for each in kept]},
        Sheet(heads, rows, frozenset(range(6))),
        as_json=as_json,
    )
    note(f"gsh: {WARNING}")


def page(kept: "tuple[Kept, ...]") -> str:
    """A page that needs nothing else: the warning, the table, and bars."""
    best = max((each.published for each in kept), default=0) or 1
    rows = "\n".join(
        f"<tr><td>{each.c_u}</td><td>{each.sigma:.4g}</td><td>{each.tau_star:.4g}</td><td>{each.groups:.0f}</td>"
        f"<td>{each.bounded:.1%}</td><td>{each.published:.1%}</td>"
        f'<td><svg width="300" height="14" role="img" aria-label="{each.published:.1%}">'
        f'<rect width="{300 * each.published / best:.1f}" height="14" fill="#3366cc"/></svg></td></tr>'
        for each in kept
    )
    heads = "".join(
        f"<th>{name}</th>" for name in ("C_u", "σ", "τ*", "groups", "pairs within C_u", "pairs published", "")
    )
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Preview: C_u, groups and volume</title>
<style>
  body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }}
  table {{ border-collapse: collapse }}
  th, td {{ padding: 0.25rem 0.75rem; text-align: right; border-bottom: 1px solid #ccc }}
  strong {{ color: #a40000 }}
</style>
<h1>What each C_u keeps</h1>
<p><strong>{html.escape(WARNING)}</strong></p>
<p>A pair is a user in a group. Groups and published pairs are expected numbers for the noise of each C_u.</p>
<table>
<thead><tr>{heads}</tr></thead>
<tbody>
{rows}
</tbody>
</table>
</html>
"""
