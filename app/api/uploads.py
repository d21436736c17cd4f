"""Multipart uploads, spooled to files without a name: nothing of a table is left behind, however the service ends."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import IO, NamedTuple, TypeVar

from multipart import MultipartError, MultipartSegment, PushMultipartParser, parse_options_header
from starlette.exceptions import HTTPException
from starlette.types import Scope

from app.api.json_route import content_type
from app.api.problems import Busy, InvalidMultipart
from gsh.release.errors import InvalidGroups, TooManyGroups

__all__ = ["SharedFile", "Upload", "in_file_thread", "receive_upload", "spool", "write_all"]

T = TypeVar("T")

_REQUEST, _TABLE = "request", "table"
_BUFFER = 1 << 20
_FILE_THREADS = ThreadPoolExecutor(4, thread_name_prefix="release-files")


class SharedFile:
    """An open file without a name, which pickles as a way for another process of the service to open it too.

    That way is through /proc. To hand over a descriptor, Python's own means, would keep the file for ever if the other
    process died before it took it.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file

    def __reduce__(self) -> tuple[type["_FileElsewhere"], tuple[str, tuple[int, int]]]:
        descriptor = self.file.fileno()
        return _FileElsewhere, (f"/proc/{os.getpid()}/fd/{descriptor}", _identity(descriptor))

    def __enter__(self) -> IO[bytes]:
        return self.file

    def __exit__(self, *_: object) -> None:
        self.file.close()


class _FileElsewhere(SharedFile):
    """The file of another process, opened when it is entered."""

    def __init__(self, path: str, identity: tuple[int, int]) -> None:
        self._path = path
        self._identity = identity

    def __enter__(self) -> IO[bytes]:
        super().__init__(open(self._path, "r+b"))
        if _identity(self.file.fileno()) != self._identity:  # it was closed, and the number is another's by now
            self.file.close()
            raise FileNotFoundError
        return self.file


def _identity(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


class Upload(NamedTuple):
    """The parts of a form: ``request``, which is JSON, and ``table``."""

    request: bytes
    table: SharedFile


def spool() -> SharedFile:
    """An empty file that nobody else can find, and that is gone when it is closed. Busy where none can be made.

    Without a buffer: what a full disk refuses would stay in one, and be refused again when the file is closed.
    """
    try:
        return SharedFile(tempfile.TemporaryFile(buffering=0))
    except OSError:
        pass
    raise Busy


async def in_file_thread(work: Callable[[], T]) -> T:
    """The result of work on files of releases, from threads that nothing else waits for."""
    return await asyncio.get_running_loop().run_in_executor(_FILE_THREADS, work)


async def receive_upload(scope: Scope, chunks: AsyncIterator[bytes], max_request_bytes: int) -> Upload:
    """The two parts of a form, in either order, and no others; the caller closes the table."""
    if content_type(scope) != b"multipart/form-data":
        raise HTTPException(415)
    table = spool()
    try:
        return Upload(await _parts(_boundary(scope), chunks, table.file, max_request_bytes), table)
    except MultipartError:
        table.file.close()
        refusal: Exception = InvalidMultipart()
    except OSError:  # no room to spool it, most likely
        table.file.close()
        refusal = Busy()
    except BaseException:
        table.file.close()
        raise
    raise refusal  # outside of the handlers: there it would keep their exception, and that the bytes received


def _boundary(scope: Scope) -> str:
    header = next(value for name, value in scope["headers"] if name == b"content-type")
    _, options = parse_options_header(header.decode("latin-1"))
    return str(options.get("boundary", ""))


async def _parts(boundary: str, chunks: AsyncIterator[bytes], table: IO[bytes], max_request_bytes: int) -> bytes:
    request, spooled = bytearray(), bytearray()
    seen: list[str] = []
    with PushMultipartParser(boundary, strict=True) as parser:
        async for chunk in chunks:
            for event in parser.parse(chunk) if chunk else ():
                if isinstance(event, MultipartSegment):
                    seen.append(_checked(event.name, seen))
                elif event is not None and seen[-1] == _TABLE:
                    spooled += event
                elif event is not None:
                    request += event
            if len(request) > max_request_bytes:
                raise TooManyGroups("/request", f"must have at most {max_request_bytes} bytes")
            if len(spooled) >= _BUFFER:
                await in_file_thread(partial(write_all, table, spooled))
                spooled = bytearray()
    await in_file_thread(partial(write_all, table, spooled))
    for name in (_REQUEST, _TABLE):
        if name not in seen:
            raise InvalidGroups(f"/{name}", "is required, as a part of the form")
    return bytes(request)


def write_all(file: IO[bytes], content: bytes | bytearray) -> None:
    """All of it, or an OSError: a file without a buffer may take a part."""
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]


def _checked(name: str, seen: list[str]) -> str:
    if name not in (_REQUEST, _TABLE) or name in seen:
        raise InvalidGroups("", "must be a form of one part called request and one called table")
    return name
