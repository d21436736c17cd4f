"""The heads of all budgets. Noted outside of the ledger, they show later whether it was set back or rewritten.

A note is a line of JSON: the head of a budget with the number of its entries, or the seal of the access keys. If the
service has a key, a signed line with all heads follows on each change (checkpoints.py).
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from app.ledger.access.access_keys import KeyTable
from app.ledger.databases import Connections, Execute

__all__ = ["ACCESS_KEYS", "Head", "HeadTable", "Heads", "HeadsFile", "Note", "lines_in", "note_of"]

ACCESS_KEYS = ""
"""The name of the access keys among the heads. No budget has it."""

_NOTED = "noted heads"
"""The name of the fact that holds the heads that were logged last, by any process."""


class Head(NamedTuple):
    """The number of entries of a history and its last hash; or the number of access keys and their seal."""

    size: int
    hash: str


Heads = Mapping[str, Head]


@dataclass(frozen=True, slots=True)
class Note:
    """That a head was there at some time."""

    at: str
    name: str
    head: Head

    @property
    def fields(self) -> dict[str, Any]:
        if self.name == ACCESS_KEYS:
            return {"access_keys": self.head.size, "seal": self.head.hash}
        return {"budget": self.name, "entries": self.head.size, "head": self.head.hash}

    @property
    def line(self) -> str:
        return json.dumps({"at": self.at} | self.fields) + "\n"


def note_of(line: str | bytes) -> Note | None:
    """None if the line is no note."""
    try:
        fields = json.loads(line)
        if "seal" in fields:
            name, head = ACCESS_KEYS, Head(fields["access_keys"], fields["seal"])
        else:
            name, head = fields["budget"], Head(fields["entries"], fields["head"])
        at = fields["at"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    is_note = all(isinstance(each, str) for each in (at, name, head.hash)) and type(head.size) is int
    return Note(at, name, head) if is_note else None


def _changed_heads(noted: Heads, heads: Heads, at: str) -> list[Note]:
    """A note for each head that differs from its last note, or has none."""
    return [Note(at, name, head) for name, head in heads.items() if noted.get(name) != head]


class HeadTable:
    """The heads of a ledger."""

    def __init__(self, connections: Connections, keys: KeyTable) -> None:
        self._connections = connections
        self._sql = connections.statements
        self._keys = keys

    def read(self) -> Heads:
        with self._connections.reading() as execute:
            return self.read_in(execute)

    def hash_at(self, budget: str, number: int) -> str | None:
        """The hash of an entry; None if there is no such entry."""
        with self._connections.reading() as execute:
            rows = execute(self._sql.hash_at, (budget, number))
        return rows[0][0] if rows else None

    def claim(self, at: str) -> tuple[Heads, list[Note]]:
        """The heads at the last claim of any process, and a note for each that has changed since."""
        with self._connections.transaction() as execute:
            execute(self._sql.add_fact, (_NOTED, "{}"))
            ((text,),) = execute(self._sql.locked_fact, (_NOTED,))
            noted, heads = _noted(text), self.read_in(execute)
            notes = _changed_heads(noted, heads, at)
            if notes:
                execute(self._sql.set_fact, (_NOTED, json.dumps(heads)))
            return noted, notes

    def read_in(self, execute: Execute) -> Heads:
        """The same inside of a transaction."""
        rows = execute(self._sql.heads)
        # SQLite stores values of any type. A verification finds those that are not ours.
        heads = {name: Head(size, head) for name, size, head in rows if type(size) is int and isinstance(head, str)}
        keys = self._keys.read_in(execute)
        return heads | ({ACCESS_KEYS: Head(len(keys.every), keys.seal)} if keys.any_made else {})


def _noted(text: str) -> Heads:
    try:
        return {name: Head(*head) for name, head in json.loads(text).items()}
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}


class HeadsFile:
    """The notes of a file as far as they are read. What the file says counts, not what the ledger says was noted."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._identity = (0, 0)
        self._read_bytes = 0
        self._noted: dict[str, Head] = {}

    def note(
        self, read: Callable[[], Heads], at: str, checkpoint: Callable[[], str | None] = lambda: None
    ) -> tuple[Heads, list[Note]]:
        """Append a note for each head that has changed; the heads that were noted before, and the new notes.

        A ``checkpoint`` follows on them, if there is one.

        The file is locked before the ledger is read: so no process notes an older head after a newer one.
        """
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(self._path, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            is_torn = self._catch_up(descriptor)
            noted = dict(self._noted)
            notes = _changed_heads(noted, read(), at)
            if notes:
                text = ("\n" if is_torn else "") + "".join(note.line for note in notes)
                signed = checkpoint()
                text += "" if signed is None else f"{signed}\n"
                _append(descriptor, text.encode())
            return noted, notes
        finally:
            os.close(descriptor)

    def _catch_up(self, descriptor: int) -> bool:
        """Read what was appended since the last time, or a new file; whether the last line has no end."""
        status = os.fstat(descriptor)
        identity = status.st_dev, status.st_ino
        if identity != self._identity or status.st_size < self._read_bytes:
            self._identity, self._read_bytes, self._noted = identity, 0, {}
        unread = os.pread(descriptor, status.st_size - self._read_bytes, self._read_bytes)
        lines, end, rest = unread.rpartition(b"\n")
        self._read_bytes += len(lines) + len(end)
        for note in map(note_of, lines.split(b"\n")):
            if note is not None:
                self._noted[note.name] = note.head
        return bool(rest)


def lines_in(path: Path) -> Iterator[tuple[int, bytes]]:
    """Each line of a file with its number."""
    with path.open("rb") as lines:
        yield from enumerate(lines, 1)


def _append(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]
    os.fsync(descriptor)
