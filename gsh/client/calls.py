"""Calls and their outcomes: what operations, which know the contract, exchange with drivers, which know the network.

An operation is a generator. It yields the next step, a ``Call`` or a ``Pause``, and receives the outcome. It does
no input or output itself, so that one operation serves the blocking client and the asynchronous one.
"""

import hashlib
import mmap
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar

import pyarrow as pa

__all__ = [
    "MOST_BYTES",
    "MOST_TABLE_BYTES",
    "Answer",
    "Body",
    "Call",
    "Failure",
    "Method",
    "Operation",
    "Outcome",
    "Pause",
    "Spool",
    "Unusable",
]

T = TypeVar("T")


_IN_MEMORY = 1 << 20
"""Bytes of an answer that stay in memory. A longer one goes to a file without a name, which is mapped."""
MOST_BYTES = 1 << 28
"""The longest answer in JSON or text. The service takes a quarter of it as groups in JSON."""
MOST_TABLE_BYTES = 1 << 36
"""The longest answer that is a table."""
_MOST_PROBLEM_BYTES = 1 << 20
"""The longest answer without success."""

Method = Literal["GET", "POST", "PUT"]


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a request, as a whole or in chunks. ``content`` begins it anew, unless it can be read only once."""

    media_type: str
    content: Callable[[], bytes | Iterator[bytes]]
    is_repeatable: bool = True


@dataclass(frozen=True, slots=True)
class Call:
    """One request. ``is_safe`` if the service does the same work, or charges once, however often it comes."""

    method: Method
    path: str
    is_safe: bool
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Body | None = None
    most_bytes: int = MOST_BYTES
    """The longest answer that is read."""

    @property
    def may_be_repeated(self) -> bool:
        return self.is_safe and (self.body is None or self.body.is_repeatable)


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait before the next call."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """A response that has arrived to its end."""

    status: int
    headers: Mapping[str, str]
    """By names in small letters."""
    content: pa.Buffer
    sha256: str = ""
    """Of the content, in hexadecimal digits."""
    unload: Callable[[], None] = lambda: None
    """Gives the memory of a mapped content back: what is read later is read from its file again."""

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @property
    def is_replayed(self) -> bool:
        return self.headers.get("idempotency-replayed") == "true"

    @property
    def released_at(self) -> str | None:
        """When a replayed release was made."""
        return self.headers.get("idempotency-released-at")


@dataclass(frozen=True, slots=True)
class Failure:
    """No answer: the connection could not be made, broke, or was too slow. ``reason`` quotes nothing that was sent."""

    reason: str
    is_final: bool = False
    """Whether another attempt would fail in the same way: a setting is wrong."""
    is_answered: bool = False
    """Whether there was an answer, which cannot be used."""


Outcome: TypeAlias = Answer | Failure
Operation: TypeAlias = Generator[Call | Pause, Outcome | None, T]


class Unusable(Exception):
    """An answer is too long, or compressed."""


class Spool:
    """The content of an answer while it arrives: little in memory, however long it is."""

    def __init__(self, most_bytes: int) -> None:
        self._file: Any = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - its mapping outlives it
        self._size, self._most = 0, most_bytes
        self._digest = hashlib.sha256()

    def begin(self, *, is_success: bool, encoding: str) -> None:
        """Before the first byte: nothing is decompressed here, and an answer without success is short."""
        if encoding.lower() not in {"", "identity"}:
            raise Unusable("the answer is compressed, which was not asked for")
        if not is_success:
            self._most = min(self._most, _MOST_PROBLEM_BYTES)

    def write(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._size > self._most:
            raise Unusable(f"the answer is longer than {self._most} bytes")
        self._digest.update(chunk)
        self._file.write(chunk)

    def close(self) -> None:
        self._file.close()

    def answer(self, status: int, headers: Mapping[str, str]) -> Answer:
        """All bytes. A long content is a map of the file: it takes memory only where it is read."""
        self._file.seek(0)
        sha256 = self._digest.hexdigest()
        if self._size <= _IN_MEMORY:
            return Answer(status, headers, pa.py_buffer(self._file.read()), sha256)
        mapped = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        return Answer(status, headers, pa.py_buffer(mapped), sha256, lambda: _unload(mapped))


def _unload(mapped: mmap.mmap) -> None:
    if hasattr(mmap, "MADV_DONTNEED"):  # not on every system
        mapped.madvise(mmap.MADV_DONTNEED)
