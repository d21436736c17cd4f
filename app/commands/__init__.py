"""The command line of the service: gsh serve, gsh openapi, gsh keys and gsh verify.

The distribution of the service names ``commands`` as an entry point, and the command ``gsh`` mounts it. ``gsh --help``
loads this package, so its modules load the ledger and the web framework only when a command runs.
"""

import typer

from app.commands.keys import keys
from app.commands.serving import openapi, serve
from app.commands.verify import verify

__all__ = ["commands"]

commands = typer.Typer()
commands.command(epilog="Example:  gsh serve --port 8000 --ledger ledger.sqlite3")(serve)
commands.add_typer(keys, name="keys", epilog="Example:  gsh keys create --scope release --budget web")
commands.command(epilog="Example:  gsh verify --heads heads.jsonl")(verify)
commands.command(epilog="Example:  gsh openapi > openapi.json")(openapi)
