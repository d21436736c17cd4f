"""A file of notes of heads, which several processes append to. It belongs on another disk than the ledger."""

import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from app.ledger.heads import Head, Heads, Note, changed_heads, note_of

__all__ = ["HeadsFile", "notes_in"]


class HeadsFile:
    """The notes of a file as far as they are read. What the file says counts, not what the ledger says was noted."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._identity = (0, 0)
        self._read_bytes = 0
        self._noted: dict[str, Head] = {}

    def note(self, read: Callable[[], Heads], at: str) -> tuple[Heads, list[Note]]:
        """Append a note for each head that has changed; the heads that were noted before, and the new notes.

        The file is locked before the ledger is read: so no process notes an older head after a newer one.
        """
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(self._path, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            is_torn = self._catch_up(descriptor)
            noted = dict(self._noted)
            notes = changed_heads(noted, read(), at)
            if notes:
                text = ("\n" if is_torn else "") + "".join(note.line for note in notes)
                _append(descriptor, text.encode())
            return noted, notes
        finally:
            os.close(descriptor)

    def _catch_up(self, descriptor: int) -> bool:
        """Read what was appended since the last time; whether the last line has no end. A new file is read anew."""
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


def notes_in(path: Path) -> Iterator[tuple[int, Note | None]]:
    """Each line of a file with its number; None for a line that is no note."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            yield number, note_of(line)


def _append(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]
    os.fsync(descriptor)
