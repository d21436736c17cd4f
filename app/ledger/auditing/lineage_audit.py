"""Compare each charge with its entries in the histories of other levels: those of its ancestors, or the charged budget.

The two entries name each other, and the one of an ancestor has the hash of the other. So a charge that is missing at
one level, or is another one there, is found from both sides.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from app.ledger.databases import Execute, Statements
from app.ledger.errors import BrokenLineage
from app.ledger.lineage import ancestors_of
from app.ledger.state import UNREADABLE, Budget, Entry, EntryName, HistoryFault

__all__ = ["LineageAudit"]

_SAME = ("release", "s", "d")


class LineageAudit:
    """The check of one budget, page by page of its history."""

    def __init__(self, execute: Execute, sql: Statements, budget: Budget) -> None:
        self._execute = execute
        self._sql = sql
        self._budget = budget
        self._ancestors = _ancestors(execute, sql, budget)
        self._own = 0
        """The number of charges that are not those of a descendant."""

    def faults(self, entries: Sequence[Entry]) -> Iterator[HistoryFault]:
        """The charges of a page that differ from their entries at other levels."""
        if self._ancestors is None:
            yield HistoryFault(0, "has ancestors that cannot be read")
            return
        charges = [entry for entry in entries if entry.kind == "charge"]
        named = {entry.number: _named(entry) for entry in charges}
        found = self._found({name for names in named.values() for name in names or ()})
        for entry in charges:
            wrong = self._wrong(entry, named[entry.number], found)
            if wrong is not None:
                yield HistoryFault(entry.number, wrong)

    def missing(self) -> Iterator[HistoryFault]:
        """Charges of children that this budget does not have: compared at the end by their number alone."""
        ((of_children,),) = self._execute(self._sql.charges_of_children, (self._budget.id,))
        if self._own + int(of_children or 0) != self._budget.spent.releases:
            yield HistoryFault(0, "does not have as many charges as its children have")

    def _wrong(self, entry: Entry, named: Sequence[EntryName] | None, found: Mapping[EntryName, Entry]) -> str | None:
        if named is None:
            return "cannot be read"
        details = entry.details
        if "through" in details:
            return _wrong_through(entry, found.get(named[0]))
        self._own += 1
        if [each.budget for each in named] != self._ancestors:
            return "is not charged to the ancestors of its budget"
        for name in named:
            there = found.get(name)
            if there is None or _wrong_through(there, entry) is not None:
                return f"is not charged in entry {name.number} of the budget {name.budget}, which it names"
        return None

    def _found(self, names: set[EntryName]) -> Mapping[EntryName, Entry]:
        """The entries of these names, as far as they are there."""
        numbers: dict[str, list[int]] = defaultdict(list)
        for name in names:
            numbers[name.budget].append(name.number)
        rows = [
            Entry(*row)
            for budget, wanted in numbers.items()
            for row in self._execute(self._sql.entries_at(len(wanted)), (budget, *wanted))
        ]
        return {EntryName(entry.budget, entry.number): entry for entry in rows}


def _ancestors(execute: Execute, sql: Statements, budget: Budget) -> list[str] | None:
    """The ids of the ancestors, the parent first; None if they cannot be read."""
    try:
        return [each.id for each in ancestors_of(execute, sql, budget)]
    except (BrokenLineage, *UNREADABLE):
        return None


def _named(entry: Entry) -> list[EntryName] | None:
    """The entries that a charge names at other levels; None if it cannot be read."""
    try:
        details = entry.details
        if "through" in details:
            return [EntryName(str(details["through"]["budget"]), int(details["through"]["number"]))]
        return [EntryName(str(each["budget"]), int(each["number"])) for each in details.get("ancestors", ())]
    except UNREADABLE:
        return None


def _wrong_through(entry: Entry, charged: Entry | None) -> str | None:
    """Why the entry of an ancestor is not that of a charge of its descendant, or None."""
    try:
        through = entry.details["through"]
        if charged is not None and charged.kind == entry.kind == "charge" and charged.at == entry.at:
            there, name = charged.details, {"budget": entry.budget, "number": entry.number}
            link = {"budget": charged.budget, "number": charged.number, "hash": charged.hash, "key": there["key"]}
            is_same = all(there[field] == entry.details[field] for field in _SAME)
            if through == link and is_same and name in there["ancestors"]:
                return None
        return f"is not the charge in entry {through['number']} of the budget {through['budget']}, which it names"
    except UNREADABLE:
        return "cannot be read"
