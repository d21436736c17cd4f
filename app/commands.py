"""The command line of the service: gsh serve, gsh openapi, gsh keys and gsh ledger.

The distribution of the service names ``commands`` as an entry point, and the command ``gsh`` mounts it. ``gsh --help``
loads this module, so the ledger and the web framework are loaded only when a command runs.
"""

import os
import runpy
import sys
from typing import Annotated

import typer

from app.checkpoint import checkpoint
from app.keys import keys
from app.verify import verify

__all__ = ["commands"]

commands = typer.Typer()


@commands.command(epilog="Example:  gsh serve --port 8000 --ledger ledger.sqlite3")
def serve(
    host: Annotated[str | None, typer.Option("--host", metavar="ADDRESS", help="GSH_HOST: where to listen.")] = None,
    port: Annotated[int | None, typer.Option("--port", metavar="N", help="GSH_PORT: the port.")] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            "--ledger", metavar="PLACE", help="GSH_LEDGER: a file. A URL with a password belongs in the variable."
        ),
    ] = None,
) -> None:
    """Run the service. All other settings are environment variables (docs/operations.md)."""
    given = {"GSH_HOST": host, "GSH_PORT": port, "GSH_LEDGER": ledger}
    os.environ.update({name: str(value) for name, value in given.items() if value is not None})
    # The same process goes on as the service, so that signals reach it. -P: a folder `app` here is not the service.
    os.execv(sys.executable, [sys.executable, "-P", "-m", "app"])  # noqa: S606 - no shell, and no argument from outside


commands.add_typer(keys, name="keys", epilog="Example:  gsh keys create --scope release --budget web")
ledger = typer.Typer(no_args_is_help=True, add_completion=False, help="Check and sign the ledger GSH_LEDGER.")
ledger.command(epilog="Example:  gsh ledger verify --heads heads.jsonl")(verify)
ledger.command(epilog="Example:  gsh ledger checkpoint")(checkpoint)
commands.add_typer(ledger, name="ledger", epilog="Example:  gsh ledger verify")


@commands.command(epilog="Example:  gsh openapi > openapi.json")
def openapi() -> None:
    """Print the OpenAPI document of the service."""
    runpy.run_module("app.main", run_name="__main__")
