"""python -m app.verify: the same as ``gsh verify``, with the Python that has the service."""

import sys
from collections.abc import Sequence

import typer

from app.commands.verify import verify
from gsh.cli import run

__all__ = ["main"]

_commands = typer.Typer(add_completion=False)
_commands.command()(verify)


def main(arguments: Sequence[str] | None = None) -> int:
    return run(_commands, arguments, "python -m app.verify")


if __name__ == "__main__":
    sys.exit(main())
