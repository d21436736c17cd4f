"""Forms with a table: the part ``request`` comes first and is checked, then the part ``table`` goes to a file."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from multipart import MultipartError, MultipartSegment, PushMultipartParser, parse_options_header
from starlette.exceptions import HTTPException
from starlette.types import Scope

from app.errors import Busy, InvalidRequest
from app.http.json_route import content_type
from app.http.problems import InvalidMultipart
from app.releases.spool import SharedFile, in_file_thread, spool, write_all
from gsh.errors import TooManyGroups

__all__ = ["Upload", "receive_upload"]

T = TypeVar("T")

_REQUEST, _TABLE = "request", "table"
_BUFFER = 1 << 20


@dataclass(frozen=True, slots=True)
class Upload(Generic[T]):
    """A form that has arrived."""

    request: bytes
    checked: T
    """What the check of the request gave."""
    table: SharedFile


async def receive_upload(
    scope: Scope, chunks: AsyncIterator[bytes], max_request_bytes: int, check: Callable[[bytes], Coroutine[Any, Any, T]]
) -> Upload[T]:
    """The part ``request``, then the part ``table``, and no others. The caller closes the table.

    ``check`` gets the request. Its error ends the upload before the table is read.
    """
    if content_type(scope) != b"multipart/form-data":
        raise HTTPException(415)
    ahead = _Chunks(chunks)
    form = _Form(spool(), max_request_bytes, lambda content: ahead.during(check(content)))
    try:
        return await form.receive(_boundary(scope), ahead)
    except MultipartError:
        refusal: Exception = InvalidMultipart()
    except OSError:  # most likely the disk has no room for the table
        refusal = Busy()
    except BaseException:
        await form.table.close()
        raise
    finally:
        ahead.stop()
    await form.table.close()
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


class _Form(Generic[T]):
    """The parts of a form while they arrive."""

    def __init__(self, table: SharedFile, max_request_bytes: int, check: Callable[[bytes], Awaitable[T]]) -> None:
        self.table = table
        self._max_request_bytes = max_request_bytes
        self._check = check
        self._request, self._pending = bytearray(), bytearray()
        self._seen: list[str] = []
        self._checked: list[T] = []

    async def receive(self, boundary: str, chunks: AsyncIterator[bytes]) -> Upload[T]:
        with PushMultipartParser(boundary, strict=True) as parser:
            async for chunk in chunks:
                for event in parser.parse(chunk) if chunk else ():
                    if isinstance(event, MultipartSegment):
                        self._begin(event.name)
                    elif event is None:
                        await self._end()
                    else:
                        await self._take(event)
        await self._write()
        for name in (_REQUEST, _TABLE):
            if name not in self._seen:
                raise InvalidRequest(f"/{name}", "is required, as a part of the form")
        (checked,) = self._checked
        return Upload(bytes(self._request), checked, self.table)

    def _begin(self, name: str) -> None:
        if name not in (_REQUEST, _TABLE) or name in self._seen:
            raise InvalidRequest("", "must be a form of one part called request and one called table")
        if name == _TABLE and not self._seen:  # up to 4 GiB, for a request that may be refused
            raise InvalidRequest("/request", "must be the first part of the form")
        self._seen.append(name)

    async def _take(self, content: bytes | bytearray) -> None:
        if self._seen[-1] == _TABLE:
            self._pending += content
            if len(self._pending) >= _BUFFER:
                await self._write()
            return
        self._request += content
        if len(self._request) > self._max_request_bytes:
            raise TooManyGroups("/request", f"must have at most {self._max_request_bytes} bytes")

    async def _end(self) -> None:
        if self._seen[-1] == _REQUEST:
            self._checked.append(await self._check(bytes(self._request)))

    async def _write(self) -> None:
        pending, self._pending = self._pending, bytearray()
        await in_file_thread(write_all, self.table.file, pending)


def _boundary(scope: Scope) -> str:
    header = next(value for name, value in scope["headers"] if name == b"content-type")
    _, options = parse_options_header(header.decode("latin-1"))
    return str(options.get("boundary", ""))
