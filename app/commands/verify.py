"""gsh verify: check the histories of all budgets, and the access keys. ``python -m app.verify`` is the same."""

from pathlib import Path
from typing import Annotated

import typer

from gsh.cli.output import AsJson

__all__ = ["verify"]


def verify(
    heads: Annotated[
        Path | None, typer.Option("--heads", metavar="FILE", help="Every head in this file must still be there.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Check the histories of all budgets, and the access keys, of the ledger GSH_LEDGER."""
    from app.commands.verification import verified

    return verified(heads, as_json=as_json)
