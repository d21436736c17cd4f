"""gsh demo: made-up events, for a first publication without data of one's own."""

from pathlib import Path
from typing import Annotated

import typer

from gsh.cli.errors import Code, Refusal
from gsh.cli.options import Force
from gsh.cli.output import AsJson, Sheet, show, working
from gsh.histogram.file_formats import EXTENSIONS

__all__ = ["commands"]

commands = typer.Typer()


@commands.command(epilog="Example:  gsh demo events.parquet --users 200000")
def demo(
    path: Annotated[str, typer.Argument(metavar="FILE", help="The Parquet file to write.")],
    users: Annotated[int, typer.Option("--users", metavar="N", help="How many users.")] = 200_000,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="The same number gives the same events.")] = 0,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write made-up events with the skew of real ones: few popular pages, few very active users, missing values."""
    from gsh.events.demo import SCHEMA, write_demo  # noqa: PLC0415 - loads pyarrow

    target = Path(path)
    if EXTENSIONS.get(target.suffix.lower()) != "parquet":
        raise Refusal(Code.INVALID, f"{path}: must end with .parquet", "such as events.parquet")
    if target.exists() and not force:
        raise Refusal(Code.INVALID, f"{path}: exists already", "choose another name, or add --force")
    with working("Writing events"):
        events = write_demo(target, users, seed)
    rows = [["output", path], ["events", str(events)], ["columns", ", ".join(SCHEMA.names)]]
    show(
        {"output": path, "events": events, "users": users, "seed": seed}, Sheet(("made up", ""), rows), as_json=as_json
    )
