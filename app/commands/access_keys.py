"""What the commands of ``gsh keys`` do with the ledger. Each returns an exit code."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import typer

from app.ledger.access_keys import AccessKey, new_key
from app.ledger.clock import after, now
from app.ledger.errors import LedgerUnavailable
from app.ledger.opening import open_ledger
from app.ledger.store import Ledger
from app.settings import settings_or_exit
from gsh.cli.output import line, note, show

__all__ = ["create", "list_all", "revoke", "rotate", "seal"]


@contextmanager
def _opened() -> Iterator[Ledger]:
    settings = settings_or_exit()
    try:
        with closing(open_ledger(settings.ledger, settings.ledger_secret.get_secret_value())) as ledger:
            yield ledger
    except LedgerUnavailable as error:
        note(f"The ledger cannot be opened: {error}")
        raise typer.Exit(2) from None


def create(scopes: list[str], budgets: list[str], text: str, expires_at: str | None, *, as_json: bool) -> int:
    key, kept = new_key(frozenset(scopes), frozenset(budgets), text, now(), expires_at)
    with _opened() as ledger:
        ledger.keys.add(kept)
    return _show(key, kept, as_json)


def rotate(key_id: str, overlap_seconds: int, expires_at: str | None, *, as_json: bool) -> int:
    at = now()
    until = after(at, overlap_seconds)
    with _opened() as ledger:
        rotated = ledger.keys.rotate(key_id, at, until, expires_at)
    if rotated is None:
        note("No active access key has this id, or it was replaced before.")
        return 1
    note(f"Access key {key_id} expires at {until}, if not before.")
    return _show(*rotated, as_json)


def _show(key: str, kept: AccessKey, as_json: bool) -> int:
    """The access key itself on standard output, for this one time. Only its hash is stored."""
    if as_json:
        show({"key": key, "id": kept.id, "expires_at": kept.expires_at}, as_json=True)
        return 0
    line(key)
    expiry = "" if kept.expires_at is None else f", which expires at {kept.expires_at}"
    note(f"Created access key {kept.id}{expiry}. It is not shown again.")
    return 0


def list_all(*, as_json: bool) -> int:
    with _opened() as ledger:
        _list(ledger, as_json)
    return 0


def _list(ledger: Ledger, as_json: bool) -> None:
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


def _described(key: AccessKey, is_sealed: bool, replaced_by: str | None) -> dict[str, Any]:
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


def _state(key: AccessKey, at: str) -> str:
    if key.revoked_at is not None:
        return f"revoked {key.revoked_at}"
    if key.expires_at is None:
        return "active"
    return f"expired {key.expires_at}" if key.has_expired(at) else f"active until {key.expires_at}"


def revoke(key_id: str, *, as_json: bool) -> int:
    with _opened() as ledger:
        is_revoked = ledger.keys.revoke(key_id, now())
    if not is_revoked:
        note("No active access key has this id.")
        return 1
    if as_json:
        show({"id": key_id, "revoked": True}, as_json=True)
    return 0


def seal(*, as_json: bool) -> int:
    with _opened() as ledger:
        ledger.keys.seal()
        ledger.seal()
        _list(ledger, as_json)
    return 0
