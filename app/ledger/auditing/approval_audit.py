"""Compare what was done with what was approved, from the history of a budget alone, and then with the rows.

A change or a charge that needed an approval must name a request that another client has approved, and must be what that
request asked for. Each request is used once.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from app.ledger.databases import Execute, Statements
from app.ledger.state import UNREADABLE, Entry, HistoryFault

__all__ = ["ApprovalAudit"]

_WORDS = {"description"}
"""What changes without an approval."""


class ApprovalAudit:
    """The check of one budget, entry by entry."""

    def __init__(self) -> None:
        self._rule: str | None = None
        """What must be approved, after the entries so far."""
        self._requests: dict[str, tuple[int, Mapping[str, Any]]] = {}
        self._decided: dict[str, tuple[str, int]] = {}
        self._done: set[str] = set()

    def faults(self, entries: Iterable[Entry]) -> Iterator[HistoryFault]:
        """The entries of a page that were done without their approval."""
        for entry in entries:
            try:
                wrong = self._wrong(entry, entry.details)
            except UNREADABLE:
                wrong = "cannot be read"
            if wrong is not None:
                yield HistoryFault(entry.number, wrong)

    def missing(self, execute: Execute, sql: Statements, budget: str) -> Iterator[HistoryFault]:
        """Rows of requests that are not as the history has them."""
        rows = {row[0]: (row[3], row[5], row[6]) for row in execute(sql.approvals_of, (budget,))}
        recorded = {}
        for name, (number, _) in self._requests.items():
            state, decision = self._decided.get(name, ("waiting", None))
            recorded[name] = (number, "done" if name in self._done else state, decision)
        if rows != recorded:
            yield HistoryFault(0, "has requests for approval in another state than the recorded one")

    def _wrong(self, entry: Entry, details: Mapping[str, Any]) -> str | None:
        match entry.kind:
            case "requested":
                self._requests[str(details["approval_id"])] = entry.number, details
            case "approved" | "refused":
                return self._decision(entry, details)
            case "created":
                self._rule = details.get("approval")
            case "changed":
                rule, self._rule = self._rule, details.get("approval")
                is_of_words = details.get("before", {}).keys() <= _WORDS
                if "approval_id" in details:
                    return self._used(details, "change", _is_change)
                return "was not approved" if rule is not None and not is_of_words else None
            case "charge":
                if "approval_id" not in details:
                    return "was not approved" if self._rule == "releases" else None
                return None if "through" in details else self._used(details, "release", _is_release)
        return None

    def _decision(self, entry: Entry, details: Mapping[str, Any]) -> str | None:
        name = str(details["approval_id"])
        if name not in self._requests or name in self._decided:
            return "decides nothing that waits"
        if self._requests[name][1]["client"] == details["client"]:
            return "is by the client that asked"
        self._decided[name] = entry.kind, entry.number
        return None

    def _used(self, details: Mapping[str, Any], kind: str, is_same: Any) -> str | None:
        name = str(details["approval_id"])
        if self._decided.get(name, ("", 0))[0] != "approved" or name in self._done:
            return "was not approved"
        self._done.add(name)
        asked = self._requests[name][1]
        return None if asked["kind"] == kind and is_same(asked, details) else "is not what was approved"


def _is_change(asked: Mapping[str, Any], done: Mapping[str, Any]) -> bool:
    is_after = all(done.get(name) == value for name, value in asked["after"].items())
    return is_after and done["before"] == asked["before"]


def _is_release(asked: Mapping[str, Any], done: Mapping[str, Any]) -> bool:
    return all(asked[name] == done[name] for name in ("key", "content_hash", "client", "release", "s", "d"))
