"""The history of access: who made, rotated and revoked access keys, and who read a stored answer.

It is a chain of hashes like the history of a budget. The ledger's secret seals its last hash, so a writer to the
database without the secret can neither append to it nor cut it.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, Literal, NamedTuple, TypeAlias

from app.ledger.databases import Execute, Statements
from app.ledger.errors import WrongLedger
from app.ledger.secret import Secret
from app.ledger.state import GENESIS, UNREADABLE, By, HistoryFault, chained

__all__ = ["AccessEntry", "AccessEvent", "AccessHead", "AccessHistory"]

AccessEvent: TypeAlias = Literal["began", "made", "rotated", "revoked", "sealed", "read"]

_FACT = "access_history"
"""The name of the fact that holds the number of entries, the last hash, and a seal over both."""
_PAGE = 1000


class AccessHead(NamedTuple):
    """The number of entries, and the last hash."""

    entries: int
    head: str


class AccessEntry(NamedTuple):
    """One line of the history; ``payload`` is JSON, kept as the text that was hashed."""

    number: int
    kind: AccessEvent
    at: str
    payload: str
    hash: str

    @property
    def details(self) -> dict[str, Any]:
        details = json.loads(self.payload)
        if not isinstance(details, dict):
            raise ValueError("a payload is a JSON object")
        return details


class AccessHistory:
    """Its entries within a transaction."""

    def __init__(self, statements: Statements, secret: Secret) -> None:
        self._sql = statements
        self._secret = secret

    def begin(self, execute: Execute, at: str, keys: Mapping[str, bool]) -> None:
        """The first entry: the access keys that are there, and whether each is revoked."""
        self._append(execute, AccessHead(0, GENESIS), "began", at, {"keys": dict(keys)})

    def seal(self, execute: Execute, at: str, keys: Mapping[str, bool]) -> None:
        """Go on after the last entry with another secret, and with the access keys as they are."""
        rows = [AccessEntry(*row) for row in execute(self._sql.access_entries, (_FAR, 1))]
        head = AccessHead(rows[0].number, rows[0].hash) if rows else AccessHead(0, GENESIS)
        self._append(execute, head, "sealed", at, {"keys": dict(keys)})

    def add(self, execute: Execute, kind: AccessEvent, at: str, details: Mapping[str, Any], by: By | None) -> None:
        """``by`` is the access key that did it; None for a command at the ledger."""
        head = self._head(execute(self._sql.locked_fact, (_FACT,)))
        if head is None:
            raise WrongLedger("its history of access has no seal by its secret: see `python -m app.keys seal --help`")
        self._append(execute, head, kind, at, dict(details) | ({} if by is None else {"by": asdict(by)}))

    def entries(self, execute: Execute, before: int | None, limit: int) -> list[AccessEntry]:
        """The latest first."""
        return [AccessEntry(*row) for row in execute(self._sql.access_entries, (before or _FAR, limit))]

    def head(self, execute: Execute) -> AccessHead | None:
        """None if it is not sealed by this secret."""
        return self._head(execute(self._sql.fact, (_FACT,)))

    def fault(self, execute: Execute, keys: Mapping[str, bool]) -> HistoryFault | None:
        """What is wrong with the chain, its seal, or the access keys, which it must explain."""
        sealed = self.head(execute)
        if sealed is None:
            return HistoryFault(0, "has no seal by this ledger's secret")
        number, before = 0, GENESIS
        expected: dict[str, bool] = {}
        for entry in self._all(execute):
            number += 1
            if entry.number != number:
                return HistoryFault(number, "is missing")
            try:
                if entry.hash != chained(before, *_hashed(entry)):
                    return HistoryFault(number, "does not have the hash of its content and its predecessor")
                expected = _after(expected, entry)
            except UNREADABLE:
                return HistoryFault(number, "cannot be read")
            before = entry.hash
        if sealed != AccessHead(number, before):
            return HistoryFault(0, "does not end with the entry that was sealed")
        wrong = sorted(name for name in expected | dict(keys) if expected.get(name) != keys.get(name))
        return HistoryFault(0, f"does not say what the access key {wrong[0]} is") if wrong else None

    def _all(self, execute: Execute) -> Iterator[AccessEntry]:
        """From the first one on."""
        after = 0
        while rows := execute(self._sql.access_entries_from, (after, _PAGE)):
            yield from (AccessEntry(*row) for row in rows)
            after = rows[-1][0]

    def _append(
        self, execute: Execute, head: AccessHead, kind: AccessEvent, at: str, details: Mapping[str, Any]
    ) -> None:
        draft = AccessEntry(head.entries + 1, kind, at, json.dumps(details, sort_keys=True), "")
        entry = draft._replace(hash=chained(head.head, *_hashed(draft)))
        execute(self._sql.add_access_entry, entry)
        sealed = {"entries": entry.number, "head": entry.hash, "seal": self._seal(AccessHead(entry.number, entry.hash))}
        execute(self._sql.set_fact, (_FACT, json.dumps(sealed)))

    def _head(self, found: list[tuple[Any, ...]]) -> AccessHead | None:
        try:
            ((value,),) = found
            document = json.loads(value)
            head = AccessHead(int(document["entries"]), str(document["head"]))
            return head if document["seal"] == self._seal(head) else None
        except (ValueError, TypeError, KeyError, RecursionError):
            return None

    def _seal(self, head: AccessHead) -> str:
        return self._secret.fingerprint(b"access history", str(head.entries).encode(), head.head.encode())


_FAR = 2**63 - 1
"""After the last entry."""


def _hashed(entry: AccessEntry) -> tuple[str | int, ...]:
    """What the hash of an entry covers. A budget has a name in the first place, so its entries have other hashes."""
    return ("", *entry[:4])


def _after(keys: dict[str, bool], entry: AccessEntry) -> dict[str, bool]:
    """The access keys after an entry, and whether each is revoked."""
    details = entry.details
    match entry.kind:
        case "began" | "sealed":
            return {str(name): bool(is_revoked) for name, is_revoked in details["keys"].items()}
        case "made" | "rotated":
            return keys | {str(details["key"]): False}
        case "revoked":
            return keys | {str(details["key"]): True}
    return keys
