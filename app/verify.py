"""python -m app.verify: check the histories of all budgets; exit 0 if every one is as it was recorded."""

import sys

from app.ledger.errors import LedgerUnavailable
from app.ledger.opening import open_ledger
from app.settings import Settings


def main() -> int:
    """A line for each budget: whether its history is intact, and the hash to compare with one noted before."""
    settings = Settings()
    try:
        ledger = open_ledger(settings.ledger, settings.ledger_secret.get_secret_value())
    except LedgerUnavailable as error:
        sys.stderr.write(f"The ledger cannot be opened. {error}\n")
        return 2
    faults = 0
    for each in ledger.budgets():
        budget, fault = ledger.verify(each.id)
        faults += fault is not None
        said = "intact" if fault is None else f"FAULT: entry {fault.number} {fault.detail}"
        sys.stdout.write(f"{budget.id}: {said}; {budget.entries} entries; head {budget.head}\n")
    ledger.close()
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
