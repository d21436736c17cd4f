"""python -m app.keys: create, list, rotate and revoke access keys for releases and budgets.

python -m app.keys create --scope release --budget web --note "weekly job" --expires 2027-01-31
python -m app.keys list
python -m app.keys rotate ID --overlap 7d
python -m app.keys revoke ID
python -m app.keys seal
"""

import argparse
import json
import re
import sys
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import Any, NoReturn

from app.ledger.access_keys import SCOPES, AccessKey, new_key
from app.ledger.clock import after, now, written
from app.ledger.errors import LedgerUnavailable
from app.ledger.opening import open_ledger
from app.ledger.state import BUDGET_ID
from app.ledger.store import Ledger
from app.settings import settings_or_exit


def main(arguments: Sequence[str] | None = None, program: str = "python -m app.keys") -> int:
    """A new access key is printed once, alone on standard output. Only its hash is stored."""
    asked = _parser(program).parse_args(arguments)
    settings = settings_or_exit()
    try:
        with closing(open_ledger(settings.ledger, settings.ledger_secret.get_secret_value())) as ledger:
            code: int = asked.run(ledger, asked)
            return code
    except LedgerUnavailable as error:
        sys.stderr.write(f"The ledger cannot be opened: {error}\n")
        return 2


def _create(ledger: Ledger, asked: argparse.Namespace) -> int:
    key, kept = new_key(frozenset(asked.scope), frozenset(asked.budget), asked.note, now(), asked.expires)
    ledger.keys.add(kept)
    return _show(key, kept, asked)


def _rotate(ledger: Ledger, asked: argparse.Namespace) -> int:
    at = now()
    until = after(at, asked.overlap)
    rotated = ledger.keys.rotate(asked.id, at, until, asked.expires)
    if rotated is None:
        sys.stderr.write("No active access key has this id, or it was replaced before.\n")
        return 1
    sys.stderr.write(f"Access key {asked.id} expires at {until}, if not before.\n")
    return _show(*rotated, asked)


def _show(key: str, kept: AccessKey, asked: argparse.Namespace) -> int:
    """The access key itself on standard output, for this one time."""
    if asked.json:
        _write_json({"key": key, "id": kept.id, "expires_at": kept.expires_at})
        return 0
    sys.stdout.write(f"{key}\n")
    expiry = "" if kept.expires_at is None else f", which expires at {kept.expires_at}"
    sys.stderr.write(f"Created access key {kept.id}{expiry}. It is not shown again.\n")
    return 0


def _list(ledger: Ledger, asked: argparse.Namespace) -> int:
    found = ledger.keys.read()
    replacements = {key.replaces: key.id for key in found.every if key.replaces is not None}
    if asked.json:
        _write_json([_described(key, found.is_sealed(key), replacements.get(key.id)) for key in found.every])
        return 0
    for key in found.every:
        state = _state(key, now()) if found.is_sealed(key) else "NOT SEALED, so not accepted"
        scopes, budgets = ",".join(sorted(key.scopes)), ",".join(sorted(key.budgets)) or "all budgets"
        said = [key.id, state, f"made {key.made_at}"]
        said += [] if key.replaces is None else [f"replaces {key.replaces}"]
        said += [f"replaced by {replacements[key.id]}"] if key.id in replacements else []
        sys.stdout.write("  ".join([*said, scopes, budgets, key.note]) + "\n")
    return 0


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


def _write_json(document: object) -> None:
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def _state(key: AccessKey, at: str) -> str:
    if key.revoked_at is not None:
        return f"revoked {key.revoked_at}"
    if key.expires_at is None:
        return "active"
    return f"expired {key.expires_at}" if key.has_expired(at) else f"active until {key.expires_at}"


def _revoke(ledger: Ledger, asked: argparse.Namespace) -> int:
    if ledger.keys.revoke(asked.id, now()):
        if asked.json:
            _write_json({"id": asked.id, "revoked": True})
        return 0
    sys.stderr.write("No active access key has this id.\n")
    return 1


def _seal(ledger: Ledger, asked: argparse.Namespace) -> int:
    ledger.keys.seal()
    ledger.seal()
    return _list(ledger, asked)


class _Parser(argparse.ArgumentParser):
    """A parser that reports an error in one line, without the usage of the command."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (hint: {self.prog} --help)\n")


def _parser(program: str) -> argparse.ArgumentParser:
    parser = _Parser(prog=program, description="Access keys for releases and budgets.")
    commands = parser.add_subparsers(required=True)
    create = commands.add_parser("create", help="create an access key, and print it once")
    create.add_argument("--scope", action="append", choices=SCOPES, required=True, help="what it may do; repeatable")
    create.add_argument("--budget", action="append", type=_budget, default=[], help="bind it to a budget; repeatable")
    create.add_argument("--note", default="", help="for people")
    create.add_argument("--expires", type=_expiry, help="when it ends: a date or an ISO 8601 time, in UTC")
    create.set_defaults(run=_create)
    rotate = commands.add_parser("rotate", help="create an access key in place of another, and print it once")
    rotate.add_argument("id", help="of the old one, as list shows it")
    rotate.add_argument(
        "--overlap", type=_seconds, default="1d", help="how long the old one still works: 7d, 12h, 30m or 0; default 1d"
    )
    rotate.add_argument(
        "--expires",
        type=_expiry,
        help="when the new one ends; if not given, it lives as long as the old one was made for",
    )
    rotate.set_defaults(run=_rotate)
    commands.add_parser("list", help="list all access keys, without their secrets").set_defaults(run=_list)
    revoke = commands.add_parser("revoke", help="end an access key, within a second")
    revoke.add_argument("id", help="as list shows it")
    revoke.set_defaults(run=_revoke)
    sealing = (
        "seal all access keys, releases and erasures of answers as they are, after you have checked the list: for a "
        "ledger with a new secret"
    )
    commands.add_parser("seal", help=sealing, description=sealing).set_defaults(run=_seal)
    for command in commands.choices.values():
        command.add_argument("--json", action="store_true", help="print JSON, for programs")
    return parser


def _budget(name: str) -> str:
    if not re.fullmatch(BUDGET_ID, name):
        raise argparse.ArgumentTypeError("must be letters, digits, dots, dashes and underscores")
    return name


def _expiry(text: str) -> str:
    """A date is its first second. A time without an offset is in UTC."""
    try:
        said = datetime.fromisoformat(text)
        time = said.astimezone(UTC) if said.tzinfo else said.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError("must be a date or a time in ISO 8601, such as 2027-01-31") from None
    if not datetime.now(UTC) < time < datetime(3000, 1, 1, tzinfo=UTC):
        raise argparse.ArgumentTypeError("must be in the future, and before the year 3000")
    return written(time)


def _seconds(text: str) -> int:
    found = re.fullmatch(r"(0)|([0-9]{1,4})([mhd])", text)
    if found is None:
        raise argparse.ArgumentTypeError("must be a number of days, hours or minutes, such as 7d, 12h or 30m, or 0")
    return 0 if found[1] else int(found[2]) * {"m": 60, "h": 3600, "d": 86400}[found[3]]


if __name__ == "__main__":
    sys.exit(main())
