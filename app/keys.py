"""gsh keys: create, list, rotate and revoke access keys, and read the history of access. ``python -m app.keys`` is the
same.

The commands work at the ledger, or over HTTP with ``--service``. ``gsh --help`` loads this module, so it loads the
ledger and the client only when a command runs.
"""

import dataclasses
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from app.ledger.access.scopes import Scope
from app.ledger.clock import after, expiry_of, now
from gsh.cli import run
from gsh.cli.connection import KeyFile, connected
from gsh.cli.output import AsJson, line, note, show

if TYPE_CHECKING:
    from app.ledger.store import Ledger

__all__ = ["keys", "main"]

keys = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Create, list, rotate and revoke access keys: of the ledger GSH_LEDGER, or of a service.",
)

_SECONDS = {"m": 60, "h": 3600, "d": 86400}


def _expiry(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        return expiry_of(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _overlap(text: str) -> str:
    if not re.fullmatch(r"0|[0-9]{1,4}[mhd]", text):
        raise typer.BadParameter("must be a number of days, hours or minutes, such as 7d, 12h or 30m, or 0")
    return text


def _budgets(patterns: list[str] | None) -> list[str]:
    from app.ledger.access.patterns import BUDGET_PATTERN

    if not all(re.fullmatch(BUDGET_PATTERN, pattern) for pattern in patterns or ()):
        raise typer.BadParameter("must be letters, digits, dots, dashes, underscores and stars")
    return patterns or []


KeyId: TypeAlias = Annotated[str, typer.Argument(metavar="ID", help="As gsh keys list shows it.")]
Place: TypeAlias = Annotated[
    str | None,
    typer.Option("--service", metavar="URL", help="Over HTTP, with an access key of scope admin; else at GSH_LEDGER."),
]
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
        typer.Option(
            "--budget", metavar="PATTERN", callback=_budgets, help="Bind it to budgets: web, web@*, a-*. Repeatable."
        ),
    ] = None,
    text: Annotated[str, typer.Option("--note", metavar="TEXT", help="For people.")] = "",
    expires: Expires = None,
    service: Place = None,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> int:
    """Create an access key, and print it once."""
    if service is not None:
        with connected(service, key_file, None) as client:
            names: Any = [each.value for each in scope]
            made = client.access_keys.create(names, budgets=budget or (), note=text, expires_at=expires)
        return _show(made.key, made.id, made.expires_at, as_json)
    from app.ledger.access.access_keys import new_key

    key, kept = new_key(frozenset(each.value for each in scope), frozenset(budget or ()), text, now(), expires)
    with _opened(make=True) as ledger:
        ledger.keys.add(kept)
    return _show(key, kept.id, kept.expires_at, as_json)


@keys.command("list", epilog="Example:  gsh keys list")
def list_keys(service: Place = None, key_file: KeyFile = None, as_json: AsJson = False) -> int:
    """List all access keys, without their secrets."""
    if service is not None:
        with connected(service, key_file, None) as client:
            _list([dataclasses.asdict(each) for each in client.access_keys], as_json)
        return 0
    with _opened() as ledger:
        _list(_described(ledger), as_json)
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
    service: Place = None,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> int:
    """Create an access key in place of another, and print it once.

    Without --expires it lives as long as the old one was made for.
    """
    seconds = 0 if overlap == "0" else int(overlap[:-1]) * _SECONDS[overlap[-1]]
    if service is not None:
        with connected(service, key_file, None) as client:
            made = client.access_keys.rotate(key_id, overlap_seconds=seconds, expires_at=expires)
        return _show(made.key, made.id, made.expires_at, as_json)
    at = now()
    until = after(at, seconds)
    with _opened() as ledger:
        rotated = ledger.keys.rotate(key_id, at, until, expires)
    if rotated is None:
        note("No active access key has this id, or it was replaced before.")
        return 1
    note(f"Access key {key_id} expires at {until}, if not before.")
    key, kept = rotated
    return _show(key, kept.id, kept.expires_at, as_json)


@keys.command(epilog="Example:  gsh keys revoke 4f1c2a9b")
def revoke(key_id: KeyId, service: Place = None, key_file: KeyFile = None, as_json: AsJson = False) -> int:
    """End an access key, within a second."""
    if service is not None:
        with connected(service, key_file, None) as client:
            client.access_keys.revoke(key_id)
    else:
        with _opened() as ledger:
            is_revoked = ledger.keys.revoke(key_id, now())
        if not is_revoked:
            note("No active access key has this id.")
            return 1
    if as_json:
        show({"id": key_id, "revoked": True}, as_json=True)
    return 0


@keys.command(epilog="Example:  gsh keys history --limit 5")
def history(
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="The most entries to show.")] = 20,
    service: Place = None,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> int:
    """Who made, rotated and revoked access keys, and who read stored answers: the latest first."""
    if service is not None:
        with connected(service, key_file, None) as client:
            found = [dataclasses.asdict(each) for each in islice(client.access_keys.history(), limit)]
        entries = [{name: value for name, value in each.items() if value is not None} for each in found]
    else:
        with _opened() as ledger:
            recorded = ledger.keys.history(None, limit)
        entries = [
            {"number": each.number, "kind": each.kind, "at": each.at, "hash": each.hash} | each.details
            for each in recorded
        ]
    if as_json:
        show(entries, as_json=True)
        return 0
    for entry in entries:
        line("  ".join([str(entry["number"]), entry["at"], entry["kind"], *_said(entry), entry["hash"][:16]]))
    return 0


@keys.command(epilog="Example:  gsh keys seal")
def seal(as_json: AsJson = False) -> int:
    """Seal all access keys, releases and erasures of answers as they are: for a ledger with a new secret.

    Check the list before.
    """
    with _opened() as ledger:
        ledger.keys.seal(now())
        ledger.signing_keys.seal()
        ledger.seal()
        _list(_described(ledger), as_json)
    return 0


@keys.command("rotate-signing", epilog="Example:  gsh keys rotate-signing --overlap 7d")
def rotate_signing(
    overlap: Annotated[
        str,
        typer.Option(
            "--overlap",
            metavar="TIME",
            callback=_overlap,
            help="How long the old one still signs: 7d, 12h, 30m, 0.",
        ),
    ] = "1d",
    as_json: AsJson = False,
) -> int:
    """Make a key that signs certificates in place of the present one, next to the ledger.

    It is published at once, at /.well-known/gsh-keys.json, and signs after the overlap. Old ones stay published.
    """
    from app.ledger.errors import LedgerUnavailable
    from app.ledger.signing.signer import KeyPlace, rotate
    from app.settings import settings_or_exit

    settings = settings_or_exit()
    signs_from = after(now(), 0 if overlap == "0" else int(overlap[:-1]) * _SECONDS[overlap[-1]])
    with _opened() as ledger:
        try:
            made = rotate(ledger, KeyPlace(settings.ledger, settings.signing_key_file), signs_from)
        except LedgerUnavailable as error:
            note(str(error))
            return 2
    if as_json:
        show({"id": made.id, "signs_from": made.signs_from}, as_json=True)
    else:
        line(f"{made.id} signs from {made.signs_from} on, and is published now.")
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


def _show(key: str, key_id: str, expires_at: str | None, as_json: bool) -> int:
    """The access key itself on standard output, for this one time. Only its hash is stored."""
    if as_json:
        show({"key": key, "id": key_id, "expires_at": expires_at}, as_json=True)
        return 0
    line(key)
    expiry = "" if expires_at is None else f", which expires at {expires_at}"
    note(f"Created access key {key_id}{expiry}. It is not shown again.")
    return 0


def _described(ledger: "Ledger") -> list[dict[str, Any]]:
    found, at = ledger.keys.read(), now()
    return [found.shown(key, at) for key in found.every]


def _list(described: Sequence[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        show([*described], as_json=True)
        return
    for key in described:
        scopes, budgets = ",".join(key["scopes"]), ",".join(key["budgets"]) or "all budgets"
        parts = [key["id"], _state(key), f"made {key['made_at']}"]
        parts += [] if key["replaces"] is None else [f"replaces {key['replaces']}"]
        parts += [] if key["replaced_by"] is None else [f"replaced by {key['replaced_by']}"]
        line("  ".join([*parts, scopes, budgets, key["note"]]))


def _state(key: dict[str, Any]) -> str:
    match key["state"]:
        case "unsealed":
            return "NOT SEALED, so not accepted"
        case "revoked":
            return f"revoked {key['revoked_at']}"
        case "expired":
            return f"expired {key['expires_at']}"
    return "active" if key["expires_at"] is None else f"active until {key['expires_at']}"


def _said(entry: dict[str, Any]) -> list[str]:
    """What an entry is about, and who did it."""
    by = entry.get("by")
    parts = [str(entry[name]) for name in ("key", "release", "budget") if name in entry]
    parts += [f"in place of {entry['replaces']}"] if "replaces" in entry else []
    return [*parts, f"by {by['id']} {by['note']}".rstrip() if by else "at the ledger"]


def main(arguments: Sequence[str] | None = None) -> int:
    return run(keys, arguments, "python -m app.keys")


if __name__ == "__main__":
    sys.exit(main())
