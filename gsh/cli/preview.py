"""gsh preview and gsh bound: what each C_u keeps, for the data owner only, and the bounding query for other engines."""

import html
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gsh.cli import options
from gsh.cli.errors import Code, Refusal
from gsh.cli.files import written
from gsh.cli.output import AsJson, Sheet, note, number, show, working

if TYPE_CHECKING:
    from gsh.duckdb.previewing import Kept

__all__ = ["commands"]

commands = typer.Typer()

WARNING = (
    "This is not private: it is computed from true counts. If you choose C_u, τ, columns or clips from it, the "
    "certificate does not cover that choice. Say so: gsh publish --unprotected 'c_u chosen from a preview'"
)
LEGEND = {
    "groups": "the expected number of published groups",
    "kept": "the share of the volume that C_u keeps; the volume is the number of pairs of a user and a group",
    "published": "the expected share of the volume that is in published groups",
}
LEGEND_OF_CLIPS = {
    "clipped": "the share of kept pairs whose value is outside of the clip",
    "bias": "how much C_u and the clip change the total of all groups, as a share of the total of absolute values",
    "noise": "the standard deviation of the noise on the sum of one group",
}
_WIDTH, _MANY = 30, 1000


@commands.command(
    epilog="Example:  gsh preview events.parquet --user user_id --by url,country --c-u 1,2,4,8,16,32 --epsilon 1 "
    "--delta 1e-6"
)
def preview(
    data: options.EventsPath,
    user: options.User,
    by: options.By,
    c_u: Annotated[str, typer.Option("--c-u", metavar="LIST", help="The C_u to compare, with commas between them.")],
    epsilon: options.Epsilon,
    delta: options.Delta,
    sums: options.Sums = None,
    events: options.NumberOfEvents = None,
    means: options.Means = None,
    units: options.Units = None,
    caps: options.Caps = None,
    tau: options.Tau = None,
    types: options.ColumnTypes = None,
    memory: options.Memory = None,
    output: Annotated[
        str | None, typer.Option("--html", metavar="FILE", help="The same as a page, without external requests.")
    ] = None,
    force: options.Force = False,
    as_json: AsJson = False,
) -> None:
    """What each C_u would publish, and what clips of sums would do. It is for the owner's eyes, not private.

    For each column of --sum, --mean and --events: the given clip and others around it, at each C_u.
    """
    from gsh.duckdb.previewing import preview as measured  # noqa: PLC0415 - loads DuckDB

    try:
        choices = [int(part) for part in c_u.split(",")]
    except ValueError:
        raise Refusal(Code.INVALID, "--c-u: must be integers with commas between them", "such as 1,2,4,8") from None
    arguments = options.planned(user, by, sums, events, means, units, caps, types)
    arguments |= {"tau": 1 if tau is None else tau}
    with working("Counting"):
        kept = measured(data, c_u=choices, epsilon=epsilon, delta=delta, memory_limit=memory, **arguments)
    if output is not None:
        facts = {"events": data, "user": user, "groups": by, "ε": f"{epsilon:g}", "δ": f"{delta:g}"}
        with written(output, force=force) as file:
            file.write(page(kept, facts).encode())
    rows = [
        [
            str(each.c_u),
            number(each.sigma, 4),
            number(each.tau_star, 4),
            f"{each.groups:.0f}",
            f"{each.bounded:.1%}",
            f"{each.published:.1%}",
            "█" * round(_WIDTH * each.published / _largest(each.published for each in kept)),
        ]
        for each in kept
    ]
    clips = _clip_rows(kept)
    sheets = [Sheet(("c_u", "sigma", "tau_star", *LEGEND, ""), rows, frozenset(range(6)))]
    sheets += [
        Sheet(("c_u", "clip", *LEGEND_OF_CLIPS), of_column, frozenset(range(5)), column)
        for column, of_column in clips.items()
    ]
    show({"warning": WARNING, "kept": [asdict(each) for each in kept]}, *sheets, as_json=as_json)
    for name, meaning in (LEGEND | (LEGEND_OF_CLIPS if clips else {})).items():
        note(f"{name}: {meaning}")
    note(f"gsh: {WARNING}")


@commands.command(epilog="Example:  gsh bound --dialect postgres --from views --user user_id --by url,country --c-u 16")
def bound(
    dialect: Annotated[
        Literal["duckdb", "postgres", "spark", "snowflake", "bigquery", "presto", "trino"],
        typer.Option("--dialect", help="The SQL of which engine."),
    ],
    user: options.User,
    by: options.By,
    c_u: options.GivenC_U,
    source: Annotated[
        str, typer.Option("--from", metavar="TABLE", help="The table with the events, or SCHEMA.TABLE.")
    ] = "events",
    sums: options.Sums = None,
    events: options.NumberOfEvents = None,
    means: options.Means = None,
    units: options.Units = None,
    caps: options.Caps = None,
    tau: options.Tau = None,
    count: options.CountName = None,
    types: options.ColumnTypes = None,
    salt: Annotated[
        str | None,
        typer.Option("--salt", metavar="HEX", help="32 hexadecimal digits: the same salt keeps the same groups."),
    ] = None,
    sigma: options.Sigma = None,
    tau_star: options.TauStar = None,
    mechanism: options.MechanismFile = None,
    as_json: AsJson = False,
) -> None:
    """Print the query that bounds each user and counts the groups: send its result to gsh release.

    Without --type, users and group keys are taken as text, sums without a unit as integers, and others as doubles. With
    --sigma and --tau-star, or --mechanism, the engine adds the noise itself and drops small groups: presto can.
    """
    from gsh.events.bounding import commented_query  # noqa: PLC0415
    from gsh.events.lots import new_salt  # noqa: PLC0415 - loads numpy
    from gsh.events.plan import make_plan  # noqa: PLC0415

    chosen = 1 if tau is None else tau
    plan = make_plan(
        **options.planned(user, by, sums, events, means, units, caps, types),
        c_u=c_u,
        tau=chosen,
        salt=salt or new_salt(),
        names=options.named(count),
    )
    noise = None
    if mechanism is not None or sigma is not None or tau_star is not None:
        from gsh.accounting.mechanism import Mechanism  # noqa: PLC0415
        from gsh.events.terms import terms_for  # noqa: PLC0415

        numbers = (None, None, None, None) if mechanism is not None else (c_u, chosen, tau_star, sigma)
        checked = terms_for(plan, mechanism=options.mechanism_of(mechanism, *numbers)).only
        assert isinstance(checked, Mechanism)
        noise = checked
    query = commented_query(plan, dialect, source, noise)
    if as_json:
        show({"dialect": dialect, "query": query, "plan": plan.to_json(), "plan_digest": plan.digest}, as_json=True)
    else:
        sys.stdout.write(query)


def _clip_rows(kept: "tuple[Kept, ...]") -> dict[str, list[list[str]]]:
    """Of each column, a row for each C_u and clip."""
    found: dict[str, list[list[str]]] = {}
    for at in kept:
        for each in at.clips:
            cells = [str(at.c_u), f"{each.lower:g} to {each.upper:g}", f"{each.clipped:.2%}", f"{each.bias:.1%}"]
            found.setdefault(each.column, []).append([*cells, f"{each.noise:,.{0 if each.noise >= _MANY else 3}f}"])
    return found


def page(kept: "tuple[Kept, ...]", facts: Mapping[str, str]) -> str:
    """A page that needs nothing else: the warning, what was asked, the table, and bars for groups and volume."""
    rows = "\n".join(
        f"<tr><td>{each.c_u}</td><td>{each.sigma:.4g}</td><td>{each.tau_star:.4g}</td>"
        f"<td>{each.groups:.0f}{_bar(each.groups / _largest(one.groups for one in kept))}</td>"
        f"<td>{each.bounded:.1%}</td>"
        f"<td>{each.published:.1%}{_bar(each.published / _largest(one.published for one in kept))}</td></tr>"
        for each in kept
    )
    heads = _heads("C_u", "σ", "τ*", *LEGEND)
    clips = _clip_rows(kept)
    tables = "\n".join(_clip_table(column, of_column) for column, of_column in clips.items())
    asked = ", ".join(f"{name} <b>{html.escape(value)}</b>" for name, value in facts.items())
    named = LEGEND | (LEGEND_OF_CLIPS if clips else {})
    legend = "\n".join(f"<dt>{name}</dt><dd>{meaning}</dd>" for name, meaning in named.items())
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Preview: C_u, groups, volume and clips</title>
<style>
  :root {{ color-scheme: light dark }}
  body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 48rem; margin: 2rem auto; padding: 0 1rem }}
  div {{ overflow-x: auto }}
  table {{ border-collapse: collapse; width: 100% }}
  th, td {{ padding: 0.25rem 0.5rem; text-align: right; vertical-align: top; border-bottom: 1px solid #8888 }}
  td {{ white-space: nowrap }}
  svg {{ display: block; width: 100%; height: 0.4rem }}
  strong {{ border-left: 4px solid #d33; padding-left: 0.75rem; display: block }}
  dt {{ font-weight: bold }}
  dd {{ margin: 0 0 0.5rem }}
</style>
<h1>What each C_u keeps</h1>
<p><strong>{html.escape(WARNING)}</strong></p>
<p>{asked}</p>
<div>
<table>
<thead><tr>{heads}</tr></thead>
<tbody>
{rows}
</tbody>
</table>
</div>
{tables}
<dl>
{legend}
</dl>
</html>
"""


def _heads(*names: str) -> str:
    return "".join(f'<th scope="col">{name}</th>' for name in names)


def _clip_table(column: str, rows: list[list[str]]) -> str:
    body = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    heads = _heads("C_u", "clip", *LEGEND_OF_CLIPS)
    title = f"<h2>Clips of {html.escape(column)}</h2>"
    return f"{title}\n<div>\n<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>\n</div>"


def _largest(numbers: Iterable[float]) -> float:
    """For the longest bar; 1 if all are 0."""
    return max(numbers, default=0) or 1


def _bar(share: float) -> str:
    bar = f'<rect width="{100 * share:.1f}" height="1" fill="#36c"/>'
    return f'<svg viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">{bar}</svg>'
