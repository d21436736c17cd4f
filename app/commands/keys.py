"""gsh keys: create, list, rotate and revoke access keys. ``python -m app.keys`` is the same."""

import re
from datetime import UTC, datetime
from typing import Annotated, TypeAlias

import typer

from app.ledger.clock import written
from app.ledger.scopes import Scope
from gsh.cli.output import AsJson

__all__ = ["keys"]

keys = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Create, list, rotate and revoke access keys of the ledger GSH_LEDGER.",
)

_SECONDS = {"m": 60, "h": 3600, "d": 86400}


def _expiry(text: str | None) -> str | None:
    """A date is its first second. A time without an offset is in UTC."""
    if text is None:
        return None
    try:
        given = datetime.fromisoformat(text)
        time = given.astimezone(UTC) if given.tzinfo else given.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise typer.BadParameter("must be a date or a time in ISO 8601, such as 2027-01-31") from None
    if not datetime.now(UTC) < time < datetime(3000, 1, 1, tzinfo=UTC):
        raise typer.BadParameter("must be in the future, and before the year 3000")
    return written(time)


def _overlap(text: str) -> str:
    if not re.fullmatch(r"0|[0-9]{1,4}[mhd]", text):
        raise typer.BadParameter("must be a number of days, hours or minutes, such as 7d, 12h or 30m, or 0")
    return text


def _budgets(names: list[str] | None) -> list[str]:
    from app.ledger.state import BUDGET_ID

    if not all(re.fullmatch(BUDGET_ID, name) for name in names or ()):
        raise typer.BadParameter("must be letters, digits, dots, dashes and underscores")
    return names or []


KeyId: TypeAlias = Annotated[str, typer.Argument(metavar="ID", help="As gsh keys list shows it.")]
Expires: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--expires", metavar="TIME", callback=_expiry, help="When it ends: a date or an ISO 8601 time, in UTC."
    ),
]


@keys.command(epilog='Example:  gsh keys create --scope release --budget web --note "weekly job" --expires 2027-01-31')
def create(
    scope: Annotated[list[Scope], typer.Option("--scope", help="What it may do. Repeatable.")],
    budget: Annotated[
        list[str] | None,
        typer.Option("--budget", metavar="ID", callback=_budgets, help="Bind it to a budget. Repeatable."),
    ] = None,
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="For people.")] = "",
    expires: Expires = None,
    as_json: AsJson = False,
) -> int:
    """Create an access key, and print it once."""
    from app.commands import access_keys

    return access_keys.create([each.value for each in scope], budget or [], note, expires, as_json=as_json)


@keys.command("list", epilog="Example:  gsh keys list")
def list_keys(as_json: AsJson = False) -> int:
    """List all access keys, without their secrets."""
    from app.commands import access_keys

    return access_keys.list_all(as_json=as_json)


@keys.command(epilog="Example:  gsh keys rotate 4f1c2a9b --overlap 7d")
def rotate(
    key_id: KeyId,
    overlap: Annotated[
        str,
        typer.Option(
            "--overlap", metavar="TIME", callback=_overlap, help="How long the old one still works: 7d, 12h, 30m, 0."
        ),
    ] = "1d",
    expires: Expires = None,
    as_json: AsJson = False,
) -> int:
    """Create an access key in place of another, and print it once.

    Without --expires it lives as long as the old one was made for.
    """
    from app.commands import access_keys

    seconds = 0 if overlap == "0" else int(overlap[:-1]) * _SECONDS[overlap[-1]]
    return access_keys.rotate(key_id, seconds, expires, as_json=as_json)


@keys.command(epilog="Example:  gsh keys revoke 4f1c2a9b")
def revoke(key_id: KeyId, as_json: AsJson = False) -> int:
    """End an access key, within a second."""
    from app.commands import access_keys

    return access_keys.revoke(key_id, as_json=as_json)


@keys.command(epilog="Example:  gsh keys seal")
def seal(as_json: AsJson = False) -> int:
    """Seal all access keys, releases and erasures of answers as they are: for a ledger with a new secret.

    Check the list before.
    """
    from app.commands import access_keys

    return access_keys.seal(as_json=as_json)
