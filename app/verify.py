"""python -m app.verify: check the histories of all budgets, and the access keys. Exit 0 if all are as recorded.

With --heads FILE it also looks for every head that was noted there, so it finds a ledger that is set back or rewritten.
The ledger is only read. A missing ledger is an error: a new one would verify, and hide that the old one is lost.
"""

import argparse
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from app.ledger.errors import LedgerUnavailable, reason_of
from app.ledger.heads import ACCESS_KEYS
from app.ledger.heads_file import notes_in
from app.ledger.opening import open_existing
from app.ledger.state import Budget
from app.ledger.store import Ledger
from app.settings import settings_or_exit


def main(arguments: Sequence[str] | None = None) -> int:
    """1 if something is not as it was recorded, 2 if the ledger or the file of heads cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m app.verify", description="Check the ledger.")
    parser.add_argument("--heads", type=Path, help="a file of GSH_HEADS_FILE: every head in it must still be there")
    file: Path | None = parser.parse_args(arguments).heads
    settings = settings_or_exit()
    try:
        with closing(open_existing(settings.ledger, settings.ledger_secret.get_secret_value())) as ledger:
            code = _verify(ledger)
            return code if file is None else max(code, _verify_heads(ledger, file))
    except LedgerUnavailable as error:
        sys.stderr.write(f"The ledger cannot be verified: {error}\n")
    except OSError as error:
        sys.stderr.write(f"The file of heads cannot be read: {reason_of(error)}\n")
    return 2


def _verify(ledger: Ledger) -> int:
    """A line for each budget, and one for the access keys: whether it is intact, and a hash to note elsewhere."""
    entries = faults = 0
    names = ledger.names()
    for name in names:
        budget, fault = ledger.verify(name)
        entries += budget.entries
        if fault is None:
            said = f"intact{_promise(budget)}"
        else:
            faults += 1
            said = f"FAULT: {f'entry {fault.number}' if fault.number else 'the budget'} {fault.detail}"
        sys.stdout.write(f"{name}: {said}; {budget.entries} entries; head {budget.head}\n")
    keys = ledger.keys.read()
    said = "intact"
    if keys.faults:
        named = (f"{name or 'the list'} {detail}" for name, detail in sorted(keys.faults.items()))
        said = f"FAULT: {', '.join(named)}"
    sys.stdout.write(f"access keys: {said}; {len(keys.every)} access keys; seal {keys.seal or 'none'}\n")
    sys.stdout.write(f"Checked budgets: {len(names)}; entries: {entries}; budgets at fault: {faults}\n")
    return 1 if faults or keys.faults else 0


def _verify_heads(ledger: Ledger, file: Path) -> int:
    """A line for each noted head that is not in its history any more, and one with their number."""
    checked, faults = 0, []
    seals: dict[str, int] = {}
    most_keys = 0
    for number, note in notes_in(file):
        if note is None:
            faults.append(f"line {number} cannot be read")
        elif note.name == ACCESS_KEYS:
            seals[note.head.hash] = number
            most_keys = max(most_keys, note.head.size)
        elif ledger.heads.hash_at(note.name, note.head.size) != note.head.hash:
            faults.append(f"line {number}: {note.name} had another entry {note.head.size} at {note.at}")
        checked += 1
    keys = ledger.keys.read()
    # Access keys are added, rotated and revoked, but never removed: so no change leads back to an earlier list.
    if keys.seal in seals and seals[keys.seal] < max(seals.values()):
        faults.append(f"line {max(seals.values())}: the access keys are again as they were at line {seals[keys.seal]}")
    elif len(keys.every) < most_keys:
        faults.append(f"there were {most_keys} access keys, and now there are {len(keys.every)}")
    sys.stdout.writelines(f"noted heads: FAULT: {fault}\n" for fault in faults)
    sys.stdout.write(f"Checked notes of heads: {checked}; faults: {len(faults)}\n")
    return 1 if faults else 0


def _promise(budget: Budget) -> str:
    """The promised δ, if it is above the limit's: the limit was lowered after a charge, or divided again by 0.1."""
    promise = budget.promise
    if promise is None or promise <= budget.limit.delta:
        return ""
    return f", promises delta {promise} at epsilon {budget.limit.epsilon} (the limit has {budget.limit.delta})"


if __name__ == "__main__":
    sys.exit(main())
