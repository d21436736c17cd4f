"""Checkpoints: all heads of a ledger at one time, signed, and chained by the hash of the checkpoint before.

    statement     {"_type": "https://in-toto.io/Statement/v1", "subject": [a history and its head, …],
                   "predicateType": "urn:gsh:checkpoint:1",
                   "predicate": {"number", "at", "before", "budgets": {name: {"entries", "head"}}, "access_keys"}}
    before        the SHA-256 of the statement of the checkpoint before; null for the first one

It is in an envelope as certificates are (gsh/proof/envelopes.py), on one line. Who has one checkpoint finds later
whether any history of the ledger was set back or rewritten since, and needs not trust where it was kept.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from app.ledger.auditing.heads import ACCESS_KEYS, Head, Heads, HeadTable, Note
from app.ledger.databases import Connections
from gsh.errors import ProofError
from gsh.proof.envelopes import Subject, opened_statement, statement_about
from gsh.proof.keys import KeySet

__all__ = ["Chain", "Checkpoint", "Checkpoints", "Sign", "envelope_in"]

_KIND = "urn:gsh:checkpoint:1"
_LAST = "last checkpoint"
"""The name of the fact that holds the number and the hash of the last checkpoint."""

Sign = Callable[[bytes], str | None]
"""Makes the envelope of a statement, as JSON; None if there is no key."""


class Checkpoint(NamedTuple):
    """All heads of a ledger at one time."""

    number: int
    at: str
    before: str | None
    heads: Heads

    @property
    def statement(self) -> bytes:
        budgets = {name: head for name, head in self.heads.items() if name != ACCESS_KEYS}
        keys = self.heads.get(ACCESS_KEYS)
        predicate = {
            "number": self.number,
            "at": self.at,
            "before": self.before,
            "budgets": {name: {"entries": head.size, "head": head.hash} for name, head in budgets.items()},
            "access_keys": None if keys is None else {"number": keys.size, "seal": keys.hash},
        }
        subjects = [Subject(f"history of {name}", head.hash) for name, head in budgets.items()]
        subjects += [] if keys is None else [Subject("access keys", keys.hash)]
        return statement_about(subjects, _KIND, predicate)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.statement).hexdigest()

    @property
    def notes(self) -> Iterator[Note]:
        """Each head as a note."""
        return (Note(self.at, name, head) for name, head in self.heads.items())


def envelope_in(line: bytes) -> Mapping[str, Any] | None:
    """The envelope of a line, which may be a line of the log; None if it has none."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return None
    envelope = document.get("checkpoint", document) if isinstance(document, dict) else None
    return envelope if isinstance(envelope, dict) and "payload" in envelope else None


def _checkpoint(envelope: Mapping[str, Any], keys: KeySet) -> Checkpoint:
    """The checkpoint of an envelope, if one of the keys has signed it."""
    content, _ = opened_statement(envelope, keys)
    try:
        predicate = json.loads(content)["predicate"]
        heads = {name: Head(each["entries"], each["head"]) for name, each in predicate["budgets"].items()}
        sealed = predicate["access_keys"]
        heads |= {} if sealed is None else {ACCESS_KEYS: Head(sealed["number"], sealed["seal"])}
        found = Checkpoint(predicate["number"], predicate["at"], predicate["before"], heads)
        is_one = found.statement == content and type(found.number) is int
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        is_one = False
    if not is_one:
        raise ProofError("checkpoint", "must be one of a version that is known")
    return found


class Checkpoints:
    """The checkpoints of a ledger. It keeps the number and the hash of the last one."""

    def __init__(self, connections: Connections, heads: HeadTable) -> None:
        self._connections = connections
        self._sql = connections.statements
        self._heads = heads

    def last(self) -> tuple[int, str | None]:
        """Its number, and its hash; 0 if there is none."""
        with self._connections.reading() as execute:
            rows = execute(self._sql.fact, (_LAST,))
        return _last(rows[0][0] if rows else "")

    def make(self, at: str, sign: Sign) -> str | None:
        """The next checkpoint, on one line; None if there is nothing to sign, or no key."""
        with self._connections.transaction() as execute:
            execute(self._sql.add_fact, (_LAST, ""))
            ((text,),) = execute(self._sql.locked_fact, (_LAST,))
            number, before = _last(text)
            made = Checkpoint(number + 1, at, before, self._heads.read_in(execute))
            line = sign(made.statement) if made.heads else None
            if line is not None:
                execute(self._sql.set_fact, (_LAST, json.dumps([made.number, made.sha256])))
        return line


def _last(text: str) -> tuple[int, str | None]:
    try:
        number, sha256 = json.loads(text)
    except (ValueError, TypeError):
        return 0, None
    return int(number), str(sha256)


@dataclass(slots=True)
class Chain:
    """Checkpoints that were noted elsewhere, one after the other: each must be signed, and follow on the others."""

    keys: KeySet
    last: tuple[int, str | None]
    """The number and the hash of the last one that the ledger has made."""
    _hashes: dict[int, str | None] = field(default_factory=lambda: {0: None}, init=False)

    def opened(self, envelope: Mapping[str, Any]) -> Checkpoint:
        """The checkpoint of an envelope; ``ProofError`` if it is not signed, or if the ledger cannot have made it."""
        found = _checkpoint(envelope, self.keys)
        number, sha256 = found.number, found.sha256
        last, last_sha256 = self.last
        if number > last:
            detail = f"number {number} was made, and the ledger has made {last} only: it was set back"
            raise ProofError("checkpoint", detail)
        if self._hashes.setdefault(number, sha256) != sha256 or (number == last and sha256 != last_sha256):
            raise ProofError("checkpoint", f"number {number} was made twice: the ledger was set back between them")
        if self._hashes.get(number - 1, found.before) != found.before:
            raise ProofError("checkpoint", f"number {number} does not follow on the one before: it was set back")
        return found
