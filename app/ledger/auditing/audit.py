"""Compare each entry of a history with the columns of its row, with its release, and with its answer.

The chain of hashes protects the recorded payload. The columns are copies that the database can search, and answers are
too large for the chain. A change of one of these changes what clients get, although the chain is intact.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from app.ledger.answer_keys import facts_of, unread_mark
from app.ledger.answers import ENCRYPTED, AnswerPlace, erasure_seal
from app.ledger.auditing.approval_audit import ApprovalAudit
from app.ledger.auditing.lineage_audit import LineageAudit
from app.ledger.charges import sha256_of
from app.ledger.databases import Execute, Statements
from app.ledger.releases import place_of, release_seal
from app.ledger.renewing import wrong_period
from app.ledger.secret import Secret
from app.ledger.state import UNREADABLE, Budget, Entry, HistoryFault

__all__ = ["Audit"]

Content = Callable[[str, AnswerPlace | None], Iterable[bytes]]
"""The bytes of an answer, by its idempotency key and its place."""

_PAGE = 1000
_COLUMNS = {
    "s": "mu_squared",
    "d": "hazard",
    "key": "idempotency key",
    "request": "hash of the request",
    "client": "hash of the client",
    "media_type": "media type of the answer",
    "size": "size of the answer",
    "release_id": "release id",
    "description": "description",
    "labels": "labels",
    "content_hash": "hash of the content",
}
"""The stored name of each column, and its name for people."""
_TEXTS = ("certificate", "provenance", "layout")
"""Recorded by their hashes."""
_KEYS = ("answer", "answer_key", "version", "seal", "key_of_answer", "facts")
_FURTHER = (*_TEXTS, "state", "committed", "erased_at", "erasure", *_KEYS)
_OF_A_DRAW = {"release_id", "certificate_sha256", "layout_sha256", "media_type", "answer_seal"}
"""Recorded again if an answer that nobody has read is drawn again."""
_OF_A_SURVEY = {"certificate_sha256", "provenance_sha256"}
"""Recorded again when bounds are chosen from a survey."""


class Audit:
    """Readings of the database that only an audit needs."""

    def __init__(self, statements: Statements, secret: Secret) -> None:
        self._sql = statements
        self._secret = secret

    def names(self, execute: Execute) -> list[str]:
        """All budgets, and all histories whose budget is gone."""
        return [name for (name,) in execute(self._sql.all_names)]

    def entries(self, execute: Execute, budget: str) -> Iterator[Entry]:
        """A history from its beginning."""
        return (entry for page in self._pages(execute, budget) for entry, _ in page)

    def faults(self, execute: Execute, budget: Budget, content: Content) -> Iterator[HistoryFault]:
        """Entries that differ from their columns, release, answer, ancestors or approval, in an intact chain."""
        levels, approvals = LineageAudit(execute, self._sql, budget), ApprovalAudit()
        drawn = (Entry(*row).details for row in execute(self._sql.drawn_later, (budget.id,)))
        redraws = {details.get("key"): details for details in drawn}
        commits: dict[str, dict[str, Any]] = {}
        states: dict[str, tuple[int, tuple[str, str, str | None]]] = {}
        for page in self._pages(execute, budget.id):
            for entry, columns in page:
                try:
                    wrong = self._wrong(entry, columns, redraws, content)
                    if entry.number == 1 and wrong is None:
                        wrong = wrong_period(execute, self._sql, budget, entry)
                    if entry.kind == "committed":
                        commits[entry.details["key"]] = entry.details | {"at": entry.at}
                    elif entry.kind == "charge":
                        recorded = entry.details.get("state", columns["state"])
                        states[str(columns["key"])] = entry.number, (recorded, columns["state"], columns["committed"])
                except UNREADABLE:
                    wrong = "cannot be read"
                if wrong is not None:
                    yield HistoryFault(entry.number, wrong)
            yield from levels.faults([entry for entry, _ in page])
            yield from approvals.faults(entry for entry, _ in page)
        for key, (number, state) in states.items():
            if not _is_as_committed(*state, commits.get(key)):
                yield HistoryFault(number, "has a release in another state than the recorded one")
        yield from levels.missing()
        yield from approvals.missing(execute, self._sql, budget.id)

    def _pages(self, execute: Execute, budget: str) -> Iterator[list[tuple[Entry, dict[str, Any]]]]:
        """Each entry, and the columns of its row and of its release."""
        names, after = (*_COLUMNS, *_FURTHER), 0
        while rows := execute(self._sql.audited, (budget, after, _PAGE)):
            yield [(Entry(*row[: -len(names)]), dict(zip(names, row[-len(names) :], strict=True))) for row in rows]
            after = rows[-1][1]

    def _wrong(
        self, entry: Entry, columns: dict[str, Any], redraws: dict[Any, dict[str, Any]], content: Content
    ) -> str | None:
        if entry.kind != "charge":
            is_empty = set(columns.values()) == {None}
            return None if is_empty else "has the cost or the answer of a charge, but is no charge"
        details, found = entry.details, dict(columns)
        if "through" in details:  # the release belongs to the charged budget
            others = {value for name, value in columns.items() if name not in details}
            is_cost = all(details[name] == columns[name] for name in ("s", "d")) and others == {None}
            return None if is_cost else "has another cost in its row of the database than in the record that is hashed"
        if details.get("key") in redraws:
            later = redraws[details["key"]]
            of_it = _OF_A_SURVEY if "digest" in later else _OF_A_DRAW
            details = {name: value for name, value in details.items() if name not in of_it} | later
        if "state" in details:  # entries of version 0.1 record no release
            found["labels"] = json.loads(columns["labels"])
            for name in _TEXTS:
                if sha256_of(columns[name] or "") != details.get(f"{name}_sha256", ""):
                    return f"has another {name} than the recorded one"
        for name, title in _COLUMNS.items():
            # Entries of earlier versions record only the cost and the idempotency key.
            if name in details and details[name] != found[name]:
                return f"has another {title} in its row of the database than in the record that is hashed"
        identity = (columns["key"], entry.budget, entry.number, columns["version"])
        known = (columns["client"], columns["request"], columns["content_hash"])
        if columns["key"] is not None and columns["seal"] != release_seal(self._secret, (*identity, *known)):
            return "has a client or a request that this service did not seal"
        return self._wrong_answer(details, columns, content)

    def _wrong_answer(self, details: dict[str, Any], columns: dict[str, Any], content: Content) -> str | None:
        if columns["erased_at"] is not None:
            seal = erasure_seal(self._secret, details["key"], columns["erased_at"])
            if columns["erasure"] != seal:
                return "has an answer that this service did not erase"
        if "answer_seal" in details:
            return self._wrong_encrypted(details, columns, content)
        if columns["erased_at"] is not None or "answer" not in details:
            return None
        place = place_of(columns["version"], columns["answer"], columns["answer_key"], None)
        return _wrong_bytes(content(details["key"], place), details["answer"], columns["size"])

    def _wrong_encrypted(self, details: dict[str, Any], columns: dict[str, Any], content: Content) -> str | None:
        """Of an answer whose hash is stored with its key, and recorded as a keyed hash."""
        key, facts = bytes(columns["key_of_answer"]), facts_of(bytes(columns["facts"]))
        if facts is None:
            is_unread = columns["erased_at"] is not None or key == unread_mark(self._secret, columns["answer"])
            return None if is_unread else "has an answer whose key was removed"
        if facts.seal != details["answer_seal"] or columns["size"] is not None:
            return "has another hash or size of its answer than the recorded one"
        if columns["erased_at"] is not None:
            return None
        place = AnswerPlace(columns["answer"], key, ENCRYPTED)
        return _wrong_bytes(content(details["key"], place), facts.sha256, facts.size)


def _is_as_committed(recorded: str, state: str, committed: str | None, commit: dict[str, Any] | None) -> bool:
    """Whether the state of a release is the one that its history ends with."""
    if commit is None:
        return state == recorded and committed is None
    committed_fields = json.loads(committed or "{}")
    same = all(committed_fields.get(name) == commit.get(name) for name in ("sha256", "rows", "at"))
    same &= sha256_of(committed_fields.get("contents") or "") == commit.get("contents_sha256", "")
    return (recorded, state) == ("open", "committed") and same


def _wrong_bytes(answer: Iterable[bytes], sha256: str, size: int) -> str | None:
    return None if _digest(answer) == (sha256, size) else "has another answer than the one that was paid for"


def _digest(chunks: Iterable[bytes]) -> tuple[str, int]:
    """The SHA-256 of an answer, and its size."""
    digest, size = hashlib.sha256(), 0
    for chunk in chunks:
        digest.update(chunk)
        size += len(chunk)
    return digest.hexdigest(), size
