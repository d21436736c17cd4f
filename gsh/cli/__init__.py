"""The command ``gsh``. One module per group of commands; each loads numpy, pyarrow or httpx when it first needs it."""

import io
import sys
from collections.abc import Sequence

import typer
from typer.main import get_command

from gsh.cli.commands import program
from gsh.cli.errors import INTERRUPTED, report

__all__ = ["main", "run"]


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
    if code == INTERRUPTED:
        return report(KeyboardInterrupt())
    return code or 0
