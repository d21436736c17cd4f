"""All commands in one program. A new group of commands is a module with ``commands``, and a line here."""

from functools import cache
from typing import Annotated

import typer

import gsh
from gsh.cli import (
    accounting,
    bounding,
    demo,
    intervals,
    ledger,
    preview,
    publishing,
    releasing,
    service,
    utility,
)

__all__ = ["program"]


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"gsh {gsh.__version__}")
        raise typer.Exit


def _gsh(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version, and end.")
    ] = False,
) -> None:
    """Private counts per group, with exact and certified privacy."""


@cache
def program() -> typer.Typer:
    """The commands of the library, and those of the service."""
    commands = typer.Typer(
        name="gsh",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    commands.callback(epilog="Start here:  gsh calibrate --c-u 16 --epsilon 1 --delta 1e-6")(_gsh)
    for group in (demo, publishing, preview, bounding, accounting, utility, releasing, intervals, ledger):
        commands.add_typer(group.commands)
    service.add_commands(commands)
    return commands
