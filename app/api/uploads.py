"""Forms with a table: the part ``request`` is checked as soon as it has arrived, the part ``table`` goes to a file."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from multipart import MultipartError, MultipartSegment, PushMultipartParser, parse_options_header
from starlette.exceptions import HTTPException
from starlette.types import Scope

from app.api.json_route import content_type
from app.api.problems import InvalidMultipart
from app.service.errors import Busy
from app.service.spool import SharedFile, in_file_thread, spool, write_all
from gsh.histogram.errors import InvalidGroups, TooManyGroups

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
    scope: Scope, chunks: AsyncIterator[bytes], max_request_bytes: int, check: Callable[[bytes], Awaitable[T]]
) -> Upload[T]:
    """The two parts of a form, in either order, and no others. The caller closes the table.

    ``check`` gets the part ``request``. If that part comes first, an error of ``check`` ends the upload before the
    table is read.
    """
    if content_type(scope) != b"multipart/form-data":
        raise HTTPException(415)
    form = _Form(spool(), max_request_bytes, check)
    try:
        return await form.receive(_boundary(scope), chunks)
    except MultipartError:
        refusal: Exception = InvalidMultipart()
    except OSError:  # most likely the disk has no room for the table
        refusal = Busy()
    except BaseException:
        await form.table.close()
        raise
    await form.table.close()
    raise refusal  # outside of the handlers: there it would keep their exception, and that the bytes received


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
                raise InvalidGroups(f"/{name}", "is required, as a part of the form")
        (checked,) = self._checked
        return Upload(bytes(self._request), checked, self.table)

    def _begin(self, name: str) -> None:
        if name not in (_REQUEST, _TABLE) or name in self._seen:
            raise InvalidGroups("", "must be a form of one part called request and one called table")
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
