"""The command ``gsh``. A group of commands is a module with ``commands``; a new one gets its name in ``program``.

Each module loads numpy, pyarrow or httpx when it first needs it. The distribution of the service names its commands,
so that no module of it is named here.
"""

import io
import sys
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from typing import Annotated

import typer
from typer.main import get_command

import gsh
from gsh.cli import (
    accounting,
    accuracy,
    approvals,
    auditing,
    budgets,
    preview,
    publishing,
    releases,
    releasing,
    surveying,
    verifying,
)
from gsh.cli.errors import Code, Refusal, report

__all__ = ["add_commands", "main", "program", "run"]

_DISTRIBUTION = "gaussian-sparse-histogram-service"
_GROUP = "gsh.commands"
_MISSING = ("serve", "keys", "ledger", "openapi")
"""The commands that say how to install the service, if it is not installed."""
_TAKES_EVERYTHING = {"allow_extra_args": True, "ignore_unknown_options": True}


def main(arguments: Sequence[str] | None = None) -> int:
    """The command ``gsh``."""
    return run(program(), arguments, "gsh")


def run(commands: typer.Typer, arguments: Sequence[str] | None, name: str) -> int:
    """Run one command. An error is one line on standard error, and the exit code says its kind (docs/cli.md)."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that has no ε still gets an answer
    try:
        code: int | None = get_command(commands)(args=arguments, prog_name=name, standalone_mode=False)
    except Exception as error:
        return report(error)
    if code == Code.INTERRUPTED:
        return report(KeyboardInterrupt())
    return code or 0


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
    reading = (accuracy, budgets, approvals, releases, verifying)
    for group in (publishing, surveying, preview, accounting, auditing, releasing, *reading):
        commands.add_typer(group.commands)
    add_commands(commands)
    return commands


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


def add_commands(program: typer.Typer) -> None:
    """The service's own commands, or in their place commands that say that it is not installed."""
    try:
        found = distribution(_DISTRIBUTION).entry_points.select(group=_GROUP)
        loaded = [each.load() for each in found]
    except (PackageNotFoundError, ImportError):  # a damaged service does not stop the commands of the library
        missing = typer.Typer()
        for name in _MISSING:
            missing.command(name, context_settings=_TAKES_EVERYTHING, add_help_option=False)(_refuse)
        loaded = [missing]
    for each in loaded:
        program.add_typer(each)


def _refuse() -> None:
    """(The service is not installed.)"""
    raise Refusal(Code.OTHER, "the service is not installed", "in a checkout: pip install . ./service")
