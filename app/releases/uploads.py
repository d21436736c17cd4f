"""Forms with files: each part goes to a file when it is asked for. In forms of releases ``request`` is first."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from typing import IO, Any, TypeVar

from multipart import MultipartError, MultipartSegment, PushMultipartParser, parse_options_header
from starlette.exceptions import HTTPException
from starlette.types import Scope

from app.errors import Busy, InvalidRequest
from app.http.json_route import content_type
from app.http.problems.errors import InvalidMultipart
from app.releases.spool import SharedFile, in_file_thread, spool, write_all
from gsh.errors import TooManyGroups
from gsh.histogram.file_formats import EXTENSIONS

__all__ = ["Form"]

T = TypeVar("T")

_REQUEST, _TABLE, _FILE = "request", "table", "file"
_MOST_FILES, _LONGEST_NAME = 200, 255
_BUFFER = 1 << 20


class Form:
    """The part ``request``, then the parts ``table``; or parts ``file``. No others, while they arrive."""

    def __init__(self, scope: Scope, chunks: AsyncIterator[bytes], max_request_bytes: int = 0) -> None:
        self.content = b""
        """The part ``request``, after it has arrived."""
        self._scope = scope
        self._chunks = _Chunks(chunks)
        self._max_request_bytes = max_request_bytes
        self._events: Iterator[MultipartSegment | bytearray | bytes | None] = iter(())

    async def request(self, work: Callable[[bytes], Coroutine[Any, Any, T]]) -> T:
        """The result of ``work`` on the part ``request``. It is cancelled if the client hangs up."""
        self.content = await _refusing(self._request())
        return await self._chunks.during(work(self.content))

    async def tables(self, names: Sequence[str] = ("",)) -> list[SharedFile]:
        """The parts ``table`` in files, in the order of the names, which the caller closes.

        The file name of a part is the name of its table, with or without the ending of a format. If the only name is
        empty, there is one part, whatever its file name is.
        """
        files = await self._arrived(lambda files: self._write_tables(names, files))
        return [files[name] for name in names]

    async def files(self) -> dict[str, SharedFile]:
        """The parts ``file`` in files by their file names, which the caller closes. The form has nothing else."""
        return await self._arrived(self._write_files)

    def stop(self) -> None:
        """Read no more."""
        self._chunks.stop()

    async def _arrived(
        self, write: Callable[[dict[str, SharedFile]], Coroutine[Any, Any, None]]
    ) -> dict[str, SharedFile]:
        """The files that ``write`` has filled; all are closed if it fails."""
        files: dict[str, SharedFile] = {}
        try:
            await _refusing(write(files))
        except BaseException:
            for file in files.values():
                await file.close()
            raise
        return files

    def _begin(self) -> None:
        if content_type(self._scope) != b"multipart/form-data":
            raise HTTPException(415)
        self._parser = PushMultipartParser(_boundary(self._scope), strict=True)

    async def _request(self) -> bytes:
        self._begin()
        request = bytearray()
        part = await self._next_part()
        if part is None:
            raise InvalidRequest("/request", "is required, as a part of the form")
        if part.name == _TABLE:  # up to 4 GiB, for a request that may be refused
            raise InvalidRequest("/request", "must be the first part of the form")
        if part.name != _REQUEST:
            raise _other_part(("",))
        while content := await self._content():
            request += content
            if len(request) > self._max_request_bytes:
                raise TooManyGroups("/request", f"must have at most {self._max_request_bytes} bytes")
        return bytes(request)

    async def _write_files(self, files: dict[str, SharedFile]) -> None:
        self._begin()
        while (part := await self._next_part()) is not None:
            name = _file_of(part)
            if name in files:
                raise InvalidRequest("/file", "must have another file name in each part")
            if len(files) == _MOST_FILES:
                raise InvalidRequest("/file", f"must be at most {_MOST_FILES} parts")
            files[name] = spool()
            await self._write(files[name].file)
        if not files:
            raise InvalidRequest("/file", "is required, as a part of the form")

    async def _write_tables(self, names: Sequence[str], files: dict[str, SharedFile]) -> None:
        while (part := await self._next_part()) is not None:
            name = _table_of(part, names)
            if name in files:
                raise _repeated(name, names)
            files[name] = spool()
            await self._write(files[name].file)
        for k, name in enumerate(names):
            if name not in files:
                raise _missing(k, name)

    async def _write(self, file: IO[bytes]) -> None:
        pending = bytearray()
        while content := await self._content():
            pending += content
            if len(pending) >= _BUFFER:
                await in_file_thread(write_all, file, pending)
                pending = bytearray()
        await in_file_thread(write_all, file, pending)

    async def _next_part(self) -> MultipartSegment | None:
        """The part that begins; None at the end of the form."""
        event = await self._event()
        assert event is None or isinstance(event, MultipartSegment)
        return event

    async def _content(self) -> bytes | bytearray | None:
        """The next piece of a part; None at its end."""
        event = await self._event()
        assert not isinstance(event, MultipartSegment)
        return event

    async def _event(self) -> MultipartSegment | bytes | bytearray | None:
        """The beginning of a part, a piece of it, or None at its end; and None at the end of the form."""
        while True:
            for event in self._events:
                return event
            chunk = await anext(self._chunks, None)
            if chunk is None:
                self._parser.close()  # an error if the form is not complete
                return None
            self._events = iter(self._parser.parse(chunk) if chunk else ())


def _file_of(part: MultipartSegment) -> str:
    """The file name of a part. A path before it is left out."""
    if part.name != _FILE:
        raise InvalidRequest("", "must be a form of parts called file only")
    name: str = (part.filename or "").replace("\\", "/").rpartition("/")[2]
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise InvalidRequest("/file", f"must have a file name of 1 to {_LONGEST_NAME} characters")
    return name


def _table_of(part: MultipartSegment, names: Sequence[str]) -> str:
    """The name of the table that a part is."""
    if part.name != _TABLE:
        raise _other_part(names)
    if _is_unnamed(names):
        return ""
    file: str = part.filename or ""
    if file in names:
        return file
    stem, dot, ending = file.rpartition(".")
    name = stem if f"{dot}{ending.lower()}" in EXTENSIONS else file
    if name not in names:
        raise InvalidRequest("/table", "has a part whose file name is not the name of one of the tables")
    return name


def _is_unnamed(names: Sequence[str]) -> bool:
    return list(names) == [""]


def _other_part(names: Sequence[str]) -> InvalidRequest:
    number = "one called table" if _is_unnamed(names) else "one called table for each of its tables"
    return InvalidRequest("", f"must be a form of one part called request and {number}")


def _repeated(name: str, names: Sequence[str]) -> InvalidRequest:
    if _is_unnamed(names):
        return _other_part(names)
    return InvalidRequest(f"/tables/{list(names).index(name)}", "must come once: two parts have its name as file name")


def _missing(k: int, name: str) -> InvalidRequest:
    if not name:
        return InvalidRequest("/table", "is required, as a part of the form")
    return InvalidRequest(f"/tables/{k}", "is required, as a part called table of the form, with its name as file name")


async def _refusing(receiving: Coroutine[Any, Any, T]) -> T:
    """What arrives, or an error that keeps nothing of it: a form may be damaged, or the disk may be full."""
    try:
        return await receiving
    except MultipartError:
        refusal: Exception = InvalidMultipart()
    except OSError:  # most likely the disk has no room for the table
        refusal = Busy()
    raise refusal  # outside of the handlers: there it would keep their exception, and that the bytes received


class _Chunks:
    """A body as it arrives. While a request is checked, the body is read ahead, to notice a client that hangs up."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._ahead: deque[bytes] = deque()
        self._next: asyncio.Task[bytes] | None = None

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._ahead:
            return self._ahead.popleft()
        return await self._following()

    async def during(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of ``work``. It is cancelled if the body breaks off before."""
        task = asyncio.create_task(work)
        try:
            while not task.done() and sum(map(len, self._ahead)) < _BUFFER:
                following = self._begin()
                await asyncio.wait({task, following}, return_when=asyncio.FIRST_COMPLETED)
                if not following.done() or isinstance(following.exception(), StopAsyncIteration):
                    break
                self._ahead.append(await self._following())
            return await task
        finally:
            task.cancel()

    def stop(self) -> None:
        """Read no more."""
        if self._next is not None and not self._next.cancel():
            self._next.exception()  # nothing awaits it

    def _begin(self) -> "asyncio.Task[bytes]":
        if self._next is None:
            self._next = asyncio.ensure_future(self._read())
        return self._next

    async def _following(self) -> bytes:
        following = self._begin()
        chunk = await following
        self._next = None
        return chunk

    async def _read(self) -> bytes:
        return await anext(self._chunks)


def _boundary(scope: Scope) -> str:
    header = next(value for name, value in scope["headers"] if name == b"content-type")
    _, options = parse_options_header(header.decode("latin-1"))
    return str(options.get("boundary", ""))
