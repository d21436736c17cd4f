"""Files of releases: uploads and answers, in files without a name. However the service ends, nothing is left behind.

Every read, write and hash runs in a thread: a slow disk must not stall the event loop.
"""

import asyncio
import hashlib
import mmap
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import IO, ParamSpec, TypeVar

import pyarrow as pa

from app.errors import Busy

__all__ = [
    "SharedFile",
    "chunks_of",
    "digest_of",
    "in_file_thread",
    "mapped",
    "overwrite",
    "read_file",
    "spool",
    "write_all",
]

P = ParamSpec("P")
T = TypeVar("T")

_CHUNK_BYTES = 1024**2
_FILE_THREADS = ThreadPoolExecutor(4, thread_name_prefix="release-files")


class SharedFile:
    """An open file without a name. Pickled, it tells a worker how to open the same file.

    The worker opens it through /proc. Python can also hand over the descriptor itself, but that would keep the file
    open if the worker died before it took the descriptor.
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

    async def close(self) -> None:
        """To close a file without a name frees its blocks, which takes long for a large one."""
        await in_file_thread(self.file.close)


class _FileElsewhere(SharedFile):
    """The file of another process. It is opened when the context is entered."""

    def __init__(self, path: str, identity: tuple[int, int]) -> None:
        self._path = path
        self._identity = identity

    def __enter__(self) -> IO[bytes]:
        super().__init__(open(self._path, "r+b"))
        if _identity(self.file.fileno()) != self._identity:  # closed there, and the descriptor is in use again
            self.file.close()
            raise FileNotFoundError
        return self.file


def _identity(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def spool() -> SharedFile:
    """An empty file that no other program can find, and that is gone when it is closed. Busy if none can be made.

    It has no buffer. A buffer would keep the bytes that a full disk refuses, and fail again when the file is closed.
    """
    try:
        return SharedFile(tempfile.TemporaryFile(buffering=0))
    except OSError:
        pass
    raise Busy


async def in_file_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of work on files, from threads that do nothing else."""
    return await asyncio.get_running_loop().run_in_executor(_FILE_THREADS, lambda: work(*args, **kwargs))


def write_all(file: IO[bytes], content: bytes | bytearray) -> None:
    """All of it, or an OSError: a file without a buffer may write a part only."""
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]


def read_file(file: IO[bytes]) -> Iterator[bytes]:
    """The content of a file from its beginning, in a thread."""
    file.seek(0)
    while chunk := file.read(_CHUNK_BYTES):
        yield chunk


async def chunks_of(shared: SharedFile) -> AsyncIterator[bytes]:
    """The content of a file from its beginning, on the event loop.

    The file is closed before its last chunk is sent, so no file is open after the answer is complete.
    """
    try:
        await in_file_thread(shared.file.seek, 0)
        chunk = await in_file_thread(shared.file.read, _CHUNK_BYTES)
        while chunk:
            following = await in_file_thread(shared.file.read, _CHUNK_BYTES)
            if not following:
                await shared.close()
            yield chunk
            chunk = following
    finally:
        await shared.close()


def digest_of(file: IO[bytes]) -> bytes:
    """The SHA-256 of a file, in a thread."""
    digest = hashlib.sha256()
    for chunk in read_file(file):
        digest.update(chunk)
    return digest.digest()


def overwrite(file: IO[bytes], content: Iterable[bytes]) -> None:
    """Replace what the file holds, in a thread."""
    file.seek(0)
    file.truncate()
    for part in content:
        write_all(file, part)


def mapped(file: IO[bytes]) -> pa.Buffer:
    """The file as memory that the operating system fills as it is read."""
    is_empty = file.seek(0, 2) == 0
    return pa.py_buffer(b"" if is_empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
