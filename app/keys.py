"""gsh keys: create, list, rotate and revoke access keys. ``python -m app.keys`` is the same.

``gsh --help`` loads this module, so it loads the ledger only when a command runs.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from app.ledger.clock import after, now, written
from app.ledger.scopes import Scope
from gsh.cli import run
from gsh.cli.output import AsJson, line, note, show

if TYPE_CHECKING:
    from app.ledger.access_keys import AccessKey
    from app.ledger.store import Ledger

__all__ = ["keys", "main"]

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
    text: Annotated[str, typer.Option("--note", metavar="TEXT", help="For people.")] = "",
    expires: Expires = None,
    as_json: AsJson = False,
) -> int:
    """Create an access key, and print it once."""
    from app.ledger.access_keys import new_key

    key, kept = new_key(frozenset(each.value for each in scope), frozenset(budget or ()), text, now(), expires)
    with _opened(make=True) as ledger:
        ledger.keys.add(kept)
    return _show(key, kept, as_json)


@keys.command("list", epilog="Example:  gsh keys list")
def list_keys(as_json: AsJson = False) -> int:
    """List all access keys, without their secrets."""
    with _opened() as ledger:
        _list(ledger, as_json)
    return 0


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
    at = now()
    until = after(at, 0 if overlap == "0" else int(overlap[:-1]) * _SECONDS[overlap[-1]])
    with _opened() as ledger:
        rotated = ledger.keys.rotate(key_id, at, until, expires)
    if rotated is None:
        note("No active access key has this id, or it was replaced before.")
        return 1
    note(f"Access key {key_id} expires at {until}, if not before.")
    return _show(*rotated, as_json)


@keys.command(epilog="Example:  gsh keys revoke 4f1c2a9b")
def revoke(key_id: KeyId, as_json: AsJson = False) -> int:
    """End an access key, within a second."""
    with _opened() as ledger:
        is_revoked = ledger.keys.revoke(key_id, now())
    if not is_revoked:
        note("No active access key has this id.")
        return 1
    if as_json:
        show({"id": key_id, "revoked": True}, as_json=True)
    return 0


@keys.command(epilog="Example:  gsh keys seal")
def seal(as_json: AsJson = False) -> int:
    """Seal all access keys, releases and erasures of answers as they are: for a ledger with a new secret.

    Check the list before.
    """
    with _opened() as ledger:
        ledger.keys.seal()
        ledger.seal()
        _list(ledger, as_json)
    return 0


@contextmanager
def _opened(*, make: bool = False) -> Iterator["Ledger"]:
    """The ledger. Only the first access key makes one: a list of none would hide a wrong place."""
    from app.ledger.errors import LedgerUnavailable
    from app.ledger.opening import exists, open_ledger
    from app.settings import settings_or_exit

    settings = settings_or_exit()
    try:
        if not make and not exists(settings.ledger):
            raise LedgerUnavailable(f"there is no file {settings.ledger}; GSH_LEDGER names another one")
        with closing(open_ledger(settings.ledger, settings.ledger_secret.get_secret_value())) as ledger:
            yield ledger
    except LedgerUnavailable as error:
        note(f"The ledger cannot be opened: {error}")
        raise typer.Exit(2) from None


def _show(key: str, kept: "AccessKey", as_json: bool) -> int:
    """The access key itself on standard output, for this one time. Only its hash is stored."""
    if as_json:
        show({"key": key, "id": kept.id, "expires_at": kept.expires_at}, as_json=True)
        return 0
    line(key)
    expiry = "" if kept.expires_at is None else f", which expires at {kept.expires_at}"
    note(f"Created access key {kept.id}{expiry}. It is not shown again.")
    return 0


def _list(ledger: "Ledger", as_json: bool) -> None:
    found = ledger.keys.read()
    replacements = {key.replaces: key.id for key in found.every if key.replaces is not None}
    if as_json:
        show([_described(key, found.is_sealed(key), replacements.get(key.id)) for key in found.every], as_json=True)
        return
    for key in found.every:
        state = _state(key, now()) if found.is_sealed(key) else "NOT SEALED, so not accepted"
        scopes, budgets = ",".join(sorted(key.scopes)), ",".join(sorted(key.budgets)) or "all budgets"
        parts = [key.id, state, f"made {key.made_at}"]
        parts += [] if key.replaces is None else [f"replaces {key.replaces}"]
        parts += [f"replaced by {replacements[key.id]}"] if key.id in replacements else []
        line("  ".join([*parts, scopes, budgets, key.note]))


def _described(key: "AccessKey", is_sealed: bool, replaced_by: str | None) -> dict[str, Any]:
    """An access key without its hash."""
    return {
        "id": key.id,
        "state": _state(key, now()),
        "is_sealed": is_sealed,
        "made_at": key.made_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "replaces": key.replaces,
        "replaced_by": replaced_by,
        "scopes": sorted(key.scopes),
        "budgets": sorted(key.budgets),
        "note": key.note,
    }


def _state(key: "AccessKey", at: str) -> str:
    if key.revoked_at is not None:
        return f"revoked {key.revoked_at}"
    if key.expires_at is None:
        return "active"
    return f"expired {key.expires_at}" if key.has_expired(at) else f"active until {key.expires_at}"


def main(arguments: Sequence[str] | None = None) -> int:
    return run(keys, arguments, "python -m app.keys")


if __name__ == "__main__":
    sys.exit(main())
