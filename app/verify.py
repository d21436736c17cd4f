"""python -m app.verify: check the histories of all budgets, and the access keys. Exit 0 if all are as recorded.

The ledger is only read. A missing ledger is an error: a new one would verify, and hide that the old one is lost.
"""

import sys
from contextlib import closing

from app.ledger.errors import LedgerUnavailable
from app.ledger.opening import open_existing
from app.ledger.state import Budget
from app.ledger.store import Ledger
from app.settings import settings_or_exit


def main() -> int:
    """1 if something is not as it was recorded, 2 if the ledger cannot be read."""
    settings = settings_or_exit()
    try:
        with closing(open_existing(settings.ledger, settings.ledger_secret.get_secret_value())) as ledger:
            return _verify(ledger)
    except LedgerUnavailable as error:
        sys.stderr.write(f"The ledger cannot be verified: {error}\n")
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


def _promise(budget: Budget) -> str:
    """The promised δ, if it is above the limit's: the limit was lowered after a charge, or divided again by 0.1."""
    promise = budget.promise
    if promise is None or promise <= budget.limit.delta:
        return ""
    return f", promises delta {promise} at epsilon {budget.limit.epsilon} (the limit has {budget.limit.delta})"


if __name__ == "__main__":
    sys.exit(main())
