"""python -m app.keys: create, list and revoke access keys for releases and budgets.

python -m app.keys create --scope release --budget web --note "weekly job"
python -m app.keys list
python -m app.keys revoke ID
python -m app.keys seal
"""

import argparse
import re
import sys
from collections.abc import Sequence
from contextlib import closing

from app.ledger.access_keys import SCOPES, new_key
from app.ledger.clock import now
from app.ledger.errors import LedgerUnavailable
from app.ledger.opening import open_ledger
from app.ledger.state import BUDGET_ID
from app.ledger.store import Ledger
from app.settings import settings_or_exit


def main(arguments: Sequence[str] | None = None) -> int:
    """A new access key is printed once, alone on standard output. Only its hash is stored."""
    asked = _parser().parse_args(arguments)
    settings = settings_or_exit()
    try:
        with closing(open_ledger(settings.ledger, settings.ledger_secret.get_secret_value())) as ledger:
            code: int = asked.run(ledger, asked)
            return code
    except LedgerUnavailable as error:
        sys.stderr.write(f"The ledger cannot be opened: {error}\n")
        return 2


def _create(ledger: Ledger, asked: argparse.Namespace) -> int:
    key, kept = new_key(frozenset(asked.scope), frozenset(asked.budget), asked.note, now())
    ledger.keys.add(kept)
    sys.stdout.write(f"{key}\n")
    sys.stderr.write(f"Created access key {kept.id}. It is not shown again.\n")
    return 0


def _list(ledger: Ledger, _asked: argparse.Namespace) -> int:
    found = ledger.keys.read()
    for key in found.every:
        state = "active" if key.revoked_at is None else f"revoked {key.revoked_at}"
        state = state if found.is_sealed(key) else "NOT SEALED, so not accepted"
        scopes, budgets = ",".join(sorted(key.scopes)), ",".join(sorted(key.budgets)) or "all budgets"
        sys.stdout.write(f"{key.id}  {state}  made {key.made_at}  {scopes}  {budgets}  {key.note}\n")
    return 0


def _revoke(ledger: Ledger, asked: argparse.Namespace) -> int:
    if ledger.keys.revoke(asked.id, now()):
        return 0
    sys.stderr.write("No active access key has this id.\n")
    return 1


def _seal(ledger: Ledger, asked: argparse.Namespace) -> int:
    ledger.keys.seal()
    return _list(ledger, asked)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m app.keys", description="Access keys for releases and budgets.")
    commands = parser.add_subparsers(required=True)
    create = commands.add_parser("create", help="create an access key, and print it once")
    create.add_argument("--scope", action="append", choices=SCOPES, required=True, help="what it may do; repeatable")
    create.add_argument("--budget", action="append", type=_budget, default=[], help="bind it to a budget; repeatable")
    create.add_argument("--note", default="", help="for people")
    create.set_defaults(run=_create)
    commands.add_parser("list", help="list all access keys, without their secrets").set_defaults(run=_list)
    revoke = commands.add_parser("revoke", help="end an access key, within a second")
    revoke.add_argument("id", help="as list shows it")
    revoke.set_defaults(run=_revoke)
    sealing = "seal all access keys as they are, after you have checked the list: for a ledger with a new secret"
    commands.add_parser("seal", help=sealing, description=sealing).set_defaults(run=_seal)
    return parser


def _budget(name: str) -> str:
    if not re.fullmatch(BUDGET_ID, name):
        raise argparse.ArgumentTypeError("must be letters, digits, dots, dashes and underscores")
    return name


if __name__ == "__main__":
    sys.exit(main())
